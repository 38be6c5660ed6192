// Copies between devices: the pair says which, the contexts need not have been used before, and absent devices are refused.
#include "copy.h"
#include "device.h"
#include "emulator.h"
#include "layout.h"
#include "memory.h"
#include "test.h"

enum { SIZE = (3 << 20) + 7 };

static void *memory_on(int device, unsigned seed)
{
	require_devices(device + 1);
	CUDA(cuCtxSetCurrent(NULL));
	use_device(device);
	void *memory = memory_new(DEVICE, SIZE);
	memory_fill(memory, SIZE, seed);
	return memory;
}

static int holds_on(int device, const void *memory, unsigned seed)
{
	CUcontext primary;
	CUDA(cuDevicePrimaryCtxRetain(&primary, device));
	CUDA(cuCtxPushCurrent(primary));
	int holds = memory_holds(memory, SIZE, seed);
	CUDA(cuCtxPopCurrent(&primary));
	CUDA(cuDevicePrimaryCtxRelease(device));
	return holds;
}

static int across(struct aml_dma *dma, void *dst, void *src, void *pair)
{
	struct test_layout d, s;
	request *req;
	int code = aml_dma_cuda_request_create(data_of(dma), &req, layout_bytes(&d, dst, SIZE), layout_bytes(&s, src, SIZE), NULL,
					       pair);
	return code ? code : aml_dma_cuda_request_wait(data_of(dma), &req);
}

TEST(within_one_device_the_pair_is_zero_zero_or_null)
{
	void *a = memory_on(0, 1), *b = memory_on(0, 2);
	struct aml_dma *dma = dma_new(cudaMemcpyDeviceToDevice);
	REQUIRE_EQ(across(dma, b, a, NULL), AML_SUCCESS);
	REQUIRE(memory_holds(b, SIZE, 1));
	memory_fill(a, SIZE, 3);
	REQUIRE_EQ(across(dma, b, a, AML_DMA_CUDA_DEVICE_PAIR(0, 0)), AML_SUCCESS);
	REQUIRE(memory_holds(b, SIZE, 3));
	dma_end(dma);
	memory_free(DEVICE, a);
	memory_free(DEVICE, b);
	leave_device(0);
	CUDA(cuDevicePrimaryCtxRelease(0));
}

/* From `src` to `dst` and with each device current; `on` is where the dma is. */
static void both_ways(int on)
{
	require_devices(2);
	void *a = memory_on(0, 1), *b = memory_on(1, 2);
	use_device(on);
	struct aml_dma *dma = dma_new(cudaMemcpyDeviceToDevice);
	for (int current = -1; current < 2; current++) {
		CUDA(cuCtxSetCurrent(NULL));
		if (current >= 0)
			use_device(current);
		struct standing before = standing_now();
		REQUIRE_EQ(across(dma, b, a, AML_DMA_CUDA_DEVICE_PAIR(0, 1)), AML_SUCCESS);
		standing_require_same(before, "after (0,1)");
		REQUIRE(holds_on(1, b, 1));
		CUDA(cuCtxSetCurrent(NULL));
		use_device(1);
		memory_fill(b, SIZE, (unsigned)current + 7);
		CUDA(cuDevicePrimaryCtxRelease(1));
		CUDA(cuCtxSetCurrent(before.stack[0]));
		REQUIRE_EQ(across(dma, a, b, AML_DMA_CUDA_DEVICE_PAIR(1, 0)), AML_SUCCESS);
		standing_require_same(before, "after (1,0)");
		REQUIRE(holds_on(0, a, (unsigned)current + 7));
		use_device(0);
		memory_fill(a, SIZE, 1);
		CUDA(cuDevicePrimaryCtxRelease(0));
		if (current >= 0)
			CUDA(cuDevicePrimaryCtxRelease(current));
	}
	CUDA(cuCtxSetCurrent(NULL));
	dma_end(dma);
	use_device(0);
	memory_free(DEVICE, a);
	leave_device(0);
	use_device(1);
	memory_free(DEVICE, b);
	leave_device(1);
	CUDA(cuDevicePrimaryCtxRelease(0));
	CUDA(cuDevicePrimaryCtxRelease(1));
	CUDA(cuDevicePrimaryCtxRelease(on));
}

TEST(a_dma_on_device_zero_copies_both_ways) { both_ways(0); }

TEST(a_dma_on_device_one_copies_both_ways) { both_ways(1); }

TEST(two_buffers_on_device_one)
{
	require_devices(2);
	void *a = memory_on(1, 1), *b = memory_on(1, 2);
	for (int on = 0; on < 2; on++) {
		CUDA(cuCtxSetCurrent(NULL));
		use_device(on);
		struct aml_dma *dma = dma_new(cudaMemcpyDeviceToDevice);
		REQUIRE_EQ(across(dma, b, a, AML_DMA_CUDA_DEVICE_PAIR(1, 1)), AML_SUCCESS);
		REQUIRE(holds_on(1, b, 1));
		dma_end(dma);
		leave_device(on);
		use_device(1);
		memory_fill(b, SIZE, 2);
		leave_device(1);
	}
	use_device(1);
	memory_free(DEVICE, a);
	memory_free(DEVICE, b);
	leave_device(1);
	CUDA(cuDevicePrimaryCtxRelease(1));
	CUDA(cuDevicePrimaryCtxRelease(1));
}

TEST(an_absent_device_is_refused)
{
	const int absent[] = {1000, -1, -2147483647 - 1, 2147483647};
	int count = require_devices(1);
	void *a = memory_on(0, 1), *b = memory_on(0, 2);
	struct aml_dma *dma = dma_new(cudaMemcpyDeviceToDevice);
	REQUIRE_EQ(across(dma, b, a, NULL), AML_SUCCESS);
	memory_fill(b, SIZE, 2);
	struct counts before = counts_now();
	REQUIRE_EQ(across(dma, b, a, AML_DMA_CUDA_DEVICE_PAIR(0, count)), -AML_FAILURE);
	REQUIRE_EQ(across(dma, b, a, AML_DMA_CUDA_DEVICE_PAIR(count, 0)), -AML_FAILURE);
	for (int i = 0; i < 4; i++) {
		REQUIRE_EQ(across(dma, b, a, AML_DMA_CUDA_DEVICE_PAIR(0, absent[i])), -AML_FAILURE);
		REQUIRE_EQ(across(dma, b, a, AML_DMA_CUDA_DEVICE_PAIR(absent[i], 0)), -AML_FAILURE);
		REQUIRE_EQ(across(dma, b, a, AML_DMA_CUDA_DEVICE_PAIR(absent[i], absent[i])), -AML_FAILURE);
	}
	REQUIRE_EQ(aml_dma_cuda_barrier(data_of(dma)), AML_SUCCESS);
	REQUIRE(memory_holds(b, SIZE, 2));
	counts_require_same(before, "after copies that were refused");
	dma_end(dma);
	memory_free(DEVICE, a);
	memory_free(DEVICE, b);
	leave_device(0);
	CUDA(cuDevicePrimaryCtxRelease(0));
}

TEST(a_swapped_pair_is_no_crash)
{
	require_devices(2);
	void *a = memory_on(0, 1), *b = memory_on(1, 2);
	use_device(0);
	struct aml_dma *dma = dma_new(cudaMemcpyDeviceToDevice);
	struct standing before = standing_now();
	int code = across(dma, b, a, AML_DMA_CUDA_DEVICE_PAIR(1, 0));
	REQUIRE(code == AML_SUCCESS || code == -AML_FAILURE);
	standing_require_same(before, "after a swapped pair");
	REQUIRE(code || holds_on(1, b, 1)); /* success means that it arrived */
	REQUIRE(code == AML_SUCCESS || holds_on(1, b, 2));
	REQUIRE_EQ(across(dma, b, a, AML_DMA_CUDA_DEVICE_PAIR(0, 1)), AML_SUCCESS);
	REQUIRE(holds_on(1, b, 1));
	dma_end(dma);
	memory_free(DEVICE, a);
	leave_device(0);
	use_device(1);
	memory_free(DEVICE, b);
	leave_device(1);
	CUDA(cuDevicePrimaryCtxRelease(0));
	CUDA(cuDevicePrimaryCtxRelease(1));
}

EMULATED_TEST(devices_need_no_access_to_each_other)
{
	require_devices(2);
	emulator()->set_peer_access(0);
	both_ways(0);
}
