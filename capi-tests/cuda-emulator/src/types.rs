//! The driver's structs and constants, exactly as C lays them out.
//! Handles are numbers here: no program may look behind one, and the emulator looks each one up in a table.
use std::ffi::{c_int, c_uint, c_void};
use std::mem::{offset_of, size_of};

pub type CUdevice = c_int;
pub type CUdeviceptr = u64;
pub type CUcontext = usize;
pub type CUstream = usize;
pub type CUevent = usize;
pub type CUmodule = usize;
pub type CUfunction = usize;
pub type CUhostFn = unsafe extern "C" fn(*mut c_void);

/// Stands for the legacy default stream of the current context, as 0 does.
pub const CU_STREAM_LEGACY: CUstream = 1;
/// Stands for the default stream of the calling thread in the current context.
pub const CU_STREAM_PER_THREAD: CUstream = 2;

pub const CU_STREAM_NON_BLOCKING: c_uint = 1;

pub const CU_EVENT_BLOCKING_SYNC: c_uint = 1;
pub const CU_EVENT_DISABLE_TIMING: c_uint = 2;
pub const CU_EVENT_INTERPROCESS: c_uint = 4;

pub const CU_EVENT_RECORD_EXTERNAL: c_uint = 1;

pub const CU_CTX_SCHED_MASK: c_uint = 7;
pub const CU_CTX_MAP_HOST: c_uint = 8;
pub const CU_CTX_FLAGS_MASK: c_uint = 0xff;

pub const CU_MEMHOSTALLOC_DEVICEMAP: c_uint = 2;
pub const CU_MEMHOSTALLOC_MASK: c_uint = 7;
pub const CU_MEMHOSTREGISTER_IOMEMORY: c_uint = 4;
pub const CU_MEMHOSTREGISTER_READ_ONLY: c_uint = 8;
pub const CU_MEMHOSTREGISTER_MASK: c_uint = 0xf;

pub const CU_MEM_ATTACH_GLOBAL: c_uint = 1;
pub const CU_MEM_ATTACH_HOST: c_uint = 2;

pub const CU_MEMORYTYPE_HOST: c_uint = 1;
pub const CU_MEMORYTYPE_DEVICE: c_uint = 2;
pub const CU_MEMORYTYPE_UNIFIED: c_uint = 4;

pub const CU_COMPUTEMODE_PROHIBITED: c_int = 2;
pub const CU_COMPUTEMODE_EXCLUSIVE_PROCESS: c_int = 3;

pub const CU_STREAM_WAIT_VALUE_GEQ: c_uint = 0;
pub const CU_STREAM_WAIT_VALUE_EQ: c_uint = 1;
pub const CU_STREAM_WAIT_VALUE_AND: c_uint = 2;
pub const CU_STREAM_WAIT_VALUE_NOR: c_uint = 3;
pub const CU_STREAM_WAIT_VALUE_FLUSH: c_uint = 1 << 30;

pub const CU_STREAM_MEM_OP_WAIT_VALUE_32: c_uint = 1;
pub const CU_STREAM_MEM_OP_WRITE_VALUE_32: c_uint = 2;
pub const CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES: c_uint = 3;
pub const CU_STREAM_MEM_OP_WAIT_VALUE_64: c_uint = 4;
pub const CU_STREAM_MEM_OP_WRITE_VALUE_64: c_uint = 5;
pub const CU_STREAM_MEM_OP_BARRIER: c_uint = 6;

/// One operation of cuStreamBatchMemOp: a union whose wait and write members have the same shape.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUstreamBatchMemOpParams {
    pub operation: c_uint,
    pub address: CUdeviceptr,
    pub value: u64,
    pub flags: c_uint,
    pub alias: CUdeviceptr,
    pub pad: u64,
}

/// A copy of a rectangle.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(non_snake_case, reason = "C names stay C names")]
pub struct CUDA_MEMCPY2D {
    pub srcXInBytes: usize,
    pub srcY: usize,
    pub srcMemoryType: c_uint,
    pub srcHost: usize,
    pub srcDevice: CUdeviceptr,
    pub srcArray: usize,
    pub srcPitch: usize,
    pub dstXInBytes: usize,
    pub dstY: usize,
    pub dstMemoryType: c_uint,
    pub dstHost: usize,
    pub dstDevice: CUdeviceptr,
    pub dstArray: usize,
    pub dstPitch: usize,
    pub WidthInBytes: usize,
    pub Height: usize,
}

/// A copy of a box; the peer form names a context where this one has reserved words.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(non_snake_case, reason = "C names stay C names")]
pub struct CUDA_MEMCPY3D {
    pub srcXInBytes: usize,
    pub srcY: usize,
    pub srcZ: usize,
    pub srcLOD: usize,
    pub srcMemoryType: c_uint,
    pub srcHost: usize,
    pub srcDevice: CUdeviceptr,
    pub srcArray: usize,
    pub srcContext: CUcontext,
    pub srcPitch: usize,
    pub srcHeight: usize,
    pub dstXInBytes: usize,
    pub dstY: usize,
    pub dstZ: usize,
    pub dstLOD: usize,
    pub dstMemoryType: c_uint,
    pub dstHost: usize,
    pub dstDevice: CUdeviceptr,
    pub dstArray: usize,
    pub dstContext: CUcontext,
    pub dstPitch: usize,
    pub dstHeight: usize,
    pub WidthInBytes: usize,
    pub Height: usize,
    pub Depth: usize,
}

const _: () = {
    assert!(size_of::<CUstreamBatchMemOpParams>() == 48);
    assert!(offset_of!(CUstreamBatchMemOpParams, flags) == 24);
    assert!(size_of::<CUDA_MEMCPY2D>() == 128);
    assert!(offset_of!(CUDA_MEMCPY2D, dstPitch) == 104);
    assert!(size_of::<CUDA_MEMCPY3D>() == 200);
    assert!(offset_of!(CUDA_MEMCPY3D, dstHeight) == 168);
};
