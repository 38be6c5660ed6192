/* Two DMAs, each with a stream of its own, behind a multiplexer: a request is spread over both in pieces. */
#include <aml.h>
#include <aml/area/cuda.h>
#include <aml/dma/cuda.h>
#include <aml/dma/multiplex.h>
#include <aml/layout/dense.h>

#include "example.h"

enum { ROWS = 300, COLUMNS = 5000 };

/* An operator of one's own: cuts the matrices into rows and gives each row to the DMA whose turn it is. */
static int by_rows(struct aml_layout *dst, const struct aml_layout *src, void *arg)
{
	size_t dims[2];
	int error = aml_layout_dims(src, dims);
	for (size_t row = 0; error == AML_SUCCESS && row < dims[0]; row++) {
		const size_t offsets[2] = {row, 0}, part[2] = {1, dims[1]};
		struct aml_layout *to = NULL, *from = NULL;
		error = aml_layout_slice(src, &from, offsets, part, NULL);
		if (error == AML_SUCCESS)
			error = aml_layout_slice(dst, &to, offsets, part, NULL);
		if (error == AML_SUCCESS)
			error = aml_dma_multiplex_copy_single(to, from, arg);
		aml_layout_destroy(&to);
		aml_layout_destroy(&from);
	}
	return error; /* On an error the multiplexer gives up the rows that were started. */
}

static struct aml_layout *matrix(void *memory)
{
	const size_t dims[2] = {ROWS, COLUMNS};
	struct aml_layout *layout;
	CHECK(aml_layout_dense_create(&layout, memory, AML_LAYOUT_ORDER_C, sizeof(float), 2, dims, NULL, NULL) ==
	      AML_SUCCESS);
	return layout;
}

int main(int argc, char **argv)
{
	CHECK(aml_init(&argc, &argv) == AML_SUCCESS);
	if (!aml_support_backends(AML_BACKEND_CUDA)) {
		puts("multiplex: no CUDA device, nothing to run on");
		return SKIPPED;
	}
	const size_t size = sizeof(float) * ROWS * COLUMNS;
	float *in = malloc(size), *out = calloc(1, size);
	void *device = aml_area_mmap(&aml_area_cuda, size, NULL);
	CHECK(in && out && device);
	for (int i = 0; i < ROWS * COLUMNS; i++)
		in[i] = 0.25f * (float)i;

	/* The second one gets two rows for each row of the first. */
	struct aml_dma *first, *second, *both;
	CHECK(aml_dma_cuda_create(&first, cudaMemcpyDefault) == AML_SUCCESS);
	CHECK(aml_dma_cuda_create(&second, cudaMemcpyDefault) == AML_SUCCESS);
	const struct aml_dma *dmas[2] = {first, second};
	const size_t weights[2] = {1, 2};
	CHECK(aml_dma_multiplex_create(&both, 2, dmas, weights) == AML_SUCCESS);
	CHECK(aml_dma_fprintf(stdout, "multiplex: ", both) == AML_SUCCESS);

	struct aml_layout *from = matrix(in), *there = matrix(device), *to = matrix(out);
	struct aml_dma_request *request;
	CHECK(aml_dma_async_copy_custom(both, &request, there, from, by_rows, NULL) == AML_SUCCESS);
	CHECK(aml_dma_wait(both, &request) == AML_SUCCESS && request == NULL); /* all rows */
	CHECK(aml_dma_copy_custom(both, to, there, by_rows, NULL) == AML_SUCCESS);
	CHECK(memcmp(in, out, size) == 0);
	printf("multiplex: %d rows up and down over two dmas on %s\n", ROWS, device_name());

	aml_layout_destroy(&from);
	aml_layout_destroy(&there);
	aml_layout_destroy(&to);
	CHECK(aml_dma_multiplex_destroy(&both) == AML_SUCCESS);
	CHECK(aml_dma_cuda_destroy(&first) == AML_SUCCESS);
	CHECK(aml_dma_cuda_destroy(&second) == AML_SUCCESS);
	aml_area_munmap(&aml_area_cuda, device, size);
	free(in);
	free(out);
	return aml_finalize();
}
