//! The generic calls on DMAs: check, then call the DMA's own operation.
//! Everything may throw: an operator written in C++ runs below `create_request`.

pub(crate) mod multiplex;

use aml_abi::{
    AML_EINVAL, AML_ENOTSUP, aml_dma, aml_dma_data, aml_dma_operator, aml_dma_ops, aml_dma_request, aml_layout,
};
use libc::{FILE, c_char, c_int, c_void};
use std::ptr;

/// An operation of a DMA and the state it works on, or the error for a NULL pointer or a lacking operation.
///
/// # Safety
/// `dma` is NULL or valid for reads, and so are its `ops`.
unsafe fn find<T>(
    dma: *const aml_dma,
    operation: impl FnOnce(&aml_dma_ops) -> Option<T>,
) -> Result<(T, *mut aml_dma_data), c_int> {
    // SAFETY: the caller's promise.
    let dma = unsafe { dma.as_ref() }.ok_or(-AML_EINVAL)?;
    // SAFETY: the caller's promise.
    let ops = unsafe { dma.ops.as_ref() }.ok_or(-AML_EINVAL)?;
    Ok((operation(ops).ok_or(-AML_ENOTSUP)?, dma.data))
}

/// Copies and waits for the copy.
///
/// # Safety
/// `dma` is NULL or a valid DMA; `dest`, `src` and `op_arg` are what `op` takes.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn aml_dma_copy_custom(
    dma: *mut aml_dma,
    dest: *mut aml_layout,
    src: *mut aml_layout,
    op: aml_dma_operator,
    op_arg: *mut c_void,
) -> c_int {
    let mut req = ptr::null_mut();
    // SAFETY: the caller's promise.
    let error = unsafe { aml_dma_async_copy_custom(dma, &mut req, dest, src, op, op_arg) };
    if error != 0 {
        return error;
    }
    // SAFETY: the request is that of this DMA.
    unsafe { aml_dma_wait(dma, &mut req) }
}

/// Starts a copy.
///
/// # Safety
/// As [`aml_dma_copy_custom`]; `req` is what the DMA takes, for most NULL or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn aml_dma_async_copy_custom(
    dma: *mut aml_dma,
    req: *mut *mut aml_dma_request,
    dest: *mut aml_layout,
    src: *mut aml_layout,
    op: aml_dma_operator,
    op_arg: *mut c_void,
) -> c_int {
    if dest.is_null() || src.is_null() {
        return -AML_EINVAL;
    }
    // SAFETY: the caller's promise.
    match unsafe { find(dma, |ops| ops.create_request) } {
        // SAFETY: the operation belongs to this state; the rest is the caller's promise.
        Ok((create, data)) => unsafe { create(data, req, dest, src, op, op_arg) },
        Err(error) => error,
    }
}

/// Waits for a copy.
///
/// # Safety
/// `dma` is NULL or a valid DMA, `req` NULL or the address of a request of it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aml_dma_wait(dma: *mut aml_dma, req: *mut *mut aml_dma_request) -> c_int {
    if req.is_null() {
        return -AML_EINVAL;
    }
    // SAFETY: the caller's promise.
    match unsafe { find(dma, |ops| ops.wait_request) } {
        // SAFETY: the operation belongs to this state; the rest is the caller's promise.
        Ok((wait, data)) => unsafe { wait(data, req) },
        Err(error) => error,
    }
}

/// Gives a copy up.
///
/// # Safety
/// `dma` is NULL or a valid DMA, `req` NULL or the address of a request of it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aml_dma_cancel(dma: *mut aml_dma, req: *mut *mut aml_dma_request) -> c_int {
    if req.is_null() {
        return -AML_EINVAL;
    }
    // SAFETY: the caller's promise.
    match unsafe { find(dma, |ops| ops.destroy_request) } {
        // SAFETY: the operation belongs to this state; the rest is the caller's promise.
        Ok((destroy, data)) => unsafe { destroy(data, req) },
        Err(error) => error,
    }
}

/// Waits for everything that was started.
///
/// # Safety
/// `dma` is NULL or a valid DMA.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aml_dma_barrier(dma: *mut aml_dma) -> c_int {
    // SAFETY: the caller's promise.
    match unsafe { find(dma, |ops| ops.barrier) } {
        // SAFETY: the operation belongs to this state.
        Ok((barrier, data)) => unsafe { barrier(data) },
        Err(error) => error,
    }
}

/// Describes a DMA in text.
///
/// # Safety
/// `stream` is NULL or an open stream, `prefix` NULL or a C string, `dma` NULL or a valid DMA.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aml_dma_fprintf(stream: *mut FILE, prefix: *const c_char, dma: *const aml_dma) -> c_int {
    if stream.is_null() {
        return -AML_EINVAL;
    }
    let prefix = if prefix.is_null() { c"".as_ptr() } else { prefix };
    // SAFETY: the caller's promise.
    match unsafe { find(dma, |ops| ops.fprintf) } {
        // SAFETY: the operation belongs to this state; the rest is the caller's promise.
        Ok((fprintf, data)) => unsafe { fprintf(data, stream, prefix) },
        Err(error) => error,
    }
}
