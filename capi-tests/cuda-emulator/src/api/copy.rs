//! Copies and fills of one block of bytes.
use crate::copy::{self, Form, acting};
use crate::entry::{Entry, call};
use crate::memory::{Asker, Sort, place};
use crate::result::*;
use crate::stream::Stream;
use crate::types::*;
use crate::work::Work;
use crate::{context, stream};
use std::ffi::{c_uchar, c_uint, c_void};
use std::sync::Arc;

fn wait(entry: Entry, form: Form, dst: usize, src: usize, len: usize) -> CUresult {
    call(entry, || copy::synchronous(context::working()?.legacy(), form, dst, src, len))
}

fn queue(entry: Entry, form: Form, dst: usize, src: usize, len: usize, handle: CUstream) -> CUresult {
    call(entry, || copy::asynchronous(&stream::working(handle)?, form, dst, src, len))
}

#[unsafe(no_mangle)]
extern "C" fn cuMemcpy(dst: CUdeviceptr, src: CUdeviceptr, len: usize) -> CUresult {
    wait(Entry::cuMemcpy, Form::Unified, dst as usize, src as usize, len)
}

#[unsafe(no_mangle)]
extern "C" fn cuMemcpyAsync(dst: CUdeviceptr, src: CUdeviceptr, len: usize, stream: CUstream) -> CUresult {
    queue(Entry::cuMemcpyAsync, Form::Unified, dst as usize, src as usize, len, stream)
}

#[unsafe(no_mangle)]
extern "C" fn cuMemcpyHtoD_v2(dst: CUdeviceptr, src: *const c_void, len: usize) -> CUresult {
    wait(Entry::cuMemcpyHtoD_v2, Form::HtoD, dst as usize, src as usize, len)
}

#[unsafe(no_mangle)]
extern "C" fn cuMemcpyDtoH_v2(dst: *mut c_void, src: CUdeviceptr, len: usize) -> CUresult {
    wait(Entry::cuMemcpyDtoH_v2, Form::DtoH, dst as usize, src as usize, len)
}

#[unsafe(no_mangle)]
extern "C" fn cuMemcpyDtoD_v2(dst: CUdeviceptr, src: CUdeviceptr, len: usize) -> CUresult {
    wait(Entry::cuMemcpyDtoD_v2, Form::DtoD, dst as usize, src as usize, len)
}

#[unsafe(no_mangle)]
extern "C" fn cuMemcpyHtoDAsync_v2(dst: CUdeviceptr, src: *const c_void, len: usize, stream: CUstream) -> CUresult {
    queue(Entry::cuMemcpyHtoDAsync_v2, Form::HtoD, dst as usize, src as usize, len, stream)
}

#[unsafe(no_mangle)]
extern "C" fn cuMemcpyDtoHAsync_v2(dst: *mut c_void, src: CUdeviceptr, len: usize, stream: CUstream) -> CUresult {
    queue(Entry::cuMemcpyDtoHAsync_v2, Form::DtoH, dst as usize, src as usize, len, stream)
}

#[unsafe(no_mangle)]
extern "C" fn cuMemcpyDtoDAsync_v2(dst: CUdeviceptr, src: CUdeviceptr, len: usize, stream: CUstream) -> CUresult {
    queue(Entry::cuMemcpyDtoDAsync_v2, Form::DtoD, dst as usize, src as usize, len, stream)
}

#[unsafe(no_mangle)]
extern "C" fn cuMemcpyPeer(
    dst: CUdeviceptr,
    dst_context: CUcontext,
    src: CUdeviceptr,
    src_context: CUcontext,
    len: usize,
) -> CUresult {
    call(Entry::cuMemcpyPeer, || {
        let context = context::working()?;
        context::check_peers(dst_context, src_context)?;
        copy::synchronous(context.legacy(), Form::Peer, dst as usize, src as usize, len)
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuMemcpyPeerAsync(
    dst: CUdeviceptr,
    dst_context: CUcontext,
    src: CUdeviceptr,
    src_context: CUcontext,
    len: usize,
    stream: CUstream,
) -> CUresult {
    call(Entry::cuMemcpyPeerAsync, || {
        let stream = stream::working(stream)?;
        context::check_peers(dst_context, src_context)?;
        copy::asynchronous(&stream, Form::Peer, dst as usize, src as usize, len)
    })
}

/// Queues a fill; on host memory the synchronous form waits for it.
fn fill(stream: &Arc<Stream>, dst: CUdeviceptr, len: usize, make: impl FnOnce(usize) -> Work, wait: bool) -> Result {
    if len == 0 {
        return Ok(());
    }
    let context = &*acting(stream);
    let to = place(dst as usize, len, Asker { context, as_device: true, any_device: false })?;
    let done = stream.submit(make(to.bytes))?;
    if wait && to.sort != Some(Sort::Device) {
        done.wait();
        stream.check()?;
    }
    Ok(())
}

fn bytes(value: c_uchar, len: usize) -> impl FnOnce(usize) -> Work {
    move |dst| Work::Fill8 { dst, value, len }
}

#[unsafe(no_mangle)]
extern "C" fn cuMemsetD8_v2(dst: CUdeviceptr, value: c_uchar, len: usize) -> CUresult {
    call(Entry::cuMemsetD8_v2, || fill(context::working()?.legacy(), dst, len, bytes(value, len), true))
}

#[unsafe(no_mangle)]
extern "C" fn cuMemsetD8Async(dst: CUdeviceptr, value: c_uchar, len: usize, stream: CUstream) -> CUresult {
    call(Entry::cuMemsetD8Async, || fill(&stream::working(stream)?, dst, len, bytes(value, len), false))
}

fn fill_words(stream: &Arc<Stream>, dst: CUdeviceptr, value: c_uint, count: usize, wait: bool) -> Result {
    let len = count.checked_mul(4).ok_or(CUDA_ERROR_INVALID_VALUE)?;
    if len != 0 && dst % 4 != 0 {
        return Err(CUDA_ERROR_INVALID_VALUE);
    }
    fill(stream, dst, len, |dst| Work::Fill32 { dst, value, count }, wait)
}

#[unsafe(no_mangle)]
extern "C" fn cuMemsetD32_v2(dst: CUdeviceptr, value: c_uint, count: usize) -> CUresult {
    call(Entry::cuMemsetD32_v2, || fill_words(context::working()?.legacy(), dst, value, count, true))
}

#[unsafe(no_mangle)]
extern "C" fn cuMemsetD32Async(dst: CUdeviceptr, value: c_uint, count: usize, stream: CUstream) -> CUresult {
    call(Entry::cuMemsetD32Async, || fill_words(&stream::working(stream)?, dst, value, count, false))
}
