/* The calls of a DMA in the form that tests want: by its data, with blocks of bytes in place of layouts. */
#ifndef CAPI_TESTS_COPY_H
#define CAPI_TESTS_COPY_H
#include "require.h"
#include <cuda.h>
/* The order matters to nobody: the header is complete by itself. */
#include <aml/dma/cuda.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct aml_dma_data dma_data;
typedef struct aml_dma_request request;

/** The data of a DMA, as its functions take it. */
static inline dma_data *data_of(const struct aml_dma *dma) { return dma->data; }

/** What a program may see of it. */
static inline struct aml_dma_cuda_data *public_of(const struct aml_dma *dma)
{
	return (struct aml_dma_cuda_data *)dma->data;
}

/** The stream of a DMA, as the driver calls it. */
static inline CUstream stream_of(const struct aml_dma *dma) { return (CUstream)public_of(dma)->stream; }

/** The data of a DMA that the program built itself, as the functions take it. */
static inline dma_data *as_data(struct aml_dma_cuda_data *data) { return (dma_data *)data; }

/** A new DMA, which has to succeed. */
static inline struct aml_dma *dma_new(int kind)
{
	struct aml_dma *dma = NULL;
	REQUIRE_EQ(aml_dma_cuda_create(&dma, (enum cudaMemcpyKind)kind), AML_SUCCESS);
	REQUIRE(dma && dma->data && dma->ops == &aml_dma_cuda_ops);
	return dma;
}

/** Destroys it, which has to succeed. */
static inline void dma_end(struct aml_dma *dma)
{
	REQUIRE_EQ(aml_dma_cuda_destroy(&dma), AML_SUCCESS);
	REQUIRE(dma == NULL);
}

/** Starts a copy of bytes; `req` may be NULL. */
static inline int start(dma_data *data, request **req, void *dst, const void *src, size_t size)
{
	return aml_dma_cuda_request_create(data, req, (struct aml_layout *)dst, (struct aml_layout *)(size_t)src,
					   aml_dma_cuda_memcpy_op, (void *)size);
}

/** Copies bytes and waits. */
static inline int copy(dma_data *data, void *dst, const void *src, size_t size)
{
	request *req = NULL;
	int code = start(data, &req, dst, src, size);
	return code ? code : aml_dma_cuda_request_wait(data, &req);
}

/** The status word of a request, as a program polls it. */
static inline int status_of(const request *req)
{
	return __atomic_load_n(&((const struct aml_dma_cuda_request *)req)->status, __ATOMIC_ACQUIRE);
}

#define NONE AML_DMA_CUDA_REQUEST_STATUS_NONE
#define PENDING AML_DMA_CUDA_REQUEST_STATUS_PENDING
#define DONE AML_DMA_CUDA_REQUEST_STATUS_DONE

#ifdef __cplusplus
}
#endif
#endif
