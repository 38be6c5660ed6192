//! Streams and host functions.
use super::{needed, put};
use crate::entry::{Entry, call};
use crate::result::*;
use crate::types::*;
use crate::work::Work;
use crate::{context, event, stream};
use std::ffi::{c_int, c_uint, c_void};

unsafe fn create(entry: Entry, place: *mut CUstream, flags: c_uint, priority: c_int) -> CUresult {
    call(entry, || {
        let context = context::working()?;
        needed(place)?;
        if flags & !CU_STREAM_NON_BLOCKING != 0 {
            return Err(CUDA_ERROR_INVALID_VALUE);
        }
        // SAFETY: not NULL, so valid for writes.
        unsafe { put(place, stream::create(&context, flags, priority.clamp(-5, 0)).handle) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuStreamCreate(place: *mut CUstream, flags: c_uint) -> CUresult {
    // SAFETY: as the program promised.
    unsafe { create(Entry::cuStreamCreate, place, flags, 0) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuStreamCreateWithPriority(place: *mut CUstream, flags: c_uint, priority: c_int) -> CUresult {
    // SAFETY: as the program promised.
    unsafe { create(Entry::cuStreamCreateWithPriority, place, flags, priority) }
}

#[unsafe(no_mangle)]
extern "C" fn cuStreamDestroy_v2(handle: CUstream) -> CUresult {
    call(Entry::cuStreamDestroy_v2, || stream::destroy(handle))
}

#[unsafe(no_mangle)]
extern "C" fn cuStreamQuery(handle: CUstream) -> CUresult {
    call(Entry::cuStreamQuery, || stream::working(handle)?.query())
}

#[unsafe(no_mangle)]
extern "C" fn cuStreamSynchronize(handle: CUstream) -> CUresult {
    call(Entry::cuStreamSynchronize, || stream::working(handle)?.synchronize())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuStreamGetFlags(handle: CUstream, place: *mut c_uint) -> CUresult {
    call(Entry::cuStreamGetFlags, || {
        let stream = stream::working(handle)?;
        // SAFETY: NULL or valid for writes.
        unsafe { put(place, stream.flags) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuStreamGetPriority(handle: CUstream, place: *mut c_int) -> CUresult {
    call(Entry::cuStreamGetPriority, || {
        let stream = stream::working(handle)?;
        // SAFETY: NULL or valid for writes.
        unsafe { put(place, stream.priority) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuStreamGetId(handle: CUstream, place: *mut u64) -> CUresult {
    call(Entry::cuStreamGetId, || {
        let stream = stream::working(handle)?;
        // SAFETY: NULL or valid for writes.
        unsafe { put(place, stream.id) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuStreamGetCtx(handle: CUstream, place: *mut CUcontext) -> CUresult {
    call(Entry::cuStreamGetCtx, || {
        let stream = stream::working(handle)?;
        // SAFETY: NULL or valid for writes.
        unsafe { put(place, stream.context.handle) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuStreamGetDevice(handle: CUstream, place: *mut CUdevice) -> CUresult {
    call(Entry::cuStreamGetDevice, || {
        let stream = stream::working(handle)?;
        // SAFETY: NULL or valid for writes.
        unsafe { put(place, stream.context.device.ordinal) }
    })
}

/// No stream is ever being captured here.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuStreamIsCapturing(handle: CUstream, place: *mut c_int) -> CUresult {
    call(Entry::cuStreamIsCapturing, || {
        stream::working(handle)?;
        // SAFETY: NULL or valid for writes.
        unsafe { put(place, 0) }
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuStreamWaitEvent(handle: CUstream, event: CUevent, flags: c_uint) -> CUresult {
    call(Entry::cuStreamWaitEvent, || {
        let stream = stream::working(handle)?;
        let event = event::working(event)?;
        if flags & !1 != 0 {
            return Err(CUDA_ERROR_INVALID_VALUE);
        }
        if let Some(point) = event.point().filter(|point| !point.reached()) {
            stream.submit_after(Work::Nothing, vec![point])?;
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuLaunchHostFunc(handle: CUstream, function: Option<CUhostFn>, data: *mut c_void) -> CUresult {
    call(Entry::cuLaunchHostFunc, || {
        let stream = stream::working(handle)?;
        let function = function.ok_or(CUDA_ERROR_INVALID_VALUE)?;
        stream.submit(Work::Host { function, data: data as usize }).map(drop)
    })
}
