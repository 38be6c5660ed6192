#include "device.h"
#include "emulator.h"
#include "test.h"
#include <dlfcn.h>
#include <string.h>

int require_devices(int least)
{
	int count = 0;
	CUresult ready = cuInit(0);
	if (ready == CUDA_ERROR_NO_DEVICE)
		test_skip("no device");
	CUDA(ready);
	CUDA(cuDeviceGetCount(&count));
	if (count < least)
		test_skip("not enough devices");
	return count;
}

void require_written_words(void)
{
	int version = 0;
	CUDA(cuDriverGetVersion(&version));
	if (version < 11070)
		test_skip("this driver writes no words");
}

CUcontext use_device(int ordinal)
{
	CUcontext context;
	require_devices(ordinal + 1);
	CUDA(cuDevicePrimaryCtxRetain(&context, ordinal));
	CUDA(cuCtxSetCurrent(context));
	return context;
}

void leave_device(int ordinal)
{
	CUDA(cuCtxSetCurrent(NULL));
	CUDA(cuDevicePrimaryCtxRelease(ordinal));
}

int primary_is_active(int ordinal)
{
	unsigned flags;
	int active;
	CUDA(cuDevicePrimaryCtxGetState(ordinal, &flags, &active));
	return active;
}

CUcontext create_context(int ordinal)
{
	CUcontext context;
	int version = 0;
	require_devices(ordinal + 1);
	CUDA(cuDriverGetVersion(&version));
	if (version >= 12050) {
		CUDA(cuCtxCreate(&context, NULL, 0, ordinal));
	} else { /* the name that older drivers have */
		CUresult (*create)(CUcontext *, unsigned, CUdevice);
		*(void **)&create = dlsym(RTLD_DEFAULT, "cuCtxCreate_v2");
		REQUIRE(create != NULL);
		CUDA(create(&context, 0, ordinal));
	}
	return context;
}

CUstream create_stream(void)
{
	CUstream stream;
	CUDA(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	return stream;
}

struct standing standing_now(void)
{
	struct standing now;
	memset(&now, 0, sizeof now);
	for (;;) {
		CUcontext top = NULL;
		CUDA(cuCtxGetCurrent(&top));
		if (!top)
			break;
		REQUIRE(now.depth < STANDING_ROOM);
		CUDA(cuCtxPopCurrent(&now.stack[now.depth]));
		now.depth++;
	}
	for (int i = now.depth; i-- > 0;)
		CUDA(cuCtxPushCurrent(now.stack[i]));
	return now;
}

void standing_require_same(struct standing before, const char *where)
{
	struct standing now = standing_now();
	if (memcmp(&before, &now, sizeof now) == 0)
		return;
	fprintf(stderr, "%s: the context stack was %d deep with %p current, and now is %d deep with %p\n", where, before.depth,
		(void *)before.stack[0], now.depth, (void *)now.stack[0]);
	exit(1);
}

static const char trap[] = ".version 6.0\n.target sm_50\n.address_size 64\n"
			   ".visible .entry trap() { trap; ret; }\n";

void break_device(CUstream stream)
{
	if (emulated()) {
		CUDA(emulator()->fail_stream(stream, 0, CUDA_ERROR_LAUNCH_FAILED));
		return;
	}
	CUmodule module;
	CUfunction function;
	CUDA(cuModuleLoadData(&module, trap));
	CUDA(cuModuleGetFunction(&function, module, "trap"));
	CUDA(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL));
}
