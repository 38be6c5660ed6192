// Pageable memory, as with the runtime: the source may be reused, and the destination is filled, when the call returns.
#include "copy.h"
#include "device.h"
#include "emulator.h"
#include "memory.h"
#include "park.h"
#include "test.h"

static const size_t sizes[] = {1, 4096, 65536, 65537, 1 << 20, (6 << 20) + 3};
enum { SIZES = sizeof sizes / sizeof *sizes };

TEST(the_source_may_be_reused_at_once)
{
	use_device(0);
	struct aml_dma *dma = dma_new(cudaMemcpyHostToDevice);
	for (int i = 0; i < SIZES; i++) {
		char *from = memory_new(PAGEABLE, sizes[i]), *to = memory_new(DEVICE, sizes[i]);
		request *req;
		for (int round = 0; round < 5; round++) {
			memory_fill(from, sizes[i], 1);
			REQUIRE_EQ(start(data_of(dma), &req, to, from, sizes[i]), AML_SUCCESS);
			memory_set(from, sizes[i], 0);
			REQUIRE_EQ(aml_dma_cuda_request_wait(data_of(dma), &req), AML_SUCCESS);
			REQUIRE(memory_holds(to, sizes[i], 1));
		}
		memory_free(PAGEABLE, from);
		memory_free(DEVICE, to);
	}
	dma_end(dma);
	leave_device(0);
}

TEST(the_destination_is_filled_at_once)
{
	use_device(0);
	struct aml_dma *dma = dma_new(cudaMemcpyDeviceToHost);
	for (int i = 0; i < SIZES; i++) {
		char *from = memory_new(DEVICE, sizes[i]), *to = memory_new(PAGEABLE, sizes[i]);
		request *req;
		memory_fill(from, sizes[i], 1);
		for (int round = 0; round < 5; round++) {
			memory_set(to, sizes[i], 0);
			REQUIRE_EQ(start(data_of(dma), &req, to, from, sizes[i]), AML_SUCCESS);
			REQUIRE(memory_holds(to, sizes[i], 1));
			memory_set(to, sizes[i], 0);
			REQUIRE_EQ(aml_dma_cuda_request_wait(data_of(dma), &req), AML_SUCCESS);
			REQUIRE(memory_is(to, sizes[i], 0)); /* and is the program's again */
		}
		memory_free(DEVICE, from);
		memory_free(PAGEABLE, to);
	}
	dma_end(dma);
	leave_device(0);
}

/* A kind that leaves the direction to the driver takes the memory of any device, be it small or large. */
TEST(pageable_copies_reach_another_device)
{
	char *device[SIZES];
	require_devices(2);
	use_device(1);
	for (int i = 0; i < SIZES; i++)
		device[i] = memory_new(DEVICE, sizes[i]);
	use_device(0);
	struct aml_dma *dma = dma_new(cudaMemcpyDefault);
	for (int i = 0; i < SIZES; i++) {
		char *plain = memory_new(PAGEABLE, sizes[i]);
		memory_fill(plain, sizes[i], 7);
		REQUIRE_EQ(copy(data_of(dma), device[i], plain, sizes[i]), AML_SUCCESS);
		memory_set(plain, sizes[i], 0);
		REQUIRE_EQ(start(data_of(dma), NULL, plain, device[i], sizes[i]), AML_SUCCESS);
		REQUIRE(memory_holds(plain, sizes[i], 7));
		memory_free(PAGEABLE, plain);
	}
	dma_end(dma);
	for (int i = 0; i < SIZES; i++)
		memory_free(DEVICE, device[i]);
	leave_device(0);
	leave_device(1);
}

TEST(pageable_copies_keep_the_order_of_the_stream)
{
	use_device(0);
	struct aml_dma *dma = dma_new(cudaMemcpyDefault);
	for (int i = 0; i < SIZES; i++) {
		const size_t size = sizes[i];
		char *plain = memory_new(PAGEABLE, size), *pinned = memory_new(PINNED, size), *device = memory_new(DEVICE, size);
		for (unsigned round = 0; round < 10; round++) {
			memory_fill(pinned, size, round);
			memory_fill(plain, size, round + 100);
			REQUIRE_EQ(start(data_of(dma), NULL, device, pinned, size), AML_SUCCESS);
			REQUIRE_EQ(start(data_of(dma), NULL, device, plain, size), AML_SUCCESS);
			memory_set(plain, size, 0);
			REQUIRE_EQ(start(data_of(dma), NULL, plain, device, size), AML_SUCCESS);
			REQUIRE(memory_holds(plain, size, round + 100));
			REQUIRE(memory_holds(device, size, round + 100));
		}
		memory_free(PAGEABLE, plain);
		memory_free(PINNED, pinned);
		memory_free(DEVICE, device);
	}
	dma_end(dma);
	leave_device(0);
}

TEST(a_pageable_copy_waits_for_what_was_queued_before)
{
	use_device(0);
	struct aml_dma *dma = dma_new(cudaMemcpyDefault);
	for (int i = 0; i < SIZES; i++) {
		const size_t size = sizes[i];
		struct park park;
		volatile int going = 0;
		char *plain = memory_new(PAGEABLE, size), *pinned = memory_new(PINNED, size), *device = memory_new(DEVICE, size);
		memory_fill(pinned, size, 3);
		memory_set(device, size, 0);
		memory_set(plain, size, 0);
		park_stream(&park, stream_of(dma));
		REQUIRE_EQ(start(data_of(dma), NULL, device, pinned, size), AML_SUCCESS);
		park_release_when(&park, &going);
		__atomic_store_n(&going, 1, __ATOMIC_RELEASE);
		REQUIRE_EQ(start(data_of(dma), NULL, plain, device, size), AML_SUCCESS);
		REQUIRE(memory_holds(plain, size, 3));
		park_join();
		memory_free(PAGEABLE, plain);
		memory_free(PINNED, pinned);
		memory_free(DEVICE, device);
	}
	dma_end(dma);
	leave_device(0);
}
