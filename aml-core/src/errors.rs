//! AML's error number of the last call that could not return one, and texts for error numbers.
//! One number for the whole process, as in AML.

use crate::text::text_or_empty;
use aml_abi::AML_ERROR_MAX;
use libc::{c_char, c_int};
use std::ffi::CStr;
use std::ptr;
use std::sync::atomic::{AtomicI32, Ordering};

/// The error number, positive.
#[unsafe(no_mangle)]
pub static aml_errno: AtomicI32 = AtomicI32::new(0);

const TEXTS: [&CStr; AML_ERROR_MAX as usize] = [
    c"Success",
    c"Generic error",
    c"Not enough memory",
    c"Invalid argument",
    c"Value out of bound",
    c"Operation not supported",
    c"Underlying resource is not available for operation",
    c"Insufficient permissions",
];

/// Stores the reason why a pointer is NULL, and returns that NULL.
pub(crate) fn refuse<T>(error: c_int) -> *mut T {
    aml_errno.store(error, Ordering::Relaxed);
    ptr::null_mut()
}

/// Text for a positive error number.
#[unsafe(no_mangle)]
pub extern "C" fn aml_strerror(err: c_int) -> *const c_char {
    let text = usize::try_from(err).ok().and_then(|err| TEXTS.get(err));
    text.unwrap_or(&c"Unknown error").as_ptr()
}

/// Writes the text for `aml_errno` to standard error, after `msg` and a colon.
///
/// # Safety
/// `msg` is NULL or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aml_perror(msg: *const c_char) {
    // SAFETY: the caller's promise.
    let msg = unsafe { text_or_empty(msg) };
    let colon = if msg.is_empty() { c"" } else { c": " };
    let text = aml_strerror(aml_errno.load(Ordering::Relaxed));
    // The program's own buffer of stderr, so that the line keeps its place among the program's lines.
    // SAFETY: the format takes three C strings, and these are.
    unsafe { libc::fprintf(stderr, c"%s%s%s\n".as_ptr(), msg.as_ptr(), colon.as_ptr(), text) };
}

unsafe extern "C" {
    /// The C library's standard error stream.
    static stderr: *mut libc::FILE;
}
