//! The copy that works between any two layouts: element by element, on the processor.
//! It goes through the layouts' own operations alone.

use crate::layout::{dims_of, find, numbers};
use aml_abi::{AML_EINVAL, AML_SUCCESS, aml_layout, aml_layout_data, aml_layout_ops};
use libc::{c_int, c_void};
use std::ptr;

/// Address of an element.
type Deref = unsafe extern "C" fn(*const aml_layout_data, *const usize) -> *mut c_void;

/// Copies with dimension `i` of `dst` being dimension `target_dims[i]` of `src`, in user order.
///
/// # Safety
/// `dst` and `src` are NULL or valid layouts over memory that may be written and read, not overlapping;
/// `target_dims` is NULL or one number a dimension.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aml_copy_layout_transform_generic(
    dst: *mut aml_layout,
    src: *const aml_layout,
    target_dims: *const usize,
) -> c_int {
    // SAFETY: the caller's promise.
    match unsafe { transform(dst, src, target_dims) } {
        Ok(()) => AML_SUCCESS,
        Err(error) => error,
    }
}

/// # Safety
/// As [`aml_copy_layout_transform_generic`].
unsafe fn transform(dst: *const aml_layout, src: *const aml_layout, target_dims: *const usize) -> Result<(), c_int> {
    // Pointers first: a missing one counts for more than a lacking operation of the other.
    // SAFETY: the caller's promise.
    unsafe { (find(dst, |_| Some(()))?, find(src, |_| Some(()))?) };
    let operations = |ops: &aml_layout_ops| ops.deref.zip(ops.element_size);
    // SAFETY: the caller's promise.
    let (((dst_deref, dst_size), to), ((src_deref, src_size), from)) =
        unsafe { (find(dst, operations)?, find(src, operations)?) };
    // SAFETY: the caller's promise.
    let (dst_dims, src_dims) = unsafe { (dims_of(dst, |ops| ops.dims)?, dims_of(src, |ops| ops.dims)?) };
    // SAFETY: each operation belongs to its state.
    let (element, same_size) = unsafe { (src_size(from), src_size(from) == dst_size(to)) };
    // SAFETY: the caller's promise, one number a dimension.
    let targets = unsafe { permutation(target_dims, src_dims.len()) }?;
    let moved = |(&dim, &target): (&usize, &usize)| dim == src_dims[target];
    let fits = dst_dims.len() == src_dims.len() && dst_dims.iter().zip(&targets).all(moved);
    if !same_size || !fits {
        return Err(-AML_EINVAL);
    }
    // SAFETY: the shapes agree, so all coordinates below `dst_dims` are inside both.
    unsafe { copy_all((dst_deref, to), (src_deref, from), element, &dst_dims, &targets) }
}

/// The caller's permutation of `count` dimensions; NULL is the identity.
///
/// # Safety
/// `target_dims` is NULL or `count` numbers.
unsafe fn permutation(target_dims: *const usize, count: usize) -> Result<Vec<usize>, c_int> {
    let mut targets = numbers(count, 0)?;
    let mut seen = numbers(count, 0)?;
    for (i, target) in targets.iter_mut().enumerate() {
        *target = i;
        if !target_dims.is_null() {
            // SAFETY: the caller's promise.
            *target = unsafe { *target_dims.add(i) };
        }
        match seen.get_mut(*target) {
            Some(times @ 0) => *times = 1,
            _ => return Err(-AML_EINVAL),
        }
    }
    Ok(targets)
}

/// # Safety
/// Each operation belongs to its state, every coordinate below `dims` is an element of `element` bytes in both.
unsafe fn copy_all(
    (dst_deref, dst): (Deref, *const aml_layout_data),
    (src_deref, src): (Deref, *const aml_layout_data),
    element: usize,
    dims: &[usize],
    targets: &[usize],
) -> Result<(), c_int> {
    if dims.is_empty() || dims.contains(&0) {
        return Ok(());
    }
    let (mut to, mut from) = (numbers(dims.len(), 0)?, numbers(dims.len(), 0)?);
    loop {
        // SAFETY: the caller's promise.
        unsafe {
            let source = src_deref(src, from.as_ptr()).cast::<u8>();
            ptr::copy_nonoverlapping(source, dst_deref(dst, to.as_ptr()).cast(), element);
        }
        // Count up, the last dimension first.
        let Some(i) = (0..dims.len()).rev().find(|&i| to[i] + 1 < dims[i]) else {
            return Ok(());
        };
        to[i] += 1;
        from[targets[i]] = to[i];
        for k in i + 1..dims.len() {
            to[k] = 0;
            from[targets[k]] = 0;
        }
    }
}
