//! The public structs and constants of this library, exactly as C sees them; AML's own are in the crate `aml-abi`.
#![allow(non_camel_case_types)] // C names stay C names.

pub use aml_abi::*;
use cuda_driver::sys::CUstream_st;
use libc::{c_int, c_void, pthread_mutex_t};

/// State of no request.
pub const AML_DMA_CUDA_REQUEST_STATUS_NONE: c_int = 0;
/// State of a request whose copy is under way.
pub const AML_DMA_CUDA_REQUEST_STATUS_PENDING: c_int = 1;
/// State of a request whose copy is done.
pub const AML_DMA_CUDA_REQUEST_STATUS_DONE: c_int = 2;

/// CUDA's stream handle.
pub type cudaStream_t = *mut CUstream_st;

/// CUDA's direction of a copy; an integer here, since a C program may store anything.
pub type cudaMemcpyKind = c_int;

/// The state of a CUDA DMA. A program may build its own around a stream of its own.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct aml_dma_cuda_data {
    /// The stream that copies are queued on.
    pub stream: cudaStream_t,
    /// The direction of the copies.
    pub kind: cudaMemcpyKind,
}

/// The public part of a request, which a `struct aml_dma_request *` of this DMA points to.
#[repr(C)]
pub struct aml_dma_cuda_request {
    /// One of the three states; turns to DONE by itself. Another thread or the device writes it, so a program
    /// reads it as an atomic (`__atomic_load_n(&request->status, __ATOMIC_ACQUIRE)`), and never writes it. What was copied
    /// is seen by whoever saw DONE.
    pub status: c_int,
    /// A mutex for the program's use; the library does not take it.
    pub lock: pthread_mutex_t,
}

/// What an operator gets as its argument.
#[repr(C)]
pub struct aml_dma_cuda_op_arg {
    /// The DMA that the request is made on.
    pub data: *mut aml_dma_cuda_data,
    /// The argument that came with the request.
    pub op_arg: *mut c_void,
}

assert_layout!(aml_dma_cuda_request, 48, { status: 0, lock: 8 });
assert_layout!(aml_dma_cuda_data, 16, { stream: 0, kind: 8 });
assert_layout!(aml_dma_cuda_op_arg, 16, { data: 0, op_arg: 8 });
