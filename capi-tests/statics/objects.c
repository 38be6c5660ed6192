// The exported objects are C globals: there before any code runs, writable, and the same for the program and the library.
#include "copy.h"
#include "device.h"
#include "layout.h"
#include "memory.h"
#include "test.h"

extern struct aml_dma_cuda_data aml_dma_cuda_data; /* no header declares it */

static int seen_early;

/* Runs before the constructors of any library. A program without a loader of its own (static) has none of those. */
static void look_early(int argc, char **argv, char **environment)
{
	(void)argc, (void)argv, (void)environment;
	seen_early = aml_dma_cuda.ops == &aml_dma_cuda_ops && (void *)aml_dma_cuda.data == (void *)&aml_dma_cuda_data &&
		     aml_dma_cuda_ops.create_request && aml_dma_cuda_ops.destroy_request && aml_dma_cuda_ops.wait_request &&
		     aml_dma_cuda_ops.barrier && aml_dma_cuda_ops.fprintf && aml_dma_cuda_data.kind == cudaMemcpyDefault &&
		     aml_dma_cuda_data.stream == NULL;
}
__attribute__((section(".preinit_array"), used)) static void (*early)(int, char **, char **) = look_early;

TEST(the_objects_are_initialised_before_any_code_runs) { REQUIRE(seen_early); }

TEST(the_library_uses_the_objects_of_the_program)
{
	use_device(0);
	struct aml_dma *dma = dma_new(cudaMemcpyDefault);
	REQUIRE(dma->ops == &aml_dma_cuda_ops && aml_dma_cuda.ops == &aml_dma_cuda_ops);
	dma_end(dma);
	leave_device(0);
}

static int hooked;
static int (*wait_before)(struct aml_dma_data *, struct aml_dma_request **);

static int count_waits(struct aml_dma_data *data, struct aml_dma_request **req)
{
	hooked++;
	return wait_before(data, req);
}

TEST(the_table_of_operations_can_be_hooked)
{
	char from[64], to[64];
	use_device(0);
	wait_before = aml_dma_cuda_ops.wait_request;
	aml_dma_cuda_ops.wait_request = count_waits;
	struct aml_dma *dma = dma_new(cudaMemcpyDefault), *all[] = {dma, &aml_dma_cuda};
	for (int i = 0; i < 2; i++) {
		request *req;
		memory_fill(from, sizeof from, (unsigned)i);
		REQUIRE_EQ(all[i]->ops->create_request(all[i]->data, &req, (void *)to, (void *)from, aml_dma_cuda_memcpy_op,
						       (void *)sizeof to),
			   AML_SUCCESS);
		REQUIRE_EQ(all[i]->ops->wait_request(all[i]->data, &req), AML_SUCCESS);
		REQUIRE(hooked == i + 1 && memory_holds(to, sizeof to, (unsigned)i));
	}
	dma_end(dma); /* which the library does not do through the table */
	aml_dma_cuda_ops.wait_request = wait_before;
	leave_device(0);
}

TEST(every_entry_of_the_table_does_what_the_function_does)
{
	char from[64], to[64];
	request *req;
	use_device(0);
	struct aml_dma *dma = dma_new(cudaMemcpyDefault);
	memory_fill(from, sizeof from, 3);
	REQUIRE_EQ(dma->ops->create_request(dma->data, &req, (void *)to, (void *)from, aml_dma_cuda_memcpy_op, (void *)sizeof to),
		   AML_SUCCESS);
	REQUIRE_EQ(dma->ops->barrier(dma->data), AML_SUCCESS);
	REQUIRE_EQ(status_of(req), DONE);
	REQUIRE_EQ(dma->ops->destroy_request(dma->data, &req), AML_SUCCESS);
	REQUIRE(req == NULL && memory_holds(to, sizeof to, 3));
	REQUIRE_EQ(dma->ops->create_request(NULL, &req, (void *)to, (void *)from, NULL, NULL), -AML_EINVAL);
	REQUIRE_EQ(dma->ops->wait_request(NULL, &req), -AML_EINVAL);
	REQUIRE_EQ(dma->ops->destroy_request(dma->data, NULL), -AML_EINVAL);
	REQUIRE_EQ(dma->ops->barrier(NULL), -AML_EINVAL);
	dma_end(dma);
	leave_device(0);
}

TEST(the_kind_of_the_static_dma_can_be_changed)
{
	char from[64], to[64];
	struct test_layout d, s;
	use_device(0);
	char *device = memory_new(DEVICE, 64);
	memory_fill(from, sizeof from, 1);
	aml_dma_cuda_data.kind = cudaMemcpyHostToDevice;
	REQUIRE_EQ(copy(data_of(&aml_dma_cuda), device, from, 64), AML_SUCCESS);
	REQUIRE(memory_holds(device, 64, 1));
	REQUIRE_EQ(copy(data_of(&aml_dma_cuda), to, from, 64), -AML_FAILURE); /* as that kind answers */
	aml_dma_cuda_data.kind = cudaMemcpyDeviceToDevice;
	REQUIRE_EQ(copy(data_of(&aml_dma_cuda), device, device, 64), -AML_ENOTSUP);
	request *req;
	REQUIRE_EQ(aml_dma_cuda_request_create(data_of(&aml_dma_cuda), &req, layout_bytes(&d, device + 32, 32),
					       layout_bytes(&s, device, 32), NULL, NULL),
		   AML_SUCCESS);
	REQUIRE_EQ(aml_dma_cuda_request_wait(data_of(&aml_dma_cuda), &req), AML_SUCCESS);
	aml_dma_cuda_data.kind = cudaMemcpyDeviceToHost;
	REQUIRE_EQ(copy(data_of(&aml_dma_cuda), to, device, 32), AML_SUCCESS);
	REQUIRE(memory_holds(to, 32, 1));
	aml_dma_cuda_data.kind = cudaMemcpyDefault;
	memory_free(DEVICE, device);
	leave_device(0);
}

TEST(the_stream_of_the_static_dma_can_be_changed)
{
	char from[64], to[64];
	use_device(0);
	CUstream own = create_stream();
	memory_fill(from, sizeof from, 1);
	aml_dma_cuda_data.stream = (cudaStream_t)own;
	REQUIRE_EQ(copy(data_of(&aml_dma_cuda), to, from, 64), AML_SUCCESS);
	REQUIRE(memory_holds(to, 64, 1));
	struct aml_dma *dma = &aml_dma_cuda;
	REQUIRE_EQ(aml_dma_cuda_destroy(&dma), -AML_EINVAL);
	aml_dma_cuda_data.stream = NULL;
	CUDA(cuStreamDestroy(own));
	leave_device(0);
}

TEST(the_static_dma_may_be_pointed_at_other_data)
{
	char from[64], to[64];
	use_device(0);
	struct aml_dma_cuda_data mine = {(cudaStream_t)create_stream(), cudaMemcpyDefault};
	struct aml_dma_data *const before = aml_dma_cuda.data;
	aml_dma_cuda.data = (struct aml_dma_data *)&mine;
	memory_fill(from, sizeof from, 1);
	REQUIRE_EQ(copy(aml_dma_cuda.data, to, from, 64), AML_SUCCESS);
	REQUIRE(memory_holds(to, 64, 1));
	struct aml_dma *dma = &aml_dma_cuda;
	REQUIRE_EQ(aml_dma_cuda_destroy(&dma), -AML_EINVAL);
	aml_dma_cuda.data = before;
	CUDA(cuStreamDestroy((CUstream)mine.stream));
	leave_device(0);
}
