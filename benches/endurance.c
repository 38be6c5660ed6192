/* Endurance: many threads copy for as long as they are told, over mixed kinds, sizes and sorts of memory, with requests
 * waited for in every way there is, and compare every byte. Counts, errors and the growth of memory are printed. */
#include "clock.h"
#include "gpu.h"
#include "layout.h"
#include "library.h"
#include <dlfcn.h>
#include <getopt.h>

enum { MOST_THREADS = 256, ROOM = 4 << 20, LARGE_ROOM = 48 << 20, GUARD = 64, SLACK = 128, PENDING = 1, DONE = 2, DMAS = 12 };

static struct library library;
static struct aml_dma *dmas[DMAS];
static enum kind dma_kinds[DMAS];
static volatile int stopping;

/** What an AML request shows. */
struct public_request {
	int status;
	pthread_mutex_t lock;
};

struct worker {
	pthread_t thread;
	unsigned long random;
	size_t steps, requests, bytes, errors;
	/** Pinned and pageable, from and to; then device memory. */
	char *pinned[2], *pageable[2], *device[2];
};

static unsigned long draw(struct worker *worker, unsigned long below)
{
	worker->random ^= worker->random << 13;
	worker->random ^= worker->random >> 7;
	worker->random ^= worker->random << 17;
	return below ? (worker->random >> 11) % below : 0;
}

static int fault(struct worker *worker, const char *what, long code)
{
	if (worker->errors++ < 3)
		fprintf(stderr, "endurance: %s: %ld\n", what, code);
	return -1;
}

/* A DMA that can copy in the direction, shared with all threads; one that goes by the addresses is as good. */
static struct aml_dma *choose(struct worker *worker, enum kind kind)
{
	for (;;) {
		size_t i = draw(worker, DMAS);
		if (dma_kinds[i] == kind || (dma_kinds[i] == BY_ADDRESS && kind != DEVICE_TO_DEVICE))
			return dmas[i];
	}
}

/* Queues a copy; layouts only have to live until it is queued. */
static int start(struct worker *worker, struct aml_dma *dma, enum kind kind, struct aml_dma_request **request, void *dst,
	const void *src, size_t bytes)
{
	struct plain_layout to, from;
	int code;
	if (kind == DEVICE_TO_DEVICE || draw(worker, 4) == 0) {
		layout_flat(&to, dst, bytes, 1);
		layout_flat(&from, src, bytes, 1);
		code = dma->ops->create_request(dma->data, request, &to.public, &from.public,
			draw(worker, 2) ? library.copy_1D : NULL, NULL);
	} else {
		code = dma->ops->create_request(dma->data, request, dst, (struct aml_layout *)src, library.memcpy_op, (void *)bytes);
	}
	worker->requests++;
	worker->bytes += bytes;
	return code ? fault(worker, "create_request", code) : 0;
}

static int finish(struct worker *worker, struct aml_dma *dma, struct aml_dma_request **request)
{
	unsigned long how = draw(worker, 8);
	int code = 0;
	if (how == 0) { // the status turns by itself
		const int *status = &((struct public_request *)*request)->status;
		double patience = seconds() + 60;
		while (__atomic_load_n(status, __ATOMIC_ACQUIRE) == PENDING)
			if (seconds() > patience)
				return fault(worker, "a status stays", PENDING);
	} else if (how == 1) { // a barrier, and its promise
		if ((code = dma->ops->barrier(dma->data)))
			return fault(worker, "barrier", code);
		if (((struct public_request *)*request)->status != DONE)
			return fault(worker, "status after a barrier", ((struct public_request *)*request)->status);
	}
	code = how == 2 ? dma->ops->destroy_request(dma->data, request) : dma->ops->wait_request(dma->data, request);
	if (code || *request)
		return fault(worker, "wait_request", code);
	return 0;
}

static int copy(struct worker *worker, enum kind kind, void *dst, const void *src, size_t bytes)
{
	struct aml_dma *dma = choose(worker, kind);
	struct aml_dma_request *request;
	return start(worker, dma, kind, &request, dst, src, bytes) ? -1 : finish(worker, dma, &request);
}

/* Many requests for pieces of one block, waited for in any order; or none and a barrier. */
static int copy_pieces(struct worker *worker, enum kind kind, char *dst, const char *src, size_t bytes)
{
	struct aml_dma *dma = choose(worker, kind);
	struct aml_dma_request *requests[64];
	size_t count = 2 + draw(worker, 63), piece = bytes / count + 1, started = 0;
	int by_barrier = draw(worker, 3) == 0, code = 0;
	for (size_t at = 0; at < bytes && !code; at += piece, started++)
		code = start(worker, dma, kind, by_barrier ? NULL : &requests[started], dst + at, src + at,
			bytes - at < piece ? bytes - at : piece);
	if (code)
		return -1;
	if (by_barrier)
		return (code = dma->ops->barrier(dma->data)) ? fault(worker, "barrier", code) : 0;
	for (; started; started--) {
		size_t which = draw(worker, started);
		if (finish(worker, dma, &requests[which]))
			return -1;
		requests[which] = requests[started - 1];
	}
	return 0;
}

/* A DMA of one's own, destroyed while its copy may be under way: it waits for it. */
static int copy_by_own(struct worker *worker, enum kind kind, void *dst, const void *src, size_t bytes)
{
	struct aml_dma *dma;
	int code = library.create(&dma, kind);
	if (code)
		return fault(worker, "create", code);
	code = start(worker, dma, kind, NULL, dst, src, bytes);
	int destroyed = library.destroy(&dma);
	if (destroyed || dma)
		return fault(worker, "destroy", destroyed);
	return code;
}

static int copy_somehow(struct worker *worker, enum kind kind, char *dst, const char *src, size_t bytes)
{
	unsigned long how = draw(worker, 64);
	if (how == 0)
		return copy_by_own(worker, kind, dst, src, bytes);
	if (how < 24)
		return copy_pieces(worker, kind, dst, src, bytes);
	return copy(worker, kind, dst, src, bytes);
}

static void fill(struct worker *worker, char *memory, size_t bytes)
{
	unsigned long state = draw(worker, 0) | 1;
	for (size_t i = 0; i < bytes; i += sizeof state) {
		state = state * 6364136223846793005ul + 1442695040888963407ul;
		unsigned long word = state ^ state >> 29;
		memcpy(memory + i, &word, bytes - i < sizeof word ? bytes - i : sizeof word);
	}
}

/* Up, across, and down again, or from host to host; what arrives is compared, and what lies around it. */
static int round_trip(struct worker *worker)
{
	int large = draw(worker, 100) == 0, from = (int)draw(worker, 2), to = (int)draw(worker, 2);
	unsigned long scale = large ? 4ul << 20 << draw(worker, 4) : 1ul << draw(worker, 21);
	size_t bytes = 1 + draw(worker, scale < LARGE_ROOM - SLACK ? scale : LARGE_ROOM - SLACK);
	if (bytes > ROOM - 2 * SLACK)
		from = to = 1;
	char *src = (from ? worker->pageable : worker->pinned)[0] + draw(worker, GUARD);
	char *dst = (to ? worker->pageable : worker->pinned)[1] + GUARD + draw(worker, GUARD);
	char *first = worker->device[0] + draw(worker, GUARD), *second = worker->device[1] + draw(worker, GUARD);
	fill(worker, src, bytes);
	memset(dst - GUARD, 0x5a, bytes + 2 * GUARD);
	if (draw(worker, 16) == 0) {
		if (copy_somehow(worker, HOST_TO_HOST, dst, src, bytes))
			return -1;
	} else {
		char *last = first;
		if (copy_somehow(worker, HOST_TO_DEVICE, first, src, bytes))
			return -1;
		if (draw(worker, 2) && copy_somehow(worker, DEVICE_TO_DEVICE, last = second, first, bytes))
			return -1;
		if (copy_somehow(worker, DEVICE_TO_HOST, dst, last, bytes))
			return -1;
	}
	if (memcmp(src, dst, bytes))
		return fault(worker, "other bytes arrived than were sent, of", (long)bytes);
	for (int i = 0; i < GUARD; i++)
		if (dst[-1 - i] != 0x5a || dst[bytes + (size_t)i] != 0x5a)
			return fault(worker, "bytes around the destination changed, of", (long)bytes);
	return 0;
}

static void *work(void *argument)
{
	struct worker *worker = argument;
	while (!stopping && worker->errors < 100) {
		round_trip(worker);
		__atomic_fetch_add(&worker->steps, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

static int prepare(struct worker *worker, unsigned long seed)
{
	worker->random = seed * 0x9e3779b97f4a7c15ul | 1;
	for (int i = 0; i < 2; i++) {
		if (gpu.alloc_pinned((void **)&worker->pinned[i], ROOM) || gpu.alloc((void **)&worker->device[i], LARGE_ROOM) ||
			!(worker->pageable[i] = malloc(LARGE_ROOM + 4 * SLACK)))
			return -1;
		// All pages are there from the start, so that none is counted as growth.
		memset(worker->pinned[i], 1, ROOM);
		memset(worker->pageable[i], 1, LARGE_ROOM + 4 * SLACK);
		if (gpu.copy(worker->device[i], worker->pageable[i], LARGE_ROOM, HOST_TO_DEVICE, NULL) || gpu.stream_synchronize(NULL))
			return -1;
	}
	return 0;
}

static int open_dmas(void)
{
	static const enum kind kinds[] = {HOST_TO_DEVICE, DEVICE_TO_HOST, DEVICE_TO_DEVICE, HOST_TO_HOST, BY_ADDRESS};
	static struct {
		void *stream;
		int kind;
	} own;
	static struct aml_dma built;
	int code = 0;
	for (int i = 0; i < DMAS - 2; i++) {
		dma_kinds[i] = kinds[i % 5];
		code = code ? code : library.create(&dmas[i], dma_kinds[i]);
	}
	// Then the static one, and one that a program builds around its own stream.
	dmas[DMAS - 2] = library.dma;
	dma_kinds[DMAS - 2] = BY_ADDRESS;
	own.kind = BY_ADDRESS;
	built.ops = dmas[0] ? dmas[0]->ops : NULL;
	built.data = (struct aml_dma_data *)&own;
	dmas[DMAS - 1] = &built;
	dma_kinds[DMAS - 1] = BY_ADDRESS;
	return code ? code : gpu.stream_create(&own.stream);
}

static double resident_mib(void)
{
	long pages = 0;
	FILE *file = fopen("/proc/self/statm", "r");
	if (!file || fscanf(file, "%*d %ld", &pages) != 1)
		pages = 0;
	if (file)
		fclose(file);
	return (double)pages * (double)sysconf(_SC_PAGESIZE) / (1 << 20);
}

static double device_mib(void)
{
	int (*get)(size_t *, size_t *) = NULL;
	size_t left = 0, all = 0;
	*(void **)&get = dlsym(RTLD_DEFAULT, "cuMemGetInfo_v2");
	return get && !get(&left, &all) ? (double)(all - left) / (1 << 20) : 0;
}

/* Ends the process when a thread is stuck: nobody else could. */
static void watch(struct worker *workers, int count)
{
	static size_t steps[MOST_THREADS];
	static double since[MOST_THREADS];
	double now = seconds();
	for (int i = 0; i < count; i++) {
		size_t seen = __atomic_load_n(&workers[i].steps, __ATOMIC_RELAXED);
		if (seen != steps[i] || !since[i] || workers[i].errors >= 100) {
			steps[i] = seen;
			since[i] = now;
		} else if (now - since[i] > 120) {
			printf("endurance: thread %d hangs after %zu steps\n", i, seen);
			fflush(NULL);
			_exit(1);
		}
	}
}

static const char *usage = "usage: %s [--library PATH] [--seconds N] [--threads N] [--seed N] [--driver]\n"
			   "Exit status: 0 when all was right, 1 when not, 77 without a GPU.\n";

int main(int argc, char **argv)
{
	const char *path = "libaml_dma_cuda.so.0";
	int length = 120, count = 16, driver = 0;
	unsigned long seed = (unsigned long)time(NULL);
	static const struct option options[] = {
		{"library", required_argument, NULL, 'l'},
		{"seconds", required_argument, NULL, 's'},
		{"threads", required_argument, NULL, 't'},
		{"seed", required_argument, NULL, 'r'},
		{"driver", no_argument, NULL, 'd'},
		{0},
	};
	for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
		switch (option) {
		case 'l': path = optarg; break;
		case 's': length = atoi(optarg); break;
		case 't': count = atoi(optarg); break;
		case 'r': seed = strtoul(optarg, NULL, 0); break;
		case 'd': driver = 1; break;
		default: fprintf(stderr, usage, argv[0]); return 2;
		}
	}
	if (count < 1 || count > MOST_THREADS || length < 1) {
		fprintf(stderr, usage, argv[0]);
		return 2;
	}
	if (gpu_open(driver))
		return 77;
	static struct worker workers[MOST_THREADS];
	if (library_open(&library, path) || open_dmas())
		return 1;
	printf("endurance: %s; driver %s; %d threads, %d s, seed %lu\n", gpu.name, gpu.driver, count, length, seed);
	fflush(stdout);
	for (int i = 0; i < count; i++)
		if (prepare(&workers[i], seed + (unsigned long)i)) {
			fprintf(stderr, "endurance: not enough memory\n");
			return 1;
		}
	double begin = seconds(), settled = begin + length / 5.0, resident = 0, device = 0;
	for (int i = 0; i < count; i++)
		if (pthread_create(&workers[i].thread, NULL, work, &workers[i]))
			return 1;
	while (seconds() - begin < length) {
		usleep(200000);
		watch(workers, count);
		if (!resident && seconds() > settled) {
			resident = resident_mib();
			device = device_mib();
		}
	}
	stopping = 1;
	for (int waited = 0, alive = count; alive; waited++) {
		for (int i = alive = 0; i < count; i++)
			alive += workers[i].thread && pthread_tryjoin_np(workers[i].thread, NULL) ? 1 : (workers[i].thread = 0, 0);
		usleep(20000);
		watch(workers, count);
	}
	double resident_growth = resident_mib() - resident, device_growth = device_mib() - device;
	size_t requests = 0, bytes = 0, errors = 0, steps = 0;
	for (int i = 0; i < count; i++) {
		requests += workers[i].requests;
		bytes += workers[i].bytes;
		errors += workers[i].errors;
		steps += workers[i].steps;
	}
	printf("endurance: %zu round trips, %zu requests, %.1f GB copied, %zu errors; since %.0f s resident memory %+.1f MiB (of %.0f), device memory %+.1f MiB\n",
		steps, requests, 1e-9 * (double)bytes, errors, settled - begin, resident_growth, resident, device_growth);
	for (int i = 0; i < DMAS - 2; i++)
		if (library.destroy(&dmas[i]))
			errors++;
	return errors || resident_growth > 256 ? 1 : 0;
}
