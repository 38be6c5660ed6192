//! Start and end of the library, and the version of AML that it stands in for.
//! Nothing here holds state: the driver is opened by whoever needs it first.

use aml_abi::AML_SUCCESS;
use libc::{c_char, c_int};

/// Major number of AML's version.
#[unsafe(no_mangle)]
pub static aml_version_major: c_int = 0;
/// Minor number of AML's version.
#[unsafe(no_mangle)]
pub static aml_version_minor: c_int = 2;
/// Patch number of AML's version.
#[unsafe(no_mangle)]
pub static aml_version_patch: c_int = 1;
/// Name of the build, by which a program can tell this library from AML's own.
#[unsafe(no_mangle)]
pub static mut aml_version_revision: *const c_char = c"aml-core".as_ptr();
/// The three numbers as text.
#[unsafe(no_mangle)]
pub static mut aml_version_string: *const c_char = c"0.2.1".as_ptr();

/// Starts the library.
///
/// # Safety
/// `argc` and `argv` are not looked at.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aml_init(_argc: *mut c_int, _argv: *mut *mut *mut c_char) -> c_int {
    AML_SUCCESS
}

/// Ends the use of the library.
#[unsafe(no_mangle)]
pub extern "C" fn aml_finalize() -> c_int {
    AML_SUCCESS
}
