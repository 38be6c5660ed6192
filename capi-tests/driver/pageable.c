/* Copies of pageable memory: which wait for the stream, and when the memory may be used again. */
#include "memory.h"

#define LARGE (8 << 20)

static CUstream stream;
static CUdeviceptr device;
static unsigned char *pageable;
static void *pinned;
static size_t bytes;

static void prepare(void)
{
	begin();
	NEED(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	device = memory_of(DEVICE, LARGE);
	pageable = host_of(memory_of(PAGEABLE, LARGE));
	pinned = host_of(memory_of(PINNED, LARGE));
	memset(pageable, 1, LARGE);
}

static CUresult upload(void) { return cuMemcpyHtoDAsync(device, pageable, bytes, stream); }
static CUresult download(void) { return cuMemcpyDtoHAsync(pageable, device, bytes, stream); }
static CUresult upload_unified(void) { return cuMemcpyAsync(device, (CUdeviceptr)(uintptr_t)pageable, bytes, stream); }
static CUresult download_unified(void) { return cuMemcpyAsync((CUdeviceptr)(uintptr_t)pageable, device, bytes, stream); }
static CUresult to_pinned(void) { return cuMemcpyAsync((CUdeviceptr)(uintptr_t)pinned, (CUdeviceptr)(uintptr_t)pageable, bytes, stream); }
static CUresult from_pinned(void) { return cuMemcpyAsync((CUdeviceptr)(uintptr_t)pageable, (CUdeviceptr)(uintptr_t)pinned, bytes, stream); }
static CUresult within(void)
{
	return cuMemcpyAsync((CUdeviceptr)(uintptr_t)pageable, (CUdeviceptr)(uintptr_t)(pageable + LARGE / 2), bytes > LARGE / 2 ? LARGE / 2 : bytes, stream);
}

static const struct {
	const char *name;
	CUresult (*call)(void);
} ways[] = {{"to the device", upload}, {"from the device", download}, {"to the device, unified", upload_unified},
	{"from the device, unified", download_unified}, {"to pinned", to_pinned}, {"from pinned", from_pinned}, {"pageable to pageable", within}};
static const size_t sizes[] = {1, 1024, 16 << 10, 64 << 10, (64 << 10) + 1, 128 << 10, 1 << 20, LARGE};

#define SIZES ((int)(sizeof sizes / sizeof *sizes))
#define WAYS ((int)(sizeof ways / sizeof *ways))

/** The stream stands still: does the call return? */
static void waiting(int index)
{
	struct gate gate;
	int way = index / SIZES, around_the_border = index % SIZES == 3 || index % SIZES == 4;
	/* The unified forms are tried where the others change. */
	if ((way == 2 || way == 3 || way == 6) && !around_the_border)
		return;
	bytes = sizes[index % SIZES];
	gate_close(&gate, stream);
	say("%zu bytes ", bytes);
	gate_try(&gate, ways[way].name, ways[way].call);
	NEED(cuCtxSynchronize());
}

/** The source is overwritten as soon as the call has returned. */
static void source_reused(int index)
{
	bytes = sizes[index];
	fill(DEVICE, device, 0, LARGE);
	for (int round = 0; round < 20; round++) {
		memset(pageable, 3, bytes);
		NEED(upload());
		memset(pageable, 4, bytes);
		NEED(cuStreamSynchronize(stream));
		if (!holds(DEVICE, device, 3, bytes)) {
			say("%zu bytes: what was written after the call was copied\n", bytes);
			return;
		}
	}
	say("%zu bytes: the source may be used again\n", bytes);
}

/** The same while the stream stands still, for sizes that do not wait. */
static void source_reused_behind(int index)
{
	struct gate gate;
	bytes = sizes[index];
	fill(DEVICE, device, 0, bytes);
	memset(pageable, 5, bytes);
	gate_close(&gate, stream);
	NEED(upload());
	memset(pageable, 6, bytes);
	gate_open(&gate);
	NEED(cuStreamSynchronize(stream));
	say("%zu bytes: what was there at the call arrives: %d\n", bytes, holds(DEVICE, device, 5, bytes));
}

static void destination_filled(int index)
{
	bytes = sizes[index];
	fill(DEVICE, device, 7, bytes);
	for (int round = 0; round < 20; round++) {
		memset(pageable, 8, bytes);
		NEED(download());
		for (size_t i = 0; i < bytes; i++)
			if (((volatile unsigned char *)pageable)[i] != 7) {
				say("%zu bytes: not filled when the call returned\n", bytes);
				return;
			}
	}
	NEED(cuStreamSynchronize(stream));
	say("%zu bytes: filled when the call returns\n", bytes);
}

static void program(void)
{
	cases_at_once("while the stream stands still", 2 * WAYS, WAYS * SIZES, prepare, waiting);
	cases("source", SIZES, prepare, source_reused);
	cases("source behind a stream that stands still", 3, prepare, source_reused_behind);
	cases("destination", SIZES, prepare, destination_filled);
}
