// The binary interface of aml-core's headers: sizes, offsets, numbers, prototypes, and objects that are C globals.
#include "test.h"
#include <aml.h>
#include <aml/area/cuda.h>
#include <aml/area/linux.h>
#include <aml/dma/multiplex.h>
#include <aml/layout/dense.h>
#include <aml/layout/native.h>

#define SIZE(type, bytes) _Static_assert(sizeof(type) == bytes, #type)
#define AT(type, field, offset) _Static_assert(offsetof(type, field) == offset, #type "." #field)

SIZE(struct aml_dma, 16);
AT(struct aml_dma, ops, 0);
AT(struct aml_dma, data, 8);
SIZE(struct aml_dma_ops, 40);
AT(struct aml_dma_ops, create_request, 0);
AT(struct aml_dma_ops, destroy_request, 8);
AT(struct aml_dma_ops, wait_request, 16);
AT(struct aml_dma_ops, barrier, 24);
AT(struct aml_dma_ops, fprintf, 32);
SIZE(struct aml_layout, 16);
AT(struct aml_layout, ops, 0);
AT(struct aml_layout, data, 8);
SIZE(struct aml_layout_ops, 112);
AT(struct aml_layout_ops, deref, 0);
AT(struct aml_layout_ops, deref_native, 8);
AT(struct aml_layout_ops, rawptr, 16);
AT(struct aml_layout_ops, order, 24);
AT(struct aml_layout_ops, dims, 32);
AT(struct aml_layout_ops, dims_native, 40);
AT(struct aml_layout_ops, ndims, 48);
AT(struct aml_layout_ops, element_size, 56);
AT(struct aml_layout_ops, reshape, 64);
AT(struct aml_layout_ops, slice, 72);
AT(struct aml_layout_ops, slice_native, 80);
AT(struct aml_layout_ops, fprintf, 88);
AT(struct aml_layout_ops, duplicate, 96);
AT(struct aml_layout_ops, destroy, 104);
SIZE(struct aml_layout_dense, 40);
AT(struct aml_layout_dense, ptr, 0);
AT(struct aml_layout_dense, ndims, 8);
AT(struct aml_layout_dense, dims, 16);
AT(struct aml_layout_dense, stride, 24);
AT(struct aml_layout_dense, cpitch, 32);
SIZE(struct aml_area, 16);
AT(struct aml_area, ops, 0);
AT(struct aml_area, data, 8);
SIZE(struct aml_area_ops, 24);
AT(struct aml_area_ops, mmap, 0);
AT(struct aml_area_ops, munmap, 8);
AT(struct aml_area_ops, fprintf, 16);
SIZE(struct aml_area_cuda_data, 8);
AT(struct aml_area_cuda_data, flags, 0);
AT(struct aml_area_cuda_data, device, 4);
SIZE(struct aml_area_cuda_mmap_options, 16);
AT(struct aml_area_cuda_mmap_options, device, 0);
AT(struct aml_area_cuda_mmap_options, ptr, 8);
SIZE(struct aml_dma_multiplex_data, 40);
AT(struct aml_dma_multiplex_data, count, 0);
AT(struct aml_dma_multiplex_data, index, 8);
AT(struct aml_dma_multiplex_data, round, 16);
AT(struct aml_dma_multiplex_data, dmas, 24);
AT(struct aml_dma_multiplex_data, weights, 32);
SIZE(struct aml_dma_multiplex_request, 24);
AT(struct aml_dma_multiplex_request, reqs, 8);
AT(struct aml_dma_multiplex_request, dmas, 16);
SIZE(struct aml_dma_multiplex_request_args, 16);
AT(struct aml_dma_multiplex_request_args, op_args, 8);
SIZE(struct aml_dma_multiplex_copy_args, 24);
AT(struct aml_dma_multiplex_copy_args, m_req, 8);
AT(struct aml_dma_multiplex_copy_args, args, 16);

_Static_assert(AML_SUCCESS == 0 && AML_FAILURE == 1 && AML_ENOMEM == 2 && AML_EINVAL == 3 && AML_EDOM == 4, "errors");
_Static_assert(AML_ENOTSUP == 5 && AML_EBUSY == 6 && AML_EPERM == 7 && AML_ERROR_MAX == 8, "errors");
_Static_assert(AML_BACKEND_LIBNUMA == 2 && AML_BACKEND_CUDA == 4 && AML_BACKEND_HWLOC == 8, "backends");
_Static_assert(AML_BACKEND_OPENCL == 16 && AML_BACKEND_ZE == 32 && AML_BACKEND_HIP == 64, "backends");
_Static_assert(AML_LAYOUT_ORDER_COLUMN_MAJOR == 0 && AML_LAYOUT_ORDER_FORTRAN == 0, "orders");
_Static_assert(AML_LAYOUT_ORDER_ROW_MAJOR == 1 && AML_LAYOUT_ORDER_C == 1, "orders");
_Static_assert(AML_AREA_CUDA_FLAG_DEFAULT == 0 && AML_AREA_CUDA_FLAG_ALLOC_HOST == 1, "flags");
_Static_assert(AML_AREA_CUDA_FLAG_ALLOC_UNIFIED == 2 && AML_AREA_CUDA_FLAG_ALLOC_MAPPED == 4, "flags");
_Static_assert(AML_AREA_CUDA_FLAG_ALLOC_GLOBAL == 8, "flags");

/* Each name, with the type that a program expects: anything else is an error when this is compiled or linked. */
typedef const struct aml_layout layout;
static int (*const init)(int *, char ***) = aml_init;
static int (*const finalize)(void) = aml_finalize;
static const char *(*const text)(const int) = aml_strerror;
static void (*const perror_)(const char *) = aml_perror;
static int (*const backends)(const unsigned long) = aml_support_backends;
static void *(*const area_mmap)(const struct aml_area *, size_t, struct aml_area_mmap_options *) = aml_area_mmap;
static int (*const area_munmap)(const struct aml_area *, void *, size_t) = aml_area_munmap;
static int (*const area_fprintf)(FILE *, const char *, const struct aml_area *) = aml_area_fprintf;
static int (*const cuda_create)(struct aml_area **, const int, const int) = aml_area_cuda_create;
static void (*const cuda_destroy)(struct aml_area **) = aml_area_cuda_destroy;
static void *(*const cuda_mmap)(const struct aml_area_data *, size_t, struct aml_area_mmap_options *) =
	aml_area_cuda_mmap;
static int (*const cuda_munmap)(const struct aml_area_data *, void *, const size_t) = aml_area_cuda_munmap;
static void *(*const deref[])(layout *, const size_t *) = {aml_layout_deref, aml_layout_deref_safe,
							   aml_layout_deref_native};
static void *(*const rawptr)(layout *) = aml_layout_rawptr;
static int (*const order)(layout *) = aml_layout_order;
static size_t (*const numbers[])(layout *) = {aml_layout_ndims, aml_layout_element_size};
static int (*const dims[])(layout *, size_t *) = {aml_layout_dims, aml_layout_dims_native};
static int (*const reshape)(layout *, struct aml_layout **, const size_t, const size_t *) = aml_layout_reshape;
static int (*const slice[])(layout *, struct aml_layout **, const size_t *, const size_t *, const size_t *) = {
	aml_layout_slice, aml_layout_slice_native};
static int (*const layout_fprintf)(FILE *, const char *, layout *) = aml_layout_fprintf;
static int (*const duplicate)(layout *, struct aml_layout **, void *) = aml_layout_duplicate;
static void (*const layout_destroy)(struct aml_layout **) = aml_layout_destroy;
static int (*const dense_create)(struct aml_layout **, void *, const int, const size_t, const size_t, const size_t *,
				 const size_t *, const size_t *) = aml_layout_dense_create;
static int (*const copy_custom)(struct aml_dma *, struct aml_layout *, struct aml_layout *, aml_dma_operator, void *) =
	aml_dma_copy_custom;
static int (*const async_copy)(struct aml_dma *, struct aml_dma_request **, struct aml_layout *, struct aml_layout *,
			       aml_dma_operator, void *) = aml_dma_async_copy_custom;
static int (*const request_calls[])(struct aml_dma *, struct aml_dma_request **) = {aml_dma_wait, aml_dma_cancel};
static int (*const barrier)(struct aml_dma *) = aml_dma_barrier;
static int (*const dma_fprintf)(FILE *, const char *, const struct aml_dma *) = aml_dma_fprintf;
static int (*const transform)(struct aml_layout *, layout *, const size_t *) = aml_copy_layout_transform_generic;
static int (*const multiplex_create)(struct aml_dma **, const size_t, const struct aml_dma **, const size_t *) =
	aml_dma_multiplex_create;
static int (*const multiplex_destroy)(struct aml_dma **) = aml_dma_multiplex_destroy;
static const aml_dma_operator copy_single = aml_dma_multiplex_copy_single;

TEST(every_function_is_there)
{
	REQUIRE(init && finalize && text && perror_ && backends && area_mmap && area_munmap && area_fprintf);
	REQUIRE(cuda_create && cuda_destroy && cuda_mmap && cuda_munmap && deref[0] && deref[1] && deref[2] && rawptr);
	REQUIRE(order && numbers[0] && numbers[1] && dims[0] && dims[1] && reshape && slice[0] && slice[1]);
	REQUIRE(layout_fprintf && duplicate && layout_destroy && dense_create && copy_custom && async_copy);
	REQUIRE(request_calls[0] && request_calls[1] && barrier && dma_fprintf && transform && multiplex_create);
	REQUIRE(multiplex_destroy && copy_single);
}

/* Initialised before any code runs: these addresses and values are constants to the compiler. */
static struct aml_area *const areas[] = {&aml_area_linux, &aml_area_cuda, &aml_area_cuda_unified};
static struct aml_layout_ops *const tables[] = {&aml_layout_column_ops, &aml_layout_row_ops};

TEST(objects_are_one_for_the_program_and_the_library)
{
	size_t one[1] = {1};
	char byte;
	REQUIRE(areas[0]->ops == &aml_area_linux_ops);
	REQUIRE(areas[1]->ops == &aml_area_cuda_ops && areas[2]->ops == &aml_area_cuda_ops);
	for (int i = 0; i < 2; i++) {
		struct aml_layout *made = NULL;
		REQUIRE_EQ(aml_layout_dense_create(&made, &byte, i, 1, 1, one, NULL, NULL), AML_SUCCESS);
		REQUIRE(made->ops == tables[i]);
		aml_layout_destroy(&made);
	}
	struct aml_dma *multiplexer = NULL;
	const struct aml_dma *dmas[1] = {(const struct aml_dma *)&byte};
	REQUIRE_EQ(aml_dma_multiplex_create(&multiplexer, 1, dmas, one), AML_SUCCESS);
	REQUIRE(multiplexer->ops == &aml_dma_multiplex_ops);
	REQUIRE_EQ(aml_dma_multiplex_destroy(&multiplexer), AML_SUCCESS);
	aml_errno = 77;
	REQUIRE(aml_area_mmap(NULL, 1, NULL) == NULL);
	REQUIRE_EQ(aml_errno, AML_EINVAL);
}

static size_t forty_two(const struct aml_layout_data *data)
{
	(void)data;
	return 42;
}

TEST(objects_are_the_programs_to_change)
{
	size_t one[1] = {1};
	char byte;
	struct aml_layout *made = NULL;
	aml_layout_row_ops.ndims = forty_two;
	REQUIRE_EQ(aml_layout_dense_create(&made, &byte, AML_LAYOUT_ORDER_C, 1, 1, one, NULL, NULL), AML_SUCCESS);
	REQUIRE_EQ(aml_layout_ndims(made), 42);
	aml_layout_destroy(&made);
	aml_version_revision = "mine";
	aml_dma_multiplex_ops.barrier = NULL;
	aml_area_cuda_unified.data = NULL;
	REQUIRE(aml_area_mmap(&aml_area_cuda_unified, 1, NULL) == NULL);
}
