/* Layouts of elements at regular distances as these tests make them: AML's dense layouts with pitches, strides and
 * slices in either order, and the copy that has to come out, element by element. */
#ifndef CAPI_TESTS_GRID_H
#define CAPI_TESTS_GRID_H
#include "copy.h"
#include "memory.h"
#include <aml.h>

#define GRID_RANK 6

/** A slice of a dense layout, everything in the user's order: `dims` elements, `step` apart, from `offset` on, of a
 * layout whose own elements are `stride` apart and whose rows take `pitch`. */
struct grid {
	int order;
	size_t element, ndims;
	size_t dims[GRID_RANK], offset[GRID_RANK], step[GRID_RANK], stride[GRID_RANK], pitch[GRID_RANK];
};

/** A whole layout without gaps. */
struct grid grid_dense(int order, size_t element, size_t ndims, const size_t *dims);

/** The bytes that the layout below the slice takes. */
size_t grid_bytes(const struct grid *grid);

/** The layout over `memory`; to be destroyed by aml_layout_destroy. */
struct aml_layout *grid_layout(const struct grid *grid, void *memory);

/** Copies each element of host memory `src` to that of host memory `dst` with the same coordinates. */
void grid_model(const struct grid *dst_grid, void *dst, const struct grid *src_grid, void *src);

/** Copies with the operator, and waits. `pair` may be NULL. */
int grid_copy(struct aml_dma *dma, const struct grid *dst_grid, void *dst, const struct grid *src_grid, void *src,
	      void *pair);

/** Checks that a copy between memory of two sorts changes what the model says, and nothing else. */
void grid_check(int kind, const struct grid *dst_grid, enum sort dst_sort, const struct grid *src_grid,
		enum sort src_sort);

/** Whether CUDA copies between these sorts for this kind, as it does for one block. */
int grid_accepts(int kind, enum sort src, enum sort dst);

#endif
