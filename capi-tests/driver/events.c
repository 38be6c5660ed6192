/* Events: unrecorded, recorded, recorded again, waited for by other streams, and elapsed times. */
#include "memory.h"

static CUstream first, second;
static CUevent event, timed;
static CUdeviceptr device;
static void *pinned;

static void prepare(void)
{
	begin();
	NEED(cuStreamCreate(&first, CU_STREAM_NON_BLOCKING));
	NEED(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
	NEED(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	NEED(cuEventCreate(&timed, CU_EVENT_DEFAULT));
	device = memory_of(DEVICE, 4096);
	pinned = host_of(memory_of(PINNED, 4096));
}

static void flags(int index)
{
	CUevent made;
	say("%d: ", index);
	SHOW(cuEventCreate(&made, (unsigned)index));
}

static void refused(int index)
{
	float elapsed;
	switch (index) {
	case 0: SHOW(cuEventCreate(NULL, 0)); break;
	case 1: SHOW(cuEventRecord(NULL, first)); break;
	case 2: SHOW(cuEventQuery(NULL)); break;
	case 3: SHOW(cuEventSynchronize(NULL)); break;
	case 4: SHOW(cuEventDestroy(NULL)); break;
	case 5: SHOW(cuStreamWaitEvent(first, event, 2)); break;
	case 6: SHOW(cuEventRecordWithFlags(event, first, 2)); break;
	case 7: SHOW(cuEventRecordWithFlags(event, first, 1)); break;
	case 8: SHOW(cuEventElapsedTime(&elapsed, event, event)); break;
	case 9: SHOW(cuEventElapsedTime(&elapsed, timed, timed)); break;
	case 10: SHOW(cuEventElapsedTime(NULL, timed, timed)); break;
	case 11:
		NEED(cuEventRecord(event, first));
		NEED(cuEventRecord(timed, first));
		NEED(cuCtxSynchronize());
		SHOW(cuEventElapsedTime(&elapsed, timed, event));
		break;
	default:
		NEED(cuEventRecord(timed, first));
		NEED(cuCtxSynchronize());
		SHOW(cuEventElapsedTime(&elapsed, timed, timed));
		say("not negative: %d\n", elapsed >= 0);
	}
}

static void unrecorded(void)
{
	struct gate gate;
	prepare();
	SHOW(cuEventQuery(event));
	SHOW(cuEventSynchronize(event));
	SHOW(cuStreamWaitEvent(second, event, 0));
	SHOW(cuStreamSynchronize(second));
	gate_close(&gate, first);
	SHOW(cuStreamWaitEvent(second, event, 0));
	SHOW(cuStreamSynchronize(second));
	gate_open(&gate);
	SHOW(cuCtxSynchronize());
}

static CUresult synchronize(void) { return cuEventSynchronize(event); }
static CUresult synchronize_second(void) { return cuStreamSynchronize(second); }

static void recorded(void)
{
	struct gate gate;
	prepare();
	gate_close(&gate, first);
	SHOW(cuEventRecord(event, first));
	SHOW(cuEventQuery(event));
	SHOW(cuStreamWaitEvent(second, event, 0));
	SHOW(cuStreamQuery(second));
	SHOW(cuMemcpyAsync(device, (CUdeviceptr)(uintptr_t)pinned, 4096, second));
	SHOW(cuStreamQuery(second));
	gate_try(&gate, "event synchronise", synchronize);
	SHOW(cuEventQuery(event));
	SHOW(cuStreamSynchronize(second));
}

/** A wait belongs to the record that came before it, whatever becomes of the event. */
static void recorded_again(void)
{
	struct gate gate;
	prepare();
	SHOW(cuEventRecord(event, second));
	SHOW(cuEventSynchronize(event));
	gate_close(&gate, first);
	SHOW(cuStreamWaitEvent(second, event, 0));
	SHOW(cuEventRecord(event, first));
	SHOW(cuEventQuery(event));
	SHOW(cuStreamSynchronize(second));
	SHOW(cuStreamWaitEvent(second, event, 0));
	SHOW(cuStreamQuery(second));
	SHOW(cuEventRecord(event, NULL));
	say("the event itself: %d\n", EVENTUALLY(cuEventQuery(event) == CUDA_SUCCESS));
	SHOW(cuStreamQuery(second));
	gate_try(&gate, "the stream that waits for the record before", synchronize_second);
}

static void destroyed(void)
{
	struct gate gate;
	prepare();
	gate_close(&gate, first);
	SHOW(cuEventRecord(event, first));
	SHOW(cuStreamWaitEvent(second, event, 0));
	SHOW(cuEventDestroy(event));
	SHOW(cuStreamQuery(second));
	gate_try(&gate, "the stream that waits", synchronize_second);
}

/** An event outlives the stream that it was recorded on. */
static void stream_destroyed(void)
{
	struct gate gate;
	prepare();
	gate_close(&gate, first);
	SHOW(cuEventRecord(event, first));
	SHOW(cuStreamDestroy(first));
	SHOW(cuEventQuery(event));
	gate_try(&gate, "event synchronise", synchronize);
	SHOW(cuEventQuery(event));
}

static void circle(void)
{
	CUevent other;
	prepare();
	NEED(cuEventCreate(&other, CU_EVENT_DISABLE_TIMING));
	/* Each waits for the other's last record, so that nothing waits for ever. */
	for (int i = 0; i < 100; i++) {
		NEED(cuEventRecord(event, first));
		NEED(cuStreamWaitEvent(second, event, 0));
		NEED(cuEventRecord(other, second));
		NEED(cuStreamWaitEvent(first, other, 0));
	}
	SHOW(cuStreamSynchronize(first));
	SHOW(cuStreamSynchronize(second));
	SHOW(cuStreamWaitEvent(first, event, 0));
	SHOW(cuStreamSynchronize(first));
}

/** With an event that blocks instead of spinning. */
static void blocking(void)
{
	struct gate gate;
	prepare();
	NEED(cuEventDestroy(event));
	NEED(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING | CU_EVENT_BLOCKING_SYNC));
	gate_close(&gate, first);
	SHOW(cuEventRecord(event, first));
	gate_try(&gate, "event synchronise", synchronize);
}

static void program(void)
{
	cases("flags", 9, prepare, flags);
	cases("refused", 13, prepare, refused);
	apart("unrecorded", unrecorded);
	apart("recorded", recorded);
	apart("recorded again", recorded_again);
	apart("destroyed", destroyed);
	apart("stream destroyed", stream_destroyed);
	apart("circle", circle);
	apart("blocking", blocking);
}
