// Random pairs of layouts: ranks, orders, pitches, strides, slices, kinds and memory, against copying each element.
#include "device.h"
#include "grid.h"
#include "test.h"
#include <stdint.h>
#include <string.h>

static uint64_t state;

/* xorshift: the same pairs on every machine. */
static size_t below(size_t bound)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (state >> 11) % bound;
}

static int one_in(size_t n) { return below(n) == 0; }

/* One side of a pair with these dimensions: half of them without any gaps, so that dimensions can be merged. */
static struct grid random_side(size_t element, size_t ndims, const size_t *dims)
{
	struct grid grid = grid_dense(one_in(2) ? AML_LAYOUT_ORDER_ROW_MAJOR : AML_LAYOUT_ORDER_COLUMN_MAJOR, element,
				      ndims, dims);
	int plain = one_in(2), strided = one_in(3);
	for (size_t i = 0; i < ndims; i++) {
		if (!plain && one_in(2)) {
			grid.offset[i] = below(3);
			grid.step[i] = strided ? 1 + below(3) : 1;
			grid.stride[i] = strided ? 1 + below(2) : 1;
		}
		size_t last = grid.offset[i] + (dims[i] - 1) * grid.step[i];
		grid.pitch[i] = last * grid.stride[i] + 1 + (plain || one_in(2) ? 0 : below(3));
	}
	return grid;
}

static void random_pair(struct grid *dst, struct grid *src)
{
	static const size_t elements[] = {1, 2, 3, 4, 5, 8, 12, 16, 24, 64};
	static const size_t longest[GRID_RANK] = {300, 40, 14, 7, 5, 4};
	size_t dims[GRID_RANK], element, ndims;
	do {
		ndims = 1 + below(GRID_RANK);
		element = elements[below(sizeof elements / sizeof *elements)];
		for (size_t i = 0; i < ndims; i++)
			dims[i] = 1 + below(longest[ndims - 1]);
		*dst = random_side(element, ndims, dims);
		*src = random_side(element, ndims, dims);
	} while (grid_bytes(dst) > 1 << 18 || grid_bytes(src) > 1 << 18);
}

static void print_side(const char *name, const struct grid *grid)
{
	fprintf(stderr, "%s: order %d, element %zu;", name, grid->order, grid->element);
	for (size_t i = 0; i < grid->ndims; i++)
		fprintf(stderr, " [%zu+%zu*%zu stride %zu pitch %zu]", grid->offset[i], grid->dims[i], grid->step[i],
			grid->stride[i], grid->pitch[i]);
	fprintf(stderr, "\n");
}

enum { ROOM = (1 << 18) + 256, MARGIN = 100 };

static void check_many(uint64_t seed, int pairs)
{
	char *memory[2][SORTS], *expected, *found, *source;
	struct aml_dma *dmas[5];
	use_device(0);
	state = seed;
	for (int sort = 0; sort < SORTS; sort++)
		for (int side = 0; side < 2; side++)
			memory[side][sort] = memory_new(sort, ROOM);
	expected = memory_new(PINNED, ROOM);
	found = memory_new(PINNED, ROOM);
	source = memory_new(PINNED, ROOM);
	for (int kind = 0; kind < 5; kind++)
		dmas[kind] = dma_new(kind);
	memory_fill(source, ROOM, 5);
	for (int sort = 0; sort < SORTS; sort++)
		memory_fill(memory[0][sort], ROOM, 5);
	for (int pair = 0; pair < pairs; pair++) {
		struct grid dst, src;
		int kind, from, to;
		random_pair(&dst, &src);
		do {
			kind = (int)below(5);
			from = (int)below(SORTS);
			to = (int)below(SORTS);
		} while (!grid_accepts(kind, from, to));
		size_t size = grid_bytes(&dst) + 2 * MARGIN, offset = below(17);
		memory_fill(expected, size, (unsigned)pair);
		memory_fill(memory[1][to], size, (unsigned)pair);
		grid_model(&dst, expected + MARGIN, &src, source + offset);
		int code = grid_copy(dmas[kind], &dst, memory[1][to] + MARGIN, &src, memory[0][from] + offset, NULL);
		CUDA(cuMemcpy((CUdeviceptr)(uintptr_t)found, (CUdeviceptr)(uintptr_t)memory[1][to], size));
		CUDA(cuStreamSynchronize(CU_STREAM_LEGACY));
		if (code != AML_SUCCESS || memcmp(found, expected, size)) {
			fprintf(stderr, "pair %d of seed %llu, kind %d, %s to %s: code %d\n", pair,
				(unsigned long long)seed, kind, sort_name(from), sort_name(to), code);
			print_side("dst", &dst);
			print_side("src", &src);
			exit(1);
		}
	}
	for (int kind = 0; kind < 5; kind++)
		dma_end(dmas[kind]);
	for (int sort = 0; sort < SORTS; sort++) {
		REQUIRE(memory_holds(memory[0][sort], ROOM, 5));
		for (int side = 0; side < 2; side++)
			memory_free(sort, memory[side][sort]);
	}
	memory_free(PINNED, expected);
	memory_free(PINNED, found);
	memory_free(PINNED, source);
	leave_device(0);
}

TEST(two_thousand_random_pairs_are_copied_exactly) { check_many(0x9e3779b97f4a7c15, 2000); }

TEST(two_thousand_others_are_copied_exactly) { check_many(0xd1b54a32d192ed03, 2000); }

TEST(yet_two_thousand_others_are_copied_exactly) { check_many(0x8cb92ba72f3d8dd7, 2000); }

TEST(a_reshaped_layout_is_copied_in_its_new_dimensions)
{
	static const size_t flat[] = {6, 20}, split[] = {6, 4, 5}, all[] = {120};
	for (int order = AML_LAYOUT_ORDER_COLUMN_MAJOR; order <= AML_LAYOUT_ORDER_ROW_MAJOR; order++) {
		use_device(0);
		/* A matrix whose rows lie apart, in either order, seen in three dimensions; and a dense copy of it. */
		struct grid apart = grid_dense(order, 8, 2, flat), dense = grid_dense(order, 8, 3, split);
		apart.pitch[order == AML_LAYOUT_ORDER_ROW_MAJOR ? 1 : 0] += 3;
		size_t size = grid_bytes(&apart);
		char *from = memory_new(PINNED, size), *to = memory_new(DEVICE, 960), *back = memory_new(PINNED, 960);
		memory_fill(from, size, 4);
		struct aml_layout *whole = grid_layout(&apart, from), *seen, *there = grid_layout(&dense, to), *line, *here;
		REQUIRE_EQ(aml_layout_reshape(whole, &seen, 3, split), AML_SUCCESS);
		REQUIRE_EQ(aml_layout_reshape(there, &line, 1, all), AML_SUCCESS);
		REQUIRE_EQ(aml_layout_duplicate(line, &here, back), AML_SUCCESS);
		struct aml_dma *dma = dma_new(cudaMemcpyDefault);
		request *up = NULL, *down = NULL;
		aml_dma_operator op = aml_dma_cuda_copy_layout;
		REQUIRE_EQ(aml_dma_cuda_request_create(data_of(dma), &up, there, seen, op, NULL), AML_SUCCESS);
		REQUIRE_EQ(aml_dma_cuda_request_create(data_of(dma), &down, here, line, op, NULL), AML_SUCCESS);
		REQUIRE_EQ(aml_dma_cuda_request_wait(data_of(dma), &up), AML_SUCCESS);
		REQUIRE_EQ(aml_dma_cuda_request_wait(data_of(dma), &down), AML_SUCCESS);
		struct aml_layout *copied = grid_layout(&dense, back);
		for (size_t i = 0; i < 120; i++) {
			const size_t coords[] = {i % 6, i / 6 % 4, i / 24};
			REQUIRE(memcmp(aml_layout_deref(copied, coords), aml_layout_deref(seen, coords), 8) == 0);
		}
		struct aml_layout *layouts[] = {whole, seen, there, line, here, copied};
		for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++)
			aml_layout_destroy(&layouts[i]);
		dma_end(dma);
		memory_free(PINNED, from);
		memory_free(PINNED, back);
		memory_free(DEVICE, to);
		leave_device(0);
	}
}
