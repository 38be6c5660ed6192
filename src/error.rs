//! Why a call of this library failed, and its one conversion to AML's codes.

use crate::abi::{AML_EINVAL, AML_ENOMEM, AML_ENOTSUP, AML_FAILURE};
use libc::c_int;

/// A call of this library failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Error {
    /// An argument is not valid.
    Invalid,
    /// The operation is not supported for these arguments.
    NotSupported,
    /// Host memory ran out.
    OutOfMemory,
    /// The driver failed.
    Cuda(cuda_driver::Error),
    /// The code of an operator, passed on as it came.
    Operator(c_int),
}

/// The result of a call of this library.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// AML's code, as its functions return it.
    pub fn code(self) -> c_int {
        match self {
            Error::Invalid => -AML_EINVAL,
            Error::NotSupported => -AML_ENOTSUP,
            Error::OutOfMemory => -AML_ENOMEM,
            Error::Cuda(_) => -AML_FAILURE,
            Error::Operator(code) => code,
        }
    }
}

impl From<std::collections::TryReserveError> for Error {
    fn from(_: std::collections::TryReserveError) -> Error {
        Error::OutOfMemory
    }
}

impl From<cuda_driver::Error> for Error {
    fn from(error: cuda_driver::Error) -> Error {
        Error::Cuda(error)
    }
}
