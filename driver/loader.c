// Trampolines to the CUDA driver: each entry point that is called is defined here, and finds its namesake in
// libcuda.so.1 on its first call. So nothing needs a driver to link or to load, and no driver means an error code.
#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum { CUDA_ERROR_STUB_LIBRARY = 34, CUDA_ERROR_NOT_FOUND = 500 };

typedef void (*entry)(void); // the type that may be cast to any other without a warning

static int no_driver(void) { return CUDA_ERROR_STUB_LIBRARY; }
static int no_such_entry(void) { return CUDA_ERROR_NOT_FOUND; }

// The driver's handle; &opened_nothing once opening it has failed. No lock: the loader of the C library serialises
// dlopen, racing threads get the same handle, and a tool that wraps dlopen may call back in here.
static char opened_nothing;
static _Atomic(void *) driver;

static void *open_driver(void)
{
	void *handle = atomic_load_explicit(&driver, memory_order_acquire);
	if (!handle) {
		handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
		if (!handle)
			handle = &opened_nothing;
		atomic_store_explicit(&driver, handle, memory_order_release);
	}
	return handle;
}

static entry find(const char *name)
{
	void *handle = open_driver();
	if (handle == &opened_nothing)
		return (entry)no_driver;
	union {
		void *object;
		entry function;
	} symbol = {dlsym(handle, name)};
	return symbol.object ? symbol.function : (entry)no_such_entry;
}

// A trampoline jumps through its slot; an empty slot is filled first. Racing threads store the same value.
#define TRAMPOLINE(name, parameters, arguments)                                                       \
	int name parameters;                                                                          \
	int name parameters                                                                           \
	{                                                                                             \
		static _Atomic(entry) slot;                                                           \
		entry found = atomic_load_explicit(&slot, memory_order_acquire);                      \
		if (!found) {                                                                         \
			found = find(#name);                                                          \
			atomic_store_explicit(&slot, found, memory_order_release);                    \
		}                                                                                     \
		return ((int(*) parameters)found)arguments;                                           \
	}

typedef void *handle; // CUcontext, CUstream, CUevent, CUmodule, CUfunction
typedef unsigned long long device_pointer;

TRAMPOLINE(cuInit, (unsigned flags), (flags))
TRAMPOLINE(cuGetErrorName, (int error, const char **name), (error, name))
TRAMPOLINE(cuDeviceGet, (int *device, int ordinal), (device, ordinal))
TRAMPOLINE(cuDeviceGetCount, (int *count), (count))
TRAMPOLINE(cuDeviceGetAttribute, (int *value, int attribute, int device), (value, attribute, device))
TRAMPOLINE(cuDeviceCanAccessPeer, (int *can, int device, int peer), (can, device, peer))
TRAMPOLINE(cuDevicePrimaryCtxRetain, (handle *context, int device), (context, device))
TRAMPOLINE(cuDevicePrimaryCtxRelease_v2, (int device), (device))
TRAMPOLINE(cuDevicePrimaryCtxGetState, (int device, unsigned *flags, int *active), (device, flags, active))
TRAMPOLINE(cuCtxGetCurrent, (handle *context), (context))
TRAMPOLINE(cuCtxPushCurrent_v2, (handle context), (context))
TRAMPOLINE(cuCtxPopCurrent_v2, (handle *context), (context))
TRAMPOLINE(cuCtxGetDevice, (int *device), (device))
TRAMPOLINE(cuCtxGetId, (handle context, unsigned long long *id), (context, id))
TRAMPOLINE(cuCtxGetApiVersion, (handle context, unsigned *version), (context, version))
TRAMPOLINE(cuCtxEnablePeerAccess, (handle peer, unsigned flags), (peer, flags))
TRAMPOLINE(cuStreamCreate, (handle *stream, unsigned flags), (stream, flags))
TRAMPOLINE(cuStreamDestroy_v2, (handle stream), (stream))
TRAMPOLINE(cuStreamGetCtx, (handle stream, handle *context), (stream, context))
TRAMPOLINE(cuStreamQuery, (handle stream), (stream))
TRAMPOLINE(cuStreamSynchronize, (handle stream), (stream))
TRAMPOLINE(cuStreamWaitEvent, (handle stream, handle event, unsigned flags), (stream, event, flags))
TRAMPOLINE(cuStreamWriteValue32_v2, (handle stream, device_pointer address, uint32_t value, unsigned flags),
	   (stream, address, value, flags))
TRAMPOLINE(cuStreamBatchMemOp_v2, (handle stream, unsigned count, void *operations, unsigned flags),
	   (stream, count, operations, flags))
TRAMPOLINE(cuEventCreate, (handle *event, unsigned flags), (event, flags))
TRAMPOLINE(cuEventDestroy_v2, (handle event), (event))
TRAMPOLINE(cuEventRecord, (handle event, handle stream), (event, stream))
TRAMPOLINE(cuEventQuery, (handle event), (event))
TRAMPOLINE(cuEventSynchronize, (handle event), (event))
TRAMPOLINE(cuLaunchHostFunc, (handle stream, void (*function)(void *), void *argument), (stream, function, argument))
TRAMPOLINE(cuMemAlloc_v2, (device_pointer *pointer, size_t size), (pointer, size))
TRAMPOLINE(cuMemAllocManaged, (device_pointer *pointer, size_t size, unsigned flags), (pointer, size, flags))
TRAMPOLINE(cuMemFree_v2, (device_pointer pointer), (pointer))
TRAMPOLINE(cuMemGetAddressRange_v2, (device_pointer *base, size_t *size, device_pointer pointer), (base, size, pointer))
TRAMPOLINE(cuMemHostAlloc, (void **pointer, size_t size, unsigned flags), (pointer, size, flags))
TRAMPOLINE(cuMemFreeHost, (void *pointer), (pointer))
TRAMPOLINE(cuMemHostRegister_v2, (void *pointer, size_t size, unsigned flags), (pointer, size, flags))
TRAMPOLINE(cuMemHostUnregister, (void *pointer), (pointer))
TRAMPOLINE(cuMemHostGetDevicePointer_v2, (device_pointer *device, void *host, unsigned flags), (device, host, flags))
TRAMPOLINE(cuPointerGetAttribute, (void *value, int attribute, device_pointer pointer), (value, attribute, pointer))
TRAMPOLINE(cuMemcpyAsync, (device_pointer dst, device_pointer src, size_t size, handle stream), (dst, src, size, stream))
TRAMPOLINE(cuMemcpyHtoDAsync_v2, (device_pointer dst, const void *src, size_t size, handle stream),
	   (dst, src, size, stream))
TRAMPOLINE(cuMemcpyDtoHAsync_v2, (void *dst, device_pointer src, size_t size, handle stream), (dst, src, size, stream))
TRAMPOLINE(cuMemcpyDtoDAsync_v2, (device_pointer dst, device_pointer src, size_t size, handle stream),
	   (dst, src, size, stream))
TRAMPOLINE(cuMemcpyPeerAsync,
	   (device_pointer dst, handle dst_context, device_pointer src, handle src_context, size_t size, handle stream),
	   (dst, dst_context, src, src_context, size, stream))
TRAMPOLINE(cuMemcpy2DAsync_v2, (const void *copy, handle stream), (copy, stream))
TRAMPOLINE(cuMemcpy3DAsync_v2, (const void *copy, handle stream), (copy, stream))
TRAMPOLINE(cuMemcpy3DPeerAsync, (const void *copy, handle stream), (copy, stream))
TRAMPOLINE(cuModuleLoadData, (handle *module, const void *image), (module, image))
TRAMPOLINE(cuModuleUnload, (handle module), (module))
TRAMPOLINE(cuModuleGetFunction, (handle *function, handle module, const char *name), (function, module, name))
TRAMPOLINE(cuLaunchKernel,
	   (handle function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
	    unsigned block_z, unsigned shared, handle stream, void **parameters, void **extra),
	   (function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream, parameters, extra))
