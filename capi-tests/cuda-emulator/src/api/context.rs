//! Contexts and the thread's stack of them.
use super::{needed, put};
use crate::context::{self, Context};
use crate::device;
use crate::entry::{Entry, call};
use crate::result::*;
use crate::types::*;
use std::ffi::{c_int, c_uint, c_void};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// At most one way of waiting, and no bit that has no meaning.
pub(super) fn check_flags(flags: c_uint) -> Result {
    let known = flags & !CU_CTX_FLAGS_MASK == 0 && (flags & CU_CTX_SCHED_MASK).count_ones() <= 1;
    if known { Ok(()) } else { Err(CUDA_ERROR_INVALID_VALUE) }
}

unsafe fn create(entry: Entry, place: *mut CUcontext, flags: c_uint, ordinal: CUdevice) -> CUresult {
    call(entry, || {
        needed(place)?;
        let device = device::get(ordinal)?;
        check_flags(flags)?;
        // SAFETY: not NULL, so valid for writes.
        unsafe { put(place, context::create(device, flags)?.handle) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuCtxCreate_v2(place: *mut CUcontext, flags: c_uint, ordinal: CUdevice) -> CUresult {
    // SAFETY: as the program promised.
    unsafe { create(Entry::cuCtxCreate_v2, place, flags, ordinal) }
}

/// The affinity is taken and ignored: there is no hardware to bind to.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuCtxCreate_v3(
    place: *mut CUcontext,
    _affinity: *mut c_void,
    _affinities: c_int,
    flags: c_uint,
    ordinal: CUdevice,
) -> CUresult {
    // SAFETY: as the program promised.
    unsafe { create(Entry::cuCtxCreate_v3, place, flags, ordinal) }
}

/// The parameters are taken and ignored: they choose among hardware that is not there.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuCtxCreate_v4(
    place: *mut CUcontext,
    _parameters: *mut c_void,
    flags: c_uint,
    ordinal: CUdevice,
) -> CUresult {
    // SAFETY: as the program promised.
    unsafe { create(Entry::cuCtxCreate_v4, place, flags, ordinal) }
}

#[unsafe(no_mangle)]
extern "C" fn cuCtxDestroy_v2(handle: CUcontext) -> CUresult {
    call(Entry::cuCtxDestroy_v2, || {
        if handle == 0 {
            return Err(CUDA_ERROR_INVALID_VALUE);
        }
        context::destroy(handle)
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuCtxPushCurrent_v2(handle: CUcontext) -> CUresult {
    call(Entry::cuCtxPushCurrent_v2, || {
        if handle == 0 {
            return Err(CUDA_ERROR_INVALID_VALUE);
        }
        // The driver takes one that is gone, too: what is done in it fails.
        context::push(context::get(handle)?);
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuCtxPopCurrent_v2(place: *mut CUcontext) -> CUresult {
    call(Entry::cuCtxPopCurrent_v2, || {
        let context = context::pop()?;
        if place.is_null() {
            return Ok(());
        }
        // SAFETY: not NULL, so valid for writes.
        unsafe { put(place, context.handle) }
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuCtxSetCurrent(handle: CUcontext) -> CUresult {
    call(Entry::cuCtxSetCurrent, || {
        let context = if handle == 0 { None } else { Some(context::get(handle)?) };
        context::set(context);
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuCtxGetCurrent(place: *mut CUcontext) -> CUresult {
    call(Entry::cuCtxGetCurrent, || {
        let handle = context::top().map_or(0, |context| context.handle);
        // SAFETY: NULL or valid for writes.
        unsafe { put(place, handle) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuCtxGetDevice(place: *mut CUdevice) -> CUresult {
    call(Entry::cuCtxGetDevice, || {
        needed(place)?;
        // SAFETY: not NULL, so valid for writes.
        unsafe { put(place, context::current()?.device.ordinal) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuCtxGetFlags(place: *mut c_uint) -> CUresult {
    call(Entry::cuCtxGetFlags, || {
        let context = context::current()?;
        // A primary context maps memory of the host, asked or not, and says so here alone.
        let mapping = if context.primary { CU_CTX_MAP_HOST } else { 0 };
        // SAFETY: NULL or valid for writes.
        unsafe { put(place, context.flags.load(Relaxed) | mapping) }
    })
}

/// The context of a handle, the current one for NULL; one that is gone answers `gone`.
fn named(handle: CUcontext, gone: CUresult) -> Result<Arc<Context>> {
    let context = if handle == 0 { context::current()? } else { context::get(handle)? };
    if context.is_alive() { Ok(context) } else { Err(gone) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuCtxGetApiVersion(handle: CUcontext, place: *mut c_uint) -> CUresult {
    call(Entry::cuCtxGetApiVersion, || {
        named(handle, CUDA_ERROR_INVALID_CONTEXT)?;
        // SAFETY: NULL or valid for writes.
        unsafe { put(place, 3020) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuCtxGetId(handle: CUcontext, place: *mut u64) -> CUresult {
    call(Entry::cuCtxGetId, || {
        let context = named(handle, CUDA_ERROR_CONTEXT_IS_DESTROYED)?;
        // SAFETY: NULL or valid for writes.
        unsafe { put(place, context.id.load(Relaxed)) }
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuCtxSynchronize() -> CUresult {
    call(Entry::cuCtxSynchronize, || context::working()?.synchronize())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuCtxGetStreamPriorityRange(least: *mut c_int, greatest: *mut c_int) -> CUresult {
    call(Entry::cuCtxGetStreamPriorityRange, || {
        context::current()?;
        // SAFETY: each is NULL or valid for writes.
        unsafe {
            if !least.is_null() {
                put(least, 0)?;
            }
            if !greatest.is_null() {
                put(greatest, -5)?;
            }
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuCtxEnablePeerAccess(peer: CUcontext, flags: c_uint) -> CUresult {
    call(Entry::cuCtxEnablePeerAccess, || {
        if flags != 0 {
            return Err(CUDA_ERROR_INVALID_VALUE);
        }
        context::enable_peer(&*context::get(peer)?)
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuCtxDisablePeerAccess(peer: CUcontext) -> CUresult {
    call(Entry::cuCtxDisablePeerAccess, || context::disable_peer(&*context::get(peer)?))
}
