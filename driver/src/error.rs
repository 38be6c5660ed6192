//! Why a driver call failed: CUDA's code, and the call that answered with it.
//! Here alone are codes turned into `Result`, and the line of `AML_DMA_CUDA_LOG` written.

use crate::ffi::{Status, cuGetErrorName};
use crate::process;
use std::ffi::CStr;
use std::fmt;

/// A driver call failed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Error {
    /// The driver's entry point.
    pub call: &'static str,
    /// What it answered.
    pub code: Code,
}

/// The number of a `CUresult`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Code(pub u32);

/// The result of a driver call.
pub type Result<T> = std::result::Result<T, Error>;

#[allow(missing_docs)] // CUDA documents them
impl Code {
    pub const INVALID_VALUE: Code = Code(1);
    pub const NOT_INITIALIZED: Code = Code(3);
    pub const NOT_FOUND: Code = Code(500);
    pub const OUT_OF_MEMORY: Code = Code(2);
    pub const NOT_READY: Code = Code(600);
    pub const PEER_ACCESS_ALREADY_ENABLED: Code = Code(704);
    pub const CONTEXT_IS_DESTROYED: Code = Code(709);

    /// CUDA's name of the code, where the driver knows one.
    pub fn name(self) -> &'static str {
        let mut name = std::ptr::null();
        // SAFETY: `name` is valid for a write; the driver stores a static string or NULL.
        unsafe {
            if cuGetErrorName(self.0, &mut name) != 0 || name.is_null() {
                return "unknown";
            }
            CStr::from_ptr(name).to_str().unwrap_or("unknown")
        }
    }
}

impl Error {
    /// An error of this crate's own, in the driver's words.
    pub const fn new(call: &'static str, code: Code) -> Error {
        Error { call, code }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        write!(out, "{} failed: {} ({})", self.call, self.code.0, self.code.name())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

impl std::error::Error for Error {}

/// Turns the status of `call` into a result, and logs a failure where that was asked for.
#[inline]
pub(crate) fn check(call: &'static str, status: Status) -> Result<()> {
    if status == 0 { Ok(()) } else { Err(failed(call, status)) }
}

/// As `check`, for a call whose failure is an answer and not worth a line in the log.
#[inline]
pub(crate) fn probe(call: &'static str, status: Status) -> Result<()> {
    if status == 0 { Ok(()) } else { Err(Error { call, code: Code(status) }) }
}

/// As `check`, for a query: false while the work is not done.
#[inline]
pub(crate) fn done(call: &'static str, status: Status) -> Result<bool> {
    if Code(status) == Code::NOT_READY { Ok(false) } else { check(call, status).map(|()| true) }
}

#[cold]
fn failed(call: &'static str, status: Status) -> Error {
    let error = Error { call, code: Code(status) };
    if process::logging() {
        let line = format!("aml-dma-cuda: {error}\n");
        // SAFETY: the buffer is valid for its length. One write, so that lines of several threads stay whole.
        unsafe { libc::write(2, line.as_ptr().cast(), line.len()) };
    }
    error
}
