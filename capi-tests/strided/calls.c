// How many calls of the driver a copy takes: as few as its copies of blocks, rectangles and boxes allow.
#include "device.h"
#include "emulator.h"
#include "grid.h"
#include "test.h"

enum { ROW = AML_LAYOUT_ORDER_ROW_MAJOR, COLUMN = AML_LAYOUT_ORDER_COLUMN_MAJOR };

struct taken {
	uint64_t flat, plane, volume, kernel;
};

static struct taken taken_now(void)
{
	const struct emulator *e = emulator();
	return (struct taken){e->calls("cuMemcpyAsync") + e->calls("cuMemcpyHtoDAsync_v2") +
				      e->calls("cuMemcpyDtoHAsync_v2") + e->calls("cuMemcpyPeerAsync"),
			      e->calls("cuMemcpy2DAsync_v2"), e->calls("cuMemcpy3DAsync_v2"), e->calls("cuLaunchKernel")};
}

/* The copy is right, and takes so many calls. */
static void expect(int kind, const struct grid *dst, enum sort to, const struct grid *src, enum sort from,
		   struct taken calls)
{
	struct taken before = taken_now();
	grid_check(kind, dst, to, src, from);
	struct taken after = taken_now();
	REQUIRE_EQ(after.flat - before.flat, calls.flat);
	REQUIRE_EQ(after.plane - before.plane, calls.plane);
	REQUIRE_EQ(after.volume - before.volume, calls.volume);
	REQUIRE_EQ(after.kernel - before.kernel, calls.kernel);
}

static void up(const struct grid *dst, const struct grid *src, struct taken calls)
{
	expect(cudaMemcpyHostToDevice, dst, DEVICE, src, PINNED, calls);
}

EMULATED_TEST(dense_layouts_are_one_block)
{
	const size_t dims[] = {5, 7, 3};
	use_device(0);
	for (int order = COLUMN; order <= ROW; order++)
		for (size_t ndims = 1; ndims <= 3; ndims++) {
			struct grid grid = grid_dense(order, 8, ndims, dims);
			up(&grid, &grid, (struct taken){.flat = 1});
			expect(cudaMemcpyDeviceToDevice, &grid, DEVICE, &grid, DEVICE, (struct taken){.flat = 1});
		}
	leave_device(0);
}

EMULATED_TEST(a_tile_of_a_matrix_is_one_rectangle)
{
	const size_t dims[] = {20, 30};
	use_device(0);
	struct grid tile = grid_dense(ROW, 8, 2, dims), matrix = tile;
	matrix.offset[0] = matrix.offset[1] = 3;
	matrix.pitch[0] = matrix.pitch[1] = 64;
	up(&tile, &matrix, (struct taken){.plane = 1});
	expect(cudaMemcpyDeviceToHost, &matrix, PINNED, &tile, DEVICE, (struct taken){.plane = 1});
	expect(cudaMemcpyDeviceToDevice, &tile, DEVICE, &matrix, DEVICE, (struct taken){.plane = 1});
	leave_device(0);
}

EMULATED_TEST(whole_rows_of_a_matrix_are_one_block)
{
	const size_t dims[] = {20, 64};
	use_device(0);
	struct grid rows = grid_dense(ROW, 8, 2, dims), matrix = rows;
	matrix.offset[0] = 3;
	matrix.pitch[0] = 64;
	up(&rows, &matrix, (struct taken){.flat = 1});
	leave_device(0);
}

EMULATED_TEST(a_block_of_a_cube_is_one_box)
{
	const size_t dims[] = {5, 6, 7};
	use_device(0);
	struct grid block = grid_dense(COLUMN, 8, 3, dims), cube = block;
	for (int i = 0; i < 3; i++)
		cube.offset[i] = 2, cube.pitch[i] = 16;
	up(&block, &cube, (struct taken){.volume = 1});
	expect(cudaMemcpyDeviceToHost, &cube, PAGEABLE, &block, DEVICE, (struct taken){.volume = 1});
	leave_device(0);
}

EMULATED_TEST(every_other_element_is_one_rectangle)
{
	const size_t dims[] = {100};
	use_device(0);
	struct grid dense = grid_dense(COLUMN, 4, 1, dims), every_other = dense;
	every_other.step[0] = 2;
	every_other.pitch[0] = 200;
	up(&dense, &every_other, (struct taken){.plane = 1});
	leave_device(0);
}

EMULATED_TEST(a_fourth_dimension_with_gaps_is_a_call_for_each_of_its_steps)
{
	const size_t dims[] = {4, 5, 2, 6};
	use_device(0);
	struct grid block = grid_dense(COLUMN, 8, 4, dims), whole = block;
	for (int i = 0; i < 4; i++)
		whole.pitch[i] = dims[i] + 1;
	up(&block, &whole, (struct taken){.volume = 2});
	leave_device(0);
}

EMULATED_TEST(a_transposition_is_a_call_for_each_step_of_the_shorter_side)
{
	const size_t dims[] = {30, 8};
	use_device(0);
	struct grid row = grid_dense(ROW, 8, 2, dims), column = grid_dense(COLUMN, 8, 2, dims);
	up(&column, &row, (struct taken){.plane = 8});
	up(&row, &column, (struct taken){.plane = 8});
	leave_device(0);
}

EMULATED_TEST(a_transposition_within_a_device_is_one_kernel)
{
	const size_t dims[] = {30, 8};
	use_device(0);
	struct grid row = grid_dense(ROW, 8, 2, dims), column = grid_dense(COLUMN, 8, 2, dims);
	expect(cudaMemcpyDeviceToDevice, &column, DEVICE, &row, DEVICE, (struct taken){.kernel = 1});
	expect(cudaMemcpyDefault, &row, DEVICE, &column, DEVICE, (struct taken){.kernel = 1});
	expect(cudaMemcpyDefault, &row, DEVICE, &column, MANAGED, (struct taken){.plane = 8});
	REQUIRE_EQ(emulator()->calls("cuModuleLoadData"), 1);
	leave_device(0);
}

EMULATED_TEST(without_the_kernel_a_transposition_within_a_device_goes_by_copies)
{
	const size_t dims[] = {30, 8};
	use_device(0);
	struct grid row = grid_dense(ROW, 8, 2, dims), column = grid_dense(COLUMN, 8, 2, dims);
	REQUIRE_EQ(emulator()->fail("cuModuleLoadData", 1, CUDA_ERROR_NOT_SUPPORTED), CUDA_SUCCESS);
	for (int round = 0; round < 2; round++) /* nor is it tried again */
		expect(cudaMemcpyDeviceToDevice, &column, DEVICE, &row, DEVICE, (struct taken){.plane = 8});
	REQUIRE_EQ(emulator()->calls("cuModuleLoadData"), 1);
	leave_device(0);
}
