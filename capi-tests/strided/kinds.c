// Every kind with every pair of memory sorts: rectangles, boxes and loops are taken and refused as one block is.
#include "device.h"
#include "grid.h"
#include "test.h"
#include <stdint.h>
#include <string.h>

enum { ROW = AML_LAYOUT_ORDER_ROW_MAJOR, COLUMN = AML_LAYOUT_ORDER_COLUMN_MAJOR };

static void refuse(int kind, const struct grid *dst, enum sort to, const struct grid *src, enum sort from)
{
	size_t to_size = grid_bytes(dst), from_size = grid_bytes(src);
	char *target = memory_new(to, to_size), *source = memory_new(from, from_size);
	struct aml_dma *dma = dma_new(kind);
	memory_fill(target, to_size, 1);
	memory_fill(source, from_size, 2);
	REQUIRE_EQ(grid_copy(dma, dst, target, src, source, NULL), -AML_FAILURE);
	REQUIRE_EQ(aml_dma_cuda_barrier(data_of(dma)), AML_SUCCESS);
	REQUIRE(memory_holds(target, to_size, 1));
	dma_end(dma);
	memory_free(to, target);
	memory_free(from, source);
}

static void every_kind(const struct grid *dst, const struct grid *src)
{
	use_device(0);
	for (int kind = 0; kind < 5; kind++)
		for (enum sort from = 0; from < SORTS; from++)
			for (enum sort to = 0; to < SORTS; to++) {
				if (grid_accepts(kind, from, to))
					grid_check(kind, dst, to, src, from);
				else
					refuse(kind, dst, to, src, from);
			}
	leave_device(0);
}

TEST(rectangles_are_taken_and_refused_as_blocks_are)
{
	const size_t dims[] = {40, 30};
	struct grid tile = grid_dense(COLUMN, 8, 2, dims), matrix = tile;
	matrix.pitch[0] = 50;
	every_kind(&tile, &matrix);
	every_kind(&matrix, &tile);
}

TEST(boxes_are_taken_and_refused_as_blocks_are)
{
	const size_t dims[] = {10, 6, 5};
	struct grid block = grid_dense(COLUMN, 8, 3, dims), cube = block;
	cube.pitch[0] = 12, cube.pitch[1] = 8;
	every_kind(&block, &cube);
	every_kind(&cube, &block);
}

TEST(many_calls_are_taken_and_refused_as_blocks_are)
{
	const size_t dims[] = {12, 17};
	struct grid row = grid_dense(ROW, 8, 2, dims), column = grid_dense(COLUMN, 8, 2, dims);
	every_kind(&row, &column);
	every_kind(&column, &row);
}

TEST(registered_memory_is_copied_as_pinned_memory_is)
{
	const size_t dims[] = {12, 17};
	use_device(0);
	struct grid row = grid_dense(ROW, 8, 2, dims), column = grid_dense(COLUMN, 8, 2, dims);
	size_t size = grid_bytes(&row), room = 3 * 4096, offset = 4096 + 40;
	char *host = aligned_alloc(4096, room), *device = memory_new(DEVICE, size), *expected = malloc(size);
	struct aml_dma *up = dma_new(cudaMemcpyHostToDevice), *down = dma_new(cudaMemcpyDeviceToHost);
	memory_fill(host, room, 1);
	CUDA(cuMemHostRegister(host + 4096, 2 * 4096, CU_MEMHOSTREGISTER_PORTABLE));
	REQUIRE_EQ(grid_copy(up, &column, device, &row, host + offset, NULL), AML_SUCCESS);
	grid_model(&column, expected, &row, host + offset);
	memory_set(host + offset, size, 0);
	REQUIRE_EQ(grid_copy(down, &column, host + offset, &column, device, NULL), AML_SUCCESS);
	REQUIRE(memcmp(host + offset, expected, size) == 0);
	REQUIRE_EQ(grid_copy(down, &row, host + offset, &column, device, NULL), AML_SUCCESS);
	for (size_t i = 0; i < size; i++)
		REQUIRE((unsigned char)host[offset + i] == memory_byte(1, offset + i));
	CUDA(cuMemHostUnregister(host + 4096));
	dma_end(up);
	dma_end(down);
	memory_free(DEVICE, device);
	free(host);
	free(expected);
	leave_device(0);
}
