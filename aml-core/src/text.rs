//! Descriptions in text, written to a C stream.
//! The stream is the program's, so a line goes out whole and through the C library.

use aml_abi::{AML_EINVAL, AML_ENOMEM, AML_FAILURE, AML_SUCCESS};
use libc::{FILE, c_char, c_int};
use std::ffi::CStr;
use std::fmt;

/// Text that is an error, and not the end of the process, where memory for it is short.
struct Text(Vec<u8>);

impl fmt::Write for Text {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        self.0.try_reserve(part.len()).map_err(|_| fmt::Error)?;
        self.0.extend_from_slice(part.as_bytes());
        Ok(())
    }
}

/// Writes one line, right behind `prefix`.
///
/// # Safety
/// `stream` is NULL or an open stream, `prefix` NULL or a C string.
pub(crate) unsafe fn write_line(stream: *mut FILE, prefix: *const c_char, text: fmt::Arguments) -> c_int {
    if stream.is_null() {
        return -AML_EINVAL;
    }
    let mut line = Text(Vec::new());
    if fmt::write(&mut line, format_args!("{text}\0")).is_err() {
        return -AML_ENOMEM;
    }
    let Ok(text) = CStr::from_bytes_with_nul(&line.0) else {
        return -AML_FAILURE;
    };
    // SAFETY: the caller's promise; the format takes two C strings.
    let written = unsafe {
        let prefix = text_or_empty(prefix);
        libc::fprintf(stream, c"%s%s\n".as_ptr(), prefix.as_ptr(), text.as_ptr())
    };
    if written < 0 { -AML_FAILURE } else { AML_SUCCESS }
}

/// A C string, empty for NULL.
///
/// # Safety
/// `text` is NULL or a C string that lives as long as `'a`.
pub(crate) unsafe fn text_or_empty<'a>(text: *const c_char) -> &'a CStr {
    if text.is_null() {
        return c"";
    }
    // SAFETY: the caller's promise.
    unsafe { CStr::from_ptr(text) }
}
