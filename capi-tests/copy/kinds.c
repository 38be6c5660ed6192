// Every kind of copy between every two sorts of memory answers as the CUDA runtime did on a GPU: kinds-h200.csv.
#include "copy.h"
#include "device.h"
#include "layout.h"
#include "memory.h"
#include "test.h"
#include <string.h>

/* kind,src,dst,submit,sync,arrived; a kind "Peer(0;0)" is a copy between devices with that pair. */
static const char table[] =
#include "kinds-h200.h"
	;

static const char *const kind_names[] = {"HostToHost", "HostToDevice", "DeviceToHost", "DeviceToDevice", "Default"};

struct row {
	int kind, pair, submit, sync, arrived;
	enum sort src, dst;
};

static enum sort sort_of(const char *name)
{
	for (int sort = 0; sort < SORTS; sort++)
		if (strcmp(name, sort_name((enum sort)sort)) == 0)
			return (enum sort)sort;
	REQUIRE(!"a sort of memory");
	return SORTS;
}

/* Takes the next row off `text`; returns 0 at the end. */
static int next_row(const char **text, struct row *row)
{
	char kind[32], src[16], dst[16];
	int length = 0;
	if (sscanf(*text, "%31[^,],%15[^,],%15[^,],%d,%d,%d\n%n", kind, src, dst, &row->submit, &row->sync, &row->arrived,
		   &length) != 6)
		return 0;
	*text += length;
	row->src = sort_of(src);
	row->dst = sort_of(dst);
	row->pair = strcmp(kind, "Peer(0;0)") == 0;
	row->kind = row->pair ? cudaMemcpyDeviceToDevice : -1;
	for (int i = 0; i < 5; i++)
		if (strcmp(kind, kind_names[i]) == 0)
			row->kind = i;
	REQUIRE(row->kind >= 0);
	return 1;
}

typedef int (*starter)(dma_data *, request **, void *, void *, size_t, void *);

static int by_layouts(dma_data *data, request **req, void *dst, void *src, size_t size, void *op_arg)
{
	struct test_layout d, s;
	return aml_dma_cuda_request_create(data, req, layout_bytes(&d, dst, size), layout_bytes(&s, src, size),
					   aml_dma_cuda_copy_1D, op_arg);
}

static int by_bytes(dma_data *data, request **req, void *dst, void *src, size_t size, void *op_arg)
{
	(void)op_arg;
	return start(data, req, dst, src, size);
}

static void drive_row(const struct row *row, dma_data *data, size_t size, starter starter, void *op_arg)
{
	char *src = memory_new(row->src, size), *dst = memory_new(row->dst, size);
	request *const untouched = (request *)&size, *req = untouched;
	memory_fill(src, size, 7);
	memory_set(dst, size, 0xee);
	REQUIRE_EQ(starter(data, &req, dst, src, size, op_arg), row->submit ? -AML_FAILURE : AML_SUCCESS);
	REQUIRE_EQ(row->sync, 0);
	if (row->submit)
		REQUIRE(req == untouched);
	else
		REQUIRE_EQ(aml_dma_cuda_request_wait(data, &req), AML_SUCCESS);
	REQUIRE_EQ(aml_dma_cuda_barrier(data), AML_SUCCESS);
	REQUIRE(row->arrived ? memory_holds(dst, size, 7) : memory_is(dst, size, 0xee));
	REQUIRE(memory_holds(src, size, 7));
	memory_free(row->src, src);
	memory_free(row->dst, dst);
}

/* Every row through a dma; returns how many there were. */
static int drive(struct aml_dma_cuda_data *data, size_t size)
{
	const char *text = strchr(table, '\n') + 1;
	struct row row;
	int rows = 0;
	for (; next_row(&text, &row); rows++) {
		data->kind = (enum cudaMemcpyKind)row.kind;
		drive_row(&row, as_data(data), size, by_layouts, row.pair ? AML_DMA_CUDA_DEVICE_PAIR(0, 0) : NULL);
		if (row.kind == cudaMemcpyDeviceToDevice)
			continue;
		drive_row(&row, as_data(data), size, by_bytes, NULL);
		/* Other kinds ignore the pair. */
		drive_row(&row, as_data(data), size, by_layouts, AML_DMA_CUDA_DEVICE_PAIR(-3, 77));
	}
	return rows;
}

TEST(a_dma_of_the_library_answers_as_the_runtime_did)
{
	use_device(0);
	struct aml_dma *dma = dma_new(cudaMemcpyDefault);
	REQUIRE_EQ(drive(public_of(dma), 4096), 96);
	REQUIRE_EQ(drive(public_of(dma), 100001), 96);
	dma_end(dma);
	leave_device(0);
}

TEST(large_copies_answer_as_the_runtime_did)
{
	use_device(0);
	struct aml_dma *dma = dma_new(cudaMemcpyDefault);
	REQUIRE_EQ(drive(public_of(dma), (1 << 20) + 13), 96);
	dma_end(dma);
	leave_device(0);
}

extern struct aml_dma_cuda_data aml_dma_cuda_data; /* no header declares it */

TEST(the_static_dma_answers_as_the_runtime_did)
{
	use_device(0);
	REQUIRE_EQ(aml_dma_cuda_data.kind, cudaMemcpyDefault);
	REQUIRE_EQ(drive(&aml_dma_cuda_data, 4096), 96);
	aml_dma_cuda_data.kind = cudaMemcpyDefault;
	leave_device(0);
}

TEST(a_dma_of_the_program_answers_as_the_runtime_did)
{
	use_device(0);
	struct aml_dma_cuda_data data;
	CUstream blocking;
	CUDA(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
	const CUstream streams[] = {NULL, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD, blocking};
	for (size_t i = 0; i < sizeof streams / sizeof *streams; i++) {
		data.stream = (cudaStream_t)streams[i];
		REQUIRE_EQ(drive(&data, 4096), 96);
	}
	CUDA(cuStreamDestroy(blocking));
	leave_device(0);
}

TEST(memory_that_the_program_registered_counts_as_pinned)
{
	enum { SIZE = 1 << 16 };
	use_device(0);
	struct aml_dma *dma = dma_new(cudaMemcpyDefault);
	char *from = memory_new(PAGEABLE, SIZE), *to = memory_new(PAGEABLE, SIZE);
	CUDA(cuMemHostRegister(from, SIZE, CU_MEMHOSTREGISTER_PORTABLE));
	CUDA(cuMemHostRegister(to, SIZE, CU_MEMHOSTREGISTER_PORTABLE));
	for (int kind = 0; kind < 5; kind++) {
		struct test_layout d, s;
		public_of(dma)->kind = (enum cudaMemcpyKind)kind;
		memory_fill(from, SIZE, (unsigned)kind);
		request *req;
		REQUIRE_EQ(aml_dma_cuda_request_create(data_of(dma), &req, layout_bytes(&d, to, SIZE),
						       layout_bytes(&s, from, SIZE), NULL, NULL),
			   AML_SUCCESS);
		REQUIRE_EQ(aml_dma_cuda_request_wait(data_of(dma), &req), AML_SUCCESS);
		REQUIRE(memory_holds(to, SIZE, (unsigned)kind));
	}
	CUDA(cuMemHostUnregister(from));
	CUDA(cuMemHostUnregister(to));
	dma_end(dma);
	memory_free(PAGEABLE, from);
	memory_free(PAGEABLE, to);
	leave_device(0);
}

TEST(memcpy_op_does_not_support_device_to_device)
{
	enum { SIZE = 100 };
	use_device(0);
	struct aml_dma *dma = dma_new(cudaMemcpyDeviceToDevice);
	char *from = memory_new(DEVICE, SIZE), *to = memory_new(DEVICE, SIZE);
	request *const untouched = (request *)&from, *req = untouched;
	memory_fill(from, SIZE, 1);
	memory_set(to, SIZE, 0);
	REQUIRE_EQ(start(data_of(dma), &req, to, from, SIZE), -AML_ENOTSUP);
	REQUIRE_EQ(start(data_of(dma), NULL, to, from, SIZE), -AML_ENOTSUP);
	REQUIRE_EQ(start(data_of(dma), &req, to, from, 0), -AML_ENOTSUP);
	REQUIRE(req == untouched);
	REQUIRE_EQ(aml_dma_cuda_barrier(data_of(dma)), AML_SUCCESS);
	REQUIRE(memory_is(to, SIZE, 0));
	dma_end(dma);
	memory_free(DEVICE, from);
	memory_free(DEVICE, to);
	leave_device(0);
}

TEST(a_kind_that_does_not_exist_copies_nothing)
{
	const int kinds[] = {-1, 5, 1000};
	char from[64], to[64];
	struct test_layout d, s;
	use_device(0);
	struct aml_dma *dma = dma_new(cudaMemcpyDefault);
	memory_fill(from, sizeof from, 1);
	memory_set(to, sizeof to, 0);
	for (int i = 0; i < 3; i++) {
		request *const untouched = (request *)&s, *req = untouched;
		public_of(dma)->kind = (enum cudaMemcpyKind)kinds[i];
		REQUIRE(start(data_of(dma), &req, to, from, sizeof to) < 0);
		REQUIRE(aml_dma_cuda_request_create(data_of(dma), &req, layout_bytes(&d, to, 64), layout_bytes(&s, from, 64),
						    NULL, NULL) < 0);
		REQUIRE(req == untouched && memory_is(to, sizeof to, 0));
	}
	public_of(dma)->kind = cudaMemcpyDefault;
	REQUIRE_EQ(copy(data_of(dma), to, from, sizeof to), AML_SUCCESS);
	dma_end(dma);
	leave_device(0);
}
