/* The header in one of the many ways it may be included, with each macro used in each way. Compiles as C and C++. */
#ifdef AML_BEFORE
#include <aml.h>
#endif
#ifdef RUNTIME_BEFORE
#include <cuda_runtime.h>
#endif
#include <aml/dma/cuda.h>
#include <aml/dma/cuda.h>
#ifdef AML_AFTER
#include <aml.h>
#endif
#ifdef RUNTIME_AFTER
#include <cuda_runtime.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif
int decide(void *pair, int yes);
void *constant(void);
int states(int state);
#ifdef __cplusplus
}
#endif

int decide(void *pair, int yes)
{
	int src = 0, dst = 0;
	long wide = 0;
	if (yes)
		AML_DMA_CUDA_DEVICE_FROM_PAIR(pair, src, dst);
	if (yes)
		AML_DMA_CUDA_DEVICE_FROM_PAIR(pair, src, dst)
	else
		src = 3;
	AML_DMA_CUDA_DEVICE_FROM_PAIR(AML_DMA_CUDA_DEVICE_PAIR(yes ? 1 : 2, src | 1), src, wide);
	for (; dst > 99;)
		AML_DMA_CUDA_DEVICE_FROM_PAIR(pair, src, dst)
	return src + dst + (int)wide;
}

void *constant(void)
{
	static void *pair = AML_DMA_CUDA_DEVICE_PAIR(0, 1);
	return pair;
}

int states(int state)
{
	switch (state) {
	case AML_DMA_CUDA_REQUEST_STATUS_NONE:
	case AML_DMA_CUDA_REQUEST_STATUS_PENDING:
	case AML_DMA_CUDA_REQUEST_STATUS_DONE:
		return AML_SUCCESS;
	default:
		return -AML_EINVAL;
	}
}

#ifdef MAIN
int main(void)
{
	int src, dst;
	if (AML_DMA_CUDA_DEVICE_PAIR(3, 5) != (void *)0x500000003)
		return 1;
	AML_DMA_CUDA_DEVICE_FROM_PAIR(AML_DMA_CUDA_DEVICE_PAIR(-1, 2), src, dst);
	if (src != -1 || dst != 2)
		return 2;
	AML_DMA_CUDA_DEVICE_FROM_PAIR(AML_DMA_CUDA_DEVICE_PAIR(7, -2), src, dst);
	if (src != 7 || dst != -2)
		return 3;
	AML_DMA_CUDA_DEVICE_FROM_PAIR(AML_DMA_CUDA_DEVICE_PAIR(1 ? 4 : 0, 2 | 4), src, dst);
	if (src != 4 || dst != 6)
		return 4;
	/* Arguments count once. */
	int n = 0;
	(void)AML_DMA_CUDA_DEVICE_PAIR(n++, 0);
	void *pairs[2] = {AML_DMA_CUDA_DEVICE_PAIR(8, 9), NULL}, **next = pairs;
	AML_DMA_CUDA_DEVICE_FROM_PAIR(*next++, src, dst);
	if (n != 1 || next != pairs + 1 || src != 8 || dst != 9)
		return 5;
	puts("modes: ok");
	return 0;
}
#endif
