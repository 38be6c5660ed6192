/* Primary contexts: who holds them, what a reset leaves, and which handles answer afterwards. */
#include "memory.h"

static CUcontext context;

static void state(void)
{
	unsigned flags = 99;
	int active = 99;
	CUresult code = cuDevicePrimaryCtxGetState(0, &flags, &active);
	say("state: %d, flags %u, active %d\n", (int)code, flags, active);
}

static void id(void)
{
	unsigned long long number = 0;
	CUresult code = cuCtxGetId(context, &number);
	say("id: %d, %llu\n", (int)code, code ? 0 : number);
}

static void counting(void)
{
	CUcontext again = NULL;
	NEED(cuInit(0));
	state();
	SHOW(cuDevicePrimaryCtxRelease(0));
	SHOW(cuDevicePrimaryCtxReset(0));
	state();
	SHOW(cuDevicePrimaryCtxRetain(&context, 0));
	id();
	state();
	SHOW(cuDevicePrimaryCtxRetain(&again, 0));
	say("the same: %d\n", again == context);
	SHOW(cuDevicePrimaryCtxRelease(0));
	state();
	SHOW(cuDevicePrimaryCtxRelease(0));
	state();
	id();
	SHOW(cuDevicePrimaryCtxRelease(0));
	SHOW(cuDevicePrimaryCtxRetain(&again, 0));
	say("the same: %d\n", again == context);
	id();
	SHOW(cuDevicePrimaryCtxReset(0));
	state();
	id();
	SHOW(cuDevicePrimaryCtxReset(0));
	SHOW(cuDevicePrimaryCtxRetain(&again, 0));
	id();
	SHOW(cuDevicePrimaryCtxRelease(0));
	state();
	SHOW(cuDevicePrimaryCtxRelease(0));
	state();
	SHOW(cuDevicePrimaryCtxRelease(0));
}

/** Does a reset, while it is inactive but still held, take the reference away? */
static void release_after_reset(void)
{
	CUcontext again;
	NEED(cuInit(0));
	NEED(cuDevicePrimaryCtxRetain(&context, 0));
	NEED(cuDevicePrimaryCtxRetain(&again, 0));
	SHOW(cuDevicePrimaryCtxReset(0));
	SHOW(cuDevicePrimaryCtxRelease(0));
	state();
	SHOW(cuDevicePrimaryCtxRelease(0));
	SHOW(cuDevicePrimaryCtxRelease(0));
	SHOW(cuDevicePrimaryCtxRetain(&again, 0));
	state();
	SHOW(cuDevicePrimaryCtxRelease(0));
	state();
}

static void flags(void)
{
	unsigned now = 99;
	NEED(cuInit(0));
	SHOW(cuDevicePrimaryCtxSetFlags(0, CU_CTX_SCHED_BLOCKING_SYNC));
	state();
	NEED(cuDevicePrimaryCtxRetain(&context, 0));
	NEED(cuCtxSetCurrent(context));
	state();
	SHOW(cuCtxGetFlags(&now));
	say("flags %u\n", now);
	SHOW(cuDevicePrimaryCtxSetFlags(0, CU_CTX_SCHED_YIELD));
	state();
	SHOW(cuCtxGetFlags(&now));
	say("flags %u\n", now);
	SHOW(cuDevicePrimaryCtxSetFlags(0, 3));
	SHOW(cuDevicePrimaryCtxSetFlags(0, 256));
	SHOW(cuDevicePrimaryCtxSetFlags(1000, 0));
	SHOW(cuDevicePrimaryCtxGetState(1000, &now, (int *)&now));
	SHOW(cuDevicePrimaryCtxRetain(&context, 1000));
	SHOW(cuDevicePrimaryCtxRetain(&context, -1));
	SHOW(cuDevicePrimaryCtxRelease(1000));
	SHOW(cuDevicePrimaryCtxReset(1000));
	SHOW(cuDevicePrimaryCtxRetain(NULL, 0));
	SHOW(cuDevicePrimaryCtxGetState(0, NULL, NULL));
	state();
}

/** Made current without being held: what answers, and whether a retain makes it work. */
static void inactive(void)
{
	CUdeviceptr pointer;
	CUcontext now = NULL, again;
	CUdevice device = 99;
	NEED(cuInit(0));
	NEED(cuDevicePrimaryCtxRetain(&context, 0));
	NEED(cuDevicePrimaryCtxRelease(0));
	SHOW(cuCtxSetCurrent(context));
	SHOW(cuCtxGetCurrent(&now));
	say("current: %d\n", now == context);
	SHOW(cuCtxGetDevice(&device));
	SHOW(cuMemAlloc(&pointer, 16));
	SHOW(cuCtxSynchronize());
	SHOW(cuCtxPushCurrent(context));
	SHOW(cuCtxPopCurrent(&now));
	say("popped: %d\n", now == context);
	SHOW(cuDevicePrimaryCtxRetain(&again, 0));
	SHOW(cuMemAlloc(&pointer, 16));
	SHOW(cuCtxSynchronize());
	SHOW(cuMemFree(pointer));
}

/** What belonged to a context that is gone, asked with calls that do not look behind a stream's handle. */
static CUevent event;
static CUdeviceptr memory;
static void *registered, *pinned;

static void belongings(void)
{
	CUstream stream;
	NEED(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	NEED(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	NEED(cuEventRecord(event, stream));
	memory = memory_of(DEVICE, 4096);
	registered = host_of(memory_of(REGISTERED, 4096));
	pinned = host_of(memory_of(PINNED, 4096));
	NEED(cuCtxSynchronize());
}

static void is_current(void)
{
	CUcontext now = NULL;
	SHOW(cuCtxGetCurrent(&now));
	say("current: %s\n", now == context ? "it" : now ? "another" : "none");
}

static void ask(void)
{
	CUdeviceptr pointer;
	CUstream stream;
	CUevent made;
	CUdevice device = 99;
	unsigned value = 0, version = 0;
	int active;
	is_current();
	SHOW(cuCtxGetDevice(&device));
	SHOW(cuCtxGetApiVersion(context, &version));
	SHOW(cuCtxGetFlags(&value));
	id();
	SHOW(cuEventQuery(event));
	SHOW(cuEventSynchronize(event));
	SHOW(cuEventDestroy(event));
	SHOW(cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, memory));
	SHOW(cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)(uintptr_t)registered));
	SHOW(cuMemFree(memory));
	SHOW(cuMemHostUnregister(registered));
	SHOW(cuMemFreeHost(pinned));
	SHOW(cuMemAlloc(&pointer, 16));
	SHOW(cuStreamCreate(&stream, 1));
	SHOW(cuEventCreate(&made, 2));
	SHOW(cuMemHostRegister(registered, 4096, 0));
	SHOW(cuStreamQuery(NULL));
	SHOW(cuStreamSynchronize(NULL));
	SHOW(cuCtxSynchronize());
	SHOW(cuDevicePrimaryCtxGetState(0, &value, &active));
	say("primary active: %d\n", active);
}

static void start_created(void)
{
	NEED(cuInit(0));
	NEED(cuCtxCreate(&context, NULL, 0, 0));
	belongings();
}

static void created_destroyed(void)
{
	start_created();
	SHOW(cuCtxDestroy(context));
	ask();
}

/** It becomes current all the same. What is asked then is read from where the context was, so nothing is. */
static void created_destroyed_pushed(void)
{
	start_created();
	SHOW(cuCtxDestroy(context));
	SHOW(cuCtxPushCurrent(context));
	is_current();
}

static void created_destroyed_set(void)
{
	start_created();
	SHOW(cuCtxDestroy(context));
	SHOW(cuCtxSetCurrent(context));
	is_current();
}

static void created_destroyed_primary_current(void)
{
	CUcontext primary;
	start_created();
	NEED(cuDevicePrimaryCtxRetain(&primary, 0));
	SHOW(cuCtxDestroy(context));
	NEED(cuCtxSetCurrent(primary));
	ask();
}

static void destroyed_twice(void)
{
	start_created();
	SHOW(cuCtxDestroy(context)); /* a second time 709 or 201, as it happens */
}

static void reset(void)
{
	context = begin();
	belongings();
	SHOW(cuDevicePrimaryCtxReset(0));
	ask();
}

static void reset_none_current(void)
{
	context = begin();
	belongings();
	NEED(cuCtxSetCurrent(NULL));
	SHOW(cuDevicePrimaryCtxReset(0));
	ask();
}

static void reset_retained(void)
{
	CUcontext again;
	context = begin();
	belongings();
	SHOW(cuDevicePrimaryCtxReset(0));
	SHOW(cuDevicePrimaryCtxRetain(&again, 0));
	SHOW(cuCtxSetCurrent(again));
	ask();
}

static void released(void)
{
	context = begin();
	belongings();
	SHOW(cuDevicePrimaryCtxRelease(0));
	ask();
}

/** A created context beside the primary one: does the reset of the primary one touch it? */
static void reset_beside_created(void)
{
	CUdeviceptr pointer;
	CUcontext created;
	context = begin();
	NEED(cuCtxCreate(&created, NULL, 0, 0));
	NEED(cuMemAlloc(&pointer, 16));
	SHOW(cuDevicePrimaryCtxReset(0));
	SHOW(cuCtxSynchronize());
	SHOW(cuMemFree(pointer));
	SHOW(cuMemAlloc(&pointer, 16));
}

static void program(void)
{
	apart("counting", counting);
	apart("release after reset", release_after_reset);
	apart("flags", flags);
	apart("inactive", inactive);
	apart("created, destroyed", created_destroyed);
	apart("created, destroyed, pushed", created_destroyed_pushed);
	apart("created, destroyed, set", created_destroyed_set);
	apart("created, destroyed, the primary one current", created_destroyed_primary_current);
	apart("destroyed", destroyed_twice);
	apart("reset", reset);
	apart("reset, none current", reset_none_current);
	apart("reset, retained", reset_retained);
	apart("released", released);
	apart("reset beside a created one", reset_beside_created);
}
