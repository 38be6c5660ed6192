// Transpositions: between row major and column major layouts, also of more dimensions, and within a device by a kernel.
#include "device.h"
#include "grid.h"
#include "park.h"
#include "test.h"
#include <pthread.h>
#include <time.h>

enum { ROW = AML_LAYOUT_ORDER_ROW_MAJOR, COLUMN = AML_LAYOUT_ORDER_COLUMN_MAJOR };

static const size_t elements[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 48};

static void transpose(int kind, enum sort to, enum sort from, size_t element, size_t ndims, const size_t *dims)
{
	struct grid row = grid_dense(ROW, element, ndims, dims), column = grid_dense(COLUMN, element, ndims, dims);
	grid_check(kind, &column, to, &row, from);
	grid_check(kind, &row, to, &column, from);
}

static void transpose_all(int kind, enum sort to, enum sort from)
{
	static const size_t shapes[][2] = {{1, 70}, {2, 3}, {3, 200}, {200, 3}, {16, 16}, {31, 33}, {64, 32}, {100, 65}};
	use_device(0);
	for (size_t i = 0; i < sizeof elements / sizeof *elements; i++)
		for (size_t j = 0; j < sizeof shapes / sizeof *shapes; j++)
			transpose(kind, to, from, elements[i], 2, shapes[j]);
	leave_device(0);
}

TEST(within_a_device_every_element_lands_in_its_place) { transpose_all(cudaMemcpyDeviceToDevice, DEVICE, DEVICE); }

TEST(between_host_and_device_every_element_lands_in_its_place)
{
	transpose_all(cudaMemcpyHostToDevice, DEVICE, PINNED);
	transpose_all(cudaMemcpyDeviceToHost, PAGEABLE, DEVICE);
}

TEST(in_managed_memory_every_element_lands_in_its_place)
{
	transpose_all(cudaMemcpyDefault, MANAGED, MANAGED);
	transpose_all(cudaMemcpyDefault, MANAGED, DEVICE);
}

TEST(dimensions_are_reversed_in_up_to_six_of_them)
{
	static const size_t dims[] = {5, 3, 40, 2, 4, 3};
	use_device(0);
	for (size_t ndims = 3; ndims <= 6; ndims++)
		for (size_t i = 0; i < sizeof elements / sizeof *elements; i++)
			transpose(cudaMemcpyDeviceToDevice, DEVICE, DEVICE, elements[i], ndims, dims);
	leave_device(0);
}

TEST(tiles_of_a_larger_matrix_are_transposed_within_their_gaps)
{
	static const size_t dims[] = {50, 70};
	use_device(0);
	for (size_t i = 0; i < sizeof elements / sizeof *elements; i++) {
		struct grid tile = grid_dense(ROW, elements[i], 2, dims), matrix = grid_dense(COLUMN, elements[i], 2, dims);
		tile.offset[0] = 7, tile.offset[1] = 1;
		tile.pitch[0] = 61, tile.pitch[1] = 73;
		matrix.step[0] = 2, matrix.step[1] = 3;
		matrix.pitch[0] = 101, matrix.pitch[1] = 219;
		grid_check(cudaMemcpyDeviceToDevice, &tile, DEVICE, &matrix, DEVICE);
		grid_check(cudaMemcpyDeviceToDevice, &matrix, DEVICE, &tile, DEVICE);
	}
	leave_device(0);
}

TEST(a_large_matrix_is_transposed_within_a_device)
{
	static const size_t dims[] = {1500, 2011};
	use_device(0);
	transpose(cudaMemcpyDeviceToDevice, DEVICE, DEVICE, 8, 2, dims);
	leave_device(0);
}

static struct park parked;

/* Lets the other stream go on after a long while, for a copy that waits for it. */
static void *release_late(void *copied)
{
	struct timespec moment = {0, 10000000};
	for (int i = 0; i < 500 && !__atomic_load_n((int *)copied, __ATOMIC_ACQUIRE); i++)
		nanosleep(&moment, NULL);
	int late = !__atomic_load_n((int *)copied, __ATOMIC_ACQUIRE);
	park_release(&parked);
	return late ? copied : NULL;
}

/* The first one loads what it runs, and CUDA does that when all of the context stands still. */
TEST(transpositions_after_the_first_do_not_wait_for_another_stream)
{
	static const size_t dims[] = {50, 70};
	int copied = 0;
	void *late;
	pthread_t thread;
	use_device(0);
	struct grid row = grid_dense(ROW, 8, 2, dims), column = grid_dense(COLUMN, 8, 2, dims);
	size_t size = grid_bytes(&row);
	char *from = memory_new(DEVICE, size), *to = memory_new(DEVICE, size);
	struct aml_dma *dma = dma_new(cudaMemcpyDeviceToDevice);
	CUstream other = create_stream();
	REQUIRE_EQ(grid_copy(dma, &column, to, &row, from, NULL), AML_SUCCESS);
	park_stream(&parked, other);
	park_wait_reached(&parked);
	REQUIRE(pthread_create(&thread, NULL, release_late, &copied) == 0);
	REQUIRE_EQ(grid_copy(dma, &column, to, &row, from, NULL), AML_SUCCESS);
	__atomic_store_n(&copied, 1, __ATOMIC_RELEASE);
	REQUIRE(pthread_join(thread, &late) == 0);
	CUDA(cuStreamSynchronize(other));
	CUDA(cuStreamDestroy(other));
	dma_end(dma);
	memory_free(DEVICE, from);
	memory_free(DEVICE, to);
	leave_device(0);
	REQUIRE(late == NULL);
}

enum { THREADS = 16 };
static pthread_barrier_t together;
static CUcontext shared;

static void *transpose_at_once(void *unused)
{
	static const size_t dims[] = {50, 70};
	struct grid row = grid_dense(ROW, 8, 2, dims), column = grid_dense(COLUMN, 8, 2, dims);
	CUDA(cuCtxSetCurrent(shared));
	pthread_barrier_wait(&together);
	for (int round = 0; round < 5; round++)
		grid_check(cudaMemcpyDeviceToDevice, &column, DEVICE, &row, DEVICE);
	CUDA(cuCtxSetCurrent(NULL));
	return unused;
}

TEST(threads_may_race_for_the_first_transposition)
{
	pthread_t threads[THREADS];
	shared = use_device(0);
	REQUIRE(pthread_barrier_init(&together, NULL, THREADS) == 0);
	for (int i = 0; i < THREADS; i++)
		REQUIRE(pthread_create(&threads[i], NULL, transpose_at_once, NULL) == 0);
	for (int i = 0; i < THREADS; i++)
		REQUIRE(pthread_join(threads[i], NULL) == 0);
	pthread_barrier_destroy(&together);
	leave_device(0);
}
