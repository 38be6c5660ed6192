//! A layout as AML sees it: a description of where the elements of an array lie, behind a table of functions.

use crate::assert_layout;
use libc::{FILE, c_char, c_int, c_void};

/// `order` of a layout whose first dimension varies fastest (Fortran).
pub const AML_LAYOUT_ORDER_COLUMN_MAJOR: c_int = 0;
/// `order` of a layout whose last dimension varies fastest (C).
pub const AML_LAYOUT_ORDER_ROW_MAJOR: c_int = 1;
/// Another name for `AML_LAYOUT_ORDER_COLUMN_MAJOR`.
pub const AML_LAYOUT_ORDER_FORTRAN: c_int = 0;
/// Another name for `AML_LAYOUT_ORDER_ROW_MAJOR`.
pub const AML_LAYOUT_ORDER_C: c_int = 1;

/// The state of a layout, known only to its implementation.
#[repr(C)]
pub struct aml_layout_data {
    _opaque: [u8; 0],
}

/// The operations of a layout.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct aml_layout_ops {
    /// Address of the element at `coords`, in the layout's own order.
    pub deref: Option<unsafe extern "C" fn(data: *const aml_layout_data, coords: *const usize) -> *mut c_void>,
    /// Address of the element at `coords`, the first of which varies fastest.
    pub deref_native: Option<unsafe extern "C" fn(data: *const aml_layout_data, coords: *const usize) -> *mut c_void>,
    /// Address of the memory below the layout.
    pub rawptr: Option<unsafe extern "C" fn(data: *const aml_layout_data) -> *mut c_void>,
    /// One of the two orders.
    pub order: Option<unsafe extern "C" fn(data: *const aml_layout_data) -> c_int>,
    /// Stores the dimensions, in the layout's own order.
    pub dims: Option<unsafe extern "C" fn(data: *const aml_layout_data, dims: *mut usize) -> c_int>,
    /// Stores the dimensions, the fastest first.
    pub dims_native: Option<unsafe extern "C" fn(data: *const aml_layout_data, dims: *mut usize) -> c_int>,
    /// The number of dimensions.
    pub ndims: Option<unsafe extern "C" fn(data: *const aml_layout_data) -> usize>,
    /// The size of an element in bytes.
    pub element_size: Option<unsafe extern "C" fn(data: *const aml_layout_data) -> usize>,
    /// The same elements in other dimensions.
    pub reshape: Option<
        unsafe extern "C" fn(
            data: *const aml_layout_data,
            output: *mut *mut aml_layout,
            ndims: usize,
            dims: *const usize,
        ) -> c_int,
    >,
    /// A part of the elements, in the layout's own order.
    pub slice: Option<
        unsafe extern "C" fn(
            data: *const aml_layout_data,
            output: *mut *mut aml_layout,
            offsets: *const usize,
            dims: *const usize,
            strides: *const usize,
        ) -> c_int,
    >,
    /// A part of the elements, the fastest dimension first.
    pub slice_native: Option<
        unsafe extern "C" fn(
            data: *const aml_layout_data,
            output: *mut *mut aml_layout,
            offsets: *const usize,
            dims: *const usize,
            strides: *const usize,
        ) -> c_int,
    >,
    /// Describes the layout on a stream of text, each line behind `prefix`.
    pub fprintf:
        Option<unsafe extern "C" fn(data: *const aml_layout_data, stream: *mut FILE, prefix: *const c_char) -> c_int>,
    /// The same layout over other memory.
    pub duplicate: Option<
        unsafe extern "C" fn(layout: *const aml_layout, output: *mut *mut aml_layout, ptr: *mut c_void) -> c_int,
    >,
    /// Frees the layout, not the memory below it.
    pub destroy: Option<unsafe extern "C" fn(layout: *mut aml_layout) -> c_int>,
}

/// A layout: its operations, and the state they work on.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct aml_layout {
    /// The operations.
    pub ops: *mut aml_layout_ops,
    /// The state, passed to each of them.
    pub data: *mut aml_layout_data,
}

/// The state of AML's dense layouts: the element at `coords` lies at `ptr + sum(coords[i] * cpitch[i] * stride[i])`.
#[repr(C)]
pub struct aml_layout_dense {
    /// The memory below the layout.
    pub ptr: *mut c_void,
    /// The number of dimensions.
    pub ndims: usize,
    /// The dimensions, the fastest first.
    pub dims: *mut usize,
    /// The step between two elements of a dimension, in elements.
    pub stride: *mut usize,
    /// `ndims + 1` distances in bytes; the first is the size of an element.
    pub cpitch: *mut usize,
}

assert_layout!(aml_layout, 16, { ops: 0, data: 8 });
assert_layout!(aml_layout_ops, 112, {
    deref: 0, deref_native: 8, rawptr: 16, order: 24, dims: 32, dims_native: 40, ndims: 48,
    element_size: 56, reshape: 64, slice: 72, slice_native: 80, fprintf: 88, duplicate: 96, destroy: 104,
});
assert_layout!(aml_layout_dense, 40, { ptr: 0, ndims: 8, dims: 16, stride: 24, cpitch: 32 });
