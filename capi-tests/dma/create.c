// Making and destroying DMAs: what is refused, what the stream is, and that nothing is left behind.
#include "copy.h"
#include "device.h"
#include "emulator.h"
#include "memory.h"
#include "park.h"
#include "test.h"
#include <limits.h>
#include <stdint.h>
#include <time.h>

TEST(each_of_the_five_kinds_is_taken)
{
	use_device(0);
	for (int kind = 0; kind < 5; kind++) {
		struct aml_dma *dma = dma_new(kind);
		REQUIRE_EQ(public_of(dma)->kind, kind);
		dma_end(dma);
	}
	leave_device(0);
}

TEST(no_other_kind_is_taken)
{
	const int kinds[] = {-1, 5, 6, 255, INT_MAX, INT_MIN};
	struct aml_dma *const untouched = (struct aml_dma *)(uintptr_t)0xabcdef, *dma = untouched;
	require_devices(1);
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		REQUIRE_EQ(aml_dma_cuda_create(&dma, (enum cudaMemcpyKind)kinds[i]), -AML_EINVAL);
		REQUIRE(dma == untouched);
	}
}

TEST(null_is_refused)
{
	require_devices(1);
	REQUIRE_EQ(aml_dma_cuda_create(NULL, cudaMemcpyDefault), -AML_EINVAL);
	REQUIRE_EQ(aml_dma_cuda_create(NULL, (enum cudaMemcpyKind)77), -AML_EINVAL);
	REQUIRE_EQ(aml_dma_cuda_destroy(NULL), -AML_EINVAL);
}

TEST(destroying_no_dma_succeeds)
{
	struct aml_dma *dma = NULL;
	require_devices(1);
	REQUIRE_EQ(aml_dma_cuda_destroy(&dma), AML_SUCCESS);
	REQUIRE(dma == NULL);
}

TEST(the_static_dma_is_never_freed)
{
	struct aml_dma *dma = &aml_dma_cuda;
	use_device(0);
	REQUIRE_EQ(aml_dma_cuda_destroy(&dma), -AML_EINVAL);
	REQUIRE(dma == &aml_dma_cuda && aml_dma_cuda.ops == &aml_dma_cuda_ops);
	char from[16], to[16];
	memory_fill(from, sizeof from, 1);
	REQUIRE_EQ(copy(data_of(dma), to, from, sizeof from), AML_SUCCESS);
	REQUIRE(memory_holds(to, sizeof to, 1));
	leave_device(0);
}

TEST(the_stream_does_not_wait_for_the_legacy_stream)
{
	struct park park;
	unsigned flags = 0;
	use_device(0);
	struct aml_dma *dma = dma_new(cudaMemcpyDefault);
	CUDA(cuStreamGetFlags(stream_of(dma), &flags));
	REQUIRE_EQ(flags, CU_STREAM_NON_BLOCKING);
	char *from = memory_new(PINNED, 4096), *to = memory_new(DEVICE, 4096), *back = memory_new(PINNED, 4096);
	memory_fill(from, 4096, 3);
	memory_set(back, 4096, 0);
	REQUIRE_EQ(copy(data_of(dma), to, from, 1), AML_SUCCESS);
	park_stream(&park, CU_STREAM_LEGACY);
	park_wait_reached(&park);
	REQUIRE_EQ(copy(data_of(dma), to, from, 4096), AML_SUCCESS);
	REQUIRE_EQ(copy(data_of(dma), back, to, 4096), AML_SUCCESS);
	REQUIRE(memory_holds(back, 4096, 3));
	park_release(&park);
	dma_end(dma);
	memory_free(PINNED, from);
	memory_free(DEVICE, to);
	memory_free(PINNED, back);
	leave_device(0);
}

TEST(the_stream_belongs_to_the_context_that_is_current)
{
	CUcontext own = create_context(0), of_stream = NULL;
	struct aml_dma *dma = dma_new(cudaMemcpyDefault);
	CUDA(cuStreamGetCtx(stream_of(dma), &of_stream));
	REQUIRE(of_stream == own);
	dma_end(dma);
	CUDA(cuCtxDestroy(own));
	REQUIRE_EQ(primary_is_active(0), 0);
}

TEST(without_a_context_it_belongs_to_the_primary_one)
{
	CUcontext primary = NULL, of_stream = NULL, current = NULL;
	require_devices(1);
	struct aml_dma *dma = dma_new(cudaMemcpyDefault);
	CUDA(cuCtxGetCurrent(&current));
	REQUIRE(current == NULL);
	CUDA(cuDevicePrimaryCtxRetain(&primary, 0));
	CUDA(cuStreamGetCtx(stream_of(dma), &of_stream));
	REQUIRE(of_stream == primary);
	dma_end(dma);
	CUDA(cuDevicePrimaryCtxRelease(0));
}

TEST(destroy_waits_for_the_work)
{
	struct park park;
	volatile int destroying = 0;
	const size_t size = 1 << 20;
	use_device(0);
	struct aml_dma *dma = dma_new(cudaMemcpyDefault);
	char *from = memory_new(PINNED, size), *to = memory_new(DEVICE, size);
	memory_fill(from, size, 1);
	memory_set(to, size, 0);
	park_stream(&park, stream_of(dma));
	REQUIRE_EQ(start(data_of(dma), NULL, to, from, size), AML_SUCCESS);
	park_release_when(&park, &destroying);
	REQUIRE(memory_is(to, size, 0));
	__atomic_store_n(&destroying, 1, __ATOMIC_RELEASE);
	dma_end(dma);
	REQUIRE(memory_holds(to, size, 1));
	park_join();
	memory_free(PINNED, from);
	memory_free(DEVICE, to);
	leave_device(0);
}

TEST(destroy_is_refused_a_dma_that_is_not_of_this_library)
{
	struct aml_dma_cuda_data data;
	struct aml_dma own = {&aml_dma_cuda_ops, (struct aml_dma_data *)&data}, *dma = &own;
	use_device(0);
	data.stream = (cudaStream_t)create_stream();
	data.kind = cudaMemcpyDefault;
	REQUIRE(aml_dma_cuda_destroy(&dma) < 0);
	REQUIRE(dma == &own);
	CUDA(cuStreamQuery((CUstream)data.stream)); /* still the program's */
	CUDA(cuStreamDestroy((CUstream)data.stream));
	leave_device(0);
}

TEST(ten_thousand_dmas_leave_nothing)
{
	use_device(0);
	dma_end(dma_new(cudaMemcpyDefault));
	struct counts before = counts_now();
	for (int i = 0; i < 10000; i++)
		dma_end(dma_new(i % 5));
	counts_require_same(before, "after 10,000");
	char from[64], to[64];
	memory_fill(from, sizeof from, 9);
	for (int i = 0; i < 100; i++) {
		struct aml_dma *dma = dma_new(cudaMemcpyDefault);
		REQUIRE_EQ(copy(data_of(dma), to, from, sizeof from), AML_SUCCESS);
		dma_end(dma);
		if (i == 0)
			before = counts_now();
	}
	before.events = counts_now().events; /* a request may get its event late: they belong to a pool */
	REQUIRE(before.events <= 512);
	counts_require_same(before, "after 100 that were used");
	leave_device(0);
}

EMULATED_TEST(without_a_context_the_primary_one_is_given_back)
{
	require_devices(1);
	dma_end(dma_new(cudaMemcpyDefault));
	struct counts before = counts_now();
	for (int i = 0; i < 1000; i++)
		dma_end(dma_new(cudaMemcpyDefault));
	counts_require_same(before, "after 1,000");
	REQUIRE_EQ(emulator()->primary_count(0), 0);
}

EMULATED_TEST(what_fails_in_create_leaves_nothing)
{
	use_device(0);
	dma_end(dma_new(cudaMemcpyDefault));
	leave_device(0); /* so that it has to find the primary context as well */
	struct counts before = counts_now();
	struct aml_dma *const untouched = (struct aml_dma *)(uintptr_t)0xabcdef, *dma = untouched;
	int failed = 0;
	for (int nth = 1;; nth++) {
		emulator()->fail("*", nth, CUDA_ERROR_OUT_OF_MEMORY);
		int code = aml_dma_cuda_create(&dma, cudaMemcpyDefault);
		size_t pending = emulator()->fail_pending();
		emulator()->fail_clear();
		if (pending) { /* there is no nth call */
			REQUIRE_EQ(code, AML_SUCCESS);
			dma_end(dma);
			break;
		}
		CUcontext popped; /* nothing helps when it is cuCtxPopCurrent that fails */
		while (cuCtxPopCurrent(&popped) == CUDA_SUCCESS)
			;
		if (code == AML_SUCCESS) { /* that call can be done without */
			dma_end(dma);
			dma = untouched;
		} else {
			REQUIRE_EQ(code, -AML_FAILURE);
			REQUIRE(dma == untouched);
			failed++;
		}
		counts_require_same(before, "after a failure");
	}
	REQUIRE(failed >= 3);
	counts_require_same(before, "at the end");
}

/* A request that is waited for may be DONE before the thread that had its status word written is back from the driver.
 * That nobody uses the stream after its end is seen by the software driver, which counts such uses. */
TEST(a_dma_may_go_as_soon_as_its_requests_were_waited_for)
{
	enum { ROUNDS = 4000, COUNT = 4 };
	use_device(0);
	char *from = memory_new(PINNED, COUNT), *to = memory_new(PINNED, COUNT);
	for (int round = 0; round < ROUNDS; round++) {
		struct aml_dma *dma = dma_new(cudaMemcpyDefault);
		request *requests[COUNT];
		struct timespec start_time, now;
		for (int i = 0; i < COUNT; i++)
			REQUIRE_EQ(start(data_of(dma), &requests[i], to + i, from + i, 1), AML_SUCCESS);
		clock_gettime(CLOCK_MONOTONIC, &start_time);
		do /* until about the moment when the library looks after what lies still */
			clock_gettime(CLOCK_MONOTONIC, &now);
		while ((now.tv_sec - start_time.tv_sec) * 1000000000L + now.tv_nsec - start_time.tv_nsec < round % 400 * 1000L);
		for (int i = COUNT; i-- > 0;)
			REQUIRE_EQ(aml_dma_cuda_request_wait(data_of(dma), &requests[i]), AML_SUCCESS);
		dma_end(dma);
	}
	memory_free(PINNED, from);
	memory_free(PINNED, to);
	leave_device(0);
}
