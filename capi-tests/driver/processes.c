/* Fork and the end of a process: what a child may do, and what handlers that run at exit are answered. */
#include "memory.h"

static CUcontext context;
static CUstream stream;
static CUevent event;
static CUdeviceptr device;

static void prepare(void)
{
	context = begin();
	NEED(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	NEED(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	device = memory_of(DEVICE, 4096);
}

/** Calls of a child whose parent had initialised the driver. Each in a child of its own: any of them may hang. */
static void in_child(int index)
{
	CUcontext got;
	CUdeviceptr pointer;
	CUdevice ordinal;
	unsigned value;
	int count;
	pid_t child = fork();
	if (child != 0) {
		ended(child);
		return;
	}
	alarm(10);
	switch (index) {
	case 0: SHOW(cuInit(0)); break;
	case 1: SHOW(cuDeviceGetCount(&count)); break;
	case 2: SHOW(cuCtxGetCurrent(&got)); break;
	case 3: SHOW(cuCtxGetDevice(&ordinal)); break;
	case 4: SHOW(cuCtxSetCurrent(NULL)); break;
	case 5: SHOW(cuDriverGetVersion(&count)); break;
	case 6: SHOW(cuMemAlloc(&pointer, 16)); break;
	case 7: SHOW(cuDevicePrimaryCtxRetain(&got, 0)); break;
	case 8: SHOW(cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, device)); break;
	case 9: SHOW(cuDeviceGet(&ordinal, 0)); break;
	case 10: SHOW(cuEventQuery(event)); break;
	default: SHOW(cuStreamQuery(stream));
	}
	_exit(0);
}

static void parent_goes_on(void)
{
	prepare();
	pid_t child = fork();
	if (child == 0)
		_exit(0);
	ended(child);
	child = fork();
	if (child == 0)
		exit(0); /* with the handlers that the driver has left */
	ended(child);
	SHOW(cuMemsetD8Async(device, 1, 4096, stream));
	SHOW(cuStreamSynchronize(stream));
}

static void fork_before(void)
{
	pid_t child = fork();
	if (child == 0) {
		prepare();
		SHOW(cuStreamSynchronize(stream));
		_exit(0);
	}
	ended(child);
	prepare();
	SHOW(cuStreamSynchronize(stream));
}

static void at_exit(void)
{
	CUcontext got;
	CUdeviceptr pointer;
	CUdevice ordinal;
	int count;
	SHOW(cuCtxGetCurrent(&got));
	SHOW(cuCtxGetDevice(&ordinal));
	SHOW(cuCtxPushCurrent(context));
	SHOW(cuStreamQuery(stream));
	SHOW(cuStreamSynchronize(stream));
	SHOW(cuEventQuery(event));
	SHOW(cuMemAlloc(&pointer, 16));
	SHOW(cuDeviceGetCount(&count));
	SHOW(cuInit(0));
	SHOW(cuEventDestroy(event));
	SHOW(cuStreamDestroy(stream));
	SHOW(cuMemFree(device));
	SHOW(cuDevicePrimaryCtxRelease(0));
}

static void handler_before(void)
{
	atexit(at_exit);
	prepare();
	exit(0);
}

static void handler_behind(void)
{
	prepare();
	atexit(at_exit);
	exit(0);
}

/** Nothing waits for work that will never end: the process ends all the same. */
static void work_outstanding(void)
{
	struct gate gate;
	prepare();
	gate_close(&gate, stream);
	say("standing still\n");
	_exit(0);
}

/** Every call that needs it, before cuInit. */
static void uninitialised(void)
{
	CUcontext got;
	CUdeviceptr pointer;
	CUdevice ordinal;
	CUstream made;
	const char *name;
	int count = 0;
	SHOW(cuDriverGetVersion(&count));
	SHOW(cuGetErrorName(1, &name));
	say("%s\n", name);
	SHOW(cuGetErrorName(12345, &name));
	SHOW(cuGetErrorString(719, &name));
	say("%s\n", name);
	SHOW(cuDeviceGetCount(&count));
	SHOW(cuDeviceGet(&ordinal, 0));
	SHOW(cuCtxGetCurrent(&got));
	SHOW(cuCtxSetCurrent(NULL));
	SHOW(cuDevicePrimaryCtxRetain(&got, 0));
	SHOW(cuMemAlloc(&pointer, 16));
	SHOW(cuStreamCreate(&made, 0));
	SHOW(cuStreamQuery(NULL));
	SHOW(cuInit(1));
	SHOW(cuInit(0));
	SHOW(cuInit(0));
	SHOW(cuDeviceGet(&ordinal, 0));
	SHOW(cuDeviceGet(&ordinal, -1));
	SHOW(cuDeviceGet(&ordinal, 1000));
	SHOW(cuDeviceGet(NULL, 0));
	SHOW(cuDeviceGetCount(NULL));
	SHOW(cuDriverGetVersion(NULL));
}

static void no_device(void)
{
	int count = -1;
	CUcontext got;
	setenv("CUDA_VISIBLE_DEVICES", "", 1);
	SHOW(cuInit(0));
	SHOW(cuInit(0));
	SHOW(cuDeviceGetCount(&count));
	SHOW(cuCtxGetCurrent(&got));
}

static void program(void)
{
	cases("in a child", 12, prepare, in_child);
	apart("the parent goes on", parent_goes_on);
	apart("fork before the first use", fork_before);
	apart("exit handler registered before", handler_before);
	apart("exit handler registered behind", handler_behind);
	apart("work outstanding", work_outstanding);
	apart("before cuInit", uninitialised);
	apart("no visible device", no_device);
}
