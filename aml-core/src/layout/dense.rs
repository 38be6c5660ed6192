//! Dense layouts: creation, and the operations behind the two tables, one for each order.
//! The operations take pointers apart and leave the arithmetic to `shape`.

use super::block::{New, free, open};
use super::shape::Axes;
use crate::text::write_line;
use aml_abi::{
    AML_EINVAL, AML_LAYOUT_ORDER_COLUMN_MAJOR, AML_LAYOUT_ORDER_ROW_MAJOR, AML_SUCCESS, aml_layout, aml_layout_data,
    aml_layout_ops,
};
use libc::{FILE, c_char, c_int, c_void};
use std::{ptr, slice};

/// Operations of dense layouts in column major order.
#[unsafe(no_mangle)]
pub static mut aml_layout_column_ops: aml_layout_ops = aml_layout_ops {
    deref: Some(deref::<false>),
    order: Some(order::<false>),
    dims: Some(dims::<false>),
    reshape: Some(reshape::<false>),
    slice: Some(slice_in::<false, false>),
    slice_native: Some(slice_in::<false, false>),
    fprintf: Some(fprintf::<false>),
    ..COMMON
};

/// Operations of dense layouts in row major order.
#[unsafe(no_mangle)]
pub static mut aml_layout_row_ops: aml_layout_ops = aml_layout_ops {
    deref: Some(deref::<true>),
    order: Some(order::<true>),
    dims: Some(dims::<true>),
    reshape: Some(reshape::<true>),
    slice: Some(slice_in::<true, true>),
    slice_native: Some(slice_in::<true, false>),
    fprintf: Some(fprintf::<true>),
    ..COMMON
};

/// What does not depend on the order.
const COMMON: aml_layout_ops = aml_layout_ops {
    deref: None,
    deref_native: Some(deref::<false>),
    rawptr: Some(rawptr),
    order: None,
    dims: None,
    dims_native: Some(dims::<false>),
    ndims: Some(ndims),
    element_size: Some(element_size),
    reshape: None,
    slice: None,
    slice_native: None,
    fprintf: None,
    duplicate: Some(duplicate),
    destroy: Some(destroy),
};

/// The table of an order.
fn table(row: bool) -> *mut aml_layout_ops {
    if row { &raw mut aml_layout_row_ops } else { &raw mut aml_layout_column_ops }
}

/// `count` numbers of the caller, or `None` for NULL and for more than there can be.
///
/// # Safety
/// `numbers` is NULL or valid for reads of `count` numbers while `'a` lasts.
unsafe fn axes<'a>(numbers: *const usize, count: usize, reversed: bool) -> Option<Axes<'a>> {
    let possible = count <= isize::MAX as usize / size_of::<usize>();
    // SAFETY: the caller's promise.
    (possible && !numbers.is_null()).then(|| Axes::new(unsafe { slice::from_raw_parts(numbers, count) }, reversed))
}

/// Stores a new layout, or returns the error.
///
/// # Safety
/// `output` is valid for a write.
unsafe fn deliver(output: *mut *mut aml_layout, made: Result<*mut aml_layout, c_int>) -> c_int {
    match made {
        Ok(layout) => {
            // SAFETY: the caller's promise.
            unsafe { output.write(layout) };
            AML_SUCCESS
        }
        Err(error) => error,
    }
}

/// Describes memory as a dense array.
///
/// # Safety
/// `layout` is NULL or valid for a write, `dims`, `stride` and `pitch` are NULL or `ndims` numbers; `ptr` is not
/// looked at.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aml_layout_dense_create(
    layout: *mut *mut aml_layout,
    ptr: *mut c_void,
    order: c_int,
    element_size: usize,
    ndims: usize,
    dims: *const usize,
    stride: *const usize,
    pitch: *const usize,
) -> c_int {
    let row = match order {
        AML_LAYOUT_ORDER_COLUMN_MAJOR => false,
        AML_LAYOUT_ORDER_ROW_MAJOR => true,
        _ => return -AML_EINVAL,
    };
    if layout.is_null() || ptr.is_null() || element_size == 0 || ndims == 0 {
        return -AML_EINVAL;
    }
    // SAFETY: the caller's promise.
    let Some(dims) = (unsafe { axes(dims, ndims, row) }) else {
        return -AML_EINVAL;
    };
    // SAFETY: the caller's promise.
    let (stride, pitch) = unsafe { (axes(stride, ndims, row), axes(pitch, ndims, row)) };
    let made = New::allocate(table(row), ndims).and_then(|mut new| {
        new.draft().create(element_size, dims, stride, pitch).ok_or(-AML_EINVAL)?;
        Ok(new.finish(ptr))
    });
    // SAFETY: not NULL, so valid.
    unsafe { deliver(layout, made) }
}

/// # Safety
/// `data` is a dense layout's, `coords` one number a dimension.
unsafe extern "C" fn deref<const REVERSED: bool>(data: *const aml_layout_data, coords: *const usize) -> *mut c_void {
    // SAFETY: the caller's promise.
    let Some((ptr, shape)) = (unsafe { open(data) }) else {
        return ptr::null_mut();
    };
    // SAFETY: the caller's promise.
    match unsafe { axes(coords, shape.ndims(), REVERSED) } {
        // Nobody dereferences here, and the memory may be a device's: plain arithmetic.
        Some(coords) => ptr.wrapping_byte_add(shape.distance(coords)),
        None => ptr::null_mut(),
    }
}

/// # Safety
/// `data` is a dense layout's.
unsafe extern "C" fn rawptr(data: *const aml_layout_data) -> *mut c_void {
    // SAFETY: the caller's promise.
    unsafe { open(data) }.map_or(ptr::null_mut(), |(ptr, _)| ptr)
}

extern "C" fn order<const ROW: bool>(_data: *const aml_layout_data) -> c_int {
    if ROW { AML_LAYOUT_ORDER_ROW_MAJOR } else { AML_LAYOUT_ORDER_COLUMN_MAJOR }
}

/// # Safety
/// `data` is a dense layout's, `dims` room for one number a dimension.
unsafe extern "C" fn dims<const REVERSED: bool>(data: *const aml_layout_data, dims: *mut usize) -> c_int {
    // SAFETY: the caller's promise.
    let Some((_, shape)) = (unsafe { open(data) }) else {
        return -AML_EINVAL;
    };
    if dims.is_null() {
        return -AML_EINVAL;
    }
    let sizes = Axes::new(shape.dims, REVERSED);
    for i in 0..shape.ndims() {
        // SAFETY: the caller's promise.
        unsafe { dims.add(i).write(sizes.get(i)) };
    }
    AML_SUCCESS
}

/// # Safety
/// `data` is a dense layout's.
unsafe extern "C" fn ndims(data: *const aml_layout_data) -> usize {
    // SAFETY: the caller's promise.
    unsafe { open(data) }.map_or(0, |(_, shape)| shape.ndims())
}

/// # Safety
/// `data` is a dense layout's.
unsafe extern "C" fn element_size(data: *const aml_layout_data) -> usize {
    // SAFETY: the caller's promise.
    unsafe { open(data) }.map_or(0, |(_, shape)| shape.cpitch[0])
}

/// # Safety
/// `data` is a dense layout's, `output` valid for a write, `dims` holds `ndims` numbers.
unsafe extern "C" fn reshape<const ROW: bool>(
    data: *const aml_layout_data,
    output: *mut *mut aml_layout,
    ndims: usize,
    dims: *const usize,
) -> c_int {
    // SAFETY: the caller's promise.
    let (opened, dims) = unsafe { (open(data), axes(dims, ndims, ROW)) };
    let (Some((ptr, shape)), Some(dims), false, 1..) = (opened, dims, output.is_null(), ndims) else {
        return -AML_EINVAL;
    };
    let made = New::allocate(table(ROW), ndims).and_then(|mut new| {
        new.draft().reshape(shape, dims).ok_or(-AML_EINVAL)?;
        Ok(new.finish(ptr))
    });
    // SAFETY: the caller's promise.
    unsafe { deliver(output, made) }
}

/// # Safety
/// `data` is a dense layout's, `output` valid for a write, the others NULL or one number a dimension.
unsafe extern "C" fn slice_in<const ROW: bool, const REVERSED: bool>(
    data: *const aml_layout_data,
    output: *mut *mut aml_layout,
    offsets: *const usize,
    dims: *const usize,
    strides: *const usize,
) -> c_int {
    // SAFETY: the caller's promise.
    let Some((ptr, shape)) = (unsafe { open(data) }) else {
        return -AML_EINVAL;
    };
    // SAFETY: the caller's promise.
    let axes = |numbers| unsafe { axes(numbers, shape.ndims(), REVERSED) };
    let (Some(dims), false) = (axes(dims), output.is_null()) else {
        return -AML_EINVAL;
    };
    let made = New::allocate(table(ROW), shape.ndims()).and_then(|mut new| {
        let first = new.draft().slice(shape, axes(offsets), dims, axes(strides));
        Ok(new.finish(ptr.wrapping_byte_add(first.ok_or(-AML_EINVAL)?)))
    });
    // SAFETY: the caller's promise.
    unsafe { deliver(output, made) }
}

/// # Safety
/// `data` is a dense layout's, `stream` an open stream, `prefix` NULL or a C string.
unsafe extern "C" fn fprintf<const ROW: bool>(
    data: *const aml_layout_data,
    stream: *mut FILE,
    prefix: *const c_char,
) -> c_int {
    // SAFETY: the caller's promise.
    let Some((ptr, shape)) = (unsafe { open(data) }) else {
        return -AML_EINVAL;
    };
    let order = if ROW { "row major" } else { "column major" };
    let text = format_args!(
        "layout-dense: {order}, at {ptr:p}, native dims {:?}, stride {:?}, cpitch {:?}",
        shape.dims, shape.stride, shape.cpitch
    );
    // SAFETY: the caller's promise.
    unsafe { write_line(stream, prefix, text) }
}

/// # Safety
/// `layout` is a dense layout, `output` valid for a write.
unsafe extern "C" fn duplicate(layout: *const aml_layout, output: *mut *mut aml_layout, ptr: *mut c_void) -> c_int {
    // SAFETY: the caller's promise.
    let (Some(layout), false) = (unsafe { layout.as_ref() }, output.is_null()) else {
        return -AML_EINVAL;
    };
    // SAFETY: the caller's promise.
    let Some((old, shape)) = (unsafe { open(layout.data) }) else {
        return -AML_EINVAL;
    };
    let made = New::allocate(layout.ops, shape.ndims()).map(|mut new| {
        new.draft().copy(shape);
        new.finish(if ptr.is_null() { old } else { ptr })
    });
    // SAFETY: the caller's promise.
    unsafe { deliver(output, made) }
}

/// # Safety
/// `layout` is NULL, or a dense layout made here that is no longer used.
unsafe extern "C" fn destroy(layout: *mut aml_layout) -> c_int {
    if layout.is_null() {
        return -AML_EINVAL;
    }
    // SAFETY: the caller's promise.
    unsafe { free(layout) };
    AML_SUCCESS
}
