// Copies between two devices: rectangles, boxes and loops by the pair, and pairs of devices that are not there.
#include "device.h"
#include "emulator.h"
#include "grid.h"
#include "test.h"
#include <stdint.h>
#include <string.h>

enum { ROW = AML_LAYOUT_ORDER_ROW_MAJOR, COLUMN = AML_LAYOUT_ORDER_COLUMN_MAJOR };

/* The copy from one device to the other, on a stream of device 0. */
static void across(int src_device, int dst_device, const struct grid *dst, const struct grid *src)
{
	CUcontext contexts[2];
	size_t dst_size = grid_bytes(dst), src_size = grid_bytes(src);
	for (int i = 0; i < 2; i++)
		CUDA(cuDevicePrimaryCtxRetain(&contexts[i], i));
	char *expected = malloc(dst_size), *source = malloc(src_size);
	memory_fill(expected, dst_size, 1);
	memory_fill(source, src_size, 2);
	grid_model(dst, expected, src, source);
	CUDA(cuCtxSetCurrent(contexts[src_device]));
	char *from = memory_new(DEVICE, src_size);
	memory_fill(from, src_size, 2);
	CUDA(cuCtxSetCurrent(contexts[dst_device]));
	char *to = memory_new(DEVICE, dst_size);
	memory_fill(to, dst_size, 1);
	CUDA(cuCtxSetCurrent(contexts[0]));
	struct aml_dma *dma = dma_new(cudaMemcpyDeviceToDevice);
	CUDA(cuCtxSetCurrent(NULL)); /* the pair and the stream say it all */
	void *pair = AML_DMA_CUDA_DEVICE_PAIR((uint64_t)src_device, (uint64_t)dst_device);
	REQUIRE_EQ(grid_copy(dma, dst, to, src, from, pair), AML_SUCCESS);
	dma_end(dma);
	CUDA(cuCtxSetCurrent(contexts[dst_device]));
	char *found = malloc(dst_size);
	CUDA(cuMemcpyDtoH(found, (CUdeviceptr)(uintptr_t)to, dst_size));
	REQUIRE(memcmp(found, expected, dst_size) == 0);
	memory_free(DEVICE, to);
	CUDA(cuCtxSetCurrent(contexts[src_device]));
	memory_free(DEVICE, from);
	free(found);
	free(expected);
	free(source);
	CUDA(cuCtxSetCurrent(NULL));
	for (int i = 0; i < 2; i++)
		CUDA(cuDevicePrimaryCtxRelease(i));
}

static void all_pairs(const struct grid *dst, const struct grid *src)
{
	require_devices(2);
	for (int pair = 0; pair < 4; pair++)
		across(pair & 1, pair >> 1, dst, src);
}

static struct grid tile_of(const size_t *dims, size_t ndims)
{
	struct grid grid = grid_dense(COLUMN, 8, ndims, dims);
	for (size_t i = 0; i < ndims; i++)
		grid.pitch[i] = dims[i] + 2;
	return grid;
}

TEST(rectangles_go_from_device_to_device)
{
	const size_t dims[] = {40, 30};
	struct grid dense = grid_dense(COLUMN, 8, 2, dims), tile = tile_of(dims, 2);
	all_pairs(&dense, &tile);
	all_pairs(&tile, &dense);
}

TEST(boxes_go_from_device_to_device)
{
	const size_t dims[] = {10, 6, 5};
	struct grid dense = grid_dense(COLUMN, 8, 3, dims), block = tile_of(dims, 3);
	all_pairs(&dense, &block);
	all_pairs(&block, &dense);
}

TEST(transpositions_go_from_device_to_device)
{
	const size_t dims[] = {12, 17};
	struct grid row = grid_dense(ROW, 8, 2, dims), column = grid_dense(COLUMN, 8, 2, dims);
	all_pairs(&row, &column);
	all_pairs(&column, &row);
}

EMULATED_TEST(a_rectangle_between_two_devices_is_one_call)
{
	const size_t dims[] = {40, 30};
	require_devices(2);
	struct grid dense = grid_dense(COLUMN, 8, 2, dims), tile = tile_of(dims, 2);
	across(0, 1, &dense, &tile);
	REQUIRE_EQ(emulator()->calls("cuMemcpy3DPeerAsync"), 1);
	across(0, 0, &dense, &tile);
	REQUIRE_EQ(emulator()->calls("cuMemcpy3DPeerAsync"), 1);
	REQUIRE_EQ(emulator()->calls("cuMemcpy2DAsync_v2"), 1);
}

TEST(a_device_that_is_not_there_is_refused)
{
	const size_t dims[] = {40, 30};
	use_device(0);
	struct grid dense = grid_dense(COLUMN, 8, 2, dims), tile = tile_of(dims, 2);
	char *to = memory_new(DEVICE, grid_bytes(&dense)), *from = memory_new(DEVICE, grid_bytes(&tile));
	struct aml_dma *dma = dma_new(cudaMemcpyDeviceToDevice);
	memory_fill(to, grid_bytes(&dense), 1);
	memory_fill(from, grid_bytes(&tile), 2);
	const uint64_t pairs[][2] = {{0, 99}, {99, 0}, {0xffffffff, 0}, {0, 0xffffffff}};
	for (int i = 0; i < 4; i++)
		REQUIRE_EQ(grid_copy(dma, &dense, to, &tile, from, AML_DMA_CUDA_DEVICE_PAIR(pairs[i][0], pairs[i][1])),
			   -AML_FAILURE);
	REQUIRE(memory_holds(to, grid_bytes(&dense), 1));
	dma_end(dma);
	memory_free(DEVICE, to);
	memory_free(DEVICE, from);
	leave_device(0);
}
