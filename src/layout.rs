//! A layout of AML seen through its own table of functions, so that no symbol of AML is needed.
//! Everything that is asked of a layout is asked here; a missing function or an odd answer is an error, not a crash.

use crate::abi::{AML_SUCCESS, aml_layout, aml_layout_ops};
use crate::error::{Error, Result};
use libc::c_void;
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
        let ndims = self.ops.ndims.ok_or(Error::Invalid)?;
        // SAFETY: the function is given the state that belongs to it.
        Ok(unsafe { ndims(self.raw.data) })
    }

    /// The size of an element in bytes.
    pub fn element_size(&self) -> Result<usize> {
        let element_size = self.ops.element_size.ok_or(Error::Invalid)?;
        // SAFETY: the function is given the state that belongs to it.
        Ok(unsafe { element_size(self.raw.data) })
    }

    /// The dimensions, the fastest first, into `dims`, which has `ndims` places.
    pub fn dims_native(&self, dims: &mut [usize]) -> Result<()> {
        let dims_native = self.ops.dims_native.ok_or(Error::Invalid)?;
        // SAFETY: the function is given the state that belongs to it, and places for all dimensions.
        let code = unsafe { dims_native(self.raw.data, dims.as_mut_ptr()) };
        if code == AML_SUCCESS { Ok(()) } else { Err(Error::Operator(code)) }
    }

    /// The address of the element at `coords`, the fastest first, which lie within the dimensions.
    pub fn element(&self, coords: &[usize]) -> Result<*mut c_void> {
        let deref = self.ops.deref_native.ok_or(Error::Invalid)?;
        // SAFETY: the function is given the state that belongs to it, and coordinates within the dimensions.
        Ok(unsafe { deref(self.raw.data, coords.as_ptr()) })
    }

    /// The block that the elements fill.
    ///
    /// `NotSupported` when they leave gaps or are not in order, `Invalid` when their size overflows.
    pub fn block(&self) -> Result<Block> {
        with_dims(self, |dims| {
            let element_size = self.element_size()?;
            let count = dims.iter().try_fold(1usize, |product, &dim| product.checked_mul(dim)).ok_or(Error::Invalid)?;
            let size = count.checked_mul(element_size).filter(|&size| size <= isize::MAX as usize);
            let size = size.ok_or(Error::Invalid)?;
            if size == 0 {
                return Ok(Block { pointer: std::ptr::null_mut(), size: 0 });
            }
            let mut coords = Coordinates::new(dims.len());
            let origin = self.element(coords.as_slice())?;
            // Each dimension must step over exactly the block of those before it. One step tells nothing of the
            // next in a layout that is not regular, so the far corner must lie at the end, too.
            let mut distance = element_size;
            for (dimension, &length) in dims.iter().enumerate().filter(|(_, length)| **length > 1) {
                let next = self.element(coords.with(dimension, 1))?;
                if (next as usize).wrapping_sub(origin as usize) != distance {
                    return Err(Error::NotSupported);
                }
                distance *= length;
            }
            let corner = self.element(coords.corner(dims))?;
            if (corner as usize).wrapping_sub(origin as usize) != size - element_size {
                return Err(Error::NotSupported);
            }
            Ok(Block { pointer: origin, size })
        })
    }
}

/// So many dimensions are handled without an allocation.
const FEW: usize = 8;

/// Calls `work` with the dimensions of `layout`, the fastest first.
pub fn with_dims<T>(layout: &Layout, work: impl FnOnce(&[usize]) -> Result<T>) -> Result<T> {
    let ndims = layout.ndims()?;
    let mut few = [0; FEW];
    let mut many = Vec::new();
    let dims = places(ndims, &mut few, &mut many)?;
    layout.dims_native(dims)?;
    work(dims)
}

/// `count` zeros: in `few` where they fit, else in `many`.
fn places<'a>(count: usize, few: &'a mut [usize; FEW], many: &'a mut Vec<usize>) -> Result<&'a mut [usize]> {
    if count <= FEW {
        return Ok(&mut few[..count]);
    }
    many.try_reserve_exact(count).map_err(|_| Error::OutOfMemory)?;
    many.resize(count, 0);
    Ok(many)
}

/// The coordinates of one element.
pub struct Coordinates {
    few: [usize; FEW],
    many: Vec<usize>,
    count: usize,
}

impl Coordinates {
    /// The origin of `count` dimensions.
    pub fn new(count: usize) -> Coordinates {
        let many = if count > FEW { vec![0; count] } else { Vec::new() };
        Coordinates { few: [0; FEW], many, count }
    }

    /// All coordinates.
    pub fn as_slice(&mut self) -> &mut [usize] {
        if self.count > FEW { &mut self.many } else { &mut self.few[..self.count] }
    }

    /// The origin but for one coordinate.
    pub fn with(&mut self, dimension: usize, value: usize) -> &[usize] {
        let coords = self.as_slice();
        coords.fill(0);
        coords[dimension] = value;
        coords
    }

    /// The element that is last in every dimension.
    pub fn corner(&mut self, dims: &[usize]) -> &[usize] {
        let coords = self.as_slice();
        for (coord, &dim) in coords.iter_mut().zip(dims) {
            *coord = dim - 1;
        }
        coords
    }
}
