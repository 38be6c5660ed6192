/* The binary interface as a program sees it, asserted at compile time from C and from C++: sizes, offsets, numbers,
 * prototypes. What the compiler accepts here, any program gets. */
#ifndef CAPI_TESTS_ABI_LAYOUT_H
#define CAPI_TESTS_ABI_LAYOUT_H
#include <aml/dma/cuda.h>
#include <aml.h>
#include <assert.h>
#include <stddef.h>

#define SIZE(type, size) static_assert(sizeof(type) == (size), "size of " #type)
#define AT(type, field, offset) static_assert(offsetof(type, field) == (offset), "offset of " #type "." #field)
#define IS(name, number) static_assert((name) == (number), #name)

SIZE(void *, 8);
SIZE(struct aml_dma, 16);
AT(struct aml_dma, ops, 0);
AT(struct aml_dma, data, 8);
SIZE(struct aml_dma_ops, 40);
AT(struct aml_dma_ops, create_request, 0);
AT(struct aml_dma_ops, destroy_request, 8);
AT(struct aml_dma_ops, wait_request, 16);
AT(struct aml_dma_ops, barrier, 24);
AT(struct aml_dma_ops, fprintf, 32);
SIZE(struct aml_dma_cuda_request, 48);
AT(struct aml_dma_cuda_request, status, 0);
AT(struct aml_dma_cuda_request, lock, 8);
SIZE(struct aml_dma_cuda_data, 16);
AT(struct aml_dma_cuda_data, stream, 0);
AT(struct aml_dma_cuda_data, kind, 8);
SIZE(struct aml_dma_cuda_op_arg, 16);
AT(struct aml_dma_cuda_op_arg, data, 0);
AT(struct aml_dma_cuda_op_arg, op_arg, 8);
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

IS(AML_SUCCESS, 0);
IS(AML_FAILURE, 1);
IS(AML_ENOMEM, 2);
IS(AML_EINVAL, 3);
IS(AML_EDOM, 4);
IS(AML_ENOTSUP, 5);
IS(AML_EBUSY, 6);
IS(AML_EPERM, 7);
IS(AML_ERROR_MAX, 8);
IS(AML_DMA_CUDA_REQUEST_STATUS_NONE, 0);
IS(AML_DMA_CUDA_REQUEST_STATUS_PENDING, 1);
IS(AML_DMA_CUDA_REQUEST_STATUS_DONE, 2);
IS((int)cudaMemcpyHostToHost, 0);
IS((int)cudaMemcpyHostToDevice, 1);
IS((int)cudaMemcpyDeviceToHost, 2);
IS((int)cudaMemcpyDeviceToDevice, 3);
IS((int)cudaMemcpyDefault, 4);
SIZE(enum cudaMemcpyKind, 4);
SIZE(cudaStream_t, 8);

#ifdef __cplusplus
#include <type_traits>
#define PROTOTYPE(function, ...) static_assert(std::is_same<decltype(&function), __VA_ARGS__>::value, #function)
#define OBJECT(object, type) static_assert(std::is_same<decltype(object), type>::value, #object)
#else
#define PROTOTYPE(function, ...) static_assert(_Generic(&function, __VA_ARGS__: 1, default: 0), #function)
#define OBJECT(object, type) static_assert(_Generic(&object, type *: 1, default: 0), #object)
#endif
PROTOTYPE(aml_dma_cuda_create, int (*)(struct aml_dma **, enum cudaMemcpyKind));
PROTOTYPE(aml_dma_cuda_destroy, int (*)(struct aml_dma **));
PROTOTYPE(aml_dma_cuda_request_create, int (*)(struct aml_dma_data *, struct aml_dma_request **, struct aml_layout *,
					       struct aml_layout *, aml_dma_operator, void *));
PROTOTYPE(aml_dma_cuda_request_wait, int (*)(struct aml_dma_data *, struct aml_dma_request **));
PROTOTYPE(aml_dma_cuda_request_destroy, int (*)(struct aml_dma_data *, struct aml_dma_request **));
PROTOTYPE(aml_dma_cuda_barrier, int (*)(struct aml_dma_data *));
PROTOTYPE(aml_dma_cuda_copy_1D, int (*)(struct aml_layout *, const struct aml_layout *, void *));
PROTOTYPE(aml_dma_cuda_memcpy_op, int (*)(struct aml_layout *, const struct aml_layout *, void *));
OBJECT(aml_dma_cuda, struct aml_dma);
OBJECT(aml_dma_cuda_ops, struct aml_dma_ops);
#endif
