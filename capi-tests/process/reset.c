// Contexts that go away under the library: a reset of the device, a context that the program destroyed. What was made
// before answers with a code, nothing hangs, and new work succeeds.
#include "copy.h"
#include "device.h"
#include "emulator.h"
#include "memory.h"
#include "test.h"
#include <pthread.h>
#include <stdint.h>
#include <unistd.h>

enum { SIZE = 4096, COUNT = 20 };
static char from[SIZE], to[SIZE];

static void static_dma_works(unsigned seed)
{
	for (size_t i = 0; i < SIZE; i++)
		from[i] = (char)memory_byte(seed, i), to[i] = 0;
	REQUIRE_EQ(copy(data_of(&aml_dma_cuda), to, from, SIZE), AML_SUCCESS);
	for (size_t i = 0; i < SIZE; i++)
		REQUIRE_EQ(to[i], from[i]);
}

static void new_dma_works(unsigned seed)
{
	struct aml_dma *dma = dma_new(cudaMemcpyDefault);
	char *device = memory_new(DEVICE, SIZE);
	request *reqs[COUNT];
	memory_fill(from, SIZE, seed);
	for (int i = 0; i < COUNT; i++)
		REQUIRE_EQ(start(data_of(dma), &reqs[i], device, from, SIZE), AML_SUCCESS);
	for (int i = COUNT; i-- > 0;)
		REQUIRE_EQ(aml_dma_cuda_request_wait(data_of(dma), &reqs[i]), AML_SUCCESS);
	REQUIRE_EQ(aml_dma_cuda_barrier(data_of(dma)), AML_SUCCESS);
	REQUIRE(memory_holds(device, SIZE, seed));
	memory_free(DEVICE, device);
	dma_end(dma);
}

/* So that nobody is marking them any more. */
static void wait_until_done(request **reqs, int count)
{
	for (int i = 0; i < count; i++)
		while (status_of(reqs[i]) != DONE)
			usleep(100);
}

/* All that is left of a dma whose context is gone. */
static void old_dma_answers(struct aml_dma *dma, request **reqs, int count)
{
	request *const untouched = (request *)(uintptr_t)8, *req = untouched;
	for (int i = 0; i < count; i++) {
		int code = i % 2 ? aml_dma_cuda_request_wait(data_of(dma), &reqs[i])
				 : aml_dma_cuda_request_destroy(data_of(dma), &reqs[i]);
		/* Some were done before the end, and their word says so. */
		REQUIRE(code == AML_SUCCESS || code == -AML_FAILURE);
		REQUIRE(reqs[i] == NULL);
	}
	REQUIRE_EQ(start(data_of(dma), &req, to, from, SIZE), -AML_FAILURE);
	REQUIRE_EQ(start(data_of(dma), NULL, to, from, SIZE), -AML_FAILURE);
	REQUIRE(req == untouched);
	REQUIRE_EQ(aml_dma_cuda_barrier(data_of(dma)), -AML_FAILURE);
	REQUIRE_EQ(aml_dma_cuda_destroy(&dma), -AML_FAILURE);
	REQUIRE(dma == NULL);
}

TEST(a_reset_of_the_device_between_uses)
{
	test_may_leave(); /* how many references a reset takes along is CUDA's business */
	for (unsigned round = 0; round < 4; round++) {
		request *reqs[COUNT];
		use_device(0);
		static_dma_works(round);
		new_dma_works(round);
		struct aml_dma *old = dma_new(cudaMemcpyDefault), *unused = dma_new(cudaMemcpyDefault);
		for (int i = 0; i < COUNT; i++)
			REQUIRE_EQ(start(data_of(old), &reqs[i], to, from, SIZE), AML_SUCCESS);
		wait_until_done(reqs, COUNT);
		CUDA(cuDevicePrimaryCtxReset(0));
		old_dma_answers(old, reqs, COUNT);
		old_dma_answers(unused, NULL, 0);
		CUDA(cuCtxSetCurrent(NULL));
		static_dma_works(round + 10);
		use_device(0);
		static_dma_works(round + 20);
		new_dma_works(round + 20);
		CUDA(cuCtxSetCurrent(NULL));
	}
}

TEST(a_dma_made_without_a_context_meets_a_reset)
{
	test_may_leave();
	require_devices(1);
	for (unsigned round = 0; round < 4; round++) {
		request *reqs[COUNT];
		struct aml_dma *old = dma_new(cudaMemcpyDefault);
		for (int i = 0; i < COUNT; i++)
			REQUIRE_EQ(start(data_of(old), &reqs[i], to, from, SIZE), AML_SUCCESS);
		wait_until_done(reqs, COUNT);
		CUDA(cuDevicePrimaryCtxReset(0));
		old_dma_answers(old, reqs, COUNT);
		static_dma_works(round);
	}
}

TEST(an_old_dma_stays_old_after_the_context_lives_again)
{
	request *req;
	test_may_leave();
	use_device(0);
	struct aml_dma *old = dma_new(cudaMemcpyDefault);
	REQUIRE_EQ(start(data_of(old), &req, to, from, SIZE), AML_SUCCESS);
	wait_until_done(&req, 1);
	CUDA(cuDevicePrimaryCtxReset(0));
	CUDA(cuCtxSetCurrent(NULL));
	use_device(0); /* the same handle, another context */
	struct aml_dma *new = dma_new(cudaMemcpyDefault);
	REQUIRE_EQ(copy(data_of(new), to, from, SIZE), AML_SUCCESS);
	old_dma_answers(old, &req, 1);
	REQUIRE_EQ(copy(data_of(new), to, from, SIZE), AML_SUCCESS);
	dma_end(new);
	CUDA(cuCtxSetCurrent(NULL));
}

static void contexts_come_and_go(int settled)
{
	for (int round = 0; round < 6; round++) {
		request *reqs[COUNT];
		CUcontext own = create_context(0);
		struct aml_dma *old = dma_new(cudaMemcpyDefault);
		static_dma_works((unsigned)round);
		for (int i = 0; i < COUNT; i++)
			REQUIRE_EQ(start(data_of(old), &reqs[i], to, from, SIZE), AML_SUCCESS);
		if (settled)
			wait_until_done(reqs, COUNT);
		CUDA(cuCtxDestroy(own));
		old_dma_answers(old, reqs, COUNT);
	}
	use_device(0);
	new_dma_works(1);
	leave_device(0);
}

TEST(a_context_of_the_program_is_destroyed) { contexts_come_and_go(1); }

/* CUDA wants no call to use a context while it is destroyed, and the library may be marking requests then. So this is
 * asked of the software driver alone, which refuses what a GPU's driver may not survive. */
EMULATED_TEST(a_context_of_the_program_is_destroyed_with_requests_on_their_way)
{
	test_may_leave();
	contexts_come_and_go(0);
}

TEST(requests_of_a_destroyed_context_answer_while_another_is_current)
{
	request *reqs[2 * COUNT];
	CUcontext own = create_context(0);
	struct aml_dma *old = dma_new(cudaMemcpyDefault);
	struct aml_dma_cuda_data data = {NULL, cudaMemcpyDefault};
	for (int i = 0; i < 2 * COUNT; i++)
		REQUIRE_EQ(start(i % 2 ? data_of(old) : as_data(&data), &reqs[i], to, from, SIZE), AML_SUCCESS);
	wait_until_done(reqs, 2 * COUNT);
	CUDA(cuCtxDestroy(own));
	use_device(0);
	for (int i = 0; i < 2 * COUNT; i++) {
		int code = aml_dma_cuda_request_wait(i % 2 ? data_of(old) : as_data(&data), &reqs[i]);
		REQUIRE(code == AML_SUCCESS || code == -AML_FAILURE);
		REQUIRE(reqs[i] == NULL);
	}
	REQUIRE_EQ(copy(as_data(&data), to, from, SIZE), AML_SUCCESS); /* stream 0 of the context that is current now */
	REQUIRE_EQ(aml_dma_cuda_destroy(&old), -AML_FAILURE);
	REQUIRE(old == NULL);
	leave_device(0);
}

static struct aml_dma *waited;
static request *held;
static volatile int waiting;

static void *wait_for_it(void *unused)
{
	__atomic_store_n(&waiting, 1, __ATOMIC_RELEASE);
	int code = aml_dma_cuda_request_wait(data_of(waited), &held);
	REQUIRE(code == AML_SUCCESS || code == -AML_FAILURE);
	REQUIRE(held == NULL);
	return unused;
}

EMULATED_TEST(a_thread_that_waits_is_let_go_when_the_context_goes)
{
	pthread_t thread;
	test_may_leave(); /* a wait that is under way may meet the end of its context anywhere */
	CUcontext own = create_context(0);
	waited = dma_new(cudaMemcpyDefault);
	CUDA(emulator()->hold(stream_of(waited)));
	void *device = memory_new(DEVICE, SIZE);
	REQUIRE_EQ(start(data_of(waited), &held, device, from, SIZE), AML_SUCCESS);
	REQUIRE_EQ(pthread_create(&thread, NULL, wait_for_it, NULL), 0);
	while (!__atomic_load_n(&waiting, __ATOMIC_ACQUIRE))
		;
	CUDA(cuCtxDestroy(own));
	REQUIRE_EQ(pthread_join(thread, NULL), 0);
	REQUIRE_EQ(aml_dma_cuda_destroy(&waited), -AML_FAILURE);
}
