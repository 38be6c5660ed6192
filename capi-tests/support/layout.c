#include "layout.h"
#include <string.h>

static const struct test_layout *of(const struct aml_layout_data *data) { return (const void *)data; }

static void *deref_native(const struct aml_layout_data *data, const size_t *coords)
{
	char *element = of(data)->ptr;
	for (size_t i = 0; i < of(data)->ndims; i++) {
		REQUIRE(coords[i] < of(data)->dims[i]); /* nobody may ask for what is not there */
		element += coords[i] * of(data)->distance[i];
	}
	return element;
}

static int dims_native(const struct aml_layout_data *data, size_t *dims)
{
	memcpy(dims, of(data)->dims, of(data)->ndims * sizeof *dims);
	return AML_SUCCESS;
}

static void *rawptr(const struct aml_layout_data *data) { return of(data)->ptr; }

static int order(const struct aml_layout_data *data)
{
	(void)data;
	return AML_LAYOUT_ORDER_COLUMN_MAJOR;
}

static size_t ndims(const struct aml_layout_data *data) { return of(data)->ndims; }

static size_t element_size(const struct aml_layout_data *data) { return of(data)->element; }

struct aml_layout_ops test_layout_ops = {
	.deref = deref_native,
	.deref_native = deref_native,
	.rawptr = rawptr,
	.order = order,
	.dims = dims_native,
	.dims_native = dims_native,
	.ndims = ndims,
	.element_size = element_size,
};

struct aml_layout *layout_dense(struct test_layout *layout, void *ptr, size_t element, size_t ndims, const size_t *dims)
{
	size_t distance = element;
	REQUIRE(ndims <= LAYOUT_RANK);
	memset(layout, 0, sizeof *layout);
	layout->layout.ops = &test_layout_ops;
	layout->layout.data = (struct aml_layout_data *)layout;
	layout->ptr = ptr;
	layout->element = element;
	layout->ndims = ndims;
	for (size_t i = 0; i < ndims; i++) {
		layout->dims[i] = dims[i];
		layout->distance[i] = distance;
		distance *= dims[i];
	}
	return &layout->layout;
}

struct aml_layout *layout_bytes(struct test_layout *layout, void *ptr, size_t size)
{
	return layout_dense(layout, ptr, 1, 1, &size);
}
