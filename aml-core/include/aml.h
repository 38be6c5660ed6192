/**
 * @file aml.h
 * The part of AML that a program with a DMA calls: areas, layouts and DMAs, and what they share.
 *
 * A program built against this header and one built against AML's own are the same binary: structs, codes and
 * symbols agree. What is not here (allocators, mappers, tilings, replica sets, other backends) needs libaml. Use one
 * or the other: a process that loads both gets each name from whichever comes first, and that is not supported.
 *
 * Functions that return `int` return #AML_SUCCESS or an error number negated. Where a pointer must not be NULL and
 * is, they answer `-AML_EINVAL` and change nothing. Where a table of operations lacks the one that is needed, they
 * answer `-AML_ENOTSUP`; functions that return a pointer answer NULL. Nothing here prints unless printing is its job.
 */
#ifndef AML_H
#define AML_H

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <unistd.h>

#include <aml/utils/error.h>
#include <aml/utils/features.h>
#include <aml/utils/inner-malloc.h>
#include <aml/utils/macros.h>
#include <aml/utils/version.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @defgroup aml General
 * Start and end of the library.
 * @{
 */

/**
 * Starts the library. Call it before any other function.
 * @param argc Address of the program's argument count, or NULL. Nothing is taken from the arguments.
 * @param argv Address of the program's arguments, or NULL.
 * @return #AML_SUCCESS.
 */
int aml_init(int *argc, char **argv[]);

/**
 * Ends the use of the library; aml_init() may be called again later. Memory, layouts and DMAs that the program still
 * holds stay valid.
 * @return #AML_SUCCESS.
 */
int aml_finalize(void);

/** @} */

/**
 * @defgroup aml_area Areas
 * A place where memory comes from.
 * @{
 */

/** State of an area, known to its implementation. */
struct aml_area_data;

/** Options of one mapping, known to the implementation of the area. */
struct aml_area_mmap_options;

/** What an area can do. */
struct aml_area_ops {
	/** Maps `size` bytes; NULL and #aml_errno on failure. */
	void *(*mmap)(const struct aml_area_data *data, size_t size, struct aml_area_mmap_options *opts);
	/** Gives the `size` bytes at `ptr` back. */
	int (*munmap)(const struct aml_area_data *data, void *ptr, size_t size);
	/** Describes the area, each line behind `prefix`. */
	int (*fprintf)(const struct aml_area_data *data, FILE *stream, const char *prefix);
};

/** An area: what it can do, and the state that it does it with. */
struct aml_area {
	/** Operations. */
	struct aml_area_ops *ops;
	/** First argument of each operation. */
	struct aml_area_data *data;
};

/**
 * Maps memory from an area.
 * @param area Where to take the memory.
 * @param size Bytes, more than 0.
 * @param opts Options of this area, or NULL for its defaults.
 * @return The memory, or NULL with the reason in #aml_errno.
 */
void *aml_area_mmap(const struct aml_area *area, size_t size, struct aml_area_mmap_options *opts);

/**
 * Gives memory back to the area that it came from.
 * @param area The area.
 * @param ptr What aml_area_mmap() returned. NULL is nothing to do: success.
 * @param size The size that was mapped.
 * @return #AML_SUCCESS or an error number negated.
 */
int aml_area_munmap(const struct aml_area *area, void *ptr, size_t size);

/**
 * Describes an area in text.
 * @param stream Where to write.
 * @param prefix Put before each line; NULL is the empty one.
 * @param area The area.
 * @return #AML_SUCCESS or an error number negated.
 */
int aml_area_fprintf(FILE *stream, const char *prefix, const struct aml_area *area);

/** @} */

/**
 * @defgroup aml_layout Layouts
 * A description of where the elements of an array lie.
 *
 * A layout has an order. Its *user order* is the one in which the program writes coordinates; its *native order*
 * always has the dimension that varies fastest first. They are the same in column major, and reversed in row major.
 * @{
 */

/** State of a layout, known to its implementation. */
struct aml_layout_data;
struct aml_layout;

/** Fortran's order: the first dimension varies fastest. */
#define AML_LAYOUT_ORDER_FORTRAN 0
/** Another name for #AML_LAYOUT_ORDER_FORTRAN. */
#define AML_LAYOUT_ORDER_COLUMN_MAJOR 0
/** C's order: the last dimension varies fastest. */
#define AML_LAYOUT_ORDER_C 1
/** Another name for #AML_LAYOUT_ORDER_C. */
#define AML_LAYOUT_ORDER_ROW_MAJOR 1

/** What a layout can do. */
struct aml_layout_ops {
	/** Address of an element, coordinates in user order. */
	void *(*deref)(const struct aml_layout_data *data, const size_t *coords);
	/** Address of an element, coordinates in native order. */
	void *(*deref_native)(const struct aml_layout_data *data, const size_t *coords);
	/** Address of the memory that is described. */
	void *(*rawptr)(const struct aml_layout_data *data);
	/** One of the orders. */
	int (*order)(const struct aml_layout_data *data);
	/** Stores the dimensions in user order. */
	int (*dims)(const struct aml_layout_data *data, size_t *dims);
	/** Stores the dimensions in native order. */
	int (*dims_native)(const struct aml_layout_data *data, size_t *dims);
	/** Number of dimensions. */
	size_t (*ndims)(const struct aml_layout_data *data);
	/** Bytes of an element. */
	size_t (*element_size)(const struct aml_layout_data *data);
	/** The same elements in other dimensions. */
	int (*reshape)(const struct aml_layout_data *data, struct aml_layout **output, size_t ndims,
		       const size_t *dims);
	/** Some of the elements, arguments in user order. */
	int (*slice)(const struct aml_layout_data *data, struct aml_layout **output, const size_t *offsets,
		     const size_t *dims, const size_t *strides);
	/** Some of the elements, arguments in native order. */
	int (*slice_native)(const struct aml_layout_data *data, struct aml_layout **output, const size_t *offsets,
			    const size_t *dims, const size_t *strides);
	/** Describes the layout, each line behind `prefix`. */
	int (*fprintf)(const struct aml_layout_data *data, FILE *stream, const char *prefix);
	/** The same description of other memory. */
	int (*duplicate)(const struct aml_layout *layout, struct aml_layout **output, void *ptr);
	/** Frees the layout, not the memory. */
	int (*destroy)(struct aml_layout *layout);
};

/** A layout: what it can do, and the state that it does it with. */
struct aml_layout {
	/** Operations. */
	struct aml_layout_ops *ops;
	/** First argument of most operations. */
	struct aml_layout_data *data;
};

/**
 * Address of an element. Coordinates are not checked against the dimensions.
 * @param layout The layout.
 * @param coords One coordinate a dimension, in user order.
 * @return The address, or NULL for a NULL argument.
 */
void *aml_layout_deref(const struct aml_layout *layout, const size_t *coords);

/**
 * Address of an element, as aml_layout_deref(), and NULL where a coordinate is not below its dimension.
 * @param layout The layout. More than 32 dimensions need memory.
 * @param coords One coordinate a dimension, in user order.
 * @return The address, or NULL; also where memory runs out.
 */
void *aml_layout_deref_safe(const struct aml_layout *layout, const size_t *coords);

/**
 * Address of the memory that a layout describes: that of its first element for dense layouts.
 * @param layout The layout.
 * @return The address, or NULL for a NULL layout.
 */
void *aml_layout_rawptr(const struct aml_layout *layout);

/**
 * Order of a layout.
 * @param layout The layout.
 * @return #AML_LAYOUT_ORDER_COLUMN_MAJOR, #AML_LAYOUT_ORDER_ROW_MAJOR or an error number negated.
 */
int aml_layout_order(const struct aml_layout *layout);

/**
 * Dimensions of a layout.
 * @param layout The layout.
 * @param[out] dims Room for aml_layout_ndims() numbers; stored in user order.
 * @return #AML_SUCCESS or an error number negated.
 */
int aml_layout_dims(const struct aml_layout *layout, size_t *dims);

/**
 * Number of dimensions of a layout.
 * @param layout The layout.
 * @return The number, 0 for a NULL layout.
 */
size_t aml_layout_ndims(const struct aml_layout *layout);

/**
 * Size of an element of a layout.
 * @param layout The layout.
 * @return Bytes, 0 for a NULL layout.
 */
size_t aml_layout_element_size(const struct aml_layout *layout);

/**
 * The same elements, in the same order, in other dimensions.
 * @param layout The layout to start from; it may be destroyed before the result.
 * @param[out] output The new layout, to be destroyed with aml_layout_destroy().
 * @param ndims Number of dimensions, more than 0.
 * @param dims The dimensions in user order; their product must be that of the present ones.
 * @return #AML_SUCCESS; `-AML_EINVAL` also where the elements do not lie at regular distances in these dimensions.
 */
int aml_layout_reshape(const struct aml_layout *layout, struct aml_layout **output, const size_t ndims,
		       const size_t *dims);

/**
 * Some of the elements of a layout.
 * @param layout The layout to start from; it may be destroyed before the result.
 * @param[out] output The new layout, to be destroyed with aml_layout_destroy().
 * @param offsets Coordinates of the first element, in user order; NULL is all 0.
 * @param dims Elements to take in each dimension, in user order.
 * @param strides Distance between two that are taken, in user order; NULL is all 1.
 * @return #AML_SUCCESS; `-AML_EINVAL` also where the slice leaves the layout.
 */
int aml_layout_slice(const struct aml_layout *layout, struct aml_layout **output, const size_t *offsets,
		     const size_t *dims, const size_t *strides);

/**
 * Describes a layout in text.
 * @param stream Where to write.
 * @param prefix Put before each line; NULL is the empty one.
 * @param layout The layout.
 * @return #AML_SUCCESS or an error number negated.
 */
int aml_layout_fprintf(FILE *stream, const char *prefix, const struct aml_layout *layout);

/**
 * A second layout with the same description. No elements are copied.
 * @param src The layout to start from; it may be destroyed before the result.
 * @param[out] out The new layout, to be destroyed with aml_layout_destroy().
 * @param ptr The memory that it describes; NULL is that of `src`.
 * @return #AML_SUCCESS or an error number negated.
 */
int aml_layout_duplicate(const struct aml_layout *src, struct aml_layout **out, void *ptr);

/**
 * Frees a layout, not the memory that it describes.
 * @param layout Address of the layout, set to NULL. NULL, or the address of NULL, is nothing to do.
 */
void aml_layout_destroy(struct aml_layout **layout);

/** @} */

/**
 * @defgroup aml_dma DMAs
 * Moves the elements of one layout into another, in the background.
 * @{
 */

/** State of a DMA, known to its implementation. */
struct aml_dma_data;

/** A copy that was started, known to the implementation of the DMA. */
struct aml_dma_request;

/**
 * Moves the elements of one layout into another.
 * @param dst Where to; whatever the program passed as destination of the request.
 * @param src Where from; whatever the program passed as source of the request.
 * @param arg What the DMA says that it passes.
 * @return #AML_SUCCESS or an error number negated, which is what the program gets.
 */
typedef int (*aml_dma_operator)(struct aml_layout *dst, const struct aml_layout *src, void *arg);

/** What a DMA can do. */
struct aml_dma_ops {
	/** Starts a copy with `op`, and stores the request that stands for it. */
	int (*create_request)(struct aml_dma_data *dma, struct aml_dma_request **req, struct aml_layout *dest,
			      struct aml_layout *src, aml_dma_operator op, void *op_arg);
	/** Gives a request up and frees it. */
	int (*destroy_request)(struct aml_dma_data *dma, struct aml_dma_request **req);
	/** Waits for a request and frees it. */
	int (*wait_request)(struct aml_dma_data *dma, struct aml_dma_request **req);
	/** Waits for everything that was started. */
	int (*barrier)(struct aml_dma_data *dma);
	/** Describes the DMA, each line behind `prefix`. */
	int (*fprintf)(const struct aml_dma_data *data, FILE *stream, const char *prefix);
};

/** A DMA: what it can do, and the state that it does it with. */
struct aml_dma {
	/** Operations. */
	struct aml_dma_ops *ops;
	/** First argument of each operation. */
	struct aml_dma_data *data;
};

/**
 * Copies and waits for the copy.
 * @param dma Who copies.
 * @param dest Where to.
 * @param src Where from.
 * @param op Operator that moves the elements; NULL is the DMA's own.
 * @param op_arg Argument for the operator.
 * @return #AML_SUCCESS or an error number negated.
 */
int aml_dma_copy_custom(struct aml_dma *dma, struct aml_layout *dest, struct aml_layout *src, aml_dma_operator op,
			void *op_arg);

/**
 * Starts a copy.
 * @param dma Who copies.
 * @param[out] req The request, for aml_dma_wait() or aml_dma_cancel(). NULL: the program waits with
 * aml_dma_barrier() alone, where the DMA can do without.
 * @param dest Where to.
 * @param src Where from.
 * @param op Operator that moves the elements; NULL is the DMA's own.
 * @param op_arg Argument for the operator.
 * @return #AML_SUCCESS or an error number negated; on error there is no request.
 */
int aml_dma_async_copy_custom(struct aml_dma *dma, struct aml_dma_request **req, struct aml_layout *dest,
			      struct aml_layout *src, aml_dma_operator op, void *op_arg);

/** aml_dma_copy_custom() with the DMA's own operator and no argument. */
#define aml_dma_copy(dma, d, s) aml_dma_copy_custom(dma, d, s, NULL, NULL)

/** aml_dma_async_copy_custom() with the DMA's own operator and no argument. */
#define aml_dma_async_copy(dma, r, d, s) aml_dma_async_copy_custom(dma, r, d, s, NULL, NULL)

/**
 * Waits for a copy.
 * @param dma The DMA that was asked.
 * @param req Address of the request, set to NULL.
 * @return #AML_SUCCESS or an error number negated.
 */
int aml_dma_wait(struct aml_dma *dma, struct aml_dma_request **req);

/**
 * Waits for all that a DMA was asked for. Requests must still be waited for or given up.
 * @param dma The DMA.
 * @return #AML_SUCCESS or an error number negated.
 */
int aml_dma_barrier(struct aml_dma *dma);

/**
 * Gives a copy up. Whether it takes place nevertheless is for the DMA to say; afterwards it is not going on.
 * @param dma The DMA that was asked.
 * @param req Address of the request, set to NULL.
 * @return #AML_SUCCESS or an error number negated.
 */
int aml_dma_cancel(struct aml_dma *dma, struct aml_dma_request **req);

/**
 * Describes a DMA in text.
 * @param stream Where to write.
 * @param prefix Put before each line; NULL is the empty one.
 * @param dma The DMA.
 * @return #AML_SUCCESS or an error number negated.
 */
int aml_dma_fprintf(FILE *stream, const char *prefix, const struct aml_dma *dma);

/**
 * Copies element by element on the processor, dimensions in another sequence: dimension `i` of the destination is
 * dimension `target_dims[i]` of the source, each layout in its own user order. Both must describe memory that the
 * processor reaches, and must not overlap.
 * @param dst Where to; its dimensions are those of `src` in the new sequence, its elements of the same size.
 * @param src Where from.
 * @param target_dims A permutation of 0 to aml_layout_ndims() - 1; NULL keeps the sequence.
 * @return #AML_SUCCESS or an error number negated; on error nothing is copied.
 */
int aml_copy_layout_transform_generic(struct aml_layout *dst, const struct aml_layout *src,
				      const size_t *target_dims);

/** @} */

#ifdef __cplusplus
}
#endif
#endif
