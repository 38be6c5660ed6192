/* After a failure on the device: what still answers, what was not done, and that nothing helps but another process. */
#include "memory.h"

static const char text[] = ".version 6.0\n.target sm_50\n.address_size 64\n"
			   ".visible .entry trap()\n{\n\ttrap;\n\tret;\n}\n"
			   ".visible .entry store_null()\n{\n\t.reg .u64 %rd<2>;\n\t.reg .u32 %r<2>;\n"
			   "\tmov.u64 %rd1, 0;\n\tmov.u32 %r1, 1;\n\tst.global.u32 [%rd1], %r1;\n\tret;\n}\n"
			   ".visible .entry store_word(.param .u64 address, .param .u32 value)\n{\n\t.reg .u64 %rd<3>;\n\t.reg .u32 %r<2>;\n"
			   "\tld.param.u64 %rd1, [address];\n\tld.param.u32 %r1, [value];\n\tcvta.to.global.u64 %rd2, %rd1;\n"
			   "\tst.global.u32 [%rd2], %r1;\n\tret;\n}\n";

static CUcontext context;
static CUmodule module;
static CUstream stream, other;
static CUevent event, recorded;
static CUdeviceptr device, word;
static void *pinned, *registered, *fresh;
static CUfunction trap, store_null, store_word;

static void set_up(CUcontext made)
{
	context = made;
	NEED(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	NEED(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
	NEED(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	NEED(cuEventCreate(&recorded, CU_EVENT_DISABLE_TIMING));
	NEED(cuEventRecord(recorded, stream));
	device = memory_of(DEVICE, 4096);
	word = memory_of(REGISTERED, 4096);
	fill(REGISTERED, word, 0, 4096);
	pinned = host_of(memory_of(PINNED, 4096));
	memset(pinned, 0, 4096);
	registered = host_of(memory_of(REGISTERED, 4096));
	fresh = host_of(memory_of(PAGEABLE, 4096));
	NEED(cuModuleLoadData(&module, text));
	NEED(cuModuleGetFunction(&trap, module, "trap"));
	NEED(cuModuleGetFunction(&store_null, module, "store_null"));
	NEED(cuModuleGetFunction(&store_word, module, "store_word"));
	NEED(cuCtxSynchronize());
}

static CUresult launch(CUfunction function, CUstream on, void **parameters)
{
	return cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, on, parameters, NULL);
}

static int fails(void) { return EVENTUALLY(cuStreamQuery(stream) > CUDA_SUCCESS && cuStreamQuery(stream) != CUDA_ERROR_NOT_READY); }

static void prepare(void)
{
	set_up(begin());
	NEED(launch(trap, stream, NULL));
	if (!fails())
		say("the stream never failed\n");
}

static void modules(void)
{
	CUmodule loaded;
	CUfunction function;
	unsigned value = 0x1234;
	CUdeviceptr address;
	void *parameters[] = {&address, &value};
	set_up(begin());
	address = device + 8;
	SHOW(launch(store_word, stream, parameters));
	SHOW(cuStreamSynchronize(stream));
	NEED(cuMemcpyDtoH(&value, device + 8, 4));
	say("word %x\n", value);
	SHOW(cuModuleLoadData(&loaded, "nonsense"));
	SHOW(cuModuleLoadData(&loaded, NULL));
	SHOW(cuModuleLoadData(NULL, text));
	SHOW(cuModuleGetFunction(&function, module, "nothing"));
	SHOW(cuModuleGetFunction(&function, module, NULL));
	SHOW(cuModuleGetFunction(NULL, module, "trap"));
	SHOW(cuLaunchKernel(trap, 0, 1, 1, 1, 1, 1, 0, stream, NULL, NULL));
	SHOW(cuLaunchKernel(trap, 1, 1, 1, 1025, 1, 1, 0, stream, NULL, NULL));
	SHOW(cuStreamSynchronize(stream));
	SHOW(cuModuleUnload(module));
}

static void ran(void *flag) { *(_Atomic int *)flag = 1; }

static _Atomic int before, behind, elsewhere;

static void order(void)
{
	struct gate gate;
	set_up(begin());
	gate_close(&gate, stream);
	SHOW(cuLaunchHostFunc(stream, ran, (void *)&before));
	SHOW(cuStreamWriteValue32(stream, word, 1, 0));
	SHOW(launch(trap, stream, NULL));
	SHOW(cuMemcpyAsync(device, (CUdeviceptr)(uintptr_t)pinned, 4096, stream));
	SHOW(cuLaunchHostFunc(stream, ran, (void *)&behind));
	SHOW(cuStreamWriteValue32(stream, word + 8, 1, 0));
	SHOW(cuEventRecord(event, stream));
	SHOW(cuStreamWaitEvent(other, event, 0));
	SHOW(cuStreamWriteValue32(other, word + 16, 1, 0));
	SHOW(cuLaunchHostFunc(other, ran, (void *)&elsewhere));
	gate_open(&gate);
	SHOW(cuStreamSynchronize(stream));
	SHOW(cuStreamSynchronize(other));
	_Atomic unsigned *words = host_of(word);
	usleep(200000);
	say("before: function %d, word %u; behind: function %d, word %u; elsewhere: function %d, word %u\n", before, words[0], behind,
		words[2], elsewhere, words[4]);
}

static void afterwards(int index)
{
	CUcontext got = NULL;
	CUdeviceptr pointer;
	CUstream made;
	CUevent made_event;
	CUdevice ordinal;
	CUmodule loaded;
	unsigned value;
	unsigned long long number;
	size_t size;
	int count;
	void *host;
	static char pageable[64];
	switch (index) {
	case 0: SHOW(cuStreamQuery(stream)); break;
	case 1: SHOW(cuStreamQuery(other)); break;
	case 2: SHOW(cuStreamQuery(NULL)); break;
	case 3: SHOW(cuStreamSynchronize(stream)); break;
	case 4: SHOW(cuCtxSynchronize()); break;
	case 5: SHOW(cuEventQuery(recorded)); break;
	case 6: SHOW(cuEventSynchronize(recorded)); break;
	case 7: SHOW(cuEventQuery(event)); break;
	case 8: SHOW(cuEventRecord(event, other)); break;
	case 9: SHOW(cuStreamWaitEvent(other, recorded, 0)); break;
	case 10: SHOW(cuStreamWriteValue32(other, word, 1, 0)); break;
	case 11: SHOW(cuMemcpyAsync(device, (CUdeviceptr)(uintptr_t)pinned, 16, other)); break;
	case 12: SHOW(cuMemcpyAsync(device, (CUdeviceptr)(uintptr_t)pageable, 16, other)); break;
	case 13: SHOW(cuMemcpyAsync(device, (CUdeviceptr)(uintptr_t)pinned, 0, other)); break;
	case 14: SHOW(cuMemcpyHtoD(device, pageable, 16)); break;
	case 15: SHOW(cuLaunchHostFunc(other, ran, (void *)&behind)); break;
	case 16: SHOW(cuStreamCreate(&made, 1)); break;
	case 17: SHOW(cuEventCreate(&made_event, 2)); break;
	case 18: SHOW(cuStreamGetFlags(stream, &value)); break;
	case 19: SHOW(cuStreamGetCtx(stream, &got)); break;
	case 20: SHOW(cuStreamGetId(stream, &number)); break;
	case 21: SHOW(cuCtxGetId(context, &number)); break;
	case 22: SHOW(cuCtxGetApiVersion(context, &value)); break;
	case 23: SHOW(cuCtxGetFlags(&value)); break;
	case 24: SHOW(cuCtxGetDevice(&ordinal)); break;
	case 25: SHOW(cuCtxGetCurrent(&got)); break;
	case 26: SHOW(cuCtxPushCurrent(context)); break;
	case 27: SHOW(cuCtxPopCurrent(&got)); break;
	case 28: SHOW(cuCtxSetCurrent(context)); break;
	case 29: SHOW(cuDeviceGetCount(&count)); break;
	case 30: SHOW(cuDeviceGetAttribute(&count, CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 0)); break;
	case 31: SHOW(cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, device)); break;
	case 32: SHOW(cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)(uintptr_t)pageable)); break;
	case 33: SHOW(cuMemGetAddressRange(&pointer, &size, device)); break;
	case 34: SHOW(cuMemAlloc(&pointer, 16)); break;
	case 35: SHOW(cuMemHostAlloc(&host, 16, 0)); break;
	case 36: SHOW(cuMemHostRegister(fresh, 4096, 0)); break;
	case 37: SHOW(cuMemHostUnregister(registered)); break;
	case 38: SHOW(cuMemHostUnregister(fresh)); break;
	case 39: SHOW(cuMemFree(device)); break;
	case 40: SHOW(cuMemFree(0)); break;
	case 41: SHOW(cuMemFreeHost(pinned)); break;
	case 42: SHOW(cuMemGetInfo(&size, &size)); break;
	case 43: SHOW(cuStreamDestroy(stream)); break;
	case 44: SHOW(cuEventDestroy(recorded)); break;
	case 45: SHOW(cuModuleUnload(module)); break;
	case 46: SHOW(cuModuleLoadData(&loaded, text)); break;
	case 47: SHOW(launch(trap, other, NULL)); break;
	case 48: SHOW(cuDevicePrimaryCtxRetain(&got, 0)); break;
	case 49: SHOW(cuDevicePrimaryCtxRelease(0)); break;
	case 50: SHOW(cuMemHostGetFlags(&value, pinned)); break;
	case 51: SHOW(cuCtxCreate(&got, NULL, 0, 0)); break;
	case 52: SHOW(cuInit(0)); break;
	case 53: SHOW(cuCtxSetCurrent(NULL)); SHOW(cuStreamQuery(stream)); break;
	default: SHOW(cuDevicePrimaryCtxReset(0));
	}
}

static void reset(void)
{
	CUdeviceptr pointer;
	CUcontext again = NULL;
	unsigned flags;
	int active = 99;
	prepare();
	SHOW(cuDevicePrimaryCtxReset(0));
	SHOW(cuMemAlloc(&pointer, 16));
	SHOW(cuDevicePrimaryCtxGetState(0, &flags, &active));
	say("active %d\n", active);
	SHOW(cuDevicePrimaryCtxRetain(&again, 0));
	SHOW(cuCtxSetCurrent(context));
	SHOW(cuMemAlloc(&pointer, 16));
	SHOW(cuCtxCreate(&again, NULL, 0, 0));
	SHOW(cuDevicePrimaryCtxRelease(0));
	SHOW(cuDevicePrimaryCtxRelease(0));
}

/** A created context fails: what of another one, of the primary one, and of one made later? */
static void another_context(void)
{
	CUcontext failing, beside, primary, later = NULL;
	CUdeviceptr pointer;
	CUstream stream_beside;
	NEED(cuInit(0));
	NEED(cuCtxCreate(&beside, NULL, 0, 0));
	NEED(cuStreamCreate(&stream_beside, CU_STREAM_NON_BLOCKING));
	NEED(cuDevicePrimaryCtxRetain(&primary, 0));
	NEED(cuCtxCreate(&failing, NULL, 0, 0));
	set_up(failing);
	NEED(launch(trap, stream, NULL));
	say("fails %d\n", fails());
	SHOW(cuCtxSetCurrent(beside));
	SHOW(cuMemAlloc(&pointer, 16));
	SHOW(cuStreamQuery(stream_beside));
	SHOW(cuStreamSynchronize(stream_beside));
	SHOW(cuCtxSetCurrent(primary));
	SHOW(cuMemAlloc(&pointer, 16));
	SHOW(cuCtxDestroy(failing));
	SHOW(cuCtxCreate(&later, NULL, 0, 0));
	SHOW(cuMemAlloc(&pointer, 16));
	SHOW(cuDevicePrimaryCtxRelease(0));
	SHOW(cuDevicePrimaryCtxRetain(&primary, 0));
}

static void null_store(void)
{
	set_up(begin());
	SHOW(launch(store_null, stream, NULL));
	SHOW(cuStreamSynchronize(stream));
	SHOW(cuStreamSynchronize(other));
	SHOW(cuMemFree(device));
}

static void misaligned(void)
{
	unsigned value = 1;
	CUdeviceptr address;
	void *parameters[] = {&address, &value};
	set_up(begin());
	address = device + 1;
	SHOW(launch(store_word, stream, parameters));
	SHOW(cuStreamSynchronize(stream));
	SHOW(cuStreamSynchronize(other));
}

/** Those that give something back, each in a process of its own. */
static void giving_back(int index) { afterwards(43 + index); }

static void program(void)
{
	apart("modules", modules);
	apart("order", order);
	cases("afterwards", 43, prepare, afterwards);
	cases_at_once("giving back and beginning anew", 12, 12, prepare, giving_back);
	apart("reset", reset);
	apart("another context", another_context);
	apart("store to NULL", null_store);
	apart("misaligned store", misaligned);
}
