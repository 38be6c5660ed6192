//! The control calls of `cuemu.h`: what a test can ask of the emulator and tell it. They are never counted or logged.
use crate::control::{self, Rule, settings};
use crate::entry::Entry;
use crate::memory::Sort;
use crate::result::*;
use crate::types::*;
use crate::{context, device, event, log, memory, module, stream};
use std::ffi::{CStr, c_char, c_int};
use std::sync::atomic::Ordering::Relaxed;

fn code(outcome: Result) -> CUresult {
    outcome.err().unwrap_or(CUDA_SUCCESS)
}

/// The entry point of a C string: None for `*` or NULL.
///
/// # Safety
/// `name` must be NULL or a text that ends in a zero.
unsafe fn entry(name: *const c_char) -> Result<Option<Entry>> {
    if name.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller's promise.
    let name = unsafe { CStr::from_ptr(name) }.to_str().map_err(|_| CUDA_ERROR_NOT_FOUND)?;
    if name == "*" { Ok(None) } else { Entry::named(name).map(Some).ok_or(CUDA_ERROR_NOT_FOUND) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuemu_fail(name: *const c_char, nth: u64, result: CUresult) -> CUresult {
    // SAFETY: as the program promised.
    code(unsafe { entry(name) }.map(|entry| control::arm(Rule { entry, nth, code: result })))
}

#[unsafe(no_mangle)]
extern "C" fn cuemu_fail_clear() {
    control::disarm();
}

#[unsafe(no_mangle)]
extern "C" fn cuemu_fail_pending() -> usize {
    control::armed()
}

#[unsafe(no_mangle)]
extern "C" fn cuemu_fail_stream(handle: CUstream, after: u64, result: CUresult) -> CUresult {
    code(stream::resolve(handle).map(|stream| stream.fail_after(after, result)))
}

#[unsafe(no_mangle)]
extern "C" fn cuemu_hold(handle: CUstream) -> CUresult {
    code(stream::resolve(handle).map(|stream| stream.hold()))
}

#[unsafe(no_mangle)]
extern "C" fn cuemu_release(handle: CUstream) -> CUresult {
    code(stream::resolve(handle).and_then(|stream| stream.release()))
}

#[unsafe(no_mangle)]
extern "C" fn cuemu_set_delay(nanoseconds: u64) {
    settings().delay.store(nanoseconds, Relaxed);
}

#[unsafe(no_mangle)]
extern "C" fn cuemu_set_bandwidth(bytes_per_second: u64) {
    settings().bytes_per_second.store(bytes_per_second, Relaxed);
}

#[unsafe(no_mangle)]
extern "C" fn cuemu_set_peer_access(allowed: c_int) {
    settings().peer_access.store(allowed != 0, Relaxed);
}

#[unsafe(no_mangle)]
extern "C" fn cuemu_set_compute_mode(mode: c_int) {
    settings().compute_mode.store(mode, Relaxed);
}

#[unsafe(no_mangle)]
extern "C" fn cuemu_set_reuse_handles(reuse: c_int) {
    settings().reuse_handles.store(reuse != 0, Relaxed);
}

#[unsafe(no_mangle)]
extern "C" fn cuemu_live_contexts() -> usize {
    context::live()
}

#[unsafe(no_mangle)]
extern "C" fn cuemu_live_streams() -> usize {
    stream::live()
}

#[unsafe(no_mangle)]
extern "C" fn cuemu_live_events() -> usize {
    event::live()
}

#[unsafe(no_mangle)]
extern "C" fn cuemu_live_device_allocations() -> usize {
    memory::live(Sort::Device)
}

#[unsafe(no_mangle)]
extern "C" fn cuemu_live_host_allocations() -> usize {
    memory::live(Sort::Pinned)
}

#[unsafe(no_mangle)]
extern "C" fn cuemu_live_managed_allocations() -> usize {
    memory::live(Sort::Managed)
}

#[unsafe(no_mangle)]
extern "C" fn cuemu_live_registrations() -> usize {
    memory::live(Sort::Registered)
}

#[unsafe(no_mangle)]
extern "C" fn cuemu_live_modules() -> usize {
    module::live()
}

#[unsafe(no_mangle)]
extern "C" fn cuemu_primary_count(ordinal: CUdevice) -> c_int {
    device::get(ordinal).map_or(-1, |device| device.primary.lock().count as c_int)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuemu_calls(name: *const c_char) -> u64 {
    // SAFETY: as the program promised.
    match unsafe { entry(name) } {
        Ok(Some(entry)) => control::calls(entry),
        Ok(None) => control::all_calls(),
        Err(_) => 0,
    }
}

#[unsafe(no_mangle)]
extern "C" fn cuemu_stale_uses() -> u64 {
    control::stale_uses()
}

#[unsafe(no_mangle)]
extern "C" fn cuemu_log_start() {
    log::start();
}

#[unsafe(no_mangle)]
extern "C" fn cuemu_log_stop() {
    log::stop();
}

#[unsafe(no_mangle)]
extern "C" fn cuemu_log_length() -> usize {
    log::length()
}

/// The name is written with its zero, cut to `room` bytes.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuemu_log_get(
    index: usize,
    thread: *mut c_int,
    name: *mut c_char,
    room: usize,
    result: *mut CUresult,
) -> CUresult {
    let Some(call) = log::get(index) else {
        return CUDA_ERROR_NOT_FOUND;
    };
    // SAFETY: each is NULL or valid for writes, `name` of `room` bytes.
    unsafe {
        if !thread.is_null() {
            thread.write(call.thread);
        }
        if !result.is_null() {
            result.write(call.code);
        }
        if !name.is_null() && room > 0 {
            let text = call.entry.name();
            let len = text.len().min(room - 1);
            std::ptr::copy_nonoverlapping(text.as_ptr(), name.cast(), len);
            name.add(len).write(0);
        }
    }
    CUDA_SUCCESS
}
