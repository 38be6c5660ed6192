//! A DMA as AML sees it: an opaque state and the five operations on it.

use crate::{aml_layout, assert_layout};
use libc::{FILE, c_char, c_int, c_void};

/// The state of a DMA, known only to its implementation.
#[repr(C)]
pub struct aml_dma_data {
    _opaque: [u8; 0],
}

/// A request of a DMA, known only to its implementation.
#[repr(C)]
pub struct aml_dma_request {
    _opaque: [u8; 0],
}

/// Moves the data of one layout into another; `arg` is whatever the DMA passes to its operators.
///
/// Returns 0 or a negated AML error number; a C++ operator may throw through a DMA for CUDA.
pub type aml_dma_operator =
    Option<unsafe extern "C-unwind" fn(dst: *mut aml_layout, src: *const aml_layout, arg: *mut c_void) -> c_int>;

/// The operations of a DMA.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct aml_dma_ops {
    /// Starts moving `src` into `dest` with `op`, and stores the request that stands for it.
    pub create_request: Option<
        unsafe extern "C-unwind" fn(
            dma: *mut aml_dma_data,
            req: *mut *mut aml_dma_request,
            dest: *mut aml_layout,
            src: *mut aml_layout,
            op: aml_dma_operator,
            op_arg: *mut c_void,
        ) -> c_int,
    >,
    /// Gives a request up.
    pub destroy_request: Option<unsafe extern "C" fn(dma: *mut aml_dma_data, req: *mut *mut aml_dma_request) -> c_int>,
    /// Waits for a request and frees it.
    pub wait_request: Option<unsafe extern "C" fn(dma: *mut aml_dma_data, req: *mut *mut aml_dma_request) -> c_int>,
    /// Waits for everything that was started.
    pub barrier: Option<unsafe extern "C" fn(dma: *mut aml_dma_data) -> c_int>,
    /// Describes the DMA on a stream of text, each line behind `prefix`.
    pub fprintf:
        Option<unsafe extern "C" fn(dma: *const aml_dma_data, stream: *mut FILE, prefix: *const c_char) -> c_int>,
}

/// A DMA: its operations, and the state they work on.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct aml_dma {
    /// The operations.
    pub ops: *mut aml_dma_ops,
    /// The state, passed to each of them.
    pub data: *mut aml_dma_data,
}

assert_layout!(aml_dma, 16, { ops: 0, data: 8 });
assert_layout!(aml_dma_ops, 40, {
    create_request: 0, destroy_request: 8, wait_request: 16, barrier: 24, fprintf: 32,
});
