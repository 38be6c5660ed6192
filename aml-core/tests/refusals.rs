//! Bad input: each call with each pointer missing, and numbers that make no sense. A code, and nothing else happens.

use aml_abi::{
    AML_EINVAL, AML_ENOMEM, AML_ENOTSUP, AML_SUCCESS, aml_area, aml_area_ops, aml_dma, aml_dma_ops, aml_layout,
    aml_layout_ops,
};
use aml_core::*;
use libc::c_void;
use std::ptr::{null, null_mut};
use std::sync::atomic::Ordering::Relaxed;

/// A layout of 3 rows of 4 bytes.
fn layout() -> *mut aml_layout {
    create(0x1000 as *mut c_void, 1, 1, &[3, 4], &[1, 1], &[3, 4]).unwrap()
}

fn create(
    ptr: *mut c_void,
    order: i32,
    element: usize,
    dims: &[usize],
    stride: &[usize],
    pitch: &[usize],
) -> Result<*mut aml_layout, i32> {
    let untouched = 0x77 as *mut aml_layout;
    let mut made = untouched;
    // SAFETY: the lengths agree.
    let error = unsafe {
        let (stride, pitch) = (stride.as_ptr(), pitch.as_ptr());
        aml_layout_dense_create(&mut made, ptr, order, element, dims.len(), dims.as_ptr(), stride, pitch)
    };
    if error == AML_SUCCESS {
        return Ok(made);
    }
    assert_eq!(made, untouched);
    Err(error)
}

#[test]
fn a_dense_layout_needs_memory_an_order_elements_and_dimensions() {
    let memory = 0x1000 as *mut c_void;
    let refused = Err(-AML_EINVAL);
    assert_eq!(create(null_mut(), 0, 8, &[3], &[1], &[3]), refused);
    assert_eq!(create(memory, 2, 8, &[3], &[1], &[3]), refused);
    assert_eq!(create(memory, -1, 8, &[3], &[1], &[3]), refused);
    assert_eq!(create(memory, 0, 0, &[3], &[1], &[3]), refused);
    assert_eq!(create(memory, 0, 8, &[], &[], &[]), refused);
    let (mut made, dims) = (null_mut(), [3usize]);
    // SAFETY: NULL is refused.
    unsafe {
        let create = aml_layout_dense_create;
        assert_eq!(create(null_mut(), memory, 0, 8, 1, dims.as_ptr(), null(), null()), -AML_EINVAL);
        assert_eq!(create(&mut made, memory, 0, 8, 1, null(), null(), null()), -AML_EINVAL);
    }
    assert!(made.is_null());
}

#[test]
fn a_dense_layout_lies_within_the_address_space() {
    let memory = 0x1000 as *mut c_void;
    let half = usize::MAX / 2 + 1;
    for (dims, stride, pitch) in [
        ([half, 2], [1, 1], [half, 2]),    // the pitch overflows
        ([2, half], [1, 1], [2, 2]),       // the way to the last element does
        ([2, 2], [1, half], [4, 2]),       // its stride does
        ([half, half], [1, 1], [1, 1]),    // only the sum does
        ([usize::MAX, 1], [1, 1], [1, 1]), // only the last byte does
    ] {
        assert_eq!(create(memory, 0, 2, &dims, &stride, &pitch), Err(-AML_EINVAL), "{dims:?}");
    }
}

/// More numbers than an address space holds, and more than memory does: refused before any is read.
#[test]
#[cfg_attr(miri, ignore = "a slice of so many numbers must not even be made")]
fn more_dimensions_than_there_can_be_are_refused() {
    let memory = 0x1000 as *mut c_void;
    let (mut made, dims) = (null_mut(), [1usize]);
    for (ndims, error) in [(usize::MAX, -AML_EINVAL), (1 << 58, -AML_ENOMEM)] {
        // SAFETY: one number is there, and none is read.
        let answer = unsafe { aml_layout_dense_create(&mut made, memory, 0, 1, ndims, dims.as_ptr(), null(), null()) };
        assert_eq!(answer, error);
    }
    assert!(made.is_null());
}

#[test]
fn layout_calls_without_a_layout_are_refused() {
    let (mut out, mut numbers) = (null_mut(), [7usize; 2]);
    // SAFETY: NULL is refused.
    unsafe {
        let n = numbers.as_mut_ptr();
        for missing in [null(), &aml_layout { ops: null_mut(), data: null_mut() }] {
            assert!(aml_layout_deref(missing, n).is_null());
            assert!(aml_layout_deref_native(missing, n).is_null());
            assert!(aml_layout_deref_safe(missing, n).is_null());
            assert!(aml_layout_rawptr(missing).is_null());
            assert_eq!(aml_layout_order(missing), -AML_EINVAL);
            assert_eq!(aml_layout_ndims(missing), 0);
            assert_eq!(aml_layout_element_size(missing), 0);
            assert_eq!(aml_layout_dims(missing, n), -AML_EINVAL);
            assert_eq!(aml_layout_dims_native(missing, n), -AML_EINVAL);
            assert_eq!(aml_layout_reshape(missing, &mut out, 2, n), -AML_EINVAL);
            assert_eq!(aml_layout_slice(missing, &mut out, n, n, n), -AML_EINVAL);
            assert_eq!(aml_layout_slice_native(missing, &mut out, n, n, n), -AML_EINVAL);
            assert_eq!(aml_layout_duplicate(missing, &mut out, null_mut()), -AML_EINVAL);
        }
        aml_layout_destroy(null_mut());
        aml_layout_destroy(&mut out);
    }
    assert!(out.is_null());
    assert_eq!(numbers, [7; 2]);
}

#[test]
fn layout_calls_without_their_other_pointers_are_refused() {
    let mut layout = layout();
    let (mut out, dims) = (null_mut(), [3usize, 4]);
    // SAFETY: NULL is refused.
    unsafe {
        let n = dims.as_ptr();
        assert!(aml_layout_deref(layout, null()).is_null());
        assert!(aml_layout_deref_native(layout, null()).is_null());
        assert!(aml_layout_deref_safe(layout, null()).is_null());
        assert_eq!(aml_layout_dims(layout, null_mut()), -AML_EINVAL);
        assert_eq!(aml_layout_dims_native(layout, null_mut()), -AML_EINVAL);
        assert_eq!(aml_layout_reshape(layout, null_mut(), 2, n), -AML_EINVAL);
        assert_eq!(aml_layout_reshape(layout, &mut out, 2, null()), -AML_EINVAL);
        assert_eq!(aml_layout_reshape(layout, &mut out, 0, n), -AML_EINVAL);
        assert_eq!(aml_layout_slice(layout, null_mut(), null(), n, null()), -AML_EINVAL);
        assert_eq!(aml_layout_slice(layout, &mut out, null(), null(), null()), -AML_EINVAL);
        assert_eq!(aml_layout_slice_native(layout, null_mut(), null(), n, null()), -AML_EINVAL);
        assert_eq!(aml_layout_slice_native(layout, &mut out, null(), null(), null()), -AML_EINVAL);
        assert_eq!(aml_layout_duplicate(layout, null_mut(), null_mut()), -AML_EINVAL);
        assert_eq!(aml_layout_fprintf(null_mut(), null(), layout), -AML_EINVAL);
        aml_layout_destroy(&mut layout);
    }
    assert!(out.is_null() && layout.is_null());
}

#[test]
fn slices_with_numbers_that_wrap_are_refused() {
    let mut layout = layout();
    let mut out = null_mut();
    for (offsets, dims, strides) in [
        ([usize::MAX, 0], [1, 1], [1, 1]),
        ([1, 0], [2, 1], [usize::MAX, 1]),
        ([0, 0], [usize::MAX, 1], [usize::MAX, 1]),
        ([3, 0], [1, 1], [1, 1]),
    ] {
        // SAFETY: two numbers for two dimensions.
        let error = unsafe { aml_layout_slice(layout, &mut out, offsets.as_ptr(), dims.as_ptr(), strides.as_ptr()) };
        assert_eq!(error, -AML_EINVAL, "{offsets:?} {dims:?} {strides:?}");
    }
    assert!(out.is_null());
    // SAFETY: made above.
    unsafe { aml_layout_destroy(&mut layout) };
}

#[test]
fn a_table_that_lacks_an_operation_is_told_so() {
    // SAFETY: a table may be all NULL.
    let mut ops: aml_layout_ops = unsafe { std::mem::zeroed() };
    let mut bare = aml_layout { ops: &mut ops, data: null_mut() };
    let (mut out, mut numbers) = (null_mut(), [1usize; 2]);
    // SAFETY: none of the operations exists.
    unsafe {
        let n = numbers.as_mut_ptr();
        assert!(aml_layout_deref(&bare, n).is_null());
        assert_eq!(aml_layout_order(&bare), -AML_ENOTSUP);
        assert_eq!(aml_layout_dims(&bare, n), -AML_ENOTSUP);
        assert_eq!(aml_layout_reshape(&bare, &mut out, 2, n), -AML_ENOTSUP);
        assert_eq!(aml_layout_slice(&bare, &mut out, n, n, n), -AML_ENOTSUP);
        assert_eq!(aml_layout_duplicate(&bare, &mut out, null_mut()), -AML_ENOTSUP);
        let (mut kept, before) = (&raw mut bare, &raw mut bare);
        aml_layout_destroy(&mut kept); // cannot: the caller keeps it
        assert_eq!(kept, before);
    }
    // SAFETY: a table may be all NULL.
    let mut ops: aml_area_ops = unsafe { std::mem::zeroed() };
    let bare = aml_area { ops: &mut ops, data: null_mut() };
    // SAFETY: none of the operations exists.
    unsafe {
        assert!(aml_area_mmap(&bare, 1, null_mut()).is_null());
        assert_eq!(aml_errno.load(Relaxed), AML_ENOTSUP);
        assert_eq!(aml_area_munmap(&bare, 0x1000 as *mut c_void, 1), -AML_ENOTSUP);
    }
}

#[test]
fn a_missing_pointer_counts_for_more_than_a_lacking_operation() {
    // SAFETY: tables may be all NULL.
    let (mut ops, mut dma_ops): (aml_layout_ops, aml_dma_ops) = unsafe { std::mem::zeroed() };
    let mut layout = aml_layout { ops: &mut ops, data: null_mut() };
    let mut dma = aml_dma { ops: &mut dma_ops, data: null_mut() };
    let (bare, dma) = (&raw mut layout, &raw mut dma);
    let (mut out, mut numbers) = (null_mut(), [1usize; 2]);
    // SAFETY: none of the operations exists, and NULL is refused.
    unsafe {
        let n = numbers.as_mut_ptr();
        assert_eq!(aml_layout_dims(bare, null_mut()), -AML_EINVAL);
        assert_eq!(aml_layout_dims_native(bare, null_mut()), -AML_EINVAL);
        assert_eq!(aml_layout_reshape(bare, null_mut(), 2, n), -AML_EINVAL);
        assert_eq!(aml_layout_reshape(bare, &mut out, 2, null()), -AML_EINVAL);
        for slice in [aml_layout_slice, aml_layout_slice_native] {
            assert_eq!(slice(bare, null_mut(), n, n, n), -AML_EINVAL);
            assert_eq!(slice(bare, &mut out, n, null(), n), -AML_EINVAL);
        }
        assert_eq!(aml_layout_duplicate(bare, null_mut(), null_mut()), -AML_EINVAL);
        assert_eq!(aml_copy_layout_transform_generic(bare, null(), null()), -AML_EINVAL);
        assert_eq!(aml_copy_layout_transform_generic(bare, bare, null()), -AML_ENOTSUP);
        assert_eq!(aml_dma_copy_custom(dma, null_mut(), bare, None, null_mut()), -AML_EINVAL);
        assert_eq!(aml_dma_copy_custom(dma, bare, null_mut(), None, null_mut()), -AML_EINVAL);
        assert_eq!(aml_dma_copy_custom(dma, bare, bare, None, null_mut()), -AML_ENOTSUP);
        assert_eq!(aml_dma_wait(dma, null_mut()), -AML_EINVAL);
        assert_eq!(aml_dma_cancel(dma, null_mut()), -AML_EINVAL);
    }
    assert!(out.is_null());
}
