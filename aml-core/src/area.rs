//! The generic calls on areas: check, then call the area's own operation.
//! Which areas there are, the modules below say.

pub(crate) mod cuda;
pub(crate) mod linux;
mod mapped;

use crate::errors::refuse;
use aml_abi::{AML_EINVAL, AML_ENOTSUP, AML_SUCCESS, aml_area, aml_area_data, aml_area_mmap_options, aml_area_ops};
use libc::{FILE, c_char, c_int, c_void};

/// An operation of an area and the state it works on, or the error for a NULL pointer or a lacking operation.
///
/// # Safety
/// `area` is NULL or valid for reads, and so are its `ops`.
unsafe fn find<T>(
    area: *const aml_area,
    operation: impl FnOnce(&aml_area_ops) -> Option<T>,
) -> Result<(T, *mut aml_area_data), c_int> {
    // SAFETY: the caller's promise.
    let area = unsafe { area.as_ref() }.ok_or(-AML_EINVAL)?;
    // SAFETY: the caller's promise.
    let ops = unsafe { area.ops.as_ref() }.ok_or(-AML_EINVAL)?;
    Ok((operation(ops).ok_or(-AML_ENOTSUP)?, area.data))
}

/// Maps memory; NULL and `aml_errno` on failure.
///
/// # Safety
/// `area` is NULL or a valid area; `opts` is what it takes as options.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aml_area_mmap(
    area: *const aml_area,
    size: usize,
    opts: *mut aml_area_mmap_options,
) -> *mut c_void {
    // SAFETY: the caller's promise.
    match unsafe { find(area, |ops| ops.mmap) } {
        Ok(_) if size == 0 => refuse(AML_EINVAL),
        // SAFETY: the operation belongs to this state; the rest is the caller's promise.
        Ok((mmap, data)) => unsafe { mmap(data, size, opts) },
        Err(error) => refuse(-error),
    }
}

/// Gives memory back.
///
/// # Safety
/// `area` is NULL or a valid area; `ptr` is NULL or `size` bytes mapped from it, no longer used.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aml_area_munmap(area: *const aml_area, ptr: *mut c_void, size: usize) -> c_int {
    // SAFETY: the caller's promise.
    match unsafe { find(area, |ops| ops.munmap) } {
        Ok(_) if ptr.is_null() => AML_SUCCESS,
        // SAFETY: the operation belongs to this state; the rest is the caller's promise.
        Ok((munmap, data)) => unsafe { munmap(data, ptr, size) },
        Err(error) => error,
    }
}

/// Describes an area in text.
///
/// # Safety
/// `stream` is NULL or an open stream, `prefix` NULL or a C string, `area` NULL or a valid area.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aml_area_fprintf(stream: *mut FILE, prefix: *const c_char, area: *const aml_area) -> c_int {
    if stream.is_null() {
        return -AML_EINVAL;
    }
    let prefix = if prefix.is_null() { c"".as_ptr() } else { prefix };
    // SAFETY: the caller's promise.
    match unsafe { find(area, |ops| ops.fprintf) } {
        // SAFETY: the operation belongs to this state; the rest is the caller's promise.
        Ok((fprintf, data)) => unsafe { fprintf(data, stream, prefix) },
        Err(error) => error,
    }
}
