//! Devices and their primary contexts.
use super::{needed, put};
use crate::entry::{Entry, call};
use crate::result::*;
use crate::types::*;
use crate::{context, device};
use std::ffi::{c_char, c_int, c_uint};

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGet(place: *mut CUdevice, ordinal: c_int) -> CUresult {
    call(Entry::cuDeviceGet, || {
        needed(place)?;
        // SAFETY: not NULL, so valid for writes.
        unsafe { put(place, device::get(ordinal)?.ordinal) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGetCount(count: *mut c_int) -> CUresult {
    // SAFETY: NULL or valid for writes.
    call(Entry::cuDeviceGetCount, || unsafe { put(count, device::all().len() as c_int) })
}

/// Writes as much of a text as there is room for, and a zero.
unsafe fn put_text(place: *mut c_char, room: c_int, text: &str) -> Result {
    needed(place)?;
    let room = usize::try_from(room).ok().filter(|&room| room > 0).ok_or(CUDA_ERROR_INVALID_VALUE)?;
    let len = text.len().min(room - 1);
    // SAFETY: `place` is valid for writes of `room` bytes.
    unsafe {
        std::ptr::copy_nonoverlapping(text.as_ptr(), place.cast(), len);
        place.add(len).write(0);
    }
    Ok(())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGetName(name: *mut c_char, len: c_int, ordinal: CUdevice) -> CUresult {
    call(Entry::cuDeviceGetName, || {
        device::get(ordinal)?;
        // SAFETY: NULL or valid for writes of `len` bytes.
        unsafe { put_text(name, len, "CUDA emulator (no GPU)") }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGetPCIBusId(id: *mut c_char, len: c_int, ordinal: CUdevice) -> CUresult {
    call(Entry::cuDeviceGetPCIBusId, || {
        let text = format!("0000:{:02X}:00.0", 0x10 + device::get(ordinal)?.physical);
        // SAFETY: NULL or valid for writes of `len` bytes.
        unsafe { put_text(id, len, &text) }
    })
}

unsafe fn uuid(entry: Entry, place: *mut [u8; 16], ordinal: CUdevice) -> CUresult {
    call(entry, || {
        let mut uuid = *b"CUDA emulator  \0";
        uuid[15] = device::get(ordinal)?.physical as u8;
        // SAFETY: NULL or valid for writes.
        unsafe { put(place, uuid) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGetUuid(place: *mut [u8; 16], ordinal: CUdevice) -> CUresult {
    // SAFETY: NULL or valid for writes.
    unsafe { uuid(Entry::cuDeviceGetUuid, place, ordinal) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGetUuid_v2(place: *mut [u8; 16], ordinal: CUdevice) -> CUresult {
    // SAFETY: NULL or valid for writes.
    unsafe { uuid(Entry::cuDeviceGetUuid_v2, place, ordinal) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGetAttribute(place: *mut c_int, attribute: c_int, ordinal: CUdevice) -> CUresult {
    call(Entry::cuDeviceGetAttribute, || {
        needed(place)?;
        let value = device::attribute(device::get(ordinal)?, attribute)?;
        // SAFETY: NULL or valid for writes.
        unsafe { put(place, value) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceTotalMem_v2(place: *mut usize, ordinal: CUdevice) -> CUresult {
    call(Entry::cuDeviceTotalMem_v2, || {
        let (_, total) = device::get(ordinal)?.heap.info();
        // SAFETY: NULL or valid for writes.
        unsafe { put(place, total) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceCanAccessPeer(place: *mut c_int, one: CUdevice, other: CUdevice) -> CUresult {
    call(Entry::cuDeviceCanAccessPeer, || {
        let can = device::peers(device::get(one)?, device::get(other)?);
        // SAFETY: NULL or valid for writes.
        unsafe { put(place, can.into()) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDevicePrimaryCtxRetain(place: *mut CUcontext, ordinal: CUdevice) -> CUresult {
    call(Entry::cuDevicePrimaryCtxRetain, || {
        let device = device::get(ordinal)?;
        needed(place)?;
        let context = context::retain_primary(device)?;
        // SAFETY: not NULL, so valid for writes.
        unsafe { put(place, context.handle) }
    })
}

fn release(entry: Entry, ordinal: CUdevice) -> CUresult {
    call(entry, || context::release_primary(device::get(ordinal)?))
}

#[unsafe(no_mangle)]
extern "C" fn cuDevicePrimaryCtxRelease(ordinal: CUdevice) -> CUresult {
    release(Entry::cuDevicePrimaryCtxRelease, ordinal)
}

#[unsafe(no_mangle)]
extern "C" fn cuDevicePrimaryCtxRelease_v2(ordinal: CUdevice) -> CUresult {
    release(Entry::cuDevicePrimaryCtxRelease_v2, ordinal)
}

fn reset(entry: Entry, ordinal: CUdevice) -> CUresult {
    call(entry, || {
        context::reset_primary(device::get(ordinal)?);
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuDevicePrimaryCtxReset(ordinal: CUdevice) -> CUresult {
    reset(Entry::cuDevicePrimaryCtxReset, ordinal)
}

#[unsafe(no_mangle)]
extern "C" fn cuDevicePrimaryCtxReset_v2(ordinal: CUdevice) -> CUresult {
    reset(Entry::cuDevicePrimaryCtxReset_v2, ordinal)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDevicePrimaryCtxGetState(ordinal: CUdevice, flags: *mut c_uint, active: *mut c_int) -> CUresult {
    call(Entry::cuDevicePrimaryCtxGetState, || {
        let (is_active, held_flags) = context::primary_state(device::get(ordinal)?);
        needed(flags)?;
        needed(active)?;
        // SAFETY: neither is NULL, so both are valid for writes.
        unsafe {
            put(flags, held_flags)?;
            put(active, is_active.into())
        }
    })
}

fn set_flags(entry: Entry, ordinal: CUdevice, flags: c_uint) -> CUresult {
    call(entry, || {
        let device = device::get(ordinal)?;
        super::context::check_flags(flags)?;
        let mut primary = device.primary.lock();
        primary.flags = flags;
        if let Some(context) = &primary.context {
            context.flags.store(flags, std::sync::atomic::Ordering::Relaxed);
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuDevicePrimaryCtxSetFlags(ordinal: CUdevice, flags: c_uint) -> CUresult {
    set_flags(Entry::cuDevicePrimaryCtxSetFlags, ordinal, flags)
}

#[unsafe(no_mangle)]
extern "C" fn cuDevicePrimaryCtxSetFlags_v2(ordinal: CUdevice, flags: c_uint) -> CUresult {
    set_flags(Entry::cuDevicePrimaryCtxSetFlags_v2, ordinal, flags)
}
