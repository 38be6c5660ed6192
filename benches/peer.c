/* Copies between two devices: by the driver's cuMemcpyPeerAsync, by copy_1D and by copy_layout, in each direction and in
 * both at once; first as the devices are, then with access to each other's memory enabled. */
#include "clock.h"
#include "layout.h"
#include "library.h"
#include "try.h"
#include <cuda.h>
#include <dlfcn.h>

#define DRIVER_CALLS(call)                                                                                     \
	call(cuInit) call(cuDeviceGetCount) call(cuDeviceGetName) call(cuDeviceCanAccessPeer)                \
	call(cuDevicePrimaryCtxRetain) call(cuCtxSetCurrent) call(cuCtxEnablePeerAccess) call(cuMemAlloc_v2) \
	call(cuMemFree_v2) call(cuMemcpyHtoD_v2) call(cuMemcpyDtoH_v2) call(cuMemsetD8_v2) call(cuStreamCreate) \
	call(cuStreamDestroy_v2) call(cuStreamSynchronize) call(cuMemcpyPeerAsync)

#define DECLARE(name) __typeof__(name) *name##_;
static struct {
	DRIVER_CALLS(DECLARE)
} cuda;

enum way { RAW, DENSE, LAYOUT, WAYS };
enum { ROUNDS = 7, PATTERN = 4096 };

/* One direction: from a device to the other, on a stream of the first. */
struct lane {
	CUcontext from, to;
	CUdeviceptr src, dst;
	CUstream stream;
	struct aml_dma *dma;
	void *pair;
};

static struct library library;
static struct lane lanes[2];

static int driver_open(void)
{
	void *handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
	if (!handle)
		return -1;
#define FIND(name)                                                         \
	if (!(cuda.name##_ = (__typeof__(name) *)dlsym(handle, #name))) \
		return -1;
	DRIVER_CALLS(FIND)
	int count = 0;
	return cuda.cuInit_(0) || cuda.cuDeviceGetCount_(&count) || count < 2 ? -1 : 0;
}

static void lane_open(struct lane *lane, CUcontext *contexts, int from, size_t largest)
{
	char pattern[PATTERN];
	for (int i = 0; i < PATTERN; i++)
		pattern[i] = (char)(i * 7 + from);
	lane->from = contexts[from];
	lane->to = contexts[!from];
	lane->pair = (void *)(((uint64_t)(uint32_t)!from << 32) | (uint32_t)from);
	TRY(cuda.cuCtxSetCurrent_(lane->to));
	TRY(cuda.cuMemAlloc_v2_(&lane->dst, largest));
	TRY(cuda.cuMemsetD8_v2_(lane->dst, 0, largest));
	TRY(cuda.cuCtxSetCurrent_(lane->from));
	TRY(cuda.cuMemAlloc_v2_(&lane->src, largest));
	for (size_t at = 0; at < largest; at += PATTERN)
		TRY(cuda.cuMemcpyHtoD_v2_(lane->src + at, pattern, PATTERN));
	TRY(cuda.cuStreamCreate_(&lane->stream, CU_STREAM_NON_BLOCKING));
	TRY(library.create(&lane->dma, 3 /* device to device */));
}

static void lane_close(struct lane *lane)
{
	TRY(library.destroy(&lane->dma));
	TRY(cuda.cuCtxSetCurrent_(lane->from));
	TRY(cuda.cuStreamDestroy_v2_(lane->stream));
	TRY(cuda.cuMemFree_v2_(lane->src));
	TRY(cuda.cuCtxSetCurrent_(lane->to));
	TRY(cuda.cuMemFree_v2_(lane->dst));
}

static void lane_start(struct lane *lane, enum way way, size_t bytes)
{
	struct plain_layout to, from;
	if (way == RAW) {
		TRY(cuda.cuMemcpyPeerAsync_(lane->dst, lane->to, lane->src, lane->from, bytes, lane->stream));
		return;
	}
	layout_flat(&to, (void *)(uintptr_t)lane->dst, bytes, 1);
	layout_flat(&from, (void *)(uintptr_t)lane->src, bytes, 1);
	aml_dma_operator op = way == DENSE ? library.copy_1D : library.copy_layout;
	TRY(lane->dma->ops->create_request(lane->dma->data, NULL, &to.public, &from.public, op, lane->pair));
}

static void lane_wait(struct lane *lane, enum way way)
{
	if (way == RAW)
		TRY(cuda.cuStreamSynchronize_(lane->stream));
	else
		TRY(lane->dma->ops->barrier(lane->dma->data));
}

/* The last bytes have to be there. */
static void lane_verify(struct lane *lane, size_t bytes)
{
	char got[PATTERN], wanted[PATTERN];
	size_t count = bytes < PATTERN ? bytes : PATTERN;
	TRY(cuda.cuCtxSetCurrent_(lane->to));
	TRY(cuda.cuMemcpyDtoH_v2_(got, lane->dst + bytes - count, count));
	TRY(cuda.cuMemsetD8_v2_(lane->dst + bytes - count, 0, count));
	TRY(cuda.cuStreamSynchronize_(NULL)); // it may still be on its way
	TRY(cuda.cuCtxSetCurrent_(lane->from));
	TRY(cuda.cuMemcpyDtoH_v2_(wanted, lane->src + bytes - count, count));
	if (memcmp(got, wanted, count)) {
		fprintf(stderr, "%zu bytes: not what was sent\n", bytes);
		exit(1);
	}
}

/* Seconds for `count` copies in each of the lanes. */
static double measure(struct lane *first, size_t lane_count, enum way way, size_t bytes, int count)
{
	double start = seconds();
	for (int i = 0; i < count; i++)
		for (size_t lane = 0; lane < lane_count; lane++)
			lane_start(&first[lane], way, bytes);
	for (size_t lane = 0; lane < lane_count; lane++)
		lane_wait(&first[lane], way);
	double time = seconds() - start;
	for (size_t lane = 0; lane < lane_count; lane++)
		lane_verify(&first[lane], bytes);
	return time;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* Medians in GB/s, and ratios to raw that were taken within a round. */
static void row(const char *direction, struct lane *first, size_t lane_count, size_t bytes)
{
	double rates[WAYS][ROUNDS], ratios[WAYS][ROUNDS];
	int count = bytes < 1 << 20 ? 200 : bytes < 64 << 20 ? 20 : 3;
	for (int round = -1; round < ROUNDS; round++)
		for (int turn = 0; turn < WAYS; turn++) {
			enum way way = (enum way)((turn + round + 1) % WAYS);
			double time = measure(first, lane_count, way, bytes, count);
			if (round >= 0)
				rates[way][round] = 1e-9 * (double)(bytes * lane_count) * count / time;
		}
	for (int way = 0; way < WAYS; way++)
		for (int round = 0; round < ROUNDS; round++)
			ratios[way][round] = rates[way][round] / rates[RAW][round];
	for (int way = 0; way < WAYS; way++) {
		qsort(rates[way], ROUNDS, sizeof **rates, compare);
		qsort(ratios[way], ROUNDS, sizeof **ratios, compare);
	}
	printf("%-8s %10zu KiB %10.2f %10.2f %7.3f %12.2f %7.3f\n", direction, bytes >> 10, rates[RAW][ROUNDS / 2],
		rates[DENSE][ROUNDS / 2], ratios[DENSE][ROUNDS / 2], rates[LAYOUT][ROUNDS / 2], ratios[LAYOUT][ROUNDS / 2]);
}

static void table(const char *title, size_t largest)
{
	printf("\n%s\n%-8s %14s %10s %10s %7s %12s %7s\n", title, "", "size", "raw GB/s", "copy_1D", "ratio", "copy_layout", "ratio");
	for (size_t bytes = 4 << 10; bytes <= largest; bytes *= 16) {
		row("0 to 1", &lanes[0], 1, bytes);
		row("1 to 0", &lanes[1], 1, bytes);
		row("both", lanes, 2, bytes);
	}
}

int main(int argc, char **argv)
{
	if (argc < 2) {
		fprintf(stderr, "usage: peer [NAME=]LIBRARY [LARGEST]\n");
		return 2;
	}
	size_t largest = argc > 2 ? strtoul(argv[2], NULL, 0) : (size_t)1 << 30;
	char name[128];
	int can[2] = {0, 0};
	CUcontext contexts[2];
	if (driver_open()) {
		fprintf(stderr, "no two devices\n");
		return 77;
	}
	TRY(library_open(&library, argv[1]));
	for (int device = 0; device < 2; device++) {
		TRY(cuda.cuDeviceGetName_(name, sizeof name, device));
		TRY(cuda.cuDevicePrimaryCtxRetain_(&contexts[device], device));
		TRY(cuda.cuDeviceCanAccessPeer_(&can[device], device, !device));
		printf("device %d: %s, %s reach the other's memory\n", device, name, can[device] ? "can" : "cannot");
	}
	for (int from = 0; from < 2; from++)
		lane_open(&lanes[from], contexts, from, largest);
	table(getenv("AML_DMA_CUDA_PEER_ACCESS") ? "access as the library enables it" : "access not enabled", largest);
	for (int device = 0; device < 2 && can[0] && can[1]; device++) {
		TRY(cuda.cuCtxSetCurrent_(contexts[device]));
		int error = cuda.cuCtxEnablePeerAccess_(contexts[!device], 0);
		TRY(error == CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED ? 0 : error);
	}
	if (can[0] && can[1])
		table("access enabled by the program", largest);
	for (int from = 0; from < 2; from++)
		lane_close(&lanes[from]);
	return 0;
}
