//! The generic calls on layouts: check, fill in what the caller left out, then call the layout's own operation.
//! They know nothing of how a layout is made; `dense` is the one kind that this library makes.

mod block;
pub(crate) mod dense;
mod shape;

use aml_abi::{AML_EINVAL, AML_ENOMEM, AML_ENOTSUP, AML_SUCCESS, aml_layout, aml_layout_data, aml_layout_ops};
use libc::{FILE, c_char, c_int, c_void};
use shape::inside;
use std::ptr;

/// Stores the dimensions of a layout in one of the two orders.
type Dims = unsafe extern "C" fn(*const aml_layout_data, *mut usize) -> c_int;

/// An operation of a layout and the state it works on, or the error for a NULL pointer or a lacking operation.
///
/// # Safety
/// `layout` is NULL or valid for reads, and so are its `ops`.
pub(crate) unsafe fn find<T>(
    layout: *const aml_layout,
    operation: impl FnOnce(&aml_layout_ops) -> Option<T>,
) -> Result<(T, *const aml_layout_data), c_int> {
    // SAFETY: the caller's promise.
    let layout = unsafe { layout.as_ref() }.ok_or(-AML_EINVAL)?;
    // SAFETY: the caller's promise.
    let ops = unsafe { layout.ops.as_ref() }.ok_or(-AML_EINVAL)?;
    Ok((operation(ops).ok_or(-AML_ENOTSUP)?, layout.data))
}

/// `count` numbers, all `value`.
pub(crate) fn numbers(count: usize, value: usize) -> Result<Vec<usize>, c_int> {
    let mut numbers = Vec::new();
    numbers.try_reserve_exact(count).map_err(|_| -AML_ENOMEM)?;
    numbers.resize(count, value);
    Ok(numbers)
}

/// The dimensions of a layout, by its `dims` or its `dims_native`.
///
/// # Safety
/// `layout` is NULL or a valid layout, and `operation` chooses among the operations it is given.
pub(crate) unsafe fn dims_of(
    layout: *const aml_layout,
    operation: impl FnOnce(&aml_layout_ops) -> Option<Dims>,
) -> Result<Vec<usize>, c_int> {
    // SAFETY: the caller's promise.
    let ((ndims, dims), data) = unsafe { find(layout, |ops| ops.ndims.zip(operation(ops))) }?;
    // SAFETY: the operation belongs to this state.
    let mut sizes = numbers(unsafe { ndims(data) }, 0)?;
    // SAFETY: the operation belongs to this state; there is room for `ndims` numbers.
    match unsafe { dims(data, sizes.as_mut_ptr()) } {
        0 => Ok(sizes),
        error => Err(error),
    }
}

/// Address of an element, coordinates in user order.
///
/// # Safety
/// `layout` is NULL or a valid layout, `coords` NULL or one number a dimension.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aml_layout_deref(layout: *const aml_layout, coords: *const usize) -> *mut c_void {
    // SAFETY: the caller's promise.
    match unsafe { find(layout, |ops| ops.deref) } {
        // SAFETY: the operation belongs to this state; the rest is the caller's promise.
        Ok((deref, data)) if !coords.is_null() => unsafe { deref(data, coords) },
        _ => ptr::null_mut(),
    }
}

/// Address of an element, coordinates in native order.
///
/// # Safety
/// `layout` is NULL or a valid layout, `coords` NULL or one number a dimension.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aml_layout_deref_native(layout: *const aml_layout, coords: *const usize) -> *mut c_void {
    // SAFETY: the caller's promise.
    match unsafe { find(layout, |ops| ops.deref_native) } {
        // SAFETY: the operation belongs to this state; the rest is the caller's promise.
        Ok((deref, data)) if !coords.is_null() => unsafe { deref(data, coords) },
        _ => ptr::null_mut(),
    }
}

/// Address of an element, coordinates in user order; NULL where they are outside.
///
/// # Safety
/// `layout` is NULL or a valid layout, `coords` NULL or one number a dimension.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aml_layout_deref_safe(layout: *const aml_layout, coords: *const usize) -> *mut c_void {
    // SAFETY: the caller's promise.
    match unsafe { within(layout, coords) } {
        // SAFETY: the caller's promise.
        Ok(true) => unsafe { aml_layout_deref(layout, coords) },
        _ => ptr::null_mut(),
    }
}

/// Whether there are coordinates, and each is below its dimension, in user order.
///
/// # Safety
/// As [`aml_layout_deref_safe`].
unsafe fn within(layout: *const aml_layout, coords: *const usize) -> Result<bool, c_int> {
    // SAFETY: the caller's promise.
    let ((ndims, dims), data) = unsafe { find(layout, |ops| ops.ndims.zip(ops.dims)) }?;
    // SAFETY: the operation belongs to this state.
    let ndims = unsafe { ndims(data) };
    // As many as layouts have need no memory.
    let mut few = [0; 32];
    let mut many = numbers(if ndims <= few.len() { 0 } else { ndims }, 0)?;
    let sizes = few.get_mut(..ndims).unwrap_or(&mut many);
    // SAFETY: the operation belongs to this state; there is room for `ndims` numbers.
    match unsafe { dims(data, sizes.as_mut_ptr()) } {
        // SAFETY: the caller's promise, one number for each of `sizes`.
        0 => Ok(!coords.is_null() && sizes.iter().enumerate().all(|(i, size)| unsafe { *coords.add(i) } < *size)),
        error => Err(error),
    }
}

/// Address of the memory below a layout.
///
/// # Safety
/// `layout` is NULL or a valid layout.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aml_layout_rawptr(layout: *const aml_layout) -> *mut c_void {
    // SAFETY: the caller's promise.
    match unsafe { find(layout, |ops| ops.rawptr) } {
        // SAFETY: the operation belongs to this state.
        Ok((rawptr, data)) => unsafe { rawptr(data) },
        Err(_) => ptr::null_mut(),
    }
}

/// One of the two orders.
///
/// # Safety
/// `layout` is NULL or a valid layout.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aml_layout_order(layout: *const aml_layout) -> c_int {
    // SAFETY: the caller's promise.
    match unsafe { find(layout, |ops| ops.order) } {
        // SAFETY: the operation belongs to this state.
        Ok((order, data)) => unsafe { order(data) },
        Err(error) => error,
    }
}

/// Number of dimensions, 0 where there is no layout.
///
/// # Safety
/// `layout` is NULL or a valid layout.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aml_layout_ndims(layout: *const aml_layout) -> usize {
    // SAFETY: the caller's promise.
    match unsafe { find(layout, |ops| ops.ndims) } {
        // SAFETY: the operation belongs to this state.
        Ok((ndims, data)) => unsafe { ndims(data) },
        Err(_) => 0,
    }
}

/// Bytes of an element, 0 where there is no layout.
///
/// # Safety
/// `layout` is NULL or a valid layout.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aml_layout_element_size(layout: *const aml_layout) -> usize {
    // SAFETY: the caller's promise.
    match unsafe { find(layout, |ops| ops.element_size) } {
        // SAFETY: the operation belongs to this state.
        Ok((size, data)) => unsafe { size(data) },
        Err(_) => 0,
    }
}

/// Stores the dimensions in user order.
///
/// # Safety
/// `layout` is NULL or a valid layout, `dims` NULL or room for one number a dimension.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aml_layout_dims(layout: *const aml_layout, dims: *mut usize) -> c_int {
    if dims.is_null() {
        return -AML_EINVAL;
    }
    // SAFETY: the caller's promise.
    match unsafe { find(layout, |ops| ops.dims) } {
        // SAFETY: the operation belongs to this state; the rest is the caller's promise.
        Ok((store, data)) => unsafe { store(data, dims) },
        Err(error) => error,
    }
}

/// Stores the dimensions in native order.
///
/// # Safety
/// `layout` is NULL or a valid layout, `dims` NULL or room for one number a dimension.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aml_layout_dims_native(layout: *const aml_layout, dims: *mut usize) -> c_int {
    if dims.is_null() {
        return -AML_EINVAL;
    }
    // SAFETY: the caller's promise.
    match unsafe { find(layout, |ops| ops.dims_native) } {
        // SAFETY: the operation belongs to this state; the rest is the caller's promise.
        Ok((store, data)) => unsafe { store(data, dims) },
        Err(error) => error,
    }
}

/// The same elements in other dimensions, in user order.
///
/// # Safety
/// `layout` is NULL or a valid layout, `output` NULL or valid for a write, `dims` NULL or `ndims` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aml_layout_reshape(
    layout: *const aml_layout,
    output: *mut *mut aml_layout,
    ndims: usize,
    dims: *const usize,
) -> c_int {
    if output.is_null() || ndims == 0 || dims.is_null() {
        return -AML_EINVAL;
    }
    // SAFETY: the caller's promise.
    match unsafe { find(layout, |ops| ops.reshape) } {
        // SAFETY: the operation belongs to this state; the rest is the caller's promise.
        Ok((reshape, data)) => unsafe { reshape(data, output, ndims, dims) },
        Err(error) => error,
    }
}

/// Some of the elements, arguments in user order.
///
/// # Safety
/// `layout` is NULL or a valid layout, `output` NULL or valid for a write, the others NULL or one number a dimension.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aml_layout_slice(
    layout: *const aml_layout,
    output: *mut *mut aml_layout,
    offsets: *const usize,
    dims: *const usize,
    strides: *const usize,
) -> c_int {
    // SAFETY: the caller's promise.
    match unsafe { checked_slice(layout, false, output, offsets, dims, strides) } {
        Ok(()) => AML_SUCCESS,
        Err(error) => error,
    }
}

/// Some of the elements, arguments in native order.
///
/// # Safety
/// As [`aml_layout_slice`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aml_layout_slice_native(
    layout: *const aml_layout,
    output: *mut *mut aml_layout,
    offsets: *const usize,
    dims: *const usize,
    strides: *const usize,
) -> c_int {
    // SAFETY: the caller's promise.
    match unsafe { checked_slice(layout, true, output, offsets, dims, strides) } {
        Ok(()) => AML_SUCCESS,
        Err(error) => error,
    }
}

/// # Safety
/// As [`aml_layout_slice`].
unsafe fn checked_slice(
    layout: *const aml_layout,
    native: bool,
    output: *mut *mut aml_layout,
    offsets: *const usize,
    dims: *const usize,
    strides: *const usize,
) -> Result<(), c_int> {
    if output.is_null() || dims.is_null() {
        return Err(-AML_EINVAL);
    }
    // SAFETY: the caller's promise.
    let (slice, data) = unsafe { find(layout, |ops| if native { ops.slice_native } else { ops.slice }) }?;
    // SAFETY: the caller's promise.
    let whole = unsafe { dims_of(layout, |ops| if native { ops.dims_native } else { ops.dims }) }?;
    // Other implementations may expect all three arrays, and may not look at the bounds.
    // SAFETY: the caller's promise, one number a dimension.
    let (offsets, strides) = unsafe { (filled(offsets, whole.len(), 0)?, filled(strides, whole.len(), 1)?) };
    // SAFETY: the caller's promise, one number a dimension.
    let taken = |i| unsafe { *dims.add(i) };
    if !(0..whole.len()).all(|i| inside(whole[i], offsets[i], taken(i), strides[i])) {
        return Err(-AML_EINVAL);
    }
    // SAFETY: the operation belongs to this state, and the arrays have one number a dimension.
    match unsafe { slice(data, output, offsets.as_ptr(), dims, strides.as_ptr()) } {
        0 => Ok(()),
        error => Err(error),
    }
}

/// A copy of `count` numbers, or so many times `value` where there are none.
///
/// # Safety
/// `given` is NULL or `count` numbers.
unsafe fn filled(given: *const usize, count: usize, value: usize) -> Result<Vec<usize>, c_int> {
    let mut numbers = numbers(count, value)?;
    if !given.is_null() {
        // SAFETY: the caller's promise, and `numbers` is as long.
        unsafe { ptr::copy_nonoverlapping(given, numbers.as_mut_ptr(), count) };
    }
    Ok(numbers)
}

/// Describes a layout in text.
///
/// # Safety
/// `stream` is NULL or an open stream, `prefix` NULL or a C string, `layout` NULL or a valid layout.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aml_layout_fprintf(
    stream: *mut FILE,
    prefix: *const c_char,
    layout: *const aml_layout,
) -> c_int {
    if stream.is_null() {
        return -AML_EINVAL;
    }
    let prefix = if prefix.is_null() { c"".as_ptr() } else { prefix };
    // SAFETY: the caller's promise.
    match unsafe { find(layout, |ops| ops.fprintf) } {
        // SAFETY: the operation belongs to this state; the rest is the caller's promise.
        Ok((fprintf, data)) => unsafe { fprintf(data, stream, prefix) },
        Err(error) => error,
    }
}

/// The same layout over `ptr`, or over the same memory where that is NULL.
///
/// # Safety
/// `src` is NULL or a valid layout, `out` NULL or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aml_layout_duplicate(
    src: *const aml_layout,
    out: *mut *mut aml_layout,
    ptr: *mut c_void,
) -> c_int {
    if out.is_null() {
        return -AML_EINVAL;
    }
    // SAFETY: the caller's promise.
    match unsafe { find(src, |ops| ops.duplicate) } {
        // SAFETY: the operation belongs to this layout.
        Ok((duplicate, _)) => unsafe { duplicate(src, out, ptr) },
        Err(error) => error,
    }
}

/// Frees a layout and sets the pointer to it to NULL.
///
/// # Safety
/// `layout` is NULL or valid for reads and writes; what it holds is NULL or a layout that nobody else uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aml_layout_destroy(layout: *mut *mut aml_layout) {
    // SAFETY: the caller's promise.
    let Some(layout) = (unsafe { layout.as_mut() }) else {
        return;
    };
    // SAFETY: the caller's promise.
    let destroyed = match unsafe { find(*layout, |ops| ops.destroy) } {
        // SAFETY: the operation belongs to this layout, which nobody else uses.
        Ok((destroy, _)) => unsafe { destroy(*layout) },
        Err(error) => error,
    };
    if destroyed == AML_SUCCESS {
        *layout = ptr::null_mut();
    }
}
