//! The exported objects. They are C globals in every way: a program may write to them, and its executable may hold
//! the copy that counts. So they are only ever addressed by `&raw`, which goes through the global offset table.
#![allow(non_upper_case_globals)] // C names stay C names.

use crate::abi::{aml_dma, aml_dma_cuda_data, aml_dma_ops};
use crate::capi;
use std::ptr;

/// `cudaMemcpyDefault`: the direction follows from the pointers.
const DEFAULT: i32 = 4;

/// The operations of every CUDA DMA.
#[unsafe(no_mangle)]
pub static mut aml_dma_cuda_ops: aml_dma_ops = aml_dma_ops {
    create_request: Some(capi::aml_dma_cuda_request_create),
    destroy_request: Some(capi::aml_dma_cuda_request_destroy),
    wait_request: Some(capi::aml_dma_cuda_request_wait),
    barrier: Some(capi::aml_dma_cuda_barrier),
    fprintf: Some(capi::describe),
};

/// cbindgen:ignore
/// The state of the static DMA: stream 0, whose context is found at each call.
#[unsafe(no_mangle)]
pub static mut aml_dma_cuda_data: aml_dma_cuda_data = aml_dma_cuda_data { stream: ptr::null_mut(), kind: DEFAULT };

/// A DMA that is there from the start.
#[unsafe(no_mangle)]
pub static mut aml_dma_cuda: aml_dma =
    aml_dma { ops: &raw mut aml_dma_cuda_ops, data: (&raw mut aml_dma_cuda_data).cast() };
