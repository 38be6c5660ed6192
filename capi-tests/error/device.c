// A device that fails: a kernel of the program traps (on the software driver, a piece of work is made to fail). Every
// call answers with a code, in any order, none hangs, requests are freed. Each test is a process of its own.
#include "copy.h"
#include "device.h"
#include "emulator.h"
#include "memory.h"
#include "test.h"
#include <pthread.h>
#include <stdint.h>
#include <unistd.h>

enum { SIZE = 4096, COUNT = 30 };

static struct aml_dma *dma, *other;
static char *host, *device;
static request *reqs[COUNT];

/* Leaves a device that is broken, with requests made before and after it broke. */
static void begin(void)
{
	test_may_leave();
	use_device(0);
	dma = dma_new(cudaMemcpyDefault);
	other = dma_new(cudaMemcpyDefault);
	host = memory_new(PINNED, SIZE);
	device = memory_new(DEVICE, SIZE);
	REQUIRE_EQ(copy(data_of(other), device, host, SIZE), AML_SUCCESS);
	break_device(stream_of(dma));
	for (int i = 0; i < COUNT; i++) {
		request *const untouched = (request *)(uintptr_t)8;
		reqs[i] = untouched;
		/* It may be noticed at once, or be on its way still. */
		int code = start(data_of(dma), &reqs[i], device, host, SIZE);
		REQUIRE(code == AML_SUCCESS || code == -AML_FAILURE);
		REQUIRE((code == AML_SUCCESS) == (reqs[i] != untouched));
		if (code)
			reqs[i] = NULL;
	}
}

static void end_requests(void)
{
	for (int i = 0; i < COUNT; i++) {
		if (!reqs[i])
			continue;
		REQUIRE_EQ((i % 2 ? aml_dma_cuda_request_wait : aml_dma_cuda_request_destroy)(data_of(dma), &reqs[i]), -AML_FAILURE);
		REQUIRE(reqs[i] == NULL);
	}
}

static void destroy_both(void)
{
	REQUIRE(aml_dma_cuda_destroy(&dma) == -AML_FAILURE);
	REQUIRE(dma == NULL);
	int code = aml_dma_cuda_destroy(&other);
	REQUIRE(code == -AML_FAILURE || code == AML_SUCCESS);
	REQUIRE(other == NULL);
}

TEST(wait_then_barrier_then_destroy)
{
	begin();
	end_requests();
	REQUIRE_EQ(aml_dma_cuda_barrier(data_of(dma)), -AML_FAILURE);
	destroy_both();
}

TEST(barrier_then_wait_then_destroy)
{
	begin();
	REQUIRE_EQ(aml_dma_cuda_barrier(data_of(dma)), -AML_FAILURE);
	end_requests();
	destroy_both();
}

TEST(create_after_the_failure_is_refused)
{
	begin();
	request *const untouched = (request *)(uintptr_t)8, *req = untouched;
	end_requests();
	REQUIRE_EQ(start(data_of(dma), &req, device, host, SIZE), -AML_FAILURE);
	REQUIRE_EQ(start(data_of(other), &req, device, host, SIZE), -AML_FAILURE);
	REQUIRE_EQ(start(data_of(&aml_dma_cuda), NULL, device, host, SIZE), -AML_FAILURE);
	REQUIRE(req == untouched);
	struct aml_dma *made = NULL;
	int code = aml_dma_cuda_create(&made, cudaMemcpyDefault);
	REQUIRE(code == -AML_FAILURE && made == NULL);
	REQUIRE_EQ(aml_dma_cuda_barrier(data_of(other)), -AML_FAILURE);
	destroy_both();
}

TEST(destroy_alone)
{
	begin();
	destroy_both();
}

static void *wait_for_all(void *unused)
{
	end_requests();
	return unused;
}

TEST(threads_that_wait_are_let_go)
{
	pthread_t thread;
	begin();
	REQUIRE_EQ(pthread_create(&thread, NULL, wait_for_all, NULL), 0);
	REQUIRE_EQ(aml_dma_cuda_barrier(data_of(dma)), -AML_FAILURE);
	REQUIRE_EQ(pthread_join(thread, NULL), 0);
	destroy_both();
}

TEST(large_pageable_copies_are_refused)
{
	enum { LARGE = 6 << 20 };
	begin();
	char *plain = calloc(1, LARGE);
	end_requests();
	for (int i = 0; i < 5; i++)
		REQUIRE_EQ(copy(data_of(other), plain, plain, LARGE), -AML_FAILURE);
	free(plain);
	destroy_both();
}

EMULATED_TEST(another_device_goes_on)
{
	begin();
	end_requests();
	CUDA(cuCtxSetCurrent(NULL));
	use_device(1);
	struct aml_dma *elsewhere = dma_new(cudaMemcpyDefault);
	char from[100], to[100];
	memory_fill(from, sizeof from, 1);
	REQUIRE_EQ(copy(data_of(elsewhere), to, from, sizeof to), AML_SUCCESS);
	REQUIRE(memory_holds(to, sizeof to, 1));
	dma_end(elsewhere);
	destroy_both();
}
