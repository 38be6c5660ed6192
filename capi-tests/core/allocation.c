// Memory of the host that runs out in aml-core: each exported function answers with a code, and goes on afterwards.
#include "allocator.h"
#include "copy.h"
#include "device.h"
#include "emulator.h"
#include "test.h"
#include <aml/area/cuda.h>
#include <aml/area/linux.h>
#include <aml/dma/multiplex.h>
#include <aml/layout/dense.h>
#include <aml/layout/native.h>
#include <stdint.h>
#include <string.h>

enum { SIZE = 4096, MANY = 100 };
static char from[SIZE], to[SIZE], own[SIZE];
static struct aml_dma *dma, *multiplexer;
static struct aml_layout *source, *target, *tall; /* `tall` has MANY dimensions */
static FILE *stream;
static const size_t dims[3] = {2, 3, 4}, origin[MANY];

#define UNTOUCHED(type) ((type *)(uintptr_t)8)

/* What a call that makes a layout answered; on success the layout goes away again. */
static int made(int code, struct aml_layout *layout)
{
	REQUIRE((code == AML_SUCCESS) == (layout != UNTOUCHED(struct aml_layout)));
	if (code == AML_SUCCESS)
		aml_layout_destroy(&layout);
	return code;
}

static int dense_create(void)
{
	struct aml_layout *out = UNTOUCHED(struct aml_layout);
	int code = aml_layout_dense_create(&out, to, AML_LAYOUT_ORDER_C, 4, 3, dims, NULL, NULL);
	return made(code, out);
}

static int reshape(void)
{
	struct aml_layout *out = UNTOUCHED(struct aml_layout);
	int code = aml_layout_reshape(source, &out, 2, (const size_t[]){6, 4});
	return made(code, out);
}

static int slice(void)
{
	struct aml_layout *out = UNTOUCHED(struct aml_layout);
	int code = aml_layout_slice(source, &out, (const size_t[]){0, 1, 1}, (const size_t[]){1, 2, 2}, NULL);
	return made(code, out);
}

static int slice_native(void)
{
	struct aml_layout *out = UNTOUCHED(struct aml_layout);
	int code = aml_layout_slice_native(source, &out, NULL, (const size_t[]){2, 2, 1}, (const size_t[]){2, 1, 1});
	return made(code, out);
}

static int duplicate(void)
{
	struct aml_layout *out = UNTOUCHED(struct aml_layout);
	int code = aml_layout_duplicate(source, &out, NULL);
	return made(code, out);
}

static int look_at_layouts(void)
{
	size_t sizes[3];
	const size_t last[3] = {1, 2, 3}, native[3] = {3, 2, 1}, outside[3] = {1, 3, 3};
	void *element = from + 4 * 23;
	REQUIRE(aml_layout_deref(source, last) == element && aml_layout_deref_native(source, native) == element);
	REQUIRE(aml_layout_deref_safe(source, last) == element && aml_layout_deref_safe(source, outside) == NULL);
	REQUIRE(aml_layout_rawptr(source) == from && aml_layout_order(source) == AML_LAYOUT_ORDER_C);
	REQUIRE(aml_layout_ndims(source) == 3 && aml_layout_element_size(source) == 4);
	REQUIRE(aml_layout_dims(source, sizes) == AML_SUCCESS && sizes[2] == 4);
	REQUIRE(aml_layout_dims_native(source, sizes) == AML_SUCCESS && sizes[0] == 4);
	return AML_SUCCESS;
}

static int deref_safe_of_many(void) { return aml_layout_deref_safe(tall, origin) == from ? AML_SUCCESS : -AML_ENOMEM; }

static int transform(void) { return aml_copy_layout_transform_generic(target, source, NULL); }
static int layout_fprintf(void) { return aml_layout_fprintf(stream, "p", source); }
static int dma_fprintf(void) { return aml_dma_fprintf(stream, "p", multiplexer); }
static int linux_fprintf(void) { return aml_area_fprintf(stream, "p", &aml_area_linux); }

static int cuda_fprintf(void)
{
	int flags = AML_AREA_CUDA_FLAG_ALLOC_HOST;
	struct aml_area_cuda_data there = {flags, 1};
	struct aml_area area = {&aml_area_cuda_ops, (struct aml_area_data *)&there};
	int first = aml_area_fprintf(stream, "p", &aml_area_cuda), second = aml_area_fprintf(stream, "p", &area);
	return first ? first : second;
}

static int multiplex_create(void)
{
	struct aml_dma *out = UNTOUCHED(struct aml_dma);
	const struct aml_dma *dmas[] = {dma, dma};
	int code = aml_dma_multiplex_create(&out, 2, dmas, (const size_t[]){1, 2});
	REQUIRE((code == AML_SUCCESS) == (out != UNTOUCHED(struct aml_dma)));
	if (code == AML_SUCCESS)
		REQUIRE_EQ(aml_dma_multiplex_destroy(&out), AML_SUCCESS);
	return code;
}

static int pieces(struct aml_layout *dst, const struct aml_layout *src, void *arg)
{
	int code = AML_SUCCESS;
	for (int i = 0; i < 5 && code == AML_SUCCESS; i++)
		code = aml_dma_multiplex_copy_single(dst, src, arg);
	return code;
}

static int multiplex_copy(void)
{
	struct aml_dma_request *req = UNTOUCHED(struct aml_dma_request);
	int code = aml_dma_async_copy_custom(multiplexer, &req, target, source, pieces, NULL);
	REQUIRE((code == AML_SUCCESS) == (req != UNTOUCHED(struct aml_dma_request)));
	int barrier = aml_dma_barrier(multiplexer);
	REQUIRE_EQ(barrier, AML_SUCCESS);
	return code ? code : aml_dma_wait(multiplexer, &req);
}

static int multiplex_cancel(void)
{
	struct aml_dma_request *req = UNTOUCHED(struct aml_dma_request);
	int code = aml_dma_async_copy(multiplexer, &req, target, source);
	return code ? code : aml_dma_cancel(multiplexer, &req);
}

static int plain_copy(void) { return aml_dma_copy(multiplexer, target, source); }

static int map(const struct aml_area *area, void *memory)
{
	struct aml_area_cuda_mmap_options opts = {-1, memory};
	struct counts before = counts_now();
	void *mapped = aml_area_mmap(area, SIZE, memory ? (struct aml_area_mmap_options *)&opts : NULL);
	int code = mapped ? aml_area_munmap(area, mapped, SIZE) : -aml_errno;
	counts_require_same(before, "after mapping");
	return code;
}

static int area_with(int flags, void *memory)
{
	struct aml_area *area = UNTOUCHED(struct aml_area);
	int code = aml_area_cuda_create(&area, -1, flags);
	REQUIRE((code == AML_SUCCESS) == (area != UNTOUCHED(struct aml_area)));
	if (code == AML_SUCCESS) {
		code = map(area, memory);
		aml_area_cuda_destroy(&area);
	}
	return code;
}

static int map_own(void) { return area_with(AML_AREA_CUDA_FLAG_ALLOC_MAPPED, own); }
static int map_host(void) { return area_with(AML_AREA_CUDA_FLAG_ALLOC_HOST, NULL); }
static int map_unified(void) { return map(&aml_area_cuda_unified, NULL); }
static int map_device(void) { return map(&aml_area_cuda, NULL); }
static int map_linux(void) { return map(&aml_area_linux, NULL); }

static int the_rest(void)
{
	REQUIRE(aml_support_backends(AML_BACKEND_CUDA) == 1 && strcmp(aml_strerror(2), "Not enough memory") == 0);
	REQUIRE(aml_init(NULL, NULL) == AML_SUCCESS && aml_finalize() == AML_SUCCESS);
	return AML_SUCCESS;
}

/* Each with the least number of allocations that it makes in the library. */
static const struct {
	const char *name;
	int (*call)(void);
	int least;
} calls[] = {
	{"dense_create", dense_create, 1}, {"reshape", reshape, 1}, {"slice", slice, 3},
	{"slice_native", slice_native, 3}, {"duplicate", duplicate, 1}, {"look_at_layouts", look_at_layouts, 0},
	{"deref_safe_of_many", deref_safe_of_many, 1}, {"transform", transform, 4}, {"layout_fprintf", layout_fprintf, 1},
	{"dma_fprintf", dma_fprintf, 1}, {"linux_fprintf", linux_fprintf, 1}, {"cuda_fprintf", cuda_fprintf, 2},
	{"multiplex_create", multiplex_create, 3}, {"multiplex_copy", multiplex_copy, 3},
	{"multiplex_cancel", multiplex_cancel, 3}, {"plain_copy", plain_copy, 3}, {"map_own", map_own, 2},
	{"map_host", map_host, 1}, {"map_unified", map_unified, 0}, {"map_device", map_device, 0},
	{"map_linux", map_linux, 0}, {"the_rest", the_rest, 0},
};

static void prepare(void)
{
	static size_t singles[MANY];
	for (int i = 0; i < MANY; i++)
		singles[i] = 1;
	use_device(0);
	dma = dma_new(cudaMemcpyDefault);
	const struct aml_dma *dmas[] = {dma};
	REQUIRE_EQ(aml_dma_multiplex_create(&multiplexer, 1, dmas, (const size_t[]){1}), AML_SUCCESS);
	REQUIRE_EQ(aml_layout_dense_create(&source, from, AML_LAYOUT_ORDER_C, 4, 3, dims, NULL, NULL), 0);
	REQUIRE_EQ(aml_layout_dense_create(&target, to, AML_LAYOUT_ORDER_C, 4, 3, dims, NULL, NULL), 0);
	REQUIRE_EQ(aml_layout_dense_create(&tall, from, AML_LAYOUT_ORDER_C, 1, MANY, singles, NULL, NULL), 0);
	REQUIRE((stream = fopen("/dev/null", "w")) != NULL);
}

static int (*current)(void);

static int answer(void)
{
	int code = current();
	REQUIRE(code == AML_SUCCESS || code == -AML_ENOMEM);
	return code;
}

EMULATED_TEST(an_allocation_that_fails_is_answered_by_every_function)
{
	if (!ALLOCATOR_IS_OURS)
		test_skip("the sanitizer has its own allocator");
	for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
		current = calls[i].call;
		REQUIRE(starve(calls[i].name, "libaml_core", prepare, answer) >= calls[i].least);
	}
}
