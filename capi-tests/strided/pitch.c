// Rows farther apart than a driver allows for rectangles are copied one by one.
#include "device.h"
#include "emulator.h"
#include "grid.h"
#include "test.h"
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#define FAR ((size_t)3 << 30)
enum { ROWS = 3, WIDTH = 1000 };

/* Address space for rows that far apart, of which only the rows are ever touched. */
static char *map_far(void)
{
	char *memory = mmap(NULL, ROWS * FAR, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED)
		test_skip("not enough address space");
	return memory;
}

static const size_t dims[] = {WIDTH, ROWS};

static struct grid far_rows(void)
{
	struct grid grid = grid_dense(AML_LAYOUT_ORDER_COLUMN_MAJOR, 1, 2, dims);
	grid.pitch[0] = FAR;
	return grid;
}

TEST(rows_beyond_the_pitch_limit_are_copied_one_by_one)
{
	use_device(0);
	int limit;
	CUDA(cuDeviceGetAttribute(&limit, CU_DEVICE_ATTRIBUTE_MAX_PITCH, 0));
	if ((size_t)limit >= FAR)
		test_skip("this driver has no such limit");
	struct grid far = far_rows(), near = grid_dense(AML_LAYOUT_ORDER_COLUMN_MAJOR, 1, 2, dims);
	char *memory = map_far(), *device = memory_new(DEVICE, ROWS * WIDTH);
	for (int row = 0; row < ROWS; row++)
		memory_fill(memory + row * FAR, WIDTH, (unsigned)row);
	struct aml_dma *up = dma_new(cudaMemcpyHostToDevice), *down = dma_new(cudaMemcpyDeviceToHost);
	REQUIRE_EQ(grid_copy(up, &near, device, &far, memory, NULL), AML_SUCCESS);
	for (int row = 0; row < ROWS; row++) {
		REQUIRE(memory_holds(device + row * WIDTH, WIDTH, (unsigned)row));
		memset(memory + row * FAR, 0, WIDTH + 1);
	}
	REQUIRE_EQ(grid_copy(down, &far, memory, &near, device, NULL), AML_SUCCESS);
	for (int row = 0; row < ROWS; row++) {
		REQUIRE(memory_holds(memory + row * FAR, WIDTH, (unsigned)row));
		REQUIRE(memory[row * FAR + WIDTH] == 0);
	}
	dma_end(up);
	dma_end(down);
	memory_free(DEVICE, device);
	munmap(memory, ROWS * FAR);
	leave_device(0);
}
