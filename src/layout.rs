//! A layout of AML seen through its own table of functions, so that no symbol of AML is needed.
//! Everything that is asked of a layout is asked here; a missing function or an odd answer is an error, not a crash.

use crate::abi::{
    AML_LAYOUT_ORDER_COLUMN_MAJOR, AML_LAYOUT_ORDER_ROW_MAJOR, AML_SUCCESS, aml_layout, aml_layout_data, aml_layout_ops,
};
use crate::error::{Error, Result};
use crate::few::Few;
use libc::{c_int, c_void};
use std::marker::PhantomData;

/// A layout for the duration of a call.
#[derive(Clone, Copy)]
pub struct Layout<'a> {
    raw: aml_layout,
    ops: &'a aml_layout_ops,
    lifetime: PhantomData<&'a aml_layout>,
}

/// A layout whose elements fill one block of memory, without gaps.
#[derive(Clone, Copy, Debug)]
pub struct Block {
    /// Where the block begins; not meaningful when it is empty.
    pub pointer: *mut c_void,
    /// Its size in bytes.
    pub size: usize,
}

/// The functions by which a layout takes coordinates: its native ones, or where they lack, those in the user's order.
#[derive(Clone, Copy)]
pub struct Access {
    dims: unsafe extern "C" fn(*const aml_layout_data, *mut usize) -> c_int,
    deref: unsafe extern "C" fn(*const aml_layout_data, *const usize) -> *mut c_void,
    /// Whether the coordinates of these functions are the user's, last first.
    pub reversed: bool,
}

impl<'a> Layout<'a> {
    /// The layout at `layout`.
    ///
    /// # Safety
    /// `layout` is NULL, or a layout of AML that nobody changes or destroys during `'a`.
    pub unsafe fn new(layout: *const aml_layout) -> Result<Layout<'a>> {
        // SAFETY: the caller vouches for it.
        let raw = *unsafe { layout.as_ref() }.ok_or(Error::Invalid)?;
        // SAFETY: as above; a layout's operations outlive it.
        let ops = unsafe { raw.ops.as_ref() }.ok_or(Error::Invalid)?;
        Ok(Layout { raw, ops, lifetime: PhantomData })
    }

    /// The number of dimensions.
    pub fn ndims(&self) -> Result<usize> {
        let ndims = self.ops.ndims.ok_or(Error::NotSupported)?;
        // SAFETY: the function is given the state that belongs to it.
        Ok(unsafe { ndims(self.raw.data) })
    }

    /// The size of an element in bytes.
    pub fn element_size(&self) -> Result<usize> {
        let element_size = self.ops.element_size.ok_or(Error::NotSupported)?;
        // SAFETY: the function is given the state that belongs to it.
        Ok(unsafe { element_size(self.raw.data) })
    }

    /// How to hand coordinates to the layout.
    pub fn access(&self) -> Result<Access> {
        if let (Some(dims), Some(deref), Some(order)) = (self.ops.dims_native, self.ops.deref_native, self.ops.order) {
            // SAFETY: the function is given the state that belongs to it.
            let reversed = match unsafe { order(self.raw.data) } {
                AML_LAYOUT_ORDER_COLUMN_MAJOR => false,
                AML_LAYOUT_ORDER_ROW_MAJOR => true,
                _ => return Err(Error::NotSupported),
            };
            return Ok(Access { dims, deref, reversed });
        }
        let (dims, deref) = self.ops.dims.zip(self.ops.deref).ok_or(Error::NotSupported)?;
        Ok(Access { dims, deref, reversed: false })
    }

    /// The dimensions, in the order of `access`, into `dims`, which has `ndims` places.
    pub fn dims(&self, access: Access, dims: &mut [usize]) -> Result<()> {
        // SAFETY: the function is given the state that belongs to it, and places for all dimensions.
        let code = unsafe { (access.dims)(self.raw.data, dims.as_mut_ptr()) };
        if code == AML_SUCCESS { Ok(()) } else { Err(Error::Operator(code)) }
    }

    /// The address of the element at `coords`, which lie within the dimensions, in the order of `access`.
    pub fn element(&self, access: Access, coords: &[usize]) -> *mut c_void {
        // SAFETY: the function is given the state that belongs to it, and coordinates within the dimensions.
        unsafe { (access.deref)(self.raw.data, coords.as_ptr()) }
    }

    /// The block that the elements fill, the fastest dimension first.
    ///
    /// `NotSupported` when they leave gaps or are not in order, `Invalid` when their size overflows.
    pub fn block(&self) -> Result<Block> {
        let (Some(dims), Some(deref)) = (self.ops.dims_native, self.ops.deref_native) else {
            return Err(Error::NotSupported);
        };
        let access = Access { dims, deref, reversed: false };
        let mut dims = Few::zeros(self.ndims()?)?;
        self.dims(access, &mut dims)?;
        let element_size = self.element_size()?;
        let size = bytes(element_size, &dims)?;
        if size == 0 {
            return Ok(Block { pointer: std::ptr::null_mut(), size: 0 });
        }
        let mut coords = Few::zeros(dims.len())?;
        let origin = self.element(access, &coords);
        // Each dimension must step over exactly the block of those before it. One step tells nothing of the
        // next in a layout that is not regular, so the far corner must lie at the end, too.
        let mut distance = element_size;
        for (dimension, &length) in dims.iter().enumerate().filter(|(_, length)| **length > 1) {
            coords.fill(0);
            coords[dimension] = 1;
            let next = self.element(access, &coords);
            if (next as usize).wrapping_sub(origin as usize) != distance {
                return Err(Error::NotSupported);
            }
            distance *= length;
        }
        for (coord, &length) in coords.iter_mut().zip(dims.iter()) {
            *coord = length - 1;
        }
        let corner = self.element(access, &coords);
        if (corner as usize).wrapping_sub(origin as usize) != size - element_size {
            return Err(Error::NotSupported);
        }
        Ok(Block { pointer: origin, size })
    }
}

/// The bytes of all elements; `Invalid` when they are more than memory can hold.
pub fn bytes(element_size: usize, dims: &[usize]) -> Result<usize> {
    if dims.contains(&0) {
        return Ok(0); // however long the others
    }
    let product = dims.iter().try_fold(element_size, |product, &dim| product.checked_mul(dim));
    product.filter(|&size| size <= isize::MAX as usize).ok_or(Error::Invalid)
}
