//! Layouts as a program of AML's has them: a table of functions over dimensions and distances.

use aml_dma_cuda::abi::*;
use std::ffi::{c_int, c_void};
use std::ptr;

/// A layout whose element at `coords` lies at `pointer + sum(coords[i] * steps[i])`, dimensions the fastest first.
pub struct Dense {
    public: aml_layout,
    pointer: usize,
    row_major: bool,
    element_size: usize,
    dims: Vec<usize>,
    steps: Vec<usize>,
}

static OPS: aml_layout_ops = aml_layout_ops {
    deref: Some(deref),
    deref_native: Some(deref_native),
    rawptr: Some(rawptr),
    order: Some(order),
    dims: Some(dims),
    dims_native: Some(dims_native),
    ndims: Some(ndims),
    element_size: Some(element_size),
    reshape: None,
    slice: None,
    slice_native: None,
    fprintf: None,
    duplicate: None,
    destroy: None,
};

impl Dense {
    /// A layout with these distances in bytes between the elements of each dimension.
    pub fn new(
        pointer: usize,
        row_major: bool,
        element_size: usize,
        dims: Vec<usize>,
        steps: Vec<usize>,
    ) -> Box<Dense> {
        let public = aml_layout { ops: (&raw const OPS).cast_mut(), data: ptr::null_mut() };
        let mut dense = Box::new(Dense { public, pointer, row_major, element_size, dims, steps });
        dense.public.data = (&raw mut *dense).cast();
        dense
    }

    /// A layout without gaps.
    pub fn block(pointer: usize, element_size: usize, dims: Vec<usize>) -> Box<Dense> {
        let mut step = element_size;
        let steps = dims.iter().map(|&dim| (step, step = step.wrapping_mul(dim)).0).collect();
        Dense::new(pointer, false, element_size, dims, steps)
    }

    /// What the library takes.
    pub fn raw(&self) -> *mut aml_layout {
        (&raw const self.public).cast_mut()
    }

    /// How far the element at `coords`, in the order of the layout's user, lies behind the first.
    pub fn offset(&self, coords: &[usize]) -> usize {
        self.at(ordered(self, coords).into_iter()) as usize - self.pointer
    }

    fn at(&self, coords: impl Iterator<Item = usize>) -> *mut c_void {
        (self.pointer + coords.zip(&self.steps).map(|(coord, step)| coord * step).sum::<usize>()) as *mut c_void
    }
}

/// The layout behind the state.
///
/// # Safety
/// `data` is a `Dense` that lives.
unsafe fn dense<'a>(data: *const aml_layout_data) -> &'a Dense {
    // SAFETY: the caller vouches for it.
    unsafe { &*data.cast() }
}

/// The numbers, the first for the fastest dimension, in the order of the user of the layout, or back.
fn ordered(layout: &Dense, numbers: &[usize]) -> Vec<usize> {
    let mut numbers = numbers.to_vec();
    if layout.row_major {
        numbers.reverse();
    }
    numbers
}

unsafe extern "C" fn deref(data: *const aml_layout_data, coords: *const usize) -> *mut c_void {
    // SAFETY: the library gives the state and as many coordinates as dimensions.
    unsafe {
        let layout = dense(data);
        layout.at(ordered(layout, std::slice::from_raw_parts(coords, layout.dims.len())).into_iter())
    }
}

unsafe extern "C" fn deref_native(data: *const aml_layout_data, coords: *const usize) -> *mut c_void {
    // SAFETY: the library gives the state and as many coordinates as dimensions.
    unsafe {
        let layout = dense(data);
        layout.at(std::slice::from_raw_parts(coords, layout.dims.len()).iter().copied())
    }
}

unsafe extern "C" fn rawptr(data: *const aml_layout_data) -> *mut c_void {
    // SAFETY: the library gives the state.
    unsafe { dense(data) }.pointer as *mut c_void
}

unsafe extern "C" fn order(data: *const aml_layout_data) -> c_int {
    // SAFETY: the library gives the state.
    if unsafe { dense(data) }.row_major { AML_LAYOUT_ORDER_ROW_MAJOR } else { AML_LAYOUT_ORDER_COLUMN_MAJOR }
}

unsafe extern "C" fn dims(data: *const aml_layout_data, dims: *mut usize) -> c_int {
    // SAFETY: the library gives the state and as many places as dimensions.
    unsafe {
        let layout = dense(data);
        let ordered = ordered(layout, &layout.dims);
        ptr::copy_nonoverlapping(ordered.as_ptr(), dims, ordered.len());
    }
    AML_SUCCESS
}

unsafe extern "C" fn dims_native(data: *const aml_layout_data, dims: *mut usize) -> c_int {
    // SAFETY: the library gives the state and as many places as dimensions.
    unsafe {
        let layout = dense(data);
        ptr::copy_nonoverlapping(layout.dims.as_ptr(), dims, layout.dims.len());
    }
    AML_SUCCESS
}

unsafe extern "C" fn ndims(data: *const aml_layout_data) -> usize {
    // SAFETY: the library gives the state.
    unsafe { dense(data) }.dims.len()
}

unsafe extern "C" fn element_size(data: *const aml_layout_data) -> usize {
    // SAFETY: the library gives the state.
    unsafe { dense(data) }.element_size
}
