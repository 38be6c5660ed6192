/* The data movement of a matrix product that is done on the device tile by tile: tiles of A and B go up while the tiles
 * before are worked on, tiles of C come back into the matrix. The tile of B is turned on the device, so that what is
 * multiplied lies side by side. All of it is aml_dma_cuda_copy_layout between slices, without any arithmetic on pitches.
 * A program with a kernel of its own would launch it where work() stands; here the host does the sums, on tiles that it
 * fetches from the device, so that every copy is seen to be right. */
#include <aml.h>
#include <aml/area/cuda.h>
#include <aml/dma/cuda.h>
#include <aml/layout/dense.h>

#include "example.h"

enum { N = 200, TILE = 64, TILES = (N + TILE - 1) / TILE }; /* the last tile of a row is a narrow one */

static double a[N][N], b[N][N], c[N][N];

/* Memory on the device, and on the host, for the tiles of one step. */
struct step {
	double *a, *b, *b_turned;
	struct aml_dma_request *requests[3];
	size_t rows, inner, columns;
};

static struct aml_dma *up, *within, *down;

static struct aml_layout *dense(void *memory, int order, size_t rows, size_t columns)
{
	const size_t dims[2] = {rows, columns};
	struct aml_layout *layout;
	CHECK(aml_layout_dense_create(&layout, memory, order, sizeof(double), 2, dims, NULL, NULL) == AML_SUCCESS);
	return layout;
}

/* The tile in row `i` and column `j` of tiles. */
static struct aml_layout *tile_of(double matrix[N][N], size_t i, size_t j, size_t rows, size_t columns)
{
	const size_t offsets[2] = {i * TILE, j * TILE}, dims[2] = {rows, columns};
	struct aml_layout *whole = dense(matrix, AML_LAYOUT_ORDER_C, N, N), *tile;
	CHECK(aml_layout_slice(whole, &tile, offsets, dims, NULL) == AML_SUCCESS);
	aml_layout_destroy(&whole);
	return tile;
}

/* The layouts are asked during the call only. */
static struct aml_dma_request *copy(struct aml_dma *dma, struct aml_layout *dst, struct aml_layout *src)
{
	struct aml_dma_request *request;
	CHECK(aml_dma_async_copy_custom(dma, &request, dst, src, aml_dma_cuda_copy_layout, NULL) == AML_SUCCESS);
	aml_layout_destroy(&dst);
	aml_layout_destroy(&src);
	return request;
}

static size_t extent(size_t tile) { return tile + 1 < TILES ? TILE : N - (TILES - 1) * TILE; }

/* Starts the copies that step `number` of all needs. */
static void start(struct step *step, size_t number)
{
	size_t i = number / TILES / TILES, j = number / TILES % TILES, k = number % TILES;
	step->rows = extent(i), step->columns = extent(j), step->inner = extent(k);
	step->requests[0] = copy(up, dense(step->a, AML_LAYOUT_ORDER_C, step->rows, step->inner),
				 tile_of(a, i, k, step->rows, step->inner));
	step->requests[1] = copy(up, dense(step->b, AML_LAYOUT_ORDER_C, step->inner, step->columns),
				 tile_of(b, k, j, step->inner, step->columns));
}

/* Waits for the copies, and turns the tile of B. */
static void arrive(struct step *step)
{
	CHECK(aml_dma_wait(up, &step->requests[0]) == AML_SUCCESS);
	CHECK(aml_dma_wait(up, &step->requests[1]) == AML_SUCCESS);
	step->requests[2] = copy(within, dense(step->b_turned, AML_LAYOUT_ORDER_FORTRAN, step->inner, step->columns),
				 dense(step->b, AML_LAYOUT_ORDER_C, step->inner, step->columns));
	CHECK(aml_dma_wait(within, &step->requests[2]) == AML_SUCCESS);
}

static void fetch(double *to, double *from, size_t count)
{
	struct aml_dma_request *request = copy(down, dense(to, AML_LAYOUT_ORDER_C, 1, count),
					       dense(from, AML_LAYOUT_ORDER_C, 1, count));
	CHECK(aml_dma_wait(down, &request) == AML_SUCCESS);
}

/* In place of a kernel: adds the product of the two tiles to `sums`. */
static void work(const struct step *step, double *sums)
{
	static double rows[TILE * TILE], columns[TILE * TILE];
	fetch(rows, step->a, step->rows * step->inner);
	fetch(columns, step->b_turned, step->inner * step->columns);
	for (size_t y = 0; y < step->rows; y++)
		for (size_t x = 0; x < step->columns; x++)
			for (size_t k = 0; k < step->inner; k++)
				sums[y * step->columns + x] += rows[y * step->inner + k] * columns[x * step->inner + k];
}

int main(int argc, char **argv)
{
	CHECK(aml_init(&argc, &argv) == AML_SUCCESS);
	if (!aml_support_backends(AML_BACKEND_CUDA)) {
		puts("tiled_matmul: no CUDA device, nothing to run on");
		return SKIPPED;
	}
	for (int row = 0; row < N; row++)
		for (int column = 0; column < N; column++) {
			a[row][column] = (row * 7 + column * 3) % 11 - 5; /* small integers: the sums are exact */
			b[row][column] = (row * 5 + column * 2) % 13 - 6;
		}
	CHECK(aml_dma_cuda_create(&up, cudaMemcpyHostToDevice) == AML_SUCCESS);
	CHECK(aml_dma_cuda_create(&within, cudaMemcpyDeviceToDevice) == AML_SUCCESS);
	CHECK(aml_dma_cuda_create(&down, cudaMemcpyDeviceToHost) == AML_SUCCESS);

	const size_t size = sizeof(double) * TILE * TILE;
	struct step steps[2];
	for (int i = 0; i < 2; i++) {
		double **tiles[] = {&steps[i].a, &steps[i].b, &steps[i].b_turned};
		for (int j = 0; j < 3; j++)
			CHECK((*tiles[j] = aml_area_mmap(&aml_area_cuda, size, NULL)) != NULL);
	}
	double *device_sums = aml_area_mmap(&aml_area_cuda, size, NULL);
	static double sums[TILE * TILE];
	CHECK(device_sums != NULL);

	const size_t last = (size_t)TILES * TILES * TILES - 1;
	start(&steps[0], 0);
	for (size_t number = 0; number <= last; number++) {
		struct step *step = &steps[number % 2];
		if (number < last)
			start(&steps[(number + 1) % 2], number + 1);
		arrive(step);
		work(step, sums);
		if (number % TILES + 1 < TILES)
			continue;
		/* The tile of C is complete: to the device, where a kernel would have left it, and back into the matrix. */
		struct aml_dma_request *request = copy(up, dense(device_sums, AML_LAYOUT_ORDER_C, step->rows, step->columns),
						       dense(sums, AML_LAYOUT_ORDER_C, step->rows, step->columns));
		CHECK(aml_dma_wait(up, &request) == AML_SUCCESS);
		request = copy(down, tile_of(c, number / TILES / TILES, number / TILES % TILES, step->rows, step->columns),
			       dense(device_sums, AML_LAYOUT_ORDER_C, step->rows, step->columns));
		CHECK(aml_dma_wait(down, &request) == AML_SUCCESS);
		for (size_t i = 0; i < TILE * TILE; i++)
			sums[i] = 0;
	}

	for (int row = 0; row < N; row++)
		for (int column = 0; column < N; column++) {
			double expected = 0;
			for (int k = 0; k < N; k++)
				expected += a[row][k] * b[k][column];
			CHECK(c[row][column] == expected);
		}
	printf("tiled_matmul: %d x %d in tiles of %d on %s, every element of the product is right\n", N, N, TILE,
	       device_name());

	for (int i = 0; i < 2; i++) {
		aml_area_munmap(&aml_area_cuda, steps[i].a, size);
		aml_area_munmap(&aml_area_cuda, steps[i].b, size);
		aml_area_munmap(&aml_area_cuda, steps[i].b_turned, size);
	}
	aml_area_munmap(&aml_area_cuda, device_sums, size);
	CHECK(aml_dma_cuda_destroy(&up) == AML_SUCCESS);
	CHECK(aml_dma_cuda_destroy(&within) == AML_SUCCESS);
	CHECK(aml_dma_cuda_destroy(&down) == AML_SUCCESS);
	return aml_finalize();
}
