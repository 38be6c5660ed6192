//! An area as AML sees it: a way of getting memory, behind a table of functions.

use crate::assert_layout;
use libc::{FILE, c_char, c_int, c_void};

/// The state of an area, known only to its implementation.
#[repr(C)]
pub struct aml_area_data {
    _opaque: [u8; 0],
}

/// Options of one mapping, known only to the implementation of the area.
#[repr(C)]
pub struct aml_area_mmap_options {
    _opaque: [u8; 0],
}

/// The operations of an area.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct aml_area_ops {
    /// Maps `size` bytes.
    pub mmap: Option<
        unsafe extern "C" fn(data: *const aml_area_data, size: usize, opts: *mut aml_area_mmap_options) -> *mut c_void,
    >,
    /// Gives `size` bytes at `ptr` back.
    pub munmap: Option<unsafe extern "C" fn(data: *const aml_area_data, ptr: *mut c_void, size: usize) -> c_int>,
    /// Describes the area on a stream of text, each line behind `prefix`.
    pub fprintf:
        Option<unsafe extern "C" fn(data: *const aml_area_data, stream: *mut FILE, prefix: *const c_char) -> c_int>,
}

/// An area: its operations, and the state they work on.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct aml_area {
    /// The operations.
    pub ops: *mut aml_area_ops,
    /// The state, passed to each of them.
    pub data: *mut aml_area_data,
}

assert_layout!(aml_area, 16, { ops: 0, data: 8 });
assert_layout!(aml_area_ops, 24, { mmap: 0, munmap: 8, fprintf: 16 });
