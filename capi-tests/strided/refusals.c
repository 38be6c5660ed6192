// What a copy between layouts refuses, with which code; and that a refused one changes nothing at all.
#include "device.h"
#include "emulator.h"
#include "grid.h"
#include "layout.h"
#include "test.h"
#include <limits.h>
#include <stdint.h>
#include <string.h>

enum { ROW = AML_LAYOUT_ORDER_ROW_MAJOR, COLUMN = AML_LAYOUT_ORDER_COLUMN_MAJOR, ROOM = 4096 };

static char to[ROOM], from[ROOM];

/* The code of a copy between these layouts. */
static int try(struct aml_layout *dst, struct aml_layout *src)
{
	request *req = NULL;
	memory_fill(to, ROOM, 1);
	memory_fill(from, ROOM, 2);
	int code = aml_dma_cuda_request_create(data_of(&aml_dma_cuda), &req, dst, src, aml_dma_cuda_copy_layout, NULL);
	if (code == AML_SUCCESS)
		code = aml_dma_cuda_request_wait(data_of(&aml_dma_cuda), &req);
	REQUIRE(req == NULL);
	return code;
}

/* The copy is refused with this code, and nothing has changed. */
static void refused(int code, struct aml_layout *dst, struct aml_layout *src)
{
	REQUIRE_EQ(try(dst, src), code);
	REQUIRE(memory_holds(to, ROOM, 1) && memory_holds(from, ROOM, 2));
}

static struct test_layout a, b;

static struct aml_layout *dense(struct test_layout *layout, char *memory, size_t x, size_t y)
{
	return layout_dense(layout, memory, 8, 2, (size_t[]){x, y});
}

TEST(null_is_refused)
{
	use_device(0);
	struct aml_layout *layout = dense(&a, to, 4, 5), without = {NULL, layout->data};
	struct aml_dma_cuda_op_arg arg = {public_of(&aml_dma_cuda), NULL}, nowhere = {NULL, NULL};
	REQUIRE_EQ(aml_dma_cuda_copy_layout(layout, layout, NULL), -AML_EINVAL);
	REQUIRE_EQ(aml_dma_cuda_copy_layout(layout, layout, &nowhere), -AML_EINVAL);
	REQUIRE_EQ(aml_dma_cuda_copy_layout(NULL, layout, &arg), -AML_EINVAL);
	REQUIRE_EQ(aml_dma_cuda_copy_layout(layout, NULL, &arg), -AML_EINVAL);
	REQUIRE_EQ(aml_dma_cuda_copy_layout(&without, layout, &arg), -AML_EINVAL);
	REQUIRE_EQ(aml_dma_cuda_copy_layout(layout, &without, &arg), -AML_EINVAL);
	refused(-AML_EINVAL, dense(&a, NULL, 4, 5), dense(&b, from, 4, 5));
	leave_device(0);
}

TEST(a_kind_that_is_none_is_refused)
{
	use_device(0);
	struct aml_dma_cuda_data odd = {NULL, (enum cudaMemcpyKind)7};
	struct aml_dma_cuda_op_arg arg = {&odd, NULL};
	REQUIRE_EQ(aml_dma_cuda_copy_layout(dense(&a, to, 4, 5), dense(&b, from, 4, 5), &arg), -AML_EINVAL);
	leave_device(0);
}

TEST(other_dimensions_or_elements_are_refused)
{
	use_device(0);
	refused(-AML_EINVAL, dense(&a, to, 4, 5), dense(&b, from, 5, 4));
	refused(-AML_EINVAL, dense(&a, to, 4, 6), dense(&b, from, 4, 5));
	refused(-AML_EINVAL, dense(&a, to, 4, 5), dense(&b, from, 4, 6));
	refused(-AML_EINVAL, dense(&a, to, 20, 1), layout_dense(&b, from, 8, 1, (size_t[]){20}));
	refused(-AML_EINVAL, dense(&a, to, 4, 5), layout_dense(&b, from, 4, 2, (size_t[]){4, 5}));
	leave_device(0);
}

TEST(dimensions_are_compared_as_the_user_of_each_layout_writes_them)
{
	const size_t dims[] = {4, 5}, turned[] = {5, 4};
	use_device(0);
	struct grid row = grid_dense(ROW, 8, 2, dims), column = grid_dense(COLUMN, 8, 2, dims);
	struct grid other = grid_dense(COLUMN, 8, 2, turned);
	REQUIRE_EQ(grid_copy(&aml_dma_cuda, &row, to, &column, from, NULL), AML_SUCCESS);
	REQUIRE_EQ(grid_copy(&aml_dma_cuda, &row, to, &other, from, NULL), -AML_EINVAL);
	leave_device(0);
}

TEST(more_bytes_than_memory_can_hold_are_refused)
{
	use_device(0);
	const size_t large[][3] = {{SIZE_MAX, 2, 1}, {(size_t)1 << 32, (size_t)1 << 32, 1}, {(size_t)1 << 60, 8, 2}};
	for (int i = 0; i < 3; i++) {
		layout_dense(&a, to, 8, 3, large[i]);
		layout_dense(&b, from, 8, 3, large[i]);
		refused(-AML_EINVAL, &a.layout, &b.layout);
	}
	/* Few elements, but beyond the end of the address space. */
	dense(&a, to, 4, 5);
	dense(&b, from, 4, 5);
	a.distance[1] = SIZE_MAX / 4;
	refused(-AML_EINVAL, &a.layout, &b.layout);
	leave_device(0);
}

TEST(no_elements_are_a_success)
{
	use_device(0);
	char *const bogus = (char *)(uintptr_t)0x1234567;
	REQUIRE_EQ(try(dense(&a, bogus, 0, 5), dense(&b, bogus, 0, 5)), AML_SUCCESS);
	REQUIRE_EQ(try(dense(&a, NULL, 5, 0), dense(&b, NULL, 5, 0)), AML_SUCCESS);
	REQUIRE_EQ(try(dense(&a, bogus, SIZE_MAX, 0), dense(&b, bogus, SIZE_MAX, 0)), AML_SUCCESS);
	refused(-AML_EINVAL, dense(&a, to, 0, 5), dense(&b, from, 5, 0));
	leave_device(0);
}

/* An element that lies elsewhere than its neighbours tell. */
static size_t odd_coords[3];

static void *odd_deref(const struct aml_layout_data *data, const size_t *coords)
{
	char *regular = test_layout_ops.deref_native(data, coords);
	return memcmp(coords, odd_coords, sizeof odd_coords) ? regular : regular + 8;
}

TEST(elements_at_irregular_distances_are_refused)
{
	static const size_t odd[][3] = {{4, 0, 0}, {0, 4, 0}, {0, 0, 4}, {4, 4, 0}, {0, 4, 4}, {4, 0, 4}, {4, 4, 4}, {2, 2, 2}};
	const size_t dims[] = {5, 5, 5};
	struct aml_layout_ops ops = test_layout_ops;
	ops.deref_native = odd_deref;
	use_device(0);
	for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
		memcpy(odd_coords, odd[i], sizeof odd_coords);
		layout_dense(&a, to, 8, 3, dims);
		layout_dense(&b, from, 8, 3, dims);
		b.layout.ops = &ops;
		refused(-AML_ENOTSUP, &a.layout, &b.layout);
		refused(-AML_ENOTSUP, &b.layout, &a.layout);
	}
	leave_device(0);
}

TEST(a_destination_whose_elements_may_overlap_is_refused)
{
	static const size_t distances[][2] = {{0, 64}, {8, 0}, {4, 64}, {8, 24}, {16, 8}};
	use_device(0);
	for (size_t i = 0; i < sizeof distances / sizeof *distances; i++) {
		dense(&a, to, 4, 5);
		dense(&b, from, 4, 5);
		memcpy(a.distance, distances[i], sizeof distances[i]);
		refused(-AML_ENOTSUP, &a.layout, &b.layout);
		REQUIRE_EQ(try(&b.layout, &a.layout), AML_SUCCESS); /* the same as a source is fine */
	}
	leave_device(0);
}

TEST(one_element_can_be_copied_to_many)
{
	use_device(0);
	dense(&a, to, 4, 5);
	dense(&b, from, 4, 5);
	b.distance[0] = b.distance[1] = 0;
	REQUIRE_EQ(try(&a.layout, &b.layout), AML_SUCCESS);
	for (int i = 0; i < 20; i++)
		REQUIRE(memcmp(to + 8 * i, from, 8) == 0);
	leave_device(0);
}

TEST(elements_may_be_written_and_read_backwards)
{
	use_device(0);
	for (int back = 0; back < 4; back++) {
		dense(&a, back & 1 ? to + 8 * 3 : to, 4, 5);
		dense(&b, back & 2 ? from + 8 * 3 : from, 4, 5);
		if (back & 1)
			a.distance[0] = -(size_t)8;
		if (back & 2)
			b.distance[0] = -(size_t)8;
		REQUIRE_EQ(try(&a.layout, &b.layout), AML_SUCCESS);
		for (size_t y = 0; y < 5; y++)
			for (size_t x = 0; x < 4; x++)
				REQUIRE(memcmp(a.ptr + x * a.distance[0] + y * a.distance[1],
					       b.ptr + x * b.distance[0] + y * b.distance[1], 8) == 0);
		REQUIRE(to[160] == (char)memory_byte(1, 160));
	}
	leave_device(0);
}

static int no_dims(const struct aml_layout_data *data, size_t *dims)
{
	(void)data, (void)dims;
	return -AML_EBUSY;
}

TEST(functions_that_lack_or_fail_are_codes)
{
	use_device(0);
	struct aml_layout *regular = dense(&a, to, 4, 5), *odd = dense(&b, from, 4, 5);
	struct aml_layout_ops ops = test_layout_ops;
	odd->ops = &ops;
	ops.ndims = NULL;
	refused(-AML_ENOTSUP, regular, odd);
	ops = test_layout_ops, ops.element_size = NULL;
	refused(-AML_ENOTSUP, regular, odd);
	ops = test_layout_ops, ops.dims_native = no_dims;
	refused(-AML_EBUSY, regular, odd);
	ops = test_layout_ops, ops.dims = NULL, ops.dims_native = NULL;
	refused(-AML_ENOTSUP, regular, odd);
	ops = test_layout_ops, ops.deref = NULL, ops.deref_native = NULL;
	refused(-AML_ENOTSUP, regular, odd);
	leave_device(0);
}

TEST(a_layout_without_native_functions_is_asked_in_the_users_order)
{
	use_device(0);
	struct aml_layout *regular = dense(&a, to, 4, 5), *user = dense(&b, from, 4, 5);
	struct aml_layout_ops ops = test_layout_ops;
	user->ops = &ops;
	for (int lacks = 0; lacks < 3; lacks++) {
		ops = test_layout_ops;
		*(lacks == 0 ? (void **)&ops.deref_native : lacks == 1 ? (void **)&ops.dims_native : (void **)&ops.order) = NULL;
		REQUIRE_EQ(try(regular, user), AML_SUCCESS);
		REQUIRE(memory_holds(to, 160, 2));
	}
	leave_device(0);
}

/* A copy of which only the last row of the last call leaves the device's memory. */
static void past_the_end(int kind, const struct grid *dst, const struct grid *src, int dst_is_short)
{
	size_t dst_size = grid_bytes(dst) - (dst_is_short ? 1 : 0), src_size = grid_bytes(src) - (dst_is_short ? 0 : 1);
	enum sort dst_sort = dst_is_short ? DEVICE : PINNED, src_sort = dst_is_short ? PINNED : DEVICE;
	/* Device memory is handed out in pieces: what is beyond must not be another allocation. */
	char *target = memory_new(dst_sort, dst_size), *source = memory_new(src_sort, src_size);
	struct aml_dma *dma = dma_new(kind);
	memory_fill(target, dst_size, 1);
	memory_fill(source, src_size, 2);
	REQUIRE_EQ(grid_copy(dma, dst, target, src, source, NULL), -AML_FAILURE);
	REQUIRE_EQ(aml_dma_cuda_barrier(data_of(dma)), AML_SUCCESS);
	REQUIRE(memory_holds(target, dst_size, 1) && memory_holds(source, src_size, 2));
	dma_end(dma);
	memory_free(dst_sort, target);
	memory_free(src_sort, source);
}

TEST(a_copy_past_the_end_of_device_memory_is_refused_as_a_whole)
{
	const size_t dims[] = {12, 17};
	use_device(0);
	struct grid row = grid_dense(ROW, 8, 2, dims), column = grid_dense(COLUMN, 8, 2, dims), tile = row;
	tile.offset[1] = 3, tile.pitch[1] = 20;
	past_the_end(cudaMemcpyHostToDevice, &row, &column, 1);
	past_the_end(cudaMemcpyDeviceToHost, &row, &column, 0);
	past_the_end(cudaMemcpyDefault, &column, &row, 1);
	past_the_end(cudaMemcpyHostToDevice, &tile, &row, 1);
	past_the_end(cudaMemcpyDeviceToHost, &row, &tile, 0);
	leave_device(0);
}

EMULATED_TEST(nothing_is_written_after_a_call_of_many_has_failed)
{
	const size_t dims[] = {12, 17};
	use_device(0);
	struct grid row = grid_dense(ROW, 8, 2, dims), column = grid_dense(COLUMN, 8, 2, dims);
	char *device = memory_new(DEVICE, grid_bytes(&row)), *host = memory_new(PINNED, grid_bytes(&row));
	struct aml_dma *dma = dma_new(cudaMemcpyDeviceToHost);
	emulator()->set_delay(2000000);
	for (uint64_t nth = 1; nth <= 12; nth++) {
		REQUIRE_EQ(emulator()->fail("cuMemcpy2DAsync_v2", nth, CUDA_ERROR_OUT_OF_MEMORY), CUDA_SUCCESS);
		REQUIRE_EQ(grid_copy(dma, &row, host, &column, device, NULL), -AML_FAILURE);
		memory_set(host, grid_bytes(&row), 7);
		CUDA(cuStreamSynchronize(stream_of(dma)));
		REQUIRE(memory_is(host, grid_bytes(&row), 7));
	}
	REQUIRE_EQ(emulator()->fail_pending(), 0);
	emulator()->set_delay(0);
	REQUIRE_EQ(grid_copy(dma, &row, host, &column, device, NULL), AML_SUCCESS);
	dma_end(dma);
	memory_free(DEVICE, device);
	memory_free(PINNED, host);
	leave_device(0);
}
