/* What a transposition within the device costs: through the library, which has a kernel for it, and through the calls
 * that it would take otherwise, one rectangle of single elements for each column. Also narrow rows, which the driver can
 * copy in one call, beside the same number of rows in a shape that the library gives to its kernel. */
#include "clock.h"
#include "gpu.h"
#include "layout.h"
#include "library.h"
#include "try.h"

static struct library library;
static struct aml_dma *dma;
static void *stream;
static char *src, *dst, *host;

/* A layout of any steps over up to three dimensions. */
static void describe(struct plain_layout *layout, char *memory, size_t element, size_t ndims, const size_t *dims,
	const size_t *steps)
{
	layout_flat(layout, memory, dims[0], element);
	layout->ndims = ndims;
	for (size_t i = 0; i < ndims; i++) {
		layout->dims[i] = dims[i];
		layout->distance[i] = steps[i];
	}
}

static void through_library(struct plain_layout *to, struct plain_layout *from)
{
	TRY(dma->ops->create_request(dma->data, NULL, &to->public, &from->public, library.copy_layout, NULL));
}

/* The smallest time of a few rounds, of `count` copies each, in microseconds. */
#define MEASURE(result, count, queue, wait)                                    \
	do {                                                                   \
		(result) = 1e300;                                              \
		for (int round_ = 0; round_ < 5; round_++) {                   \
			double begin_ = seconds();                             \
			for (size_t copy_ = 0; copy_ < (count); copy_++)       \
				queue;                                         \
			wait;                                                  \
			double time_ = 1e6 * (seconds() - begin_) / (count);   \
			(result) = time_ < (result) ? time_ : (result);        \
		}                                                              \
	} while (0)

static void by_columns(size_t n, size_t element)
{
	struct box column = {element, n, 1, element, n, n * element, n};
	for (size_t i = 0; i < n; i++)
		TRY(gpu.copy_box(dst + i * n * element, src + i * element, &column, DEVICE_TO_DEVICE, stream));
}

static void transpose(size_t n, size_t element)
{
	struct plain_layout to, from;
	const size_t dims[] = {n, n}, rows[] = {element, n * element}, columns[] = {n * element, element};
	double kernel, calls, bytes = 2.0 * (double)(n * n * element);
	size_t count = n < 1024 ? 20 : 3;
	describe(&to, dst, element, 2, dims, rows);
	describe(&from, src, element, 2, dims, columns);
	for (size_t i = 0; i < n * n * element; i++)
		host[i] = (char)(i * 7 % 251);
	TRY(gpu.copy(src, host, n * n * element, HOST_TO_DEVICE, stream));
	TRY(gpu.stream_synchronize(stream)); // the library has a stream of its own
	MEASURE(kernel, count, through_library(&to, &from), TRY(dma->ops->barrier(dma->data)));
	TRY(gpu.copy(host, dst, n * n * element, DEVICE_TO_HOST, stream));
	TRY(gpu.stream_synchronize(stream));
	for (size_t i = 0; i < n * n * element; i++) {
		size_t row = i / element / n, column = i / element % n, at = (column * n + row) * element + i % element;
		if (host[i] != (char)(at * 7 % 251)) {
			fprintf(stderr, "%zu x %zu of %zu: wrong at byte %zu\n", n, n, element, i);
			exit(1);
		}
	}
	MEASURE(calls, (size_t)1, by_columns(n, element), TRY(gpu.stream_synchronize(stream)));
	printf("transpose %5zu x %-5zu of %2zu bytes   library %10.1f us %8.1f GB/s   by columns %12.1f us   %8.1f times as fast\n",
		n, n, element, kernel, bytes / kernel / 1e3, calls, calls / kernel);
}

/* Rows of `width` bytes, twice as far apart in the source: by one call of the driver, and in three dimensions that do
 * not fit a box, so that the library's kernel takes them. */
static void narrow(size_t width, size_t total)
{
	struct plain_layout to, from;
	size_t rows = total / width, half = rows / 2, gap = width < 16 ? 8 : 16;
	struct box box = {width, rows, 1, width, rows, 2 * width, rows};
	/* Rows, and twice half of them with a gap that is no whole number of rows. */
	const size_t dims[] = {1, half, 2}, dense[] = {width, width, half * width + gap};
	const size_t spread[] = {width, 2 * width, 2 * half * width + gap};
	double call, kernel, bytes = 2.0 * (double)total;
	describe(&to, dst, width, 3, dims, dense);
	describe(&from, src, width, 3, dims, spread);
	MEASURE(call, (size_t)3, TRY(gpu.copy_box(dst, src, &box, DEVICE_TO_DEVICE, stream)),
		TRY(gpu.stream_synchronize(stream)));
	MEASURE(kernel, (size_t)3, through_library(&to, &from), TRY(dma->ops->barrier(dma->data)));
	printf("%9zu rows of %4zu bytes           kernel  %10.1f us %8.1f GB/s   one call   %12.1f us   %8.1f times as fast\n",
		rows, width, kernel, bytes / kernel / 1e3, call, call / kernel);
}

int main(int argc, char **argv)
{
	if (argc < 2) {
		fprintf(stderr, "usage: transpose [NAME=]LIBRARY [LARGEST]\n");
		return 2;
	}
	size_t largest = argc > 2 ? (size_t)atol(argv[2]) : 4096, room = 2 * largest * largest * 16 + 4096;
	if (gpu_open(0)) {
		fprintf(stderr, "no GPU\n");
		return 77;
	}
	TRY(library_open(&library, argv[1]));
	TRY(gpu.enter());
	TRY(library.create(&dma, DEVICE_TO_DEVICE));
	TRY(gpu.stream_create(&stream));
	TRY(gpu.alloc((void **)&src, room));
	TRY(gpu.alloc((void **)&dst, room));
	TRY(gpu.alloc_pinned((void **)&host, room));
	printf("%s; %s; %s\n", gpu.name, gpu.driver, gpu.interface);

	struct plain_layout to, from;
	describe(&to, dst, 8, 2, (const size_t[]){4, 8}, (const size_t[]){8, 32});
	describe(&from, src, 8, 2, (const size_t[]){4, 8}, (const size_t[]){64, 8});
	double begin = seconds();
	through_library(&to, &from);
	TRY(dma->ops->barrier(dma->data));
	printf("the first one, with the kernel's loading: %.1f ms\n", 1e3 * (seconds() - begin));
	for (size_t n = 16; n <= largest; n *= 4)
		transpose(n, 8);
	for (size_t element = 1; element <= 16; element *= 2)
		transpose(largest, element);
	for (size_t width = 8; width <= 8192; width *= 2)
		narrow(width, largest * largest * 8);

	TRY(library.destroy(&dma));
	TRY(gpu.stream_destroy(stream));
	TRY(gpu.free(src));
	TRY(gpu.free(dst));
	TRY(gpu.free_pinned(host));
	return 0;
}
