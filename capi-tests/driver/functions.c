/* Host functions: their order, what they answer who call the driver, and what becomes of them. */
#include "memory.h"

static CUstream stream, other;
static CUevent event;
static CUdeviceptr device;
static void *pinned;

static void prepare(void)
{
	begin();
	NEED(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	NEED(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
	NEED(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	device = memory_of(DEVICE, 4096);
	pinned = host_of(memory_of(PINNED, 4096));
}

#define MANY 1000
static int sequence[MANY], length;

static void append(void *number) { sequence[length++] = (int)(intptr_t)number; }

static void order(void)
{
	int in_order = 1;
	prepare();
	for (int i = 0; i < MANY; i++)
		NEED(cuLaunchHostFunc(stream, append, (void *)(intptr_t)i));
	SHOW(cuStreamSynchronize(stream));
	for (int i = 0; i < MANY; i++)
		in_order &= sequence[i] == i;
	say("all ran in order: %d\n", length == MANY && in_order);
}

static unsigned char seen;

static void look(void *unused)
{
	(void)unused;
	seen = *(volatile unsigned char *)pinned;
}

static void between(void)
{
	prepare();
	fill(DEVICE, device, 5, 4096);
	memset(pinned, 0, 4096);
	NEED(cuMemcpyAsync((CUdeviceptr)(uintptr_t)pinned, device, 4096, stream));
	NEED(cuLaunchHostFunc(stream, look, NULL));
	SHOW(cuStreamSynchronize(stream));
	say("the copy before it is seen: %d\n", seen == 5);
}

static int answers[32];

static void nothing(void *unused) { (void)unused; }

/** Only what cannot wait for the stream itself. */
static void call(void *number)
{
	CUcontext context;
	CUdevice ordinal;
	CUstream made;
	CUevent made_event;
	CUdeviceptr pointer;
	int count, version;
	unsigned type;
	const char *text;
	CUresult code = 0;
	switch ((int)(intptr_t)number) {
	case 0: code = cuInit(0); break;
	case 1: code = cuDriverGetVersion(&version); break;
	case 2: code = cuGetErrorName(1, &text); break;
	case 3: code = cuDeviceGetCount(&count); break;
	case 4: code = cuDeviceGet(&ordinal, 0); break;
	case 5: code = cuCtxGetCurrent(&context); break;
	case 6: code = cuCtxSetCurrent(NULL); break;
	case 7: code = cuCtxGetDevice(&ordinal); break;
	case 8: code = cuDevicePrimaryCtxRetain(&context, 0); break;
	case 9: code = cuStreamCreate(&made, 1); break;
	case 10: code = cuStreamQuery(other); break;
	case 11: code = cuEventCreate(&made_event, 2); break;
	case 12: code = cuEventRecord(event, other); break;
	case 13: code = cuEventQuery(event); break;
	case 14: code = cuMemAlloc(&pointer, 16); break;
	case 15: code = cuMemcpyAsync(device, (CUdeviceptr)(uintptr_t)pinned, 16, other); break;
	case 16: code = cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, device); break;
	case 17: code = cuLaunchHostFunc(other, nothing, NULL); break;
	case 18: code = cuCtxPopCurrent(NULL); break;
	case 19: code = cuStreamWriteValue32(other, (CUdeviceptr)(uintptr_t)pinned, 1, 0); break;
	case 20: code = cuMemHostGetFlags(&type, pinned); break;
	case 21: code = cuEventDestroy(event); break;
	default: code = cuStreamDestroy(other); break;
	}
	answers[(int)(intptr_t)number] = (int)code;
}

#define CALLS 23

static void calls(int index)
{
	static const char *const names[CALLS] = {"cuInit", "cuDriverGetVersion", "cuGetErrorName", "cuDeviceGetCount", "cuDeviceGet",
		"cuCtxGetCurrent", "cuCtxSetCurrent", "cuCtxGetDevice", "cuDevicePrimaryCtxRetain", "cuStreamCreate", "cuStreamQuery",
		"cuEventCreate", "cuEventRecord", "cuEventQuery", "cuMemAlloc", "cuMemcpyAsync", "cuPointerGetAttribute",
		"cuLaunchHostFunc", "cuCtxPopCurrent", "cuStreamWriteValue32", "cuMemHostGetFlags", "cuEventDestroy",
		"cuStreamDestroy"};
	say("%s: ", names[index]);
	/* What the function before had queued elsewhere is done. */
	NEED(cuStreamSynchronize(other));
	NEED(cuLaunchHostFunc(stream, call, (void *)(intptr_t)index));
	CUresult code = cuStreamSynchronize(stream);
	say("%d, synchronise %d\n", answers[index], (int)code);
}

static pid_t callers_thread, functions_thread;
static int set_errno;

static void where(void *unused)
{
	(void)unused;
	functions_thread = gettid();
	errno = 77;
}

static void threads(void)
{
	prepare();
	errno = 5;
	callers_thread = gettid();
	NEED(cuLaunchHostFunc(stream, where, NULL));
	NEED(cuStreamSynchronize(stream));
	set_errno = errno;
	say("it ran on a thread of its own: %d, and left this one's errno alone: %d\n", functions_thread != callers_thread,
		set_errno != 77);
}

static void legacy(void)
{
	prepare();
	NEED(cuLaunchHostFunc(NULL, append, (void *)1));
	NEED(cuLaunchHostFunc(CU_STREAM_LEGACY, append, (void *)2));
	SHOW(cuStreamSynchronize(NULL));
	NEED(cuLaunchHostFunc(CU_STREAM_PER_THREAD, append, (void *)3));
	SHOW(cuStreamSynchronize(CU_STREAM_PER_THREAD));
	say("ran: %d\n", length);
}

static void program(void)
{
	apart("order", order);
	apart("between copies", between);
	cases("calls into the driver", CALLS, prepare, calls);
	apart("threads", threads);
	apart("default streams", legacy);
}
