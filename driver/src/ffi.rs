//! The entry points that `loader.c` forwards, with CUDA's names.
//! They return plain integers: a driver may answer with a code newer than the enum of `cust::sys`.
#![allow(clashing_extern_declarations, missing_docs)]

use cust::sys::{
    CUDA_MEMCPY2D, CUDA_MEMCPY3D, CUDA_MEMCPY3D_PEER, CUcontext, CUdevice, CUdeviceptr, CUevent, CUfunction, CUhostFn,
    CUmodule, CUstream, CUstreamBatchMemOpParams,
};
use libc::{c_char, c_int, c_uint, c_ulonglong, c_void};

/// What a driver call answers: 0, or the number of a `CUresult`.
pub type Status = c_uint;

#[rustfmt::skip]
unsafe extern "C" {
    pub fn cuInit(flags: c_uint) -> Status;
    pub fn cuGetErrorName(error: Status, name: *mut *const c_char) -> Status;
    pub fn cuDeviceGet(device: *mut CUdevice, ordinal: c_int) -> Status;
    pub fn cuDeviceGetCount(count: *mut c_int) -> Status;
    pub fn cuDeviceGetAttribute(value: *mut c_int, attribute: c_uint, device: CUdevice) -> Status;
    pub fn cuDeviceCanAccessPeer(can: *mut c_int, device: CUdevice, peer: CUdevice) -> Status;
    pub fn cuDevicePrimaryCtxRetain(context: *mut CUcontext, device: CUdevice) -> Status;
    pub fn cuDevicePrimaryCtxRelease_v2(device: CUdevice) -> Status;
    pub fn cuDevicePrimaryCtxGetState(device: CUdevice, flags: *mut c_uint, active: *mut c_int) -> Status;
    pub fn cuCtxGetCurrent(context: *mut CUcontext) -> Status;
    pub fn cuCtxPushCurrent_v2(context: CUcontext) -> Status;
    pub fn cuCtxPopCurrent_v2(context: *mut CUcontext) -> Status;
    pub fn cuCtxGetDevice(device: *mut CUdevice) -> Status;
    pub fn cuCtxGetId(context: CUcontext, id: *mut c_ulonglong) -> Status;
    pub fn cuCtxGetApiVersion(context: CUcontext, version: *mut c_uint) -> Status;
    pub fn cuCtxEnablePeerAccess(peer: CUcontext, flags: c_uint) -> Status;
    pub fn cuStreamCreate(stream: *mut CUstream, flags: c_uint) -> Status;
    pub fn cuStreamDestroy_v2(stream: CUstream) -> Status;
    pub fn cuStreamGetCtx(stream: CUstream, context: *mut CUcontext) -> Status;
    pub fn cuStreamQuery(stream: CUstream) -> Status;
    pub fn cuStreamSynchronize(stream: CUstream) -> Status;
    pub fn cuStreamWaitEvent(stream: CUstream, event: CUevent, flags: c_uint) -> Status;
    pub fn cuStreamWriteValue32_v2(stream: CUstream, address: CUdeviceptr, value: u32, flags: c_uint) -> Status;
    pub fn cuStreamBatchMemOp_v2(stream: CUstream, count: c_uint, operations: *mut CUstreamBatchMemOpParams, flags: c_uint) -> Status;
    pub fn cuEventCreate(event: *mut CUevent, flags: c_uint) -> Status;
    pub fn cuEventDestroy_v2(event: CUevent) -> Status;
    pub fn cuEventRecord(event: CUevent, stream: CUstream) -> Status;
    pub fn cuEventQuery(event: CUevent) -> Status;
    pub fn cuEventSynchronize(event: CUevent) -> Status;
    pub fn cuLaunchHostFunc(stream: CUstream, function: CUhostFn, argument: *mut c_void) -> Status;
    pub fn cuMemAlloc_v2(pointer: *mut CUdeviceptr, size: usize) -> Status;
    pub fn cuMemAllocManaged(pointer: *mut CUdeviceptr, size: usize, flags: c_uint) -> Status;
    pub fn cuMemFree_v2(pointer: CUdeviceptr) -> Status;
    pub fn cuMemGetAddressRange_v2(base: *mut CUdeviceptr, size: *mut usize, pointer: CUdeviceptr) -> Status;
    pub fn cuMemHostAlloc(pointer: *mut *mut c_void, size: usize, flags: c_uint) -> Status;
    pub fn cuMemFreeHost(pointer: *mut c_void) -> Status;
    pub fn cuMemHostRegister_v2(pointer: *mut c_void, size: usize, flags: c_uint) -> Status;
    pub fn cuMemHostUnregister(pointer: *mut c_void) -> Status;
    pub fn cuMemHostGetDevicePointer_v2(device: *mut CUdeviceptr, host: *mut c_void, flags: c_uint) -> Status;
    pub fn cuPointerGetAttribute(value: *mut c_void, attribute: c_uint, pointer: CUdeviceptr) -> Status;
    pub fn cuMemcpyAsync(dst: CUdeviceptr, src: CUdeviceptr, size: usize, stream: CUstream) -> Status;
    pub fn cuMemcpyHtoDAsync_v2(dst: CUdeviceptr, src: *const c_void, size: usize, stream: CUstream) -> Status;
    pub fn cuMemcpyDtoHAsync_v2(dst: *mut c_void, src: CUdeviceptr, size: usize, stream: CUstream) -> Status;
    pub fn cuMemcpyDtoDAsync_v2(dst: CUdeviceptr, src: CUdeviceptr, size: usize, stream: CUstream) -> Status;
    pub fn cuMemcpyPeerAsync(dst: CUdeviceptr, dst_context: CUcontext, src: CUdeviceptr, src_context: CUcontext, size: usize, stream: CUstream) -> Status;
    pub fn cuMemcpy2DAsync_v2(copy: *const CUDA_MEMCPY2D, stream: CUstream) -> Status;
    pub fn cuMemcpy3DAsync_v2(copy: *const CUDA_MEMCPY3D, stream: CUstream) -> Status;
    pub fn cuMemcpy3DPeerAsync(copy: *const CUDA_MEMCPY3D_PEER, stream: CUstream) -> Status;
    pub fn cuModuleLoadData(module: *mut CUmodule, image: *const c_void) -> Status;
    pub fn cuModuleUnload(module: CUmodule) -> Status;
    pub fn cuModuleGetFunction(function: *mut CUfunction, module: CUmodule, name: *const c_char) -> Status;
    pub fn cuLaunchKernel(function: CUfunction, grid_x: c_uint, grid_y: c_uint, grid_z: c_uint, block_x: c_uint, block_y: c_uint, block_z: c_uint, shared: c_uint, stream: CUstream, parameters: *mut *mut c_void, extra: *mut *mut c_void) -> Status;
}
