/* An operator of one's own: a tile of a matrix, whose rows lie apart, in one pitched copy on the DMA's stream. */
#include <aml.h>
#include <aml/area/cuda.h>
#include <aml/dma/cuda.h>
#include <aml/layout/dense.h>
#include <aml/layout/native.h>

#include "example.h"

enum { ROWS = 1000, COLUMNS = 1200, TILE_ROWS = 300, TILE_COLUMNS = 417, FIRST_ROW = 55, FIRST_COLUMN = 700 };

/* Bytes from one row of a matrix to the next. */
static size_t pitch(const struct aml_layout *matrix)
{
	const size_t first[2] = {0, 0}, below[2] = {0, 1};
	return (size_t)((char *)aml_layout_deref_native(matrix, below) -
			(char *)aml_layout_deref_native(matrix, first));
}

/* Copies between two matrices whose rows are dense. The memory may be host's or device's: CUDA finds out. */
static int tile(struct aml_layout *dst, const struct aml_layout *src, void *arg)
{
	struct aml_dma_cuda_op_arg *op = arg; /* what every operator of a CUDA DMA gets */
	size_t to[2], from[2];
	if (aml_layout_ndims(dst) != 2 || aml_layout_ndims(src) != 2)
		return -AML_EINVAL;
	aml_layout_dims_native(dst, to);
	aml_layout_dims_native(src, from);
	if (to[0] != from[0] || to[1] != from[1])
		return -AML_EINVAL;

	CUDA_MEMCPY2D copy = {
		.srcMemoryType = CU_MEMORYTYPE_UNIFIED,
		.srcDevice = (CUdeviceptr)(uintptr_t)aml_layout_rawptr(src),
		.srcPitch = pitch(src),
		.dstMemoryType = CU_MEMORYTYPE_UNIFIED,
		.dstDevice = (CUdeviceptr)(uintptr_t)aml_layout_rawptr(dst),
		.dstPitch = pitch(dst),
		.WidthInBytes = from[0] * aml_layout_element_size(src),
		.Height = from[1],
	};
	return cuMemcpy2DAsync(&copy, (CUstream)op->data->stream) == CUDA_SUCCESS ? AML_SUCCESS : -AML_FAILURE;
}

static struct aml_layout *matrix(void *memory, size_t rows, size_t columns)
{
	const size_t dims[2] = {rows, columns};
	struct aml_layout *layout;
	CHECK(aml_layout_dense_create(&layout, memory, AML_LAYOUT_ORDER_C, sizeof(int), 2, dims, NULL, NULL) ==
	      AML_SUCCESS);
	return layout;
}

int main(int argc, char **argv)
{
	static int in[ROWS][COLUMNS], out[ROWS][COLUMNS];
	CHECK(aml_init(&argc, &argv) == AML_SUCCESS);
	if (!aml_support_backends(AML_BACKEND_CUDA)) {
		puts("pitched_operator: no CUDA device, nothing to run on");
		return SKIPPED;
	}
	for (int row = 0; row < ROWS; row++)
		for (int column = 0; column < COLUMNS; column++)
			in[row][column] = row * 10000 + column;

	struct aml_dma *dma;
	const size_t size = sizeof(int) * TILE_ROWS * TILE_COLUMNS;
	void *device = aml_area_mmap(&aml_area_cuda, size, NULL);
	CHECK(device != NULL);
	CHECK(aml_dma_cuda_create(&dma, cudaMemcpyDefault) == AML_SUCCESS);

	/* The tile of each host matrix is a slice of it; on the device the tile is all there is. */
	const size_t offsets[2] = {FIRST_ROW, FIRST_COLUMN}, dims[2] = {TILE_ROWS, TILE_COLUMNS};
	struct aml_layout *whole_in = matrix(in, ROWS, COLUMNS), *whole_out = matrix(out, ROWS, COLUMNS);
	struct aml_layout *there = matrix(device, TILE_ROWS, TILE_COLUMNS), *from, *to;
	CHECK(aml_layout_slice(whole_in, &from, offsets, dims, NULL) == AML_SUCCESS);
	CHECK(aml_layout_slice(whole_out, &to, offsets, dims, NULL) == AML_SUCCESS);

	struct aml_dma_request *up, *down;
	CHECK(aml_dma_async_copy_custom(dma, &up, there, from, tile, NULL) == AML_SUCCESS);
	CHECK(aml_dma_async_copy_custom(dma, &down, to, there, tile, NULL) == AML_SUCCESS);
	CHECK(aml_dma_wait(dma, &up) == AML_SUCCESS && aml_dma_wait(dma, &down) == AML_SUCCESS);
	CHECK(aml_dma_copy_custom(dma, to, whole_in, tile, NULL) == -AML_EINVAL); /* the operator's own word */

	for (int row = 0; row < ROWS; row++)
		for (int column = 0; column < COLUMNS; column++) {
			int inside = row >= FIRST_ROW && row < FIRST_ROW + TILE_ROWS && column >= FIRST_COLUMN &&
				     column < FIRST_COLUMN + TILE_COLUMNS;
			CHECK(out[row][column] == (inside ? in[row][column] : 0));
		}
	printf("pitched_operator: a tile of %d x %d out of %d x %d on %s\n", TILE_ROWS, TILE_COLUMNS, ROWS, COLUMNS,
	       device_name());

	struct aml_layout *layouts[] = {from, to, there, whole_in, whole_out};
	for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++)
		aml_layout_destroy(&layouts[i]);
	CHECK(aml_dma_cuda_destroy(&dma) == AML_SUCCESS);
	aml_area_munmap(&aml_area_cuda, device, size);
	return aml_finalize();
}
