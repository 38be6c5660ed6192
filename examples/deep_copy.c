/* A linked structure, moved to the device with its pointers made the device's, and read back by following those. */
#include <aml.h>
#include <aml/area/cuda.h>
#include <aml/dma/cuda.h>

#include "example.h"

enum { NODES = 20 };

/* A list of vectors. On the device, `values` and `next` are device addresses. */
struct node {
	size_t count;
	double *values;
	struct node *next;
};

static void *allocate(const struct aml_area *area, size_t size)
{
	void *memory = aml_area_mmap(area, size, NULL);
	CHECK(memory != NULL);
	return memory;
}

/* Moves plain bytes: this operator takes addresses in place of layouts, and their number as its argument. */
static void move(struct aml_dma *dma, void *to, const void *from, size_t size)
{
	CHECK(aml_dma_copy_custom(dma, (struct aml_layout *)to, (struct aml_layout *)from, aml_dma_cuda_memcpy_op,
				  (void *)size) == AML_SUCCESS);
}

/* Copies a list to the device, its end first, so that each node knows where the next one went. */
static struct node *upload(struct aml_dma *dma, const struct node *list)
{
	if (list == NULL)
		return NULL;
	struct node image = {list->count, allocate(&aml_area_cuda, list->count * sizeof *list->values),
			     upload(dma, list->next)};
	move(dma, image.values, list->values, list->count * sizeof *list->values);
	struct node *device = allocate(&aml_area_cuda, sizeof image);
	move(dma, device, &image, sizeof image);
	return device;
}

/* Follows a list on the device, compares it with the one it was made from, and frees it. */
static size_t compare(struct aml_dma *dma, struct node *device, const struct node *list)
{
	size_t values = 0;
	while (device != NULL) {
		CHECK(list != NULL);
		struct node image;
		move(dma, &image, device, sizeof image);
		CHECK(image.count == list->count);
		double *back = malloc(image.count * sizeof *back);
		CHECK(back != NULL);
		move(dma, back, image.values, image.count * sizeof *back);
		CHECK(memcmp(back, list->values, image.count * sizeof *back) == 0);
		free(back);
		CHECK(aml_area_munmap(&aml_area_cuda, image.values, image.count * sizeof *back) == AML_SUCCESS);
		CHECK(aml_area_munmap(&aml_area_cuda, device, sizeof image) == AML_SUCCESS);
		values += image.count;
		device = image.next;
		list = list->next;
	}
	CHECK(list == NULL);
	return values;
}

int main(int argc, char **argv)
{
	CHECK(aml_init(&argc, &argv) == AML_SUCCESS);
	if (!aml_support_backends(AML_BACKEND_CUDA)) {
		puts("deep_copy: no CUDA device, nothing to run on");
		return SKIPPED;
	}
	static double values[NODES][NODES * 100];
	struct node nodes[NODES];
	for (size_t i = 0; i < NODES; i++) {
		nodes[i] = (struct node){(i + 1) * 100, values[i], i + 1 < NODES ? &nodes[i + 1] : NULL};
		for (size_t k = 0; k < nodes[i].count; k++)
			values[i][k] = (double)i + 1e-3 * (double)k;
	}

	struct aml_dma *up, *down;
	CHECK(aml_dma_cuda_create(&up, cudaMemcpyHostToDevice) == AML_SUCCESS);
	CHECK(aml_dma_cuda_create(&down, cudaMemcpyDeviceToHost) == AML_SUCCESS);
	struct node *device = upload(up, nodes);
	size_t compared = compare(down, device, nodes);
	printf("deep_copy: %d nodes with %zu values there and back on %s\n", NODES, compared, device_name());
	CHECK(aml_dma_cuda_destroy(&up) == AML_SUCCESS);
	CHECK(aml_dma_cuda_destroy(&down) == AML_SUCCESS);
	return aml_finalize();
}
