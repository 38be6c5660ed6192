/* The operations of a plain layout, in column-major order: user order and native order are the same. */
#include "layout.h"

static const struct plain_layout *of(const struct aml_layout_data *data)
{
	return (const struct plain_layout *)data;
}

static void *deref(const struct aml_layout_data *data, const size_t *coords)
{
	char *element = of(data)->memory;
	for (size_t i = 0; i < of(data)->ndims; i++)
		element += coords[i] * of(data)->distance[i];
	return element;
}

static void *rawptr(const struct aml_layout_data *data)
{
	return of(data)->memory;
}

static int order(const struct aml_layout_data *data)
{
	(void)data;
	return AML_LAYOUT_ORDER_COLUMN_MAJOR;
}

static int dims(const struct aml_layout_data *data, size_t *out)
{
	memcpy(out, of(data)->dims, of(data)->ndims * sizeof *out);
	return AML_SUCCESS;
}

static size_t ndims(const struct aml_layout_data *data)
{
	return of(data)->ndims;
}

static size_t element_size(const struct aml_layout_data *data)
{
	return of(data)->element_size;
}

static struct aml_layout_ops ops = {
	.deref = deref,
	.deref_native = deref,
	.rawptr = rawptr,
	.order = order,
	.dims = dims,
	.dims_native = dims,
	.ndims = ndims,
	.element_size = element_size,
};

static void fill(struct plain_layout *layout, const void *memory, size_t count, size_t size)
{
	layout->public.ops = &ops;
	layout->public.data = (struct aml_layout_data *)layout;
	layout->memory = (char *)memory;
	layout->ndims = count;
	layout->element_size = size;
	layout->distance[0] = size;
}

void layout_flat(struct plain_layout *layout, const void *memory, size_t count, size_t size)
{
	fill(layout, memory, 1, size);
	layout->dims[0] = count;
}

void layout_box(struct plain_layout *layout, const void *memory, const struct box *box, int destination)
{
	fill(layout, memory, box->depth == 1 ? 2 : 3, 8);
	layout->dims[0] = box->width / 8;
	layout->dims[1] = box->height;
	layout->dims[2] = box->depth;
	layout->distance[1] = destination ? box->dst_pitch : box->src_pitch;
	layout->distance[2] = layout->distance[1] * (destination ? box->dst_rows : box->src_rows);
}
