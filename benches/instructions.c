/* A program to count instructions of: each piece of work is done often enough to warm up, then the calls of the library
 * alone are made inside functions named counted_*, which is where callgrind is told to collect. In between the stream is
 * waited for by CUDA's own call, so that the counts do not depend on who is faster. */
#include "gpu.h"
#include "layout.h"
#include "library.h"

enum { WARM = 64, COUNTED = 1000, BATCH = 100 };

static struct library library;
static struct aml_dma *dma;
static void *stream;
static char *host, *device;
static struct aml_dma_request *requests[BATCH];
static struct plain_layout to, from;

static void check(int code, const char *what)
{
	if (code) {
		fprintf(stderr, "%s: %d\n", what, code);
		exit(1);
	}
}

#define COUNTED_FUNCTION __attribute__((noinline)) void
/* Not static, so that their names are not changed. */
COUNTED_FUNCTION counted_create(struct aml_dma_request **request)
{
	check(dma->ops->create_request(dma->data, request, (struct aml_layout *)device, (struct aml_layout *)host,
		      library.memcpy_op, (void *)8), "create_request");
}

COUNTED_FUNCTION counted_copy_1D(struct aml_dma_request **request)
{
	check(dma->ops->create_request(dma->data, request, &to.public, &from.public, library.copy_1D, NULL), "copy_1D");
}

COUNTED_FUNCTION counted_copy_layout(struct aml_dma_request **request)
{
	check(dma->ops->create_request(dma->data, request, &to.public, &from.public, library.copy_layout, NULL), "copy_layout");
}

COUNTED_FUNCTION counted_wait(struct aml_dma_request **request)
{
	check(dma->ops->wait_request(dma->data, request), "wait_request");
}

COUNTED_FUNCTION counted_barrier(void)
{
	check(dma->ops->barrier(dma->data), "barrier");
}

static void settle(void)
{
	check(gpu.stream_synchronize(stream), "stream_synchronize");
}

/* Until the status word says so, the wait would look for a while. */
static void until_done(struct aml_dma_request *request)
{
	while (__atomic_load_n((int *)request, __ATOMIC_ACQUIRE) != 2)
		usleep(10);
}

static void create_wait(void)
{
	counted_create(&requests[0]);
	until_done(requests[0]);
	counted_wait(&requests[0]);
}

/* Requests that find the stream busy with others. */
static void create_wait_batch(void)
{
	for (int i = 0; i < BATCH; i++)
		counted_create(&requests[i]);
	for (int i = 0; i < BATCH; i++)
		until_done(requests[i]);
	for (int i = 0; i < BATCH; i++)
		counted_wait(&requests[i]);
}

static void without_request(void)
{
	counted_create(NULL);
	settle();
}

static void without_request_dense(void)
{
	counted_copy_1D(NULL);
	settle();
}

static void without_request_layout(void)
{
	counted_copy_layout(NULL);
	settle();
}

static void barrier(void)
{
	counted_barrier();
}

static const struct {
	const char *name;
	void (*work)(void);
	int copies;
} works[] = {
	{"create_wait", create_wait, 1},
	{"create_wait_batch", create_wait_batch, BATCH},
	{"without_request", without_request, 1},
	{"without_request_dense", without_request_dense, 1},
	{"without_request_layout", without_request_layout, 1},
	{"barrier", barrier, 1},
};

/* Loads the library from argv[1] and does the work named argv[2]; prints how often it was done in the counted part. */
int main(int argc, char **argv)
{
	if (argc < 2 || argc > 4) {
		fprintf(stderr, "usage: %s LIBRARY WORK [warm]\n", argv[0]);
		return 2;
	}
	for (size_t i = 0; i < sizeof works / sizeof *works; i++) {
		if (argc == 2) {
			puts(works[i].name);
			continue;
		}
		if (strcmp(argv[2], works[i].name))
			continue;
		if (gpu_open(1) || library_open(&library, argv[1]))
			return 1;
		if (works[i].work == without_request_layout && !library.copy_layout) {
			puts("0");
			return 0;
		}
		check(library.create(&dma, HOST_TO_DEVICE), "create");
		stream = *(void **)dma->data;
		check(gpu.alloc_pinned((void **)&host, 4096), "alloc_pinned");
		check(gpu.alloc((void **)&device, 4096), "alloc");
		layout_flat(&to, device, 8, 1);
		layout_flat(&from, host, 8, 1);
		int rounds = argc == 4 ? WARM : WARM + COUNTED;
		rounds = works[i].copies == 1 ? rounds : argc == 4 ? 2 : 2 + COUNTED / BATCH;
		for (int round = 0; round < rounds; round++)
			works[i].work();
		settle();
		printf("%d\n", COUNTED);
		return library.destroy(&dma);
	}
	return argc == 2 ? 0 : 2;
}
