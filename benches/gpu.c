/* The driver's half of gpu.h, and the choice between the two. The runtime's half is runtime.c. */
#include "gpu.h"
#include "runtime.h"
#include <cuda.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct gpu gpu;

#define DRIVER_CALLS(call)                                                                                       \
	call(cuInit) call(cuDriverGetVersion) call(cuDeviceGet) call(cuDeviceGetName) call(cuDevicePrimaryCtxRetain) \
	call(cuCtxSetCurrent) call(cuMemAlloc_v2) call(cuMemFree_v2) call(cuMemHostAlloc) call(cuMemFreeHost)      \
	call(cuStreamCreate) call(cuStreamDestroy_v2) call(cuStreamSynchronize) call(cuLaunchHostFunc)             \
	call(cuMemcpyAsync) call(cuMemcpyHtoDAsync_v2) call(cuMemcpyDtoHAsync_v2) call(cuMemcpyDtoDAsync_v2)       \
	call(cuMemcpyPeerAsync) call(cuMemcpy2DAsync_v2) call(cuMemcpy3DAsync_v2)

#define DECLARE(name) __typeof__(name) *name##_;
static struct {
	DRIVER_CALLS(DECLARE)
} cuda;
static CUcontext context;

static CUdeviceptr address(const void *pointer)
{
	return (CUdeviceptr)(uintptr_t)pointer;
}

static int enter(void)
{
	return cuda.cuCtxSetCurrent_(context);
}

static int alloc(void **memory, size_t bytes)
{
	CUdeviceptr pointer = 0;
	int error = cuda.cuMemAlloc_v2_(&pointer, bytes);
	*memory = (void *)(uintptr_t)pointer;
	return error;
}

static int release(void *memory)
{
	return cuda.cuMemFree_v2_(address(memory));
}

static int alloc_pinned(void **memory, size_t bytes)
{
	return cuda.cuMemHostAlloc_(memory, bytes, CU_MEMHOSTALLOC_PORTABLE);
}

static int free_pinned(void *memory)
{
	return cuda.cuMemFreeHost_(memory);
}

static int stream_create(void **stream)
{
	return cuda.cuStreamCreate_((CUstream *)stream, CU_STREAM_NON_BLOCKING);
}

static int plain_stream_create(void **stream)
{
	return cuda.cuStreamCreate_((CUstream *)stream, CU_STREAM_DEFAULT);
}

static int stream_destroy(void *stream)
{
	return cuda.cuStreamDestroy_v2_(stream);
}

static int stream_synchronize(void *stream)
{
	return cuda.cuStreamSynchronize_(stream);
}

static int launch_host_func(void *stream, void (*function)(void *), void *argument)
{
	return cuda.cuLaunchHostFunc_(stream, function, argument);
}

static int copy(void *dst, const void *src, size_t bytes, enum kind kind, void *stream)
{
	switch (kind) {
	case HOST_TO_DEVICE:
		return cuda.cuMemcpyHtoDAsync_v2_(address(dst), src, bytes, stream);
	case DEVICE_TO_HOST:
		return cuda.cuMemcpyDtoHAsync_v2_(dst, address(src), bytes, stream);
	case DEVICE_TO_DEVICE:
		return cuda.cuMemcpyDtoDAsync_v2_(address(dst), address(src), bytes, stream);
	default:
		return cuda.cuMemcpyAsync_(address(dst), address(src), bytes, stream);
	}
}

static int copy_peer(void *dst, const void *src, size_t bytes, void *stream)
{
	return cuda.cuMemcpyPeerAsync_(address(dst), context, address(src), context, bytes, stream);
}

static int copy_box(void *dst, const void *src, const struct box *box, enum kind kind, void *stream)
{
	CUmemorytype from = CU_MEMORYTYPE_UNIFIED, to = CU_MEMORYTYPE_UNIFIED;
	if (kind == HOST_TO_DEVICE || kind == HOST_TO_HOST)
		from = CU_MEMORYTYPE_HOST;
	else if (kind != BY_ADDRESS)
		from = CU_MEMORYTYPE_DEVICE;
	if (kind == DEVICE_TO_HOST || kind == HOST_TO_HOST)
		to = CU_MEMORYTYPE_HOST;
	else if (kind != BY_ADDRESS)
		to = CU_MEMORYTYPE_DEVICE;
	if (box->depth == 1) {
		CUDA_MEMCPY2D flat = {.srcMemoryType = from, .srcHost = src, .srcDevice = address(src),
			.srcPitch = box->src_pitch, .dstMemoryType = to, .dstHost = dst, .dstDevice = address(dst),
			.dstPitch = box->dst_pitch, .WidthInBytes = box->width, .Height = box->height};
		return cuda.cuMemcpy2DAsync_v2_(&flat, stream);
	}
	CUDA_MEMCPY3D deep = {.srcMemoryType = from, .srcHost = src, .srcDevice = address(src),
		.srcPitch = box->src_pitch, .srcHeight = box->src_rows, .dstMemoryType = to, .dstHost = dst,
		.dstDevice = address(dst), .dstPitch = box->dst_pitch, .dstHeight = box->dst_rows,
		.WidthInBytes = box->width, .Height = box->height, .Depth = box->depth};
	return cuda.cuMemcpy3DAsync_v2_(&deep, stream);
}

/* Version of the kernel's module, where it says so. */
static void read_module_version(char *text, size_t room)
{
	FILE *file = fopen("/sys/module/nvidia/version", "r");
	if (file && fgets(text, (int)room, file))
		text[strcspn(text, "\n")] = 0;
	if (file)
		fclose(file);
}

int gpu_open(int driver_only)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
	if (!library) {
		fprintf(stderr, "no CUDA driver: %s\n", dlerror());
		return -1;
	}
#define FIND(name)                                                        \
	if (!(cuda.name##_ = (__typeof__(name) *)dlsym(library, #name))) { \
		fprintf(stderr, "the driver has no %s\n", #name);         \
		return -1;                                                \
	}
	DRIVER_CALLS(FIND)
	CUdevice device = 0;
	int version = 0;
	int error = cuda.cuInit_(0);
	if (!error)
		error = cuda.cuDeviceGet_(&device, 0);
	if (!error)
		error = cuda.cuDeviceGetName_(gpu.name, sizeof gpu.name, device);
	if (!error)
		error = cuda.cuDevicePrimaryCtxRetain_(&context, device);
	if (!error)
		error = enter();
	if (error) {
		fprintf(stderr, "no CUDA device: error %d\n", error);
		return -1;
	}
	char module[32] = "";
	read_module_version(module, sizeof module);
	cuda.cuDriverGetVersion_(&version);
	snprintf(gpu.driver, sizeof gpu.driver, "%s%sCUDA %d.%d", module, *module ? ", " : "", version / 1000, version % 1000 / 10);
	gpu.enter = enter;
	gpu.alloc = alloc;
	gpu.free = release;
	gpu.alloc_pinned = alloc_pinned;
	gpu.free_pinned = free_pinned;
	gpu.stream_create = stream_create;
	gpu.plain_stream_create = plain_stream_create;
	gpu.stream_destroy = stream_destroy;
	gpu.stream_synchronize = stream_synchronize;
	gpu.launch_host_func = launch_host_func;
	gpu.copy = copy;
	gpu.copy_peer = copy_peer;
	gpu.copy_box = copy_box;
	if (driver_only || runtime_open(&gpu))
		snprintf(gpu.interface, sizeof gpu.interface, "the CUDA driver's calls (no libcudart)");
	return 0;
}
