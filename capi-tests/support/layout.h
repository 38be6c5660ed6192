/* Layouts with a table of functions of the test's own, so that the library is seen to need no symbol of AML.
 * Dimensions are in native order: the first varies fastest. */
#ifndef CAPI_TESTS_LAYOUT_H
#define CAPI_TESTS_LAYOUT_H
#include "require.h"
#include <aml.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LAYOUT_RANK 24
struct test_layout {
	struct aml_layout layout;
	char *ptr;
	size_t element, ndims, dims[LAYOUT_RANK], distance[LAYOUT_RANK];
};

/** The operations of these layouts. */
extern struct aml_layout_ops test_layout_ops;

/** Elements without gaps; `distance` can be changed afterwards. Returns the layout inside. */
struct aml_layout *layout_dense(struct test_layout *layout, void *ptr, size_t element, size_t ndims, const size_t *dims);

/** `size` bytes. */
struct aml_layout *layout_bytes(struct test_layout *layout, void *ptr, size_t size);

#ifdef __cplusplus
}
#endif
#endif
