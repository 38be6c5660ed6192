// Memory of the host that runs out in the library: -AML_ENOMEM or another documented code, nothing changed, no abort.
#include "allocator.h"
#include "copy.h"
#include "device.h"
#include "emulator.h"
#include "memory.h"
#include "test.h"
#include <pthread.h>
#include <stdint.h>

enum { SIZE = 3000, LARGE = (2 << 20) + 5, COUNT = 30 };
static char from[LARGE], to[LARGE];

static int documented(int code)
{
	REQUIRE(code == AML_SUCCESS || code == -AML_ENOMEM || code == -AML_FAILURE);
	return code;
}

static int scenario(void)
{
	struct aml_dma *const no_dma = (struct aml_dma *)(uintptr_t)8, *dma = no_dma;
	request *const untouched = (request *)(uintptr_t)8, *reqs[COUNT];
	int code = documented(aml_dma_cuda_create(&dma, cudaMemcpyDefault)), made = 0;
	REQUIRE((code == AML_SUCCESS) == (dma != no_dma));
	if (code)
		return code;
	for (int i = 0; i < COUNT; i++) {
		reqs[made] = untouched;
		int one = documented(start(data_of(dma), &reqs[made], to + i, from + i, 1));
		REQUIRE((one == AML_SUCCESS) == (reqs[made] != untouched));
		made += one == AML_SUCCESS;
		code |= one;
	}
	code |= documented(aml_dma_cuda_barrier(data_of(dma)));
	while (made-- > 0)
		code |= documented(aml_dma_cuda_request_wait(data_of(dma), &reqs[made]));
	code |= documented(copy(data_of(dma), to, from, LARGE));
	code |= documented(copy(data_of(&aml_dma_cuda), to, from, SIZE));
	int ended = documented(aml_dma_cuda_destroy(&dma));
	REQUIRE(dma == NULL);
	return code | ended;
}

EMULATED_TEST(an_allocation_that_fails_is_answered)
{
	if (!ALLOCATOR_IS_OURS)
		test_skip("the sanitizer has its own allocator");
	REQUIRE(starve("scenario", "libaml_dma_cuda", NULL, scenario) > 5);
}

static void *first_calls(void *dma)
{
	request *req;
	use_device(0);
	starved = 1;
	int code = documented(start(data_of(dma), &req, to, from, 1));
	documented(aml_dma_cuda_barrier(data_of(dma)));
	starved = 0;
	if (!code)
		REQUIRE_EQ(aml_dma_cuda_request_wait(data_of(dma), &req), AML_SUCCESS);
	leave_device(0);
	return NULL;
}

/* The C library ends a process where it has no memory to note that a thread's destructor is to be called. */
EMULATED_TEST(a_new_thread_needs_no_memory_of_the_c_library)
{
	pthread_t thread;
	if (!ALLOCATOR_IS_OURS)
		test_skip("the sanitizer has its own allocator");
	find(&c_library);
	struct aml_dma *dma = dma_new(cudaMemcpyDefault);
	REQUIRE_EQ(copy(data_of(dma), to, from, SIZE), AML_SUCCESS);
	REQUIRE_EQ(pthread_create(&thread, NULL, first_calls, dma), 0);
	REQUIRE_EQ(pthread_join(thread, NULL), 0);
	dma_end(dma);
}
