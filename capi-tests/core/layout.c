// Layouts from C: each order by an example that can be checked by hand. Random ones are checked by the Rust tests.
#include "test.h"
#include <aml.h>
#include <aml/layout/dense.h>
#include <aml/layout/native.h>
#include <stdint.h>
#include <string.h>

static struct aml_layout *dense(void *ptr, int order, size_t ndims, const size_t *dims, const size_t *stride,
				const size_t *pitch)
{
	struct aml_layout *layout = NULL;
	REQUIRE_EQ(aml_layout_dense_create(&layout, ptr, order, sizeof(int), ndims, dims, stride, pitch), AML_SUCCESS);
	return layout;
}

static const struct aml_layout_dense *inside(const struct aml_layout *layout)
{
	return (const struct aml_layout_dense *)layout->data;
}

TEST(row_major_is_c)
{
	static int array[5][7][3];
	struct aml_layout *layout = dense(array, AML_LAYOUT_ORDER_C, 3, (const size_t[]){5, 7, 3}, NULL, NULL);
	for (size_t i = 0; i < 5; i++)
		for (size_t j = 0; j < 7; j++)
			for (size_t k = 0; k < 3; k++) {
				REQUIRE(aml_layout_deref(layout, (const size_t[]){i, j, k}) == &array[i][j][k]);
				REQUIRE(aml_layout_deref_native(layout, (const size_t[]){k, j, i}) == &array[i][j][k]);
			}
	size_t dims[3];
	REQUIRE_EQ(aml_layout_dims(layout, dims), AML_SUCCESS);
	REQUIRE(dims[0] == 5 && dims[1] == 7 && dims[2] == 3);
	REQUIRE_EQ(aml_layout_dims_native(layout, dims), AML_SUCCESS);
	REQUIRE(dims[0] == 3 && dims[1] == 7 && dims[2] == 5);
	REQUIRE_EQ(aml_layout_order(layout), AML_LAYOUT_ORDER_ROW_MAJOR);
	REQUIRE(layout->ops == &aml_layout_row_ops);
	REQUIRE_EQ(inside(layout)->cpitch[3], sizeof array);
	aml_layout_destroy(&layout);
	REQUIRE(layout == NULL);
}

TEST(column_major_is_fortran)
{
	static int array[3][7][5];
	struct aml_layout *layout = dense(array, AML_LAYOUT_ORDER_FORTRAN, 3, (const size_t[]){5, 7, 3}, NULL, NULL);
	for (size_t i = 0; i < 5; i++)
		for (size_t j = 0; j < 7; j++)
			for (size_t k = 0; k < 3; k++)
				REQUIRE(aml_layout_deref(layout, (const size_t[]){i, j, k}) == &array[k][j][i]);
	REQUIRE(layout->ops == &aml_layout_column_ops);
	REQUIRE_EQ(aml_layout_order(layout), AML_LAYOUT_ORDER_COLUMN_MAJOR);
	aml_layout_destroy(&layout);
}

TEST(pitch_and_stride_choose_elements_of_a_larger_array)
{
	static int array[10][20];
	/* Rows 0, 2, 4 and columns 0, 3, 6, 9 of it. */
	struct aml_layout *layout = dense(array, AML_LAYOUT_ORDER_C, 2, (const size_t[]){3, 4}, (const size_t[]){2, 3},
					  (const size_t[]){10, 20});
	for (size_t i = 0; i < 3; i++)
		for (size_t j = 0; j < 4; j++)
			REQUIRE(aml_layout_deref(layout, (const size_t[]){i, j}) == &array[2 * i][3 * j]);
	const struct aml_layout_dense *data = inside(layout);
	REQUIRE(data->ptr == array && data->ndims == 2);
	REQUIRE(data->dims[0] == 4 && data->dims[1] == 3 && data->stride[0] == 3 && data->stride[1] == 2);
	REQUIRE(data->cpitch[0] == sizeof(int) && data->cpitch[1] == 20 * sizeof(int) && data->cpitch[2] == sizeof array);
	aml_layout_destroy(&layout);
}

TEST(a_tile_is_a_slice)
{
	static int array[10][20];
	struct aml_layout *layout = dense(array, AML_LAYOUT_ORDER_C, 2, (const size_t[]){10, 20}, NULL, NULL);
	struct aml_layout *tile = NULL, *every_other = NULL;
	REQUIRE_EQ(aml_layout_slice(layout, &tile, (const size_t[]){4, 6}, (const size_t[]){3, 8}, NULL), AML_SUCCESS);
	aml_layout_destroy(&layout); /* the tile stands for itself */
	REQUIRE(aml_layout_rawptr(tile) == &array[4][6]);
	REQUIRE(aml_layout_deref(tile, (const size_t[]){2, 7}) == &array[6][13]);
	REQUIRE_EQ(aml_layout_slice_native(tile, &every_other, (const size_t[]){1, 0}, (const size_t[]){3, 2},
					   (const size_t[]){2, 2}),
		   AML_SUCCESS);
	REQUIRE(aml_layout_deref(every_other, (const size_t[]){1, 2}) == &array[6][11]);
	aml_layout_destroy(&tile);
	aml_layout_destroy(&every_other);
}

TEST(a_tile_can_be_split_where_its_rows_are_whole)
{
	static int array[12][20];
	struct aml_layout *layout = dense(array, AML_LAYOUT_ORDER_C, 2, (const size_t[]){12, 20}, NULL, NULL);
	struct aml_layout *tile = NULL, *split = NULL, *const untouched = (struct aml_layout *)(uintptr_t)0xabcdef;
	REQUIRE_EQ(aml_layout_slice(layout, &tile, (const size_t[]){0, 0}, (const size_t[]){12, 8}, NULL), AML_SUCCESS);
	REQUIRE_EQ(aml_layout_reshape(tile, &split, 4, (const size_t[]){3, 4, 2, 4}), AML_SUCCESS);
	REQUIRE(aml_layout_deref(split, (const size_t[]){2, 3, 1, 2}) == &array[11][6]);
	aml_layout_destroy(&split);
	split = untouched; /* over the gap between two rows no dimension reaches */
	REQUIRE_EQ(aml_layout_reshape(tile, &split, 1, (const size_t[]){96}), -AML_EINVAL);
	REQUIRE_EQ(aml_layout_reshape(tile, &split, 2, (const size_t[]){6, 16}), -AML_EINVAL);
	REQUIRE(split == untouched);
	aml_layout_destroy(&tile);
	aml_layout_destroy(&layout);
}

TEST(a_duplicate_describes_the_same_or_other_memory)
{
	static int array[6], other[6];
	struct aml_layout *layout = dense(array, AML_LAYOUT_ORDER_C, 1, (const size_t[]){6}, NULL, NULL);
	struct aml_layout *same = NULL, *moved = NULL;
	REQUIRE_EQ(aml_layout_duplicate(layout, &same, NULL), AML_SUCCESS);
	REQUIRE_EQ(aml_layout_duplicate(layout, &moved, other), AML_SUCCESS);
	aml_layout_destroy(&layout);
	REQUIRE(aml_layout_rawptr(same) == array && aml_layout_rawptr(moved) == other);
	REQUIRE(aml_layout_deref(moved, (const size_t[]){5}) == &other[5]);
	aml_layout_destroy(&same);
	aml_layout_destroy(&moved);
}

TEST(a_layout_describes_itself)
{
	char *text = NULL;
	size_t length;
	FILE *stream = open_memstream(&text, &length);
	struct aml_layout *layout = dense((void *)(uintptr_t)0x1000, AML_LAYOUT_ORDER_C, 2, (const size_t[]){2, 3}, NULL, NULL);
	REQUIRE_EQ(aml_layout_fprintf(stream, "> ", layout), AML_SUCCESS);
	REQUIRE_EQ(aml_layout_fprintf(stream, NULL, layout), AML_SUCCESS);
	REQUIRE_EQ(aml_layout_fprintf(NULL, "", layout), -AML_EINVAL);
	REQUIRE_EQ(aml_layout_fprintf(stream, "", NULL), -AML_EINVAL);
	fclose(stream);
	REQUIRE(strcmp(text, "> layout-dense: row major, at 0x1000, native dims [3, 2], stride [1, 1], cpitch [4, 12, 24]\n"
			     "layout-dense: row major, at 0x1000, native dims [3, 2], stride [1, 1], cpitch [4, 12, 24]\n") == 0);
	aml_layout_destroy(&layout);
	free(text);
}

TEST(the_generic_copy_transposes)
{
	static int array[4][9], turned[9][4];
	for (int i = 0; i < 4; i++)
		for (int j = 0; j < 9; j++)
			array[i][j] = 100 * i + j;
	struct aml_layout *from = dense(array, AML_LAYOUT_ORDER_C, 2, (const size_t[]){4, 9}, NULL, NULL);
	struct aml_layout *to = dense(turned, AML_LAYOUT_ORDER_C, 2, (const size_t[]){9, 4}, NULL, NULL);
	REQUIRE_EQ(aml_copy_layout_transform_generic(to, from, NULL), -AML_EINVAL);
	REQUIRE_EQ(turned[0][1], 0);
	REQUIRE_EQ(aml_copy_layout_transform_generic(to, from, (const size_t[]){1, 0}), AML_SUCCESS);
	for (int i = 0; i < 4; i++)
		for (int j = 0; j < 9; j++)
			REQUIRE_EQ(turned[j][i], 100 * i + j);
	aml_layout_destroy(&from);
	aml_layout_destroy(&to);
}
