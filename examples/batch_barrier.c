/* A batch from several OpenMP threads over one DMA: no request is kept, one barrier waits for all of them. */
#include <aml.h>
#include <aml/area/cuda.h>
#include <aml/dma/cuda.h>
#include <aml/layout/dense.h>

#include "example.h"

enum { PIECES = 512, LENGTH = 4096, THREADS = 4 };

/* Copies piece by piece, each thread some of the pieces. A NULL request says that the barrier is enough. */
static void batch(struct aml_dma *dma, int *to, int *from)
{
	int failures = 0;
#pragma omp parallel for num_threads(THREADS) schedule(dynamic, 8) reduction(+ : failures)
	for (int i = 0; i < PIECES; i++) {
		const size_t dims[1] = {LENGTH};
		struct aml_layout *dst = NULL, *src = NULL;
		int error = aml_layout_dense_create(&dst, to + i * LENGTH, AML_LAYOUT_ORDER_C, sizeof *to, 1, dims,
						    NULL, NULL);
		if (error == AML_SUCCESS)
			error = aml_layout_dense_create(&src, from + i * LENGTH, AML_LAYOUT_ORDER_C, sizeof *from, 1,
							dims, NULL, NULL);
		if (error == AML_SUCCESS)
			error = aml_dma_async_copy(dma, NULL, dst, src);
		/* A layout is needed to start the copy only. */
		aml_layout_destroy(&dst);
		aml_layout_destroy(&src);
		failures += error != AML_SUCCESS;
	}
	CHECK(failures == 0);
	CHECK(aml_dma_barrier(dma) == AML_SUCCESS);
}

int main(int argc, char **argv)
{
	CHECK(aml_init(&argc, &argv) == AML_SUCCESS);
	if (!aml_support_backends(AML_BACKEND_CUDA)) {
		puts("batch_barrier: no CUDA device, nothing to run on");
		return SKIPPED;
	}
	const size_t size = sizeof(int) * PIECES * LENGTH;
	struct aml_area *pinned;
	struct aml_dma *up, *down;
	CHECK(aml_area_cuda_create(&pinned, -1, AML_AREA_CUDA_FLAG_ALLOC_HOST) == AML_SUCCESS);
	CHECK(aml_dma_cuda_create(&up, cudaMemcpyHostToDevice) == AML_SUCCESS);
	CHECK(aml_dma_cuda_create(&down, cudaMemcpyDeviceToHost) == AML_SUCCESS);
	int *in = aml_area_mmap(pinned, size, NULL), *out = aml_area_mmap(pinned, size, NULL);
	int *device = aml_area_mmap(&aml_area_cuda, size, NULL);
	CHECK(in && out && device);
	for (int i = 0; i < PIECES * LENGTH; i++) {
		in[i] = i * 3 + 1;
		out[i] = 0;
	}

	batch(up, device, in);
	batch(down, out, device);
	CHECK(memcmp(in, out, size) == 0);
	printf("batch_barrier: %d pieces of %zu bytes, up and down, from %d threads, on %s\n", PIECES,
	       LENGTH * sizeof(int), THREADS, device_name());

	aml_area_munmap(pinned, in, size);
	aml_area_munmap(pinned, out, size);
	aml_area_munmap(&aml_area_cuda, device, size);
	CHECK(aml_dma_cuda_destroy(&up) == AML_SUCCESS);
	CHECK(aml_dma_cuda_destroy(&down) == AML_SUCCESS);
	aml_area_cuda_destroy(&pinned);
	return aml_finalize();
}
