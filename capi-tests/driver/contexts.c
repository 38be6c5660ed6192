/* Contexts and each thread's stack of them: what is current, what may be destroyed, and what works in a stream's context
 * while another one, or none, is current. */
#include "driver.h"

static CUcontext one, two;

static const char *named(CUcontext context) { return context == one ? "one" : context == two ? "two" : context ? "another" : "none"; }

static void current(void)
{
	CUcontext context = (CUcontext)16;
	CUresult code = cuCtxGetCurrent(&context);
	say("current: %d, %s\n", (int)code, named(context));
}

static void empty_stack(void)
{
	CUcontext context = NULL;
	CUdevice device = 7;
	unsigned flags = 0;
	unsigned version = 0;
	unsigned long long id = 0;
	int least, greatest;
	NEED(cuInit(0));
	current();
	SHOW(cuCtxPopCurrent(&context));
	SHOW(cuCtxPopCurrent(NULL));
	SHOW(cuCtxGetDevice(&device));
	SHOW(cuCtxGetFlags(&flags));
	SHOW(cuCtxGetApiVersion(NULL, &version));
	SHOW(cuCtxGetId(NULL, &id));
	SHOW(cuCtxSynchronize());
	SHOW(cuCtxGetStreamPriorityRange(&least, &greatest));
	SHOW(cuCtxSetCurrent(NULL));
	current();
	SHOW(cuCtxPushCurrent(NULL));
	current();
	SHOW(cuCtxPopCurrent(&context));
	SHOW(cuCtxDestroy(NULL));
	SHOW(cuCtxGetCurrent(NULL));
	SHOW(cuCtxGetDevice(NULL));
}

static void stack(void)
{
	CUcontext popped = NULL;
	CUdevice device = 7;
	NEED(cuInit(0));
	SHOW(cuCtxCreate(&one, NULL, 0, 0));
	current();
	SHOW(cuCtxGetDevice(&device));
	say("device %d\n", device);
	SHOW(cuCtxGetDevice(NULL));
	SHOW(cuCtxCreate(&two, NULL, 0, 0));
	current();
	SHOW(cuCtxPushCurrent(one));
	SHOW(cuCtxPushCurrent(one));
	SHOW(cuCtxSetCurrent(two));
	SHOW(cuCtxPopCurrent(&popped));
	say("popped %s\n", named(popped));
	SHOW(cuCtxPopCurrent(&popped));
	say("popped %s\n", named(popped));
	SHOW(cuCtxSetCurrent(NULL));
	current();
	SHOW(cuCtxPopCurrent(&popped));
	say("popped %s\n", named(popped));
	current();
	SHOW(cuCtxPopCurrent(&popped));
	SHOW(cuCtxSetCurrent(one));
	SHOW(cuCtxSetCurrent(two));
	SHOW(cuCtxPopCurrent(NULL));
	current();
}

static void numbers(void)
{
	CUcontext again;
	unsigned version = 0, flags = 77;
	unsigned long long id = 0;
	NEED(cuInit(0));
	NEED(cuCtxCreate(&one, NULL, 0, 0));
	SHOW(cuCtxGetId(one, &id));
	say("id %llu\n", id);
	SHOW(cuCtxGetId(NULL, &id));
	say("id %llu\n", id);
	SHOW(cuCtxGetId(one, NULL));
	NEED(cuCtxCreate(&two, NULL, CU_CTX_SCHED_BLOCKING_SYNC, 0));
	SHOW(cuCtxGetId(two, &id));
	say("id %llu\n", id);
	NEED(cuDevicePrimaryCtxRetain(&again, 0));
	SHOW(cuCtxGetId(again, &id));
	say("id %llu\n", id);
	SHOW(cuCtxGetApiVersion(two, &version));
	say("version %u\n", version);
	SHOW(cuCtxGetApiVersion(NULL, NULL));
	SHOW(cuCtxGetFlags(&flags));
	say("flags %u\n", flags);
	NEED(cuCtxSetCurrent(one));
	SHOW(cuCtxGetFlags(&flags));
	say("flags %u\n", flags);
	SHOW(cuCtxCreate(&again, NULL, 3, 0));
	SHOW(cuCtxCreate(&again, NULL, 256, 0));
	SHOW(cuCtxCreate(NULL, NULL, 0, 0));
	SHOW(cuCtxCreate(&again, NULL, 0, -1));
	SHOW(cuCtxCreate(&again, NULL, 0, 1000));
	current();
}

static void *other_thread(void *unused)
{
	(void)unused;
	SHOW(cuCtxSetCurrent(two));
	SHOW(cuCtxPushCurrent(one));
	return NULL;
}

static sem_t here, there;

static void *keeps_current(void *unused)
{
	(void)unused;
	unsigned long long id;
	NEED(cuCtxSetCurrent(two));
	sem_post(&here);
	sem_wait(&there);
	say("in a thread where it is current: ");
	current();
	/* Not its device: that is read from where the context was. */
	SHOW(cuCtxGetId(NULL, &id));
	SHOW(cuCtxSynchronize());
	SHOW(cuCtxPopCurrent(NULL));
	return NULL;
}

static void destroying(void)
{
	CUcontext primary, popped = NULL;
	pthread_t thread;
	unsigned long long id;
	NEED(cuInit(0));
	NEED(cuCtxCreate(&one, NULL, 0, 0));
	NEED(cuCtxCreate(&two, NULL, 0, 0));
	NEED(cuDevicePrimaryCtxRetain(&primary, 0));
	SHOW(cuCtxDestroy(primary));
	/* The current one. */
	SHOW(cuCtxDestroy(two));
	current();
	/* One below the top. */
	NEED(cuCtxCreate(&two, NULL, 0, 0));
	SHOW(cuCtxDestroy(one));
	current();
	SHOW(cuCtxPopCurrent(&popped));
	say("popped %s\n", named(popped));
	current();
	SHOW(cuCtxGetId(NULL, &id));
	SHOW(cuCtxPopCurrent(&popped));
	say("popped %s\n", named(popped));
	/* Current in another thread. */
	sem_init(&here, 0, 0);
	sem_init(&there, 0, 0);
	pthread_create(&thread, NULL, keeps_current, NULL);
	sem_wait(&here);
	SHOW(cuCtxDestroy(two));
	sem_post(&there);
	pthread_join(thread, NULL);
}

static void threads(void)
{
	pthread_t thread;
	NEED(cuInit(0));
	NEED(cuCtxCreate(&one, NULL, 0, 0));
	NEED(cuCtxCreate(&two, NULL, 0, 0));
	pthread_create(&thread, NULL, other_thread, NULL);
	pthread_join(thread, NULL);
	current();
}

static CUstream stream_of_one, stream_of_two;
static CUevent event_of_one, event_of_two;
static CUdeviceptr memory_of_one, memory_of_two;
static unsigned *word;

static void two_contexts(void)
{
	NEED(cuInit(0));
	NEED(cuCtxCreate(&one, NULL, 0, 0));
	NEED(cuStreamCreate(&stream_of_one, CU_STREAM_NON_BLOCKING));
	NEED(cuEventCreate(&event_of_one, CU_EVENT_DISABLE_TIMING));
	NEED(cuMemAlloc(&memory_of_one, 4096));
	NEED(cuCtxCreate(&two, NULL, 0, 0));
	NEED(cuStreamCreate(&stream_of_two, CU_STREAM_NON_BLOCKING));
	NEED(cuEventCreate(&event_of_two, CU_EVENT_DISABLE_TIMING));
	NEED(cuMemAlloc(&memory_of_two, 4096));
	NEED(posix_memalign((void **)&word, 4096, 4096));
	NEED(cuMemHostRegister(word, 4096, CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP));
	NEED(cuCtxSetCurrent(one));
}

static void nop(void *unused) { (void)unused; }

/** With nothing, or the other context, current. */
static void across(int index)
{
	static char host[4096];
	CUcontext context = NULL;
	unsigned flags;
	/* Whatever was queued by the case before is done. */
	NEED(cuStreamSynchronize(stream_of_one));
	NEED(cuCtxSetCurrent(index % 2 ? two : NULL));
	say("%s current, ", index % 2 ? "two" : "none");
	switch (index / 2) {
	case 0: SHOW(cuStreamQuery(stream_of_one)); break;
	case 1: SHOW(cuStreamSynchronize(stream_of_one)); break;
	case 2: SHOW(cuStreamGetCtx(stream_of_one, &context)); say("%s\n", named(context)); break;
	case 3: SHOW(cuStreamGetFlags(stream_of_one, &flags)); break;
	case 4: SHOW(cuEventRecord(event_of_one, stream_of_one)); break;
	case 5: SHOW(cuEventRecord(event_of_two, stream_of_one)); break;
	case 6: SHOW(cuEventQuery(event_of_one)); break;
	case 7: SHOW(cuEventSynchronize(event_of_one)); break;
	case 8: SHOW(cuStreamWaitEvent(stream_of_one, event_of_two, 0)); break;
	case 9: SHOW(cuMemcpyAsync(memory_of_one, (CUdeviceptr)(uintptr_t)word, 4096, stream_of_one)); break;
	case 10: SHOW(cuMemcpyAsync(memory_of_one, (CUdeviceptr)(uintptr_t)host, 4096, stream_of_one)); break;
	case 11: SHOW(cuMemcpyAsync(memory_of_one, memory_of_two, 4096, stream_of_one)); break;
	case 12: SHOW(cuMemcpyHtoDAsync(memory_of_one, host, 4096, stream_of_one)); break;
	case 13: SHOW(cuMemcpyHtoDAsync(memory_of_two, host, 4096, stream_of_one)); break;
	case 14: SHOW(cuMemcpyDtoDAsync(memory_of_one, memory_of_two, 4096, stream_of_one)); break;
	case 15: SHOW(cuMemcpyPeerAsync(memory_of_one, one, memory_of_two, two, 4096, stream_of_one)); break;
	case 16: SHOW(cuMemcpyPeerAsync(memory_of_one, two, memory_of_two, one, 4096, stream_of_one)); break;
	case 17: SHOW(cuStreamWriteValue32(stream_of_one, (CUdeviceptr)(uintptr_t)word, 1, 0)); break;
	case 18: SHOW(cuStreamWriteValue32(stream_of_one, memory_of_one, 1, 0)); break;
	case 19: SHOW(cuStreamWriteValue32(stream_of_one, memory_of_two, 1, 0)); break;
	case 20: SHOW(cuLaunchHostFunc(stream_of_one, nop, NULL)); break;
	case 21: SHOW(cuMemsetD8Async(memory_of_one, 1, 4096, stream_of_one)); break;
	case 22: SHOW(cuMemcpyHtoD(memory_of_one, host, 4096)); break;
	case 23: SHOW(cuMemcpy(memory_of_one, (CUdeviceptr)(uintptr_t)host, 4096)); break;
	case 24: SHOW(cuStreamSynchronize(stream_of_one)); break;
	case 25: SHOW(cuMemFree(memory_of_one)); break;
	case 26: SHOW(cuEventDestroy(event_of_one)); break;
	default: SHOW(cuStreamDestroy(stream_of_one));
	}
	/* What is gone now is made anew. */
	NEED(cuCtxSetCurrent(one));
	switch (index / 2) {
	case 25: NEED(cuMemAlloc(&memory_of_one, 4096)); break;
	case 26: NEED(cuEventCreate(&event_of_one, CU_EVENT_DISABLE_TIMING)); break;
	case 27: NEED(cuStreamCreate(&stream_of_one, CU_STREAM_NON_BLOCKING)); break;
	}
}

/** Registered in two's context without PORTABLE, used by one's stream. */
static void not_portable(void)
{
	static void *memory;
	two_contexts();
	NEED(posix_memalign(&memory, 4096, 4096));
	NEED(cuCtxSetCurrent(two));
	SHOW(cuMemHostRegister(memory, 4096, 0));
	SHOW(cuStreamWriteValue32(stream_of_two, (CUdeviceptr)(uintptr_t)memory, 1, 0));
	SHOW(cuStreamWriteValue32(stream_of_one, (CUdeviceptr)(uintptr_t)memory, 2, 0));
	NEED(cuCtxSetCurrent(one));
	SHOW(cuStreamWriteValue32(stream_of_one, (CUdeviceptr)(uintptr_t)memory, 3, 0));
	SHOW(cuStreamWriteValue32(stream_of_two, (CUdeviceptr)(uintptr_t)memory, 4, 0));
	NEED(cuStreamSynchronize(stream_of_two));
	SHOW(cuMemcpyAsync(memory_of_one, (CUdeviceptr)(uintptr_t)memory, 4096, stream_of_one));
	SHOW(cuMemHostUnregister(memory));
	SHOW(cuCtxSynchronize());
}

static void program(void)
{
	apart("nothing current", empty_stack);
	apart("stack", stack);
	apart("numbers and flags", numbers);
	apart("destroying", destroying);
	apart("threads", threads);
	cases("across contexts", 2 * 28, two_contexts, across);
	apart("registered for one context", not_portable);
}
