/**
 * @file aml/layout/dense.h
 * Layouts of arrays whose elements lie at fixed distances in each dimension.
 */
#ifndef AML_LAYOUT_DENSE_H
#define AML_LAYOUT_DENSE_H

#include <aml.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @defgroup aml_layout_dense Dense layouts
 * The element at native coordinates `c` lies at `ptr + sum(c[i] * cpitch[i] * stride[i])`, where `cpitch[0]` is the
 * size of an element and `cpitch[i] = cpitch[i - 1] * pitch[i - 1]`.
 * @{
 */

/** State of a dense layout, everything in native order. */
struct aml_layout_dense {
	/** Address of the first element. */
	void *ptr;
	/** Number of dimensions. */
	size_t ndims;
	/** Elements in each dimension. */
	size_t *dims;
	/** Distance between two elements of a dimension, in steps of its pitch. */
	size_t *stride;
	/** `ndims + 1` distances in bytes; the first is the size of an element. */
	size_t *cpitch;
};

/**
 * Describes memory as a dense array.
 * @param[out] layout The new layout, to be destroyed with aml_layout_destroy(), which leaves the memory alone.
 * @param ptr The memory; need not be reachable by the processor.
 * @param order #AML_LAYOUT_ORDER_COLUMN_MAJOR or #AML_LAYOUT_ORDER_ROW_MAJOR; the order of the next arguments, too.
 * @param element_size Bytes of an element, more than 0.
 * @param ndims Number of dimensions, more than 0.
 * @param dims Elements in each dimension.
 * @param stride Distance between two elements in each dimension; NULL is all 1.
 * @param pitch Elements in each dimension of the array that this one lies in; NULL is `dims`.
 * @return #AML_SUCCESS; `-AML_EINVAL` also for a size beyond the address space; `-AML_ENOMEM`. On error `*layout` is
 * untouched.
 */
int aml_layout_dense_create(struct aml_layout **layout, void *ptr, const int order, const size_t element_size,
			    const size_t ndims, const size_t *dims, const size_t *stride, const size_t *pitch);

/** Operations of dense layouts in column major order. */
extern struct aml_layout_ops aml_layout_column_ops;

/** Operations of dense layouts in row major order. */
extern struct aml_layout_ops aml_layout_row_ops;

/** @} */

#ifdef __cplusplus
}
#endif
#endif
