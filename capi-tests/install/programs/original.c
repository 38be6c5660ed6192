/* A library that has the names of the CUDA DMA already, as AML's own has, and fails at everything. */
#include <stddef.h>

int aml_dma_cuda_create(void *dma, int kind);
int aml_dma_cuda_create(void *dma, int kind) { return (void)dma, (void)kind, -77; }
#define FAILS(name) \
	int name(void); \
	int name(void) { return -77; }
FAILS(aml_dma_cuda_destroy)
FAILS(aml_dma_cuda_request_create)
FAILS(aml_dma_cuda_request_wait)
FAILS(aml_dma_cuda_request_destroy)
FAILS(aml_dma_cuda_barrier)
FAILS(aml_dma_cuda_copy_1D)
FAILS(aml_dma_cuda_memcpy_op)
void *aml_dma_cuda_ops[5];
void *aml_dma_cuda_data[2];
void *aml_dma_cuda[2] = {NULL, NULL};
