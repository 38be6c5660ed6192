// Starting a request: what is refused, what the operator is given, and what becomes of its answer.
#include "copy.h"
#include "device.h"
#include "emulator.h"
#include "layout.h"
#include "memory.h"
#include "test.h"
#include <pthread.h>
#include <stdint.h>
#include <string.h>

static request *const untouched = (request *)(uintptr_t)0xdeadbee8;

static struct {
	struct aml_layout *dst;
	const struct aml_layout *src;
	void *data, *op_arg;
	pthread_t thread;
	int calls, code;
} seen;

static int look(struct aml_layout *dst, const struct aml_layout *src, void *arg)
{
	const struct aml_dma_cuda_op_arg *a = arg;
	seen.dst = dst;
	seen.src = src;
	seen.data = a->data;
	seen.op_arg = a->op_arg;
	seen.thread = pthread_self();
	seen.calls++;
	return seen.code;
}

TEST(null_data_destination_or_source_is_refused)
{
	char a[8], b[8];
	struct aml_layout *dst = (void *)a, *src = (void *)b;
	request *req = untouched;
	use_device(0);
	struct aml_dma *dma = dma_new(cudaMemcpyDefault);
	REQUIRE_EQ(aml_dma_cuda_request_create(NULL, &req, dst, src, look, NULL), -AML_EINVAL);
	REQUIRE_EQ(aml_dma_cuda_request_create(data_of(dma), &req, NULL, src, look, NULL), -AML_EINVAL);
	REQUIRE_EQ(aml_dma_cuda_request_create(data_of(dma), &req, dst, NULL, look, NULL), -AML_EINVAL);
	REQUIRE_EQ(aml_dma_cuda_request_create(data_of(dma), NULL, NULL, NULL, NULL, NULL), -AML_EINVAL);
	REQUIRE_EQ(aml_dma_cuda_request_create(NULL, NULL, NULL, NULL, NULL, NULL), -AML_EINVAL);
	REQUIRE(req == untouched);
	REQUIRE_EQ(seen.calls, 0);
	dma_end(dma);
	leave_device(0);
}

TEST(the_operator_is_called_once_with_what_was_given)
{
	char a[8], b[8], c;
	struct aml_layout *dst = (void *)a, *src = (void *)b;
	use_device(0);
	struct aml_dma *dma = dma_new(cudaMemcpyDefault);
	for (int with = 0; with < 2; with++) {
		request *req = untouched;
		memset(&seen, 0, sizeof seen);
		REQUIRE_EQ(aml_dma_cuda_request_create(data_of(dma), with ? &req : NULL, dst, src, look, &c), AML_SUCCESS);
		REQUIRE_EQ(seen.calls, 1);
		REQUIRE(seen.dst == dst && seen.src == src && seen.op_arg == &c);
		REQUIRE(seen.data == (void *)data_of(dma));
		REQUIRE(pthread_equal(seen.thread, pthread_self()));
		if (with)
			REQUIRE_EQ(aml_dma_cuda_request_wait(data_of(dma), &req), AML_SUCCESS);
	}
	dma_end(dma);
	leave_device(0);
}

TEST(the_answer_of_the_operator_comes_back_unchanged)
{
	const int codes[] = {-AML_FAILURE, -AML_ENOMEM, -AML_EINVAL, -AML_EDOM, -AML_ENOTSUP, -AML_EBUSY, -AML_EPERM, -4711, 7};
	char a[8], b[8];
	use_device(0);
	struct aml_dma *dma = dma_new(cudaMemcpyDefault);
	REQUIRE_EQ(copy(data_of(dma), a, b, 8), AML_SUCCESS);
	struct counts before = counts_now();
	for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
		for (int with = 0; with < 2; with++)
			for (int again = 0; again < 1000; again++) {
				request *req = untouched;
				seen.code = codes[i];
				REQUIRE_EQ(aml_dma_cuda_request_create(data_of(dma), with ? &req : NULL, (void *)a, (void *)b,
								       look, NULL),
					   codes[i]);
				REQUIRE(req == untouched);
			}
	counts_require_same(before, "after operators that failed");
	dma_end(dma);
	leave_device(0);
}

TEST(a_request_may_be_left_out)
{
	enum { SIZE = 4096 };
	use_device(0);
	struct aml_dma *dma = dma_new(cudaMemcpyDefault);
	char *from = memory_new(PINNED, SIZE), *to = memory_new(DEVICE, SIZE);
	memory_fill(from, SIZE, 5);
	memory_set(to, SIZE, 0);
	REQUIRE_EQ(start(data_of(dma), NULL, to, from, SIZE), AML_SUCCESS);
	REQUIRE_EQ(aml_dma_cuda_barrier(data_of(dma)), AML_SUCCESS);
	REQUIRE(memory_holds(to, SIZE, 5));
	dma_end(dma);
	memory_free(PINNED, from);
	memory_free(DEVICE, to);
	leave_device(0);
}

TEST(the_place_for_the_request_need_not_be_initialised)
{
	enum { SIZE = 64 };
	char from[SIZE], to[SIZE];
	use_device(0);
	struct aml_dma *dma = dma_new(cudaMemcpyDefault);
	const uintptr_t values[] = {0, 1, 0xdeadbeef, UINTPTR_MAX};
	for (unsigned i = 0; i < 4; i++) {
		request *req = (request *)values[i];
		memory_fill(from, SIZE, i);
		REQUIRE_EQ(start(data_of(dma), &req, to, from, SIZE), AML_SUCCESS);
		REQUIRE(req && (uintptr_t)req != values[i]);
		REQUIRE_EQ(aml_dma_cuda_request_wait(data_of(dma), &req), AML_SUCCESS);
		REQUIRE(req == NULL && memory_holds(to, SIZE, i));
	}
	dma_end(dma);
	leave_device(0);
}

TEST(no_operator_means_copy_1D)
{
	enum { SIZE = 3 * 5 * 8 };
	char from[SIZE], to[SIZE];
	struct test_layout dst, src;
	use_device(0);
	struct aml_dma *dma = dma_new(cudaMemcpyDefault);
	memory_fill(from, SIZE, 8);
	memory_set(to, SIZE, 0);
	layout_dense(&src, from, 8, 2, (const size_t[]){3, 5});
	layout_dense(&dst, to, 8, 1, (const size_t[]){15});
	request *req;
	REQUIRE_EQ(aml_dma_cuda_request_create(data_of(dma), &req, &dst.layout, &src.layout, NULL, NULL), AML_SUCCESS);
	REQUIRE_EQ(aml_dma_cuda_request_wait(data_of(dma), &req), AML_SUCCESS);
	REQUIRE(memory_holds(to, SIZE, 8));
	layout_dense(&dst, to, 8, 1, (const size_t[]){14});
	req = untouched;
	REQUIRE_EQ(aml_dma_cuda_request_create(data_of(dma), &req, &dst.layout, &src.layout, NULL, NULL), -AML_EINVAL);
	REQUIRE(req == untouched);
	dma_end(dma);
	leave_device(0);
}

TEST(copies_of_one_dma_arrive_in_order)
{
	enum { SIZE = 1000, COUNT = 300 };
	request *reqs[COUNT];
	use_device(0);
	struct aml_dma *dma = dma_new(cudaMemcpyDefault);
	char *from = memory_new(PINNED, SIZE), *to = memory_new(DEVICE, SIZE), *other = memory_new(PINNED, SIZE);
	memory_fill(from, SIZE, 1);
	memory_fill(other, SIZE, 2);
	for (int i = 0; i < COUNT; i++)
		REQUIRE_EQ(start(data_of(dma), i % 3 ? &reqs[i] : NULL, to, i % 2 ? from : other, SIZE), AML_SUCCESS);
	for (int i = 0; i < COUNT; i++)
		if (i % 3)
			REQUIRE_EQ(aml_dma_cuda_request_wait(data_of(dma), &reqs[i]), AML_SUCCESS);
	REQUIRE_EQ(aml_dma_cuda_barrier(data_of(dma)), AML_SUCCESS);
	REQUIRE(memory_holds(to, SIZE, 1));
	dma_end(dma);
	memory_free(PINNED, from);
	memory_free(PINNED, other);
	memory_free(DEVICE, to);
	leave_device(0);
}
