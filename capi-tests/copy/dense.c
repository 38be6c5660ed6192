// Layouts given to copy_1D: all dimensions count, only dense blocks are copied, and what is refused changes nothing.
#include "copy.h"
#include "device.h"
#include "layout.h"
#include "memory.h"
#include "test.h"
#include <stdint.h>

enum { ROOM = 1 << 16 };

static struct aml_dma *dma;
static char from[ROOM], to[ROOM];
static struct test_layout src, dst;

static void begin(void)
{
	use_device(0);
	dma = dma_new(cudaMemcpyDefault);
	memory_fill(from, ROOM, 1);
	memory_set(to, ROOM, 0);
}

static void end(void)
{
	dma_end(dma);
	leave_device(0);
}

static int move(void)
{
	request *const untouched = (request *)&src, *req = untouched;
	int code = aml_dma_cuda_request_create(data_of(dma), &req, &dst.layout, &src.layout, aml_dma_cuda_copy_1D, NULL);
	if (code) {
		REQUIRE(req == untouched);
		REQUIRE_EQ(aml_dma_cuda_barrier(data_of(dma)), AML_SUCCESS);
		REQUIRE(memory_is(to, ROOM, 0));
		return code;
	}
	return aml_dma_cuda_request_wait(data_of(dma), &req);
}

TEST(all_dimensions_count)
{
	begin();
	for (size_t rank = 1; rank <= LAYOUT_RANK; rank++) {
		size_t dims[LAYOUT_RANK], size = 3;
		for (size_t i = 0; i < rank; i++) {
			dims[i] = i % 3 == 2 || i > 12 ? 1 : 2 + i % 2;
			size *= dims[i];
		}
		REQUIRE(size < ROOM);
		memory_set(to, ROOM, 0);
		layout_dense(&src, from, 3, rank, dims);
		layout_dense(&dst, to, 3, rank, dims);
		REQUIRE_EQ(move(), AML_SUCCESS);
		REQUIRE(memory_holds(to, size, 1) && memory_is(to + size, ROOM - size, 0));
	}
	end();
}

TEST(the_destination_may_be_larger_and_of_another_shape)
{
	begin();
	layout_dense(&src, from, 4, 2, (const size_t[]){6, 10});
	layout_dense(&dst, to, 8, 3, (const size_t[]){5, 2, 7});
	REQUIRE_EQ(move(), AML_SUCCESS);
	REQUIRE(memory_holds(to, 240, 1) && memory_is(to + 240, ROOM - 240, 0));
	end();
}

TEST(a_destination_that_is_too_small_is_refused)
{
	begin();
	layout_dense(&src, from, 4, 2, (const size_t[]){6, 10});
	layout_dense(&dst, to, 4, 1, (const size_t[]){59});
	REQUIRE_EQ(move(), -AML_EINVAL);
	layout_dense(&dst, to, 1, 1, (const size_t[]){239});
	REQUIRE_EQ(move(), -AML_EINVAL);
	layout_dense(&dst, to, 4, 1, (const size_t[]){0});
	REQUIRE_EQ(move(), -AML_EINVAL);
	end();
}

TEST(a_product_that_overflows_is_refused)
{
	const size_t half = (size_t)1 << 32;
	const struct {
		size_t element, dims[3];
	} cases[] = {
		{1, {half, half, 1}},		{1, {half, half, 3}},	    {8, {(size_t)1 << 61, 1, 1}},
		{8, {((size_t)1 << 61) + 1, 1, 1}}, {16, {half, (size_t)1 << 28, 1}}, {1, {SIZE_MAX, 2, 1}},
		{SIZE_MAX, {2, 1, 1}},		{3, {SIZE_MAX / 3 + 1, 1, 1}},
	};
	begin();
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		for (int both = 0; both < 2; both++) {
			layout_dense(&src, from, cases[i].element, 3, cases[i].dims);
			layout_bytes(&dst, to, ROOM);
			if (both)
				layout_dense(&dst, to, cases[i].element, 3, cases[i].dims);
			REQUIRE_EQ(move(), -AML_EINVAL);
		}
	end();
}

TEST(elements_with_gaps_are_not_supported)
{
	begin();
	for (int side = 0; side < 2; side++) {
		struct test_layout *odd = side ? &dst : &src;
		for (size_t dimension = 0; dimension < 4; dimension++) {
			const size_t dims[] = {5, 7, 3, 2};
			layout_dense(&src, from, 4, 4, dims);
			layout_dense(&dst, to, 4, 4, dims);
			odd->distance[dimension] += 4; /* a pitch, or a stride of the elements */
			REQUIRE_EQ(move(), -AML_ENOTSUP);
			odd->distance[dimension] -= 8; /* rows that overlap */
			REQUIRE_EQ(move(), -AML_ENOTSUP);
			odd->distance[dimension] = 0; /* all the same */
			REQUIRE_EQ(move(), -AML_ENOTSUP);
		}
	}
	end();
}

TEST(elements_in_another_order_are_not_supported)
{
	begin();
	for (int side = 0; side < 2; side++) {
		struct test_layout *odd = side ? &dst : &src;
		layout_dense(&src, from, 4, 2, (const size_t[]){5, 7});
		layout_dense(&dst, to, 4, 2, (const size_t[]){5, 7});
		odd->distance[0] = 7 * 4; /* one block without gaps, whose last element lies where it should */
		odd->distance[1] = 4;
		REQUIRE_EQ(move(), -AML_ENOTSUP);
	}
	end();
}

TEST(the_distance_in_a_dimension_of_one_means_nothing)
{
	begin();
	layout_dense(&src, from, 4, 4, (const size_t[]){6, 1, 5, 1});
	src.distance[1] = 4000;
	src.distance[3] = 1;
	layout_dense(&dst, to, 4, 2, (const size_t[]){6, 5});
	REQUIRE_EQ(move(), AML_SUCCESS);
	REQUIRE(memory_holds(to, 120, 1));
	end();
}

TEST(no_elements_succeed)
{
	begin();
	const size_t empty[][3] = {{0, 5, 7}, {5, 0, 7}, {5, 7, 0}, {0, 0, 0}};
	for (int i = 0; i < 4; i++) {
		layout_dense(&src, i % 2 ? NULL : from, 8, 3, empty[i]);
		layout_dense(&dst, to, 8, 1, (const size_t[]){0});
		src.distance[1] += 8; /* even with a pitch */
		REQUIRE_EQ(move(), AML_SUCCESS);
		REQUIRE(memory_is(to, ROOM, 0));
	}
	end();
}

/* Regular at unit coordinates, with a hole further on. */
static void *deref_with_hole(const struct aml_layout_data *data, const size_t *coords)
{
	char *element = test_layout_ops.deref_native(data, coords);
	return coords[0] >= 3 ? element + 64 : element;
}

TEST(irregular_elements_are_not_supported)
{
	struct aml_layout_ops ops = test_layout_ops;
	ops.deref = ops.deref_native = deref_with_hole;
	begin();
	layout_bytes(&dst, to, 100);
	layout_bytes(&src, from, 100);
	src.layout.ops = &ops;
	REQUIRE_EQ(move(), -AML_ENOTSUP);
	layout_bytes(&src, from, 100);
	dst.layout.ops = &ops;
	REQUIRE_EQ(move(), -AML_ENOTSUP);
	end();
}

TEST(a_layout_without_its_functions_is_an_error)
{
	begin();
	for (int which = 0; which < 5; which++) {
		struct aml_layout_ops ops = test_layout_ops;
		layout_bytes(&dst, to, 100);
		layout_bytes(&src, from, 100);
		src.layout.ops = which == 4 ? NULL : &ops;
		if (which == 0)
			ops.ndims = NULL;
		else if (which == 1)
			ops.element_size = NULL;
		else if (which == 2)
			ops.dims = ops.dims_native = NULL;
		else
			ops.deref = ops.deref_native = NULL, ops.rawptr = NULL;
		REQUIRE(move() < 0);
	}
	end();
}
