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
