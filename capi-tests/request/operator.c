// Operators of programs: they may use the same dma, queue work of their own, and fail with or without having queued any.
#include "copy.h"
#include "device.h"
#include "emulator.h"
#include "memory.h"
#include "park.h"
#include "test.h"
#include <stdint.h>
#include <string.h>

enum { SIZE = 10000 };

static request *const untouched = (request *)(uintptr_t)0xdeadbee8;
static struct aml_dma *dma;
static char *from, *middle, *to;

static void begin(void)
{
	use_device(0);
	dma = dma_new(cudaMemcpyDefault);
	from = memory_new(PINNED, SIZE);
	middle = memory_new(DEVICE, SIZE);
	to = memory_new(PINNED, SIZE);
	memory_fill(from, SIZE, 1);
	memory_set(middle, SIZE, 0);
	memory_set(to, SIZE, 0);
}

static void end(void)
{
	dma_end(dma);
	memory_free(PINNED, from);
	memory_free(DEVICE, middle);
	memory_free(PINNED, to);
	leave_device(0);
}

static int through_the_middle(struct aml_layout *dst, const struct aml_layout *src, void *arg)
{
	struct aml_dma_cuda_op_arg *a = arg;
	request *inner;
	REQUIRE_EQ(start(as_data(a->data), &inner, middle, src, SIZE), AML_SUCCESS);
	REQUIRE_EQ(aml_dma_cuda_request_wait(as_data(a->data), &inner), AML_SUCCESS);
	REQUIRE_EQ(start(as_data(a->data), NULL, dst, middle, SIZE), AML_SUCCESS);
	REQUIRE_EQ(aml_dma_cuda_barrier(as_data(a->data)), AML_SUCCESS);
	return AML_SUCCESS;
}

TEST(an_operator_may_create_wait_and_barrier_on_the_same_dma)
{
	request *req = untouched;
	begin();
	REQUIRE_EQ(aml_dma_cuda_request_create(data_of(dma), &req, (void *)to, (void *)from, through_the_middle, NULL),
		   AML_SUCCESS);
	REQUIRE_EQ(aml_dma_cuda_request_wait(data_of(dma), &req), AML_SUCCESS);
	REQUIRE(memory_holds(to, SIZE, 1));
	end();
}

static int nested(struct aml_layout *dst, const struct aml_layout *src, void *arg)
{
	struct aml_dma_cuda_op_arg *a = arg;
	size_t depth = (size_t)a->op_arg;
	request *inner;
	if (depth == 0)
		return aml_dma_cuda_memcpy_op(dst, src, &(struct aml_dma_cuda_op_arg){a->data, (void *)(size_t)SIZE});
	REQUIRE_EQ(aml_dma_cuda_request_create(as_data(a->data), &inner, dst, (struct aml_layout *)(uintptr_t)src, nested,
					       (void *)(depth - 1)),
		   AML_SUCCESS);
	return aml_dma_cuda_request_wait(as_data(a->data), &inner);
}

TEST(operators_nest)
{
	request *req;
	begin();
	REQUIRE_EQ(aml_dma_cuda_request_create(data_of(dma), &req, (void *)to, (void *)from, nested, (void *)(size_t)20),
		   AML_SUCCESS);
	REQUIRE_EQ(aml_dma_cuda_request_wait(data_of(dma), &req), AML_SUCCESS);
	REQUIRE(memory_holds(to, SIZE, 1));
	end();
}

static int queue_directly(struct aml_layout *dst, const struct aml_layout *src, void *arg)
{
	struct aml_dma_cuda_op_arg *a = arg;
	CUstream stream = (CUstream)a->data->stream;
	CUDA(cuMemcpyAsync((CUdeviceptr)(uintptr_t)middle, (CUdeviceptr)(uintptr_t)src, SIZE, stream));
	CUDA(cuMemcpyAsync((CUdeviceptr)(uintptr_t)dst, (CUdeviceptr)(uintptr_t)middle, SIZE, stream));
	return (int)(intptr_t)a->op_arg;
}

TEST(an_operator_may_use_the_stream_of_the_dma)
{
	begin();
	for (int i = 0; i < 100; i++) {
		request *req;
		memory_fill(from, SIZE, (unsigned)i);
		REQUIRE_EQ(aml_dma_cuda_request_create(data_of(dma), &req, (void *)to, (void *)from, queue_directly, NULL),
			   AML_SUCCESS);
		REQUIRE_EQ(aml_dma_cuda_request_wait(data_of(dma), &req), AML_SUCCESS);
		REQUIRE(memory_holds(to, SIZE, (unsigned)i));
	}
	end();
}

TEST(an_operator_may_fail_after_it_queued_work)
{
	request *req = untouched;
	begin();
	REQUIRE_EQ(aml_dma_cuda_request_create(data_of(dma), &req, (void *)to, (void *)from, queue_directly,
					       (void *)(intptr_t)-AML_EBUSY),
		   -AML_EBUSY);
	REQUIRE(req == untouched);
	REQUIRE_EQ(aml_dma_cuda_barrier(data_of(dma)), AML_SUCCESS); /* which covers that work */
	REQUIRE(memory_holds(to, SIZE, 1));
	struct counts before = counts_now();
	for (int i = 0; i < 1000; i++)
		REQUIRE_EQ(aml_dma_cuda_request_create(data_of(dma), &req, (void *)to, (void *)from, queue_directly,
						       (void *)(intptr_t)-AML_EBUSY),
			   -AML_EBUSY);
	REQUIRE_EQ(aml_dma_cuda_barrier(data_of(dma)), AML_SUCCESS);
	counts_require_same(before, "after operators that failed");
	end();
}

static int nothing(struct aml_layout *dst, const struct aml_layout *src, void *arg)
{
	(void)dst, (void)src, (void)arg;
	return AML_SUCCESS;
}

TEST(an_operator_may_queue_nothing)
{
	struct park park;
	request *req;
	begin();
	REQUIRE_EQ(aml_dma_cuda_request_create(data_of(dma), &req, (void *)to, (void *)from, nothing, NULL), AML_SUCCESS);
	REQUIRE_EQ(aml_dma_cuda_request_wait(data_of(dma), &req), AML_SUCCESS);
	/* Its request stands for what is in the stream all the same. */
	park_stream(&park, stream_of(dma));
	REQUIRE_EQ(aml_dma_cuda_request_create(data_of(dma), &req, (void *)to, (void *)from, nothing, NULL), AML_SUCCESS);
	REQUIRE_EQ(status_of(req), PENDING);
	park_release(&park);
	REQUIRE_EQ(aml_dma_cuda_request_wait(data_of(dma), &req), AML_SUCCESS);
	end();
}

static int change_kind(struct aml_layout *dst, const struct aml_layout *src, void *arg)
{
	struct aml_dma_cuda_op_arg *a = arg;
	a->data->kind = cudaMemcpyHostToDevice;
	return aml_dma_cuda_memcpy_op(dst, src, &(struct aml_dma_cuda_op_arg){a->data, (void *)(size_t)SIZE});
}

TEST(an_operator_sees_and_changes_the_data_of_the_program)
{
	request *req;
	begin();
	REQUIRE_EQ(aml_dma_cuda_request_create(data_of(dma), &req, (void *)middle, (void *)from, change_kind, NULL),
		   AML_SUCCESS);
	REQUIRE_EQ(public_of(dma)->kind, cudaMemcpyHostToDevice);
	REQUIRE_EQ(aml_dma_cuda_request_wait(data_of(dma), &req), AML_SUCCESS);
	REQUIRE(memory_holds(middle, SIZE, 1));
	end();
}

TEST(operators_can_be_called_by_programs)
{
	begin();
	struct aml_dma_cuda_op_arg arg = {public_of(dma), (void *)(size_t)SIZE};
	REQUIRE_EQ(aml_dma_cuda_memcpy_op((void *)to, (void *)from, &arg), AML_SUCCESS);
	REQUIRE_EQ(aml_dma_cuda_barrier(data_of(dma)), AML_SUCCESS);
	REQUIRE(memory_holds(to, SIZE, 1));
	REQUIRE_EQ(aml_dma_cuda_memcpy_op((void *)to, (void *)from, NULL), -AML_EINVAL);
	REQUIRE_EQ(aml_dma_cuda_memcpy_op((void *)to, (void *)from, &(struct aml_dma_cuda_op_arg){0}), -AML_EINVAL);
	REQUIRE_EQ(aml_dma_cuda_copy_1D(NULL, NULL, &arg), -AML_EINVAL);
	REQUIRE_EQ(aml_dma_cuda_copy_1D((void *)to, (void *)from, NULL), -AML_EINVAL);
	end();
}
