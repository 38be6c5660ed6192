//! Memory of the processor: anonymous private pages from the kernel.
//! The area has no state and takes no options.

use crate::errors::refuse;
use crate::text::write_line;
use aml_abi::{
    AML_EINVAL, AML_ENOMEM, AML_ENOTSUP, AML_FAILURE, AML_SUCCESS, aml_area, aml_area_data, aml_area_mmap_options,
    aml_area_ops,
};
use libc::{FILE, c_char, c_int, c_void};
use std::io;
use std::ptr;

/// Operations of the Linux area.
#[unsafe(no_mangle)]
pub static mut aml_area_linux_ops: aml_area_ops =
    aml_area_ops { mmap: Some(mmap), munmap: Some(munmap), fprintf: Some(fprintf) };

/// The Linux area.
#[unsafe(no_mangle)]
pub static mut aml_area_linux: aml_area = aml_area { ops: &raw mut aml_area_linux_ops, data: ptr::null_mut() };

/// # Safety
/// Any arguments will do; options are refused unread.
unsafe extern "C" fn mmap(_data: *const aml_area_data, size: usize, opts: *mut aml_area_mmap_options) -> *mut c_void {
    if !opts.is_null() {
        return refuse(AML_ENOTSUP);
    }
    if size == 0 {
        return refuse(AML_EINVAL);
    }
    let prot = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: asks for new pages wherever the kernel has room.
    let memory = unsafe { libc::mmap(ptr::null_mut(), size, prot, flags, -1, 0) };
    match memory {
        // With these arguments only the size can be wrong, whatever the kernel calls that.
        libc::MAP_FAILED => refuse(AML_ENOMEM),
        memory => memory,
    }
}

/// # Safety
/// `size` bytes at `ptr` were mapped here and are no longer used.
unsafe extern "C" fn munmap(_data: *const aml_area_data, ptr: *mut c_void, size: usize) -> c_int {
    if ptr.is_null() {
        return AML_SUCCESS;
    }
    // SAFETY: the caller's promise.
    match unsafe { libc::munmap(ptr, size) } {
        0 => AML_SUCCESS,
        _ if io::Error::last_os_error().raw_os_error() == Some(libc::EINVAL) => -AML_EINVAL,
        _ => -AML_FAILURE,
    }
}

/// # Safety
/// `stream` is an open stream, `prefix` NULL or a C string.
unsafe extern "C" fn fprintf(_data: *const aml_area_data, stream: *mut FILE, prefix: *const c_char) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { write_line(stream, prefix, format_args!("area-linux: anonymous private pages")) }
}
