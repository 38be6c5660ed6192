// The fault sweep: whatever call to the driver fails, with whatever code, in whatever scenario, the answer is a documented
// code, requests and DMAs are as documented, nothing hangs, nothing is left behind, and a fresh DMA works afterwards.
#include "copy.h"
#include "device.h"
#include "emulator.h"
#include "layout.h"
#include "memory.h"
#include "test.h"
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SIZE = 3000, LARGE = (2 << 20) + 5, COUNT = 20 };

static const CUresult codes[] = {CUDA_ERROR_OUT_OF_MEMORY,   CUDA_ERROR_INVALID_VALUE,	    CUDA_ERROR_NOT_READY,
				 CUDA_ERROR_ILLEGAL_ADDRESS, CUDA_ERROR_CONTEXT_IS_DESTROYED, CUDA_ERROR_DEINITIALIZED};
enum { CODES = sizeof codes / sizeof *codes };

static request *const untouched = (request *)(uintptr_t)0xdeadbee8;
static char *host, *back, *device, *other, *plain;
static struct aml_dma *dma;

static int documented(int code)
{
	REQUIRE(code == AML_SUCCESS || code == -AML_FAILURE || code == -AML_ENOMEM);
	return code;
}

static int tried_start(dma_data *data, request **req, void *dst, const void *src, size_t size)
{
	*req = untouched;
	int code = documented(start(data, req, dst, src, size));
	REQUIRE((code == AML_SUCCESS) == (*req != untouched));
	REQUIRE(*req != NULL);
	return code;
}

static int tried_wait(dma_data *data, request **req, int cancel)
{
	int code = documented((cancel ? aml_dma_cuda_request_destroy : aml_dma_cuda_request_wait)(data, req));
	REQUIRE(*req == NULL);
	return code;
}

/* The scenarios. Each leaves nothing of its own, whatever fails in it; it returns whether all of it succeeded. */

static int create_and_destroy(void)
{
	struct aml_dma *const no_dma = (struct aml_dma *)(uintptr_t)8, *made = no_dma;
	int code = documented(aml_dma_cuda_create(&made, cudaMemcpyDefault));
	REQUIRE((code == AML_SUCCESS) == (made != no_dma));
	if (!code) {
		code = documented(aml_dma_cuda_destroy(&made));
		REQUIRE(made == NULL);
	}
	return code;
}

static int one_copy(void)
{
	request *req;
	int code = tried_start(data_of(dma), &req, device, host, SIZE);
	return code ? code : tried_wait(data_of(dma), &req, 0);
}

static int one_pageable_copy(void)
{
	request *req;
	int code = tried_start(data_of(dma), &req, plain, device, SIZE);
	return code ? code : tried_wait(data_of(dma), &req, 1);
}

static int many_copies(void)
{
	request *reqs[COUNT];
	int code = 0, made = 0;
	for (int i = 0; i < COUNT; i++) {
		int one = tried_start(data_of(dma), &reqs[made], back + i * 10, host + i * 10, 10);
		made += one == AML_SUCCESS;
		code |= one;
	}
	code |= documented(aml_dma_cuda_barrier(data_of(dma)));
	for (int i = made; i-- > 0;)
		code |= tried_wait(data_of(dma), &reqs[i], i % 2);
	return code;
}

static int copies_without_requests(void)
{
	int code = 0;
	for (int i = 0; i < 5; i++)
		code |= documented(start(data_of(dma), NULL, device, host, SIZE));
	return code | documented(aml_dma_cuda_barrier(data_of(dma)));
}

static int the_static_dma(void)
{
	request *req;
	int code = tried_start(data_of(&aml_dma_cuda), &req, device, host, SIZE);
	if (!code)
		code = tried_wait(data_of(&aml_dma_cuda), &req, 0);
	return code | documented(aml_dma_cuda_barrier(data_of(&aml_dma_cuda)));
}

static int across_devices(void)
{
	struct test_layout d, s;
	request *req = untouched;
	public_of(dma)->kind = cudaMemcpyDeviceToDevice;
	int code = documented(aml_dma_cuda_request_create(data_of(dma), &req, layout_bytes(&d, other, SIZE),
							  layout_bytes(&s, device, SIZE), NULL, AML_DMA_CUDA_DEVICE_PAIR(0, 1)));
	REQUIRE((code == AML_SUCCESS) == (req != untouched));
	if (!code)
		code = tried_wait(data_of(dma), &req, 0);
	public_of(dma)->kind = cudaMemcpyDefault;
	return code;
}

static int large_pageable_copies(void)
{
	request *req;
	int code = tried_start(data_of(dma), &req, device, plain, LARGE);
	if (!code)
		code = tried_wait(data_of(dma), &req, 0);
	int down = tried_start(data_of(dma), &req, plain, device, LARGE);
	if (!down)
		down = tried_wait(data_of(dma), &req, 0);
	return code | down;
}

static void *copies_of_a_thread(void *unused)
{
	for (int i = 0; i < 4; i++)
		many_copies();
	return unused;
}

static int threads(void)
{
	pthread_t threads[3];
	for (int i = 0; i < 3; i++)
		REQUIRE_EQ(pthread_create(&threads[i], NULL, copies_of_a_thread, NULL), 0);
	for (int i = 0; i < 3; i++)
		REQUIRE_EQ(pthread_join(threads[i], NULL), 0);
	return 0;
}

static void make_all(void)
{
	use_device(1);
	other = memory_new(DEVICE, LARGE);
	CUDA(cuCtxSetCurrent(NULL));
	use_device(0);
	host = memory_new(PINNED, SIZE);
	back = memory_new(PINNED, SIZE);
	device = memory_new(DEVICE, LARGE);
	plain = memory_new(PAGEABLE, LARGE);
	memory_fill(host, SIZE, 1);
	memset(plain, 3, LARGE);
}

static void require_fresh_dma_works(void)
{
	struct aml_dma *fresh = NULL;
	CUDA(cuCtxSetCurrent(NULL)); /* the call that takes a context off may have failed */
	use_device(0);
	REQUIRE_EQ(aml_dma_cuda_create(&fresh, cudaMemcpyDefault), AML_SUCCESS);
	memory_set(back, SIZE, 0);
	REQUIRE_EQ(copy(data_of(fresh), device, host, SIZE), AML_SUCCESS);
	REQUIRE_EQ(copy(data_of(fresh), back, device, SIZE), AML_SUCCESS);
	REQUIRE(memory_holds(back, SIZE, 1));
	dma_end(fresh);
}

/* A process of its own lets the nth call fail. Exit status 0: it failed, and all is well; 3: there is no nth call. */
static int with_failure(int (*scenario)(void), int first_use, uint64_t nth, CUresult result)
{
	int status;
	pid_t pid = fork();
	REQUIRE(pid >= 0);
	if (pid == 0) {
		alarm(20);
		make_all();
		dma = dma_new(cudaMemcpyDefault);
		if (!first_use) {
			one_copy();
			scenario();
		}
		if (scenario == create_and_destroy)
			CUDA(cuCtxSetCurrent(NULL)); /* so that it has to find a context */
		struct counts before = counts_now();
		emulator()->fail("*", nth, result);
		scenario();
		int struck = emulator()->fail_pending() == 0;
		emulator()->fail_clear();
		if (!struck)
			_exit(3);
		/* No write to memory of the program comes after the error: what is outstanding was drained. */
		memory_set(back, SIZE, 9);
		REQUIRE_EQ(aml_dma_cuda_barrier(data_of(dma)), AML_SUCCESS);
		REQUIRE(memory_is(back, SIZE, 9));
		dma_end(dma);
		require_fresh_dma_works();
		struct counts after = counts_now();
		REQUIRE(after.device == before.device && after.host <= before.host + 8);
		if (!first_use)
			REQUIRE(after.streams <= before.streams + 2 && after.events <= before.events + 64);
		_exit(0);
	}
	REQUIRE(waitpid(pid, &status, 0) == pid);
	if (WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 3))
		return WEXITSTATUS(status);
	fprintf(stderr, "the call %d fails with %d (%s use): status %x\n", (int)nth, (int)result, first_use ? "first" : "later",
		status);
	exit(1);
}

static void sweep(int (*scenario)(void))
{
	int swept = 0;
	test_may_print();
	for (int first_use = 0; first_use < 2; first_use++)
		for (int code = 0; code < CODES; code++)
			for (uint64_t nth = 1;; nth++) {
				REQUIRE(nth < 2000);
				if (with_failure(scenario, first_use, nth, codes[code]) == 3)
					break;
				swept++;
			}
	REQUIRE(swept > 0);
	printf("%d failures\n", swept);
}

EMULATED_TEST(one_copy_with_every_failure) { sweep(one_copy); }
EMULATED_TEST(one_pageable_copy_with_every_failure) { sweep(one_pageable_copy); }
EMULATED_TEST(many_copies_with_every_failure) { sweep(many_copies); }
EMULATED_TEST(copies_without_requests_with_every_failure) { sweep(copies_without_requests); }
EMULATED_TEST(the_static_dma_with_every_failure) { sweep(the_static_dma); }
EMULATED_TEST(copies_across_devices_with_every_failure) { sweep(across_devices); }
EMULATED_TEST(large_pageable_copies_with_every_failure) { sweep(large_pageable_copies); }
EMULATED_TEST(create_and_destroy_with_every_failure) { sweep(create_and_destroy); }

EMULATED_TEST(threads_with_failures)
{
	/* Which call is the nth differs from run to run here. */
	for (int code = 0; code < CODES; code++)
		for (uint64_t nth = 1; nth < 400; nth += 37)
			with_failure(threads, code % 2, nth, codes[code]);
}
