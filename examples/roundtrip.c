/* Host -> device -> host: the main job of a CUDA DMA, timed, and every byte compared. */
#include <aml.h>
#include <aml/area/cuda.h>
#include <aml/dma/cuda.h>
#include <aml/layout/dense.h>

#include "example.h"

/* `n` bytes as a layout, which is how AML's DMAs take memory. */
static struct aml_layout *bytes(void *memory, size_t n)
{
	struct aml_layout *layout;
	CHECK(aml_layout_dense_create(&layout, memory, AML_LAYOUT_ORDER_C, 1, 1, &n, NULL, NULL) == AML_SUCCESS);
	return layout;
}

/* Copies, waits, and returns GB/s: the best of five. */
static double copy(struct aml_dma *dma, struct aml_layout *to, struct aml_layout *from, size_t n)
{
	double best = 0;
	for (int i = 0; i < 5; i++) {
		struct aml_dma_request *request;
		double start = seconds();
		CHECK(aml_dma_async_copy(dma, &request, to, from) == AML_SUCCESS);
		/* Here the program could do something else. */
		CHECK(aml_dma_wait(dma, &request) == AML_SUCCESS);
		double speed = (double)n / (seconds() - start) / 1e9;
		if (speed > best)
			best = speed;
	}
	return best;
}

int main(int argc, char **argv)
{
	CHECK(aml_init(&argc, &argv) == AML_SUCCESS);
	if (!aml_support_backends(AML_BACKEND_CUDA)) {
		puts("roundtrip: no CUDA device, nothing to run on");
		return SKIPPED;
	}
	printf("running on: %s\n", device_name());

	/* Page-locked host memory is what copies go fastest from; any other memory will do as well. */
	struct aml_area *pinned;
	struct aml_dma *up, *down;
	CHECK(aml_area_cuda_create(&pinned, -1, AML_AREA_CUDA_FLAG_ALLOC_HOST) == AML_SUCCESS);
	CHECK(aml_dma_cuda_create(&up, cudaMemcpyHostToDevice) == AML_SUCCESS);
	CHECK(aml_dma_cuda_create(&down, cudaMemcpyDeviceToHost) == AML_SUCCESS);

	printf("%12s %18s %18s\n", "bytes", "to device, GB/s", "to host, GB/s");
	static const size_t sizes[] = {1, 4096, 1 << 20, 64 << 20};
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		size_t n = sizes[i];
		unsigned char *in = aml_area_mmap(pinned, n, NULL);
		unsigned char *out = aml_area_mmap(pinned, n, NULL);
		void *device = aml_area_mmap(&aml_area_cuda, n, NULL);
		CHECK(in && out && device);
		for (size_t k = 0; k < n; k++) {
			in[k] = (unsigned char)(k * 131 + k / 257 + 7);
			out[k] = (unsigned char)~in[k];
		}

		struct aml_layout *from = bytes(in, n), *there = bytes(device, n), *to = bytes(out, n);
		double there_speed = copy(up, there, from, n);
		double back_speed = copy(down, to, there, n);
		CHECK(memcmp(in, out, n) == 0);
		printf("%12zu %18.3f %18.3f\n", n, there_speed, back_speed);

		aml_layout_destroy(&from);
		aml_layout_destroy(&there);
		aml_layout_destroy(&to);
		aml_area_munmap(pinned, in, n);
		aml_area_munmap(pinned, out, n);
		aml_area_munmap(&aml_area_cuda, device, n);
	}
	puts("every byte came back as it went");

	CHECK(aml_dma_cuda_destroy(&up) == AML_SUCCESS);
	CHECK(aml_dma_cuda_destroy(&down) == AML_SUCCESS);
	aml_area_cuda_destroy(&pinned);
	return aml_finalize();
}
