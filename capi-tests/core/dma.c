// The generic calls on a CUDA DMA: they reach its table, also one that the program changed, and refuse what is NULL.
#include "copy.h"
#include "device.h"
#include "memory.h"
#include "test.h"
#include <aml.h>
#include <aml/layout/dense.h>
#include <stdint.h>
#include <string.h>

enum { SIZE = 70000 };

static struct aml_layout *bytes(void *ptr, size_t size)
{
	struct aml_layout *layout = NULL;
	REQUIRE_EQ(aml_layout_dense_create(&layout, ptr, AML_LAYOUT_ORDER_C, 1, 1, &size, NULL, NULL), AML_SUCCESS);
	return layout;
}

TEST(copies_with_and_without_waiting_arrive)
{
	use_device(0);
	struct aml_dma *dma = dma_new(cudaMemcpyDefault);
	char *from = memory_new(PINNED, SIZE), *there = memory_new(DEVICE, SIZE), *to = memory_new(PINNED, SIZE);
	memory_fill(from, SIZE, 1);
	memory_set(to, SIZE, 0);
	struct aml_layout *source = bytes(from, SIZE), *device = bytes(there, SIZE), *destination = bytes(to, SIZE);
	REQUIRE_EQ(aml_dma_copy(dma, device, source), AML_SUCCESS);
	request *req;
	memset(&req, 0x5a, sizeof req); /* AML's generic layer passes what was never initialised */
	REQUIRE_EQ(aml_dma_async_copy(dma, &req, destination, device), AML_SUCCESS);
	REQUIRE_EQ(aml_dma_wait(dma, &req), AML_SUCCESS);
	REQUIRE(req == NULL && memory_holds(to, SIZE, 1));

	memory_set(to, SIZE, 0);
	REQUIRE_EQ(aml_dma_async_copy(dma, NULL, destination, device), AML_SUCCESS);
	REQUIRE_EQ(aml_dma_barrier(dma), AML_SUCCESS);
	REQUIRE(memory_holds(to, SIZE, 1));

	REQUIRE_EQ(aml_dma_async_copy_custom(dma, &req, (struct aml_layout *)to, (struct aml_layout *)there,
					     aml_dma_cuda_memcpy_op, (void *)(size_t)SIZE),
		   AML_SUCCESS);
	REQUIRE_EQ(aml_dma_cancel(dma, &req), AML_SUCCESS);
	REQUIRE(req == NULL);
	aml_layout_destroy(&source);
	aml_layout_destroy(&device);
	aml_layout_destroy(&destination);
	memory_free(PINNED, from);
	memory_free(DEVICE, there);
	memory_free(PINNED, to);
	dma_end(dma);
	leave_device(0);
}

static int fails(struct aml_layout *dst, const struct aml_layout *src, void *arg)
{
	(void)dst, (void)src;
	return -(int)(uintptr_t)((struct aml_dma_cuda_op_arg *)arg)->op_arg;
}

TEST(an_error_of_the_operator_comes_back_as_it_is)
{
	use_device(0);
	struct aml_dma *dma = dma_new(cudaMemcpyDefault);
	struct aml_layout *some = (struct aml_layout *)(uintptr_t)0x10;
	for (int error = AML_FAILURE; error < AML_ERROR_MAX; error++) {
		void *arg = (void *)(uintptr_t)error;
		request *const untouched = (request *)(uintptr_t)0xabcdef, *req = untouched;
		REQUIRE_EQ(aml_dma_copy_custom(dma, some, some, fails, arg), -error);
		REQUIRE_EQ(aml_dma_async_copy_custom(dma, &req, some, some, fails, arg), -error);
		REQUIRE(req == untouched);
	}
	dma_end(dma);
	leave_device(0);
}

TEST(what_is_null_is_refused)
{
	use_device(0);
	struct aml_dma *dma = dma_new(cudaMemcpyDefault);
	struct aml_layout *some = (struct aml_layout *)(uintptr_t)0x10;
	request *const untouched = (request *)(uintptr_t)0xabcdef, *req = untouched;
	REQUIRE_EQ(aml_dma_copy_custom(NULL, some, some, fails, NULL), -AML_EINVAL);
	REQUIRE_EQ(aml_dma_copy_custom(dma, NULL, some, fails, NULL), -AML_EINVAL);
	REQUIRE_EQ(aml_dma_copy_custom(dma, some, NULL, fails, NULL), -AML_EINVAL);
	REQUIRE_EQ(aml_dma_async_copy_custom(NULL, &req, some, some, fails, NULL), -AML_EINVAL);
	REQUIRE_EQ(aml_dma_async_copy_custom(dma, &req, NULL, some, fails, NULL), -AML_EINVAL);
	REQUIRE_EQ(aml_dma_async_copy_custom(dma, &req, some, NULL, fails, NULL), -AML_EINVAL);
	REQUIRE_EQ(aml_dma_wait(NULL, &req), -AML_EINVAL);
	REQUIRE_EQ(aml_dma_wait(dma, NULL), -AML_EINVAL);
	REQUIRE_EQ(aml_dma_cancel(NULL, &req), -AML_EINVAL);
	REQUIRE_EQ(aml_dma_cancel(dma, NULL), -AML_EINVAL);
	REQUIRE_EQ(aml_dma_barrier(NULL), -AML_EINVAL);
	REQUIRE_EQ(aml_dma_fprintf(NULL, "", dma), -AML_EINVAL);
	REQUIRE(req == untouched);
	dma_end(dma);
	leave_device(0);
}

static int wait_calls;

static int counted_wait(struct aml_dma_data *data, request **req)
{
	(void)data, (void)req;
	wait_calls++;
	return -AML_EBUSY;
}

TEST(a_changed_table_is_honoured)
{
	struct aml_dma_ops own = aml_dma_cuda_ops;
	use_device(0);
	struct aml_dma *dma = dma_new(cudaMemcpyDefault);
	struct aml_dma other = {&own, dma->data};
	own.wait_request = counted_wait;
	own.fprintf = NULL;
	own.barrier = NULL;
	request *req = NULL;
	REQUIRE_EQ(aml_dma_wait(&other, &req), -AML_EBUSY);
	REQUIRE_EQ(wait_calls, 1);
	REQUIRE_EQ(aml_dma_fprintf(stdout, "", &other), -AML_ENOTSUP);
	REQUIRE_EQ(aml_dma_barrier(&other), -AML_ENOTSUP);
	dma_end(dma);
	leave_device(0);
}

TEST(a_dma_describes_itself)
{
	char *text = NULL;
	size_t length;
	use_device(0);
	struct aml_dma *dma = dma_new(cudaMemcpyHostToDevice);
	FILE *stream = open_memstream(&text, &length);
	REQUIRE_EQ(aml_dma_fprintf(stream, "dma> ", dma), AML_SUCCESS);
	fclose(stream);
	REQUIRE(strncmp(text, "dma> ", 5) == 0 && strstr(text, "HostToDevice"));
	REQUIRE(strchr(text, '\n') == text + length - 1);
	free(text);
	dma_end(dma);
	leave_device(0);
}
