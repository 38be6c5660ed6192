//! The exported functions, under the driver's names: each checks its arguments, looks its handles up and calls the core.
//! Pointers are the program's: NULL where the driver refuses NULL, else valid for what the driver's manual says.
mod context;
mod copy;
mod cuemu;
mod device;
mod event;
mod init;
mod memop;
mod memory;
mod module;
mod region;
mod stream;

use crate::result::*;

/// Writes a result where the program wants it; NULL is refused.
///
/// # Safety
/// `place` must be NULL or valid for writes.
unsafe fn put<T>(place: *mut T, value: T) -> Result {
    if place.is_null() {
        return Err(CUDA_ERROR_INVALID_VALUE);
    }
    // SAFETY: the caller's promise.
    unsafe { place.write(value) };
    Ok(())
}

/// Refuses NULL before anything is done.
fn needed<T>(place: *mut T) -> Result {
    if place.is_null() { Err(CUDA_ERROR_INVALID_VALUE) } else { Ok(()) }
}
