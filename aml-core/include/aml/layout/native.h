/**
 * @file aml/layout/native.h
 * Layouts by native order: the dimension that varies fastest comes first, whatever the order of the layout.
 */
#ifndef AML_LAYOUT_NATIVE_H
#define AML_LAYOUT_NATIVE_H

#include <aml.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @defgroup aml_layout_native Native order
 * @{
 */

/**
 * As aml_layout_deref(), in native order.
 * @param layout The layout.
 * @param coords One coordinate a dimension.
 * @return The address, or NULL for a NULL argument.
 */
void *aml_layout_deref_native(const struct aml_layout *layout, const size_t *coords);

/**
 * As aml_layout_dims(), in native order.
 * @param layout The layout.
 * @param[out] dims Room for aml_layout_ndims() numbers.
 * @return #AML_SUCCESS or an error number negated.
 */
int aml_layout_dims_native(const struct aml_layout *layout, size_t *dims);

/**
 * As aml_layout_slice(), in native order.
 * @param layout The layout to start from.
 * @param[out] output The new layout, to be destroyed with aml_layout_destroy().
 * @param offsets Coordinates of the first element; NULL is all 0.
 * @param dims Elements to take in each dimension.
 * @param strides Distance between two that are taken; NULL is all 1.
 * @return #AML_SUCCESS; `-AML_EINVAL` also where the slice leaves the layout.
 */
int aml_layout_slice_native(const struct aml_layout *layout, struct aml_layout **output, const size_t *offsets,
			    const size_t *dims, const size_t *strides);

/** @} */

#ifdef __cplusplus
}
#endif
#endif
