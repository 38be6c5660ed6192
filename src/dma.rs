//! A DMA as this library makes it: making and destroying it, and waiting for all of its work.

use crate::abi::{aml_dma, aml_dma_cuda_data};
use crate::completion;
use crate::copy::CopyKind;
use crate::error::{Error, Result};
use crate::statics::aml_dma_cuda_ops;
use crate::stream::{self, StreamState};
use cuda_driver::{Context, Device, Stream, runtime_device};
use std::ptr::NonNull;
use std::sync::Arc;

/// What lies behind a `struct aml_dma *` of ours. The public structs come first and hold all that a program may see;
/// what is known of the stream is found through the address of `data`.
#[repr(C)]
struct Dma {
    public: aml_dma,
    data: aml_dma_cuda_data,
    /// The device whose primary context was taken for this DMA, because none was current.
    retained: Option<Device>,
}

/// Makes a DMA with a stream of its own.
pub fn create(kind: CopyKind) -> Result<NonNull<aml_dma>> {
    cuda_driver::ready()?;
    let (context, retained) = match Context::current()? {
        Some(context) => (context, None),
        None => {
            let device = runtime_device()?;
            (device.retain_primary()?, Some(device))
        }
    };
    let made = create_in(context, kind, retained);
    if made.is_err()
        && let Some(device) = retained
    {
        let _ = device.release_primary();
    }
    made
}

fn create_in(context: Context, kind: CopyKind, retained: Option<Device>) -> Result<NonNull<aml_dma>> {
    let _current = context.enter()?;
    let memory = allocate()?;
    let stream = match Stream::new_non_blocking() {
        Ok(stream) => stream,
        Err(error) => {
            // SAFETY: `allocate` gave the memory, and nobody else knows it.
            unsafe { libc::free(memory.as_ptr().cast()) };
            return Err(error.into());
        }
    };
    // SAFETY: the memory is large enough and aligned for a `Dma`.
    let data = unsafe {
        let dma = memory.as_ptr();
        let data = &raw mut (*dma).data;
        dma.write(Dma {
            public: aml_dma { ops: &raw mut aml_dma_cuda_ops, data: data.cast() },
            data: aml_dma_cuda_data { stream: stream.raw(), kind: kind as i32 },
            retained,
        });
        data
    };
    if let Err(error) = stream::adopt(data as usize, stream, context) {
        // SAFETY: as above.
        unsafe { libc::free(memory.as_ptr().cast()) };
        return Err(error);
    }
    Ok(memory.cast())
}

fn allocate() -> Result<NonNull<Dma>> {
    // SAFETY: any size may be asked for.
    NonNull::new(unsafe { libc::malloc(size_of::<Dma>()) }.cast()).ok_or(Error::OutOfMemory)
}

/// Waits for the DMA's stream, and frees all of it. `Invalid` when this library did not make it, or freed it before.
///
/// # Safety
/// `dma` is valid for reads, and no other thread uses it.
pub unsafe fn destroy(dma: NonNull<aml_dma>) -> Result<()> {
    // SAFETY: the caller vouches for the pointer.
    let data = unsafe { dma.as_ref() }.data as usize;
    if data != dma.as_ptr() as usize + std::mem::offset_of!(Dma, data) {
        return Err(Error::Invalid);
    }
    let state = stream::release(data)?;
    let outcome = close(&state);
    // SAFETY: the registry knew the data, so `dma` is the beginning of a `Dma` of ours, and now it is forgotten.
    let retained = unsafe {
        let retained = dma.cast::<Dma>().as_ref().retained;
        libc::free(dma.as_ptr().cast());
        retained
    };
    // References survive a reset of the context, so ours is given back in any case.
    let released = retained.map_or(Ok(()), |device| device.release_primary().map_err(Error::from));
    outcome.and(released)
}

fn close(state: &Arc<StreamState>) -> Result<()> {
    cuda_driver::ready()?;
    let settled = completion::settle(state, state.context);
    settled.and(state.close())
}

/// Waits for all that was queued on a stream.
pub fn barrier(state: &Arc<StreamState>) -> Result<()> {
    completion::settle(state, state.context)
}

/// One line about a DMA: the direction of its copies, its device and its stream.
pub fn describe(data: &aml_dma_cuda_data) -> String {
    let kind = CopyKind::new(data.kind).map_or("unknown", CopyKind::name);
    // SAFETY: a program that prints a DMA has one whose stream lives.
    let device = cuda_driver::ready()
        .map_err(Error::from)
        .and_then(|()| unsafe { stream::state_of(data as *const _ as usize, stream::of_handle(data.stream)) })
        .and_then(|state| Ok(state.context.device()?.ordinal().to_string()))
        .unwrap_or_else(|_| "none".into());
    format!("aml_dma_cuda: kind {kind}, device {device}, stream {:p}\n", data.stream)
}
