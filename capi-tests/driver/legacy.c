/* The legacy default stream and the others: which waits for which. One stream stands still, work is queued on another. */
#include "memory.h"

enum kind { LEGACY, PER_THREAD, BLOCKING, OTHER_BLOCKING, NON_BLOCKING, KINDS };

static const char *const names[] = {"legacy", "per-thread", "blocking", "another blocking", "non-blocking"};
static CUstream streams[KINDS];
static CUdeviceptr device, other_device;
static void *pinned;
static char pageable[4096];
static CUevent event;

static void prepare(void)
{
	begin();
	streams[LEGACY] = CU_STREAM_LEGACY;
	streams[PER_THREAD] = CU_STREAM_PER_THREAD;
	NEED(cuStreamCreate(&streams[BLOCKING], CU_STREAM_DEFAULT));
	NEED(cuStreamCreate(&streams[OTHER_BLOCKING], CU_STREAM_DEFAULT));
	NEED(cuStreamCreate(&streams[NON_BLOCKING], CU_STREAM_NON_BLOCKING));
	device = memory_of(DEVICE, 4096);
	other_device = memory_of(DEVICE, 4096);
	pinned = host_of(memory_of(PINNED, 4096));
	NEED(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
}

/** Work on the second stream: a copy that needs no host thread. */
static void pairs(int index)
{
	int parked = index / KINDS, working = index % KINDS;
	struct gate gate;
	if (parked == working)
		return;
	gate_close(&gate, streams[parked]);
	CUresult code = cuMemcpyAsync(device, (CUdeviceptr)(uintptr_t)pinned, 4096, streams[working]);
	int done = EVENTUALLY(cuStreamQuery(streams[working]) == CUDA_SUCCESS);
	gate_open(&gate);
	say("%s stands still, copy on %s: %d, %s\n", names[parked], names[working], (int)code, done ? "done" : "waits");
	NEED(cuCtxSynchronize());
}

/** What the query of a stream says that has no work of its own while another one stands still. */
static void queries(int index)
{
	int parked = index / KINDS, asked = index % KINDS;
	struct gate gate;
	if (parked == asked)
		return;
	gate_close(&gate, streams[parked]);
	CUresult code = cuStreamQuery(streams[asked]);
	gate_open(&gate);
	say("%s stands still, query of %s: %d\n", names[parked], names[asked], (int)code);
	NEED(cuCtxSynchronize());
}

static CUresult synchronize(void) { return cuStreamSynchronize(NULL); }
static CUresult upload(void) { return cuMemcpyHtoD(device, pageable, 4096); }
static CUresult download(void) { return cuMemcpyDtoH(pageable, device, 4096); }
static CUresult move(void) { return cuMemcpyDtoD(device, other_device, 4096); }
static CUresult set(void) { return cuMemsetD8(device, 1, 4096); }
static CUresult upload_async(void) { return cuMemcpyHtoDAsync(device, pageable, 4096, NULL); }
static CUresult record(void) { return cuEventRecord(event, NULL); }

static const struct {
	const char *name;
	CUresult (*call)(void);
} calls[] = {{"cuStreamSynchronize(0)", synchronize}, {"cuMemcpyHtoD", upload}, {"cuMemcpyDtoH", download}, {"cuMemcpyDtoD", move},
	{"cuMemsetD8", set}, {"cuMemcpyHtoDAsync of pageable memory on 0", upload_async}, {"cuEventRecord on 0", record}};

#define CALLS ((int)(sizeof calls / sizeof *calls))

/** Calls that work on the legacy stream. */
static void implicit(int index)
{
	int parked = (int[]){LEGACY, BLOCKING, NON_BLOCKING}[index / CALLS];
	struct gate gate;
	gate_close(&gate, streams[parked]);
	say("%s stands still, ", names[parked]);
	gate_try(&gate, calls[index % CALLS].name, calls[index % CALLS].call);
	NEED(cuCtxSynchronize());
}

/** Work of the legacy stream waits for what a blocking stream had, but not for what it gets later. */
static void later_work(void)
{
	struct gate gate;
	prepare();
	gate_close(&gate, streams[NON_BLOCKING]);
	NEED(cuEventRecord(event, streams[NON_BLOCKING]));
	NEED(cuMemcpyAsync(device, (CUdeviceptr)(uintptr_t)pinned, 4096, NULL));
	say("legacy's own: %d\n", EVENTUALLY(cuStreamQuery(NULL) == CUDA_SUCCESS));
	NEED(cuStreamWaitEvent(streams[BLOCKING], event, 0));
	NEED(cuMemcpyAsync(device, (CUdeviceptr)(uintptr_t)pinned, 4096, NULL));
	say("legacy's own behind a blocking stream that waits for an event: %d\n", EVENTUALLY(cuStreamQuery(NULL) == CUDA_SUCCESS));
	NEED(cuMemcpyAsync(device, (CUdeviceptr)(uintptr_t)pinned, 4096, streams[OTHER_BLOCKING]));
	say("another blocking stream's behind that: %d\n", EVENTUALLY(cuStreamQuery(streams[OTHER_BLOCKING]) == CUDA_SUCCESS));
	gate_open(&gate);
	SHOW(cuCtxSynchronize());
}

static void program(void)
{
	cases_at_once("pairs", KINDS, KINDS * KINDS, prepare, pairs);
	cases("queries", KINDS * KINDS, prepare, queries);
	cases_at_once("calls on the legacy stream", CALLS, 3 * CALLS, prepare, implicit);
	apart("order", later_work);
}
