//! The memory of a dense layout: the two structs that C sees and their arrays, in one block of the C allocator.
//! One block, so that freeing the layout frees all of it.

use super::shape::{Draft, Shape};
use aml_abi::{AML_ENOMEM, aml_layout, aml_layout_data, aml_layout_dense, aml_layout_ops};
use libc::{c_int, c_void};
use std::ptr::NonNull;
use std::slice;

#[repr(C)]
struct Block {
    layout: aml_layout,
    dense: aml_layout_dense,
    // Here follow `dims`, `stride` and `cpitch`: 3 * ndims + 1 numbers.
}

/// A dense layout that nobody else knows yet; freed unless it is handed over.
pub(super) struct New(NonNull<Block>);

impl New {
    /// A layout with every number 0.
    pub fn allocate(ops: *mut aml_layout_ops, ndims: usize) -> Result<Self, c_int> {
        let numbers = ndims.checked_mul(3).and_then(|numbers| numbers.checked_add(1));
        let bytes = numbers
            .and_then(|numbers| numbers.checked_mul(size_of::<usize>()))
            .and_then(|bytes| bytes.checked_add(size_of::<Block>()))
            .ok_or(-AML_ENOMEM)?;
        // SAFETY: a plain allocation.
        let block = NonNull::new(unsafe { libc::calloc(1, bytes) }.cast::<Block>()).ok_or(-AML_ENOMEM)?;
        // SAFETY: the block ends with room for all the numbers, aligned as `Block` is.
        unsafe {
            let dims = block.as_ptr().add(1).cast::<usize>();
            let stride = dims.add(ndims);
            let cpitch = stride.add(ndims);
            let dense = &raw mut (*block.as_ptr()).dense;
            dense.write(aml_layout_dense { ptr: std::ptr::null_mut(), ndims, dims, stride, cpitch });
            (&raw mut (*block.as_ptr()).layout).write(aml_layout { ops, data: dense.cast() });
        }
        Ok(Self(block))
    }

    /// The numbers, to be filled in.
    pub fn draft(&mut self) -> Draft<'_> {
        // SAFETY: the block is ours alone, and its arrays do not overlap and were made this long.
        unsafe {
            let dense = &(*self.0.as_ptr()).dense;
            Draft {
                dims: slice::from_raw_parts_mut(dense.dims, dense.ndims),
                stride: slice::from_raw_parts_mut(dense.stride, dense.ndims),
                cpitch: slice::from_raw_parts_mut(dense.cpitch, dense.ndims + 1),
            }
        }
    }

    /// Says which memory it describes, and hands the layout over.
    pub fn finish(self, ptr: *mut c_void) -> *mut aml_layout {
        let block = self.0.as_ptr();
        std::mem::forget(self);
        // SAFETY: the block is ours until here.
        unsafe {
            (*block).dense.ptr = ptr;
            &raw mut (*block).layout
        }
    }
}

impl Drop for New {
    fn drop(&mut self) {
        // SAFETY: came from calloc, and was not handed over.
        unsafe { libc::free(self.0.as_ptr().cast()) };
    }
}

/// Frees a layout that was handed over.
///
/// # Safety
/// `layout` came from [`New::finish`] and is no longer used.
pub(super) unsafe fn free(layout: *mut aml_layout) {
    // SAFETY: the layout is the first thing in its block.
    unsafe { libc::free(layout.cast()) };
}

/// The memory and the numbers of a dense layout, or `None` for NULL.
///
/// # Safety
/// `data` is NULL or a valid `aml_layout_dense`, which outlives `'a`.
pub(super) unsafe fn open<'a>(data: *const aml_layout_data) -> Option<(*mut c_void, Shape<'a>)> {
    // SAFETY: the caller's promise.
    let dense = unsafe { data.cast::<aml_layout_dense>().as_ref() }?;
    if dense.dims.is_null() || dense.stride.is_null() || dense.cpitch.is_null() {
        return None;
    }
    // SAFETY: the struct says how long its arrays are.
    let shape = unsafe {
        Shape {
            dims: slice::from_raw_parts(dense.dims, dense.ndims),
            stride: slice::from_raw_parts(dense.stride, dense.ndims),
            cpitch: slice::from_raw_parts(dense.cpitch, dense.ndims + 1),
        }
    };
    Some((dense.ptr, shape))
}
