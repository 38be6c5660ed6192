/* A dense layout of up to three dimensions with pitches: what a DMA must know of AML's layouts, and no more. */
#ifndef BENCH_LAYOUT_H
#define BENCH_LAYOUT_H
#include "gpu.h"
#include <aml.h>

/** The layout, and the state that its operations find behind it. */
struct plain_layout {
	struct aml_layout public;
	char *memory;
	size_t ndims, element_size, dims[3], distance[3];
};

/** `count` elements of `element_size` bytes in a row. */
void layout_flat(struct plain_layout *layout, const void *memory, size_t count, size_t element_size);
/** The destination's or the source's side of a box, in elements of 8 bytes. */
void layout_box(struct plain_layout *layout, const void *memory, const struct box *box, int destination);
#endif
