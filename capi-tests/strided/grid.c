#include "grid.h"
#include "device.h"
#include <aml/layout/dense.h>
#include <stdint.h>
#include <string.h>

struct grid grid_dense(int order, size_t element, size_t ndims, const size_t *dims)
{
	struct grid grid = {.order = order, .element = element, .ndims = ndims};
	for (size_t i = 0; i < ndims; i++) {
		grid.dims[i] = grid.pitch[i] = dims[i];
		grid.step[i] = grid.stride[i] = 1;
	}
	return grid;
}

size_t grid_bytes(const struct grid *grid)
{
	size_t bytes = grid->element;
	for (size_t i = 0; i < grid->ndims; i++)
		bytes *= grid->pitch[i];
	return bytes;
}

struct aml_layout *grid_layout(const struct grid *grid, void *memory)
{
	struct aml_layout *whole, *slice;
	size_t dims[GRID_RANK];
	for (size_t i = 0; i < grid->ndims; i++)
		dims[i] = grid->offset[i] + (grid->dims[i] ? grid->dims[i] - 1 : 0) * grid->step[i] + 1;
	REQUIRE_EQ(aml_layout_dense_create(&whole, memory, grid->order, grid->element, grid->ndims, dims, grid->stride,
					   grid->pitch),
		   AML_SUCCESS);
	REQUIRE_EQ(aml_layout_slice(whole, &slice, grid->offset, grid->dims, grid->step), AML_SUCCESS);
	aml_layout_destroy(&whole);
	return slice;
}

void grid_model(const struct grid *dst_grid, void *dst, const struct grid *src_grid, void *src)
{
	struct aml_layout *to = grid_layout(dst_grid, dst), *from = grid_layout(src_grid, src);
	size_t coords[GRID_RANK] = {0}, i = 0;
	while (i < src_grid->ndims) {
		memcpy(aml_layout_deref(to, coords), aml_layout_deref(from, coords), src_grid->element);
		for (i = 0; i < src_grid->ndims && ++coords[i] == src_grid->dims[i]; i++)
			coords[i] = 0;
	}
	aml_layout_destroy(&to);
	aml_layout_destroy(&from);
}

int grid_copy(struct aml_dma *dma, const struct grid *dst_grid, void *dst, const struct grid *src_grid, void *src,
	      void *pair)
{
	struct aml_layout *to = grid_layout(dst_grid, dst), *from = grid_layout(src_grid, src);
	request *req = NULL;
	int code = aml_dma_cuda_request_create(data_of(dma), &req, to, from, aml_dma_cuda_copy_layout, pair);
	if (code == AML_SUCCESS)
		code = aml_dma_cuda_request_wait(data_of(dma), &req);
	aml_layout_destroy(&to);
	aml_layout_destroy(&from);
	return code;
}

int grid_accepts(int kind, enum sort src, enum sort dst)
{
	int from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
	int to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
	return !(from_device && src == PAGEABLE) && !(to_device && dst == PAGEABLE);
}

static void fetch(void *to, const void *from, size_t size)
{
	CUDA(cuMemcpy((CUdeviceptr)(uintptr_t)to, (CUdeviceptr)(uintptr_t)from, size));
	CUDA(cuStreamSynchronize(CU_STREAM_LEGACY));
}

enum { MARGIN = 64 };

void grid_check(int kind, const struct grid *dst_grid, enum sort dst_sort, const struct grid *src_grid,
		enum sort src_sort)
{
	size_t to_size = grid_bytes(dst_grid) + 2 * MARGIN, from_size = grid_bytes(src_grid);
	char *to = memory_new(dst_sort, to_size), *from = memory_new(src_sort, from_size);
	char *expected = memory_new(PINNED, to_size), *found = memory_new(PINNED, to_size);
	char *source = memory_new(PINNED, from_size);
	memory_fill(source, from_size, 5);
	memory_fill(from, from_size, 5);
	memory_fill(expected, to_size, 9);
	memory_fill(to, to_size, 9);
	struct aml_dma *dma = dma_new(kind);
	REQUIRE_EQ(grid_copy(dma, dst_grid, to + MARGIN, src_grid, from, NULL), AML_SUCCESS);
	dma_end(dma);
	grid_model(dst_grid, expected + MARGIN, src_grid, source);
	fetch(found, to, to_size);
	REQUIRE(memcmp(found, expected, to_size) == 0);
	REQUIRE(memory_holds(from, from_size, 5));
	memory_free(PINNED, expected);
	memory_free(PINNED, found);
	memory_free(PINNED, source);
	memory_free(dst_sort, to);
	memory_free(src_sort, from);
}
