// Great numbers: of requests that are outstanding, of copies without one; nothing grows without bound.
#include "copy.h"
#include "device.h"
#include "emulator.h"
#include "memory.h"
#include "test.h"
#include <stdio.h>
#include <unistd.h>

/* Pages of memory that the process has. */
static long resident(void)
{
	long size, pages;
	FILE *file = fopen("/proc/self/statm", "r");
	REQUIRE(file && fscanf(file, "%ld %ld", &size, &pages) == 2);
	fclose(file);
	return pages;
}

TEST(a_million_copies_without_a_request)
{
	enum { COUNT = 1000000, EVERY = 50000, SIZE = 8 };
	use_device(0);
	struct aml_dma *dma = dma_new(cudaMemcpyDefault);
	char *from = memory_new(PINNED, SIZE), *to = memory_new(DEVICE, SIZE);
	memory_fill(from, SIZE, 1);
	struct counts before = {0};
	long pages = 0;
	for (int barriers = 0; barriers < 2; barriers++)
		for (int i = 1; i <= COUNT / 2; i++) {
			REQUIRE_EQ(start(data_of(dma), NULL, to, from, SIZE), AML_SUCCESS);
			if (barriers ? i % 1000 == 0 : i % EVERY == 0)
				REQUIRE_EQ(aml_dma_cuda_barrier(data_of(dma)), AML_SUCCESS);
			if (i == EVERY && !barriers) {
				before = counts_now();
				pages = resident();
			}
		}
	REQUIRE_EQ(aml_dma_cuda_barrier(data_of(dma)), AML_SUCCESS);
	counts_require_same(before, "after a million");
	REQUIRE((resident() - pages) * sysconf(_SC_PAGESIZE) < 64 << 20);
	REQUIRE(memory_holds(to, SIZE, 1));
	dma_end(dma);
	memory_free(PINNED, from);
	memory_free(DEVICE, to);
	leave_device(0);
}

TEST(a_hundred_thousand_requests_are_waited_for_in_reverse)
{
	enum { COUNT = 100000, SIZE = 8 };
	static request *reqs[COUNT];
	use_device(0);
	struct aml_dma *dma = dma_new(cudaMemcpyDefault);
	char *from = memory_new(PINNED, SIZE), *to = memory_new(DEVICE, SIZE);
	memory_fill(from, SIZE, 1);
	struct counts before = {0};
	long pages = 0;
	for (int round = 0; round < 4; round++) {
		for (int i = 0; i < COUNT; i++)
			REQUIRE_EQ(start(data_of(dma), &reqs[i], to, from, SIZE), AML_SUCCESS);
		for (int i = COUNT; i-- > 0;)
			REQUIRE_EQ(aml_dma_cuda_request_wait(data_of(dma), &reqs[i]), AML_SUCCESS);
		if (round == 1) {
			before = counts_now();
			pages = resident();
		}
	}
	struct counts after = counts_now();
	/* At most one event a request, and a bounded number of registered slabs. */
	REQUIRE(after.events <= before.events + COUNT / 10);
	REQUIRE(after.registrations <= before.registrations + 2);
	REQUIRE(after.streams == before.streams);
	REQUIRE((resident() - pages) * sysconf(_SC_PAGESIZE) < 64 << 20);
	REQUIRE(memory_holds(to, SIZE, 1));
	dma_end(dma);
	memory_free(PINNED, from);
	memory_free(DEVICE, to);
	leave_device(0);
}

TEST(a_hundred_thousand_pairs_of_create_and_wait)
{
	enum { COUNT = 100000, SIZE = 8 };
	use_device(0);
	struct aml_dma *dma = dma_new(cudaMemcpyDefault);
	char *from = memory_new(PINNED, SIZE), *to = memory_new(DEVICE, SIZE);
	memory_fill(from, SIZE, 1);
	struct counts before = {0};
	for (int i = 0; i < COUNT; i++) {
		REQUIRE_EQ(copy(data_of(dma), to, from, SIZE), AML_SUCCESS);
		if (i == 1000)
			before = counts_now();
	}
	struct counts after = counts_now();
	/* A slot may get its event late; there are never more than a slab of them. */
	REQUIRE(after.events <= before.events + 512 && after.registrations == before.registrations);
	REQUIRE(memory_holds(to, SIZE, 1));
	dma_end(dma);
	memory_free(PINNED, from);
	memory_free(DEVICE, to);
	leave_device(0);
}

EMULATED_TEST(contexts_that_come_and_go_leave_no_memory)
{
	enum { ROUNDS = 3000, WARM = 500 };
	long pages = 0;
	for (int round = 0; round < ROUNDS; round++) {
		if (round == WARM)
			pages = resident();
		CUcontext context = create_context(0);
		struct aml_dma *dma = dma_new(cudaMemcpyDefault);
		char *from = memory_new(PINNED, 1), *to = memory_new(PINNED, 1);
		REQUIRE_EQ(copy(data_of(dma), to, from, 1), AML_SUCCESS);
		dma_end(dma);
		memory_free(PINNED, from);
		memory_free(PINNED, to);
		CUDA(cuCtxDestroy(context));
	}
	/* Requests of one context take 64 KiB and more. */
	REQUIRE((resident() - pages) * sysconf(_SC_PAGESIZE) < (ROUNDS - WARM) * 16L << 10);
}
