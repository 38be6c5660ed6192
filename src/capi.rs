//! The exported functions: check the arguments, convert them, call the core, turn the outcome into a code.
//! The documentation of each is the header's.
#![expect(clippy::missing_safety_doc, reason = "the documentation is the header's, and says what each pointer must be")]

use crate::abi::*;
use crate::boundary::guard;
use crate::copy::{self, CopyKind};
use crate::error::{Error, Result};
use crate::peer::DevicePair;
use crate::request::Request;
use crate::stream::{self, StreamState};
use crate::{completion, dma, statics};
use cuda_driver::Stream;
use libc::{FILE, c_char, c_int, c_void};
use std::ffi::CString;
use std::ptr::NonNull;
use std::sync::Arc;

/// What is known of the stream of the DMA at `data`, and the direction of its copies, as they are now.
///
/// # Safety
/// `data` is NULL or valid for reads, and its stream lives unless this library made it.
unsafe fn locate(data: *mut aml_dma_cuda_data) -> Result<(Arc<StreamState>, aml_dma_cuda_data)> {
    let address = data as usize;
    // SAFETY: the caller vouches for the pointer.
    let data = *unsafe { data.as_ref() }.ok_or(Error::Invalid)?;
    cuda_driver::ready()?;
    // SAFETY: the caller vouches for the stream.
    let state = unsafe { stream::state_of(address, Stream::from_raw(data.stream)) }?;
    Ok((state, data))
}

/// Creates a DMA with a stream of its own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aml_dma_cuda_create(dma: *mut *mut aml_dma, kind: cudaMemcpyKind) -> c_int {
    guard(|| {
        let dma = NonNull::new(dma).ok_or(Error::Invalid)?;
        let created = dma::create(CopyKind::new(kind)?)?;
        // SAFETY: the caller vouches that `dma` is valid for a write.
        unsafe { dma.write(created.as_ptr()) };
        Ok(())
    })
}

/// Destroys a DMA.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aml_dma_cuda_destroy(dma: *mut *mut aml_dma) -> c_int {
    guard(|| {
        let dma = NonNull::new(dma).ok_or(Error::Invalid)?;
        // SAFETY: the caller vouches that `dma` is valid for reads and writes.
        let Some(target) = NonNull::new(unsafe { dma.read() }) else {
            return Ok(());
        };
        if target.as_ptr() == &raw mut statics::aml_dma_cuda {
            return Err(Error::Invalid);
        }
        // SAFETY: the caller vouches for the DMA.
        let outcome = unsafe { dma::destroy(target) };
        if outcome != Err(Error::Invalid) {
            // SAFETY: as above.
            unsafe { dma.write(std::ptr::null_mut()) };
        }
        outcome
    })
}

/// Starts a copy.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn aml_dma_cuda_request_create(
    data: *mut aml_dma_cuda_data,
    req: *mut *mut aml_dma_request,
    dest: *mut aml_layout,
    src: *mut aml_layout,
    op: aml_dma_operator,
    op_arg: *mut c_void,
) -> c_int {
    let mut request = None;
    let prepared = guard(|| {
        if dest.is_null() || src.is_null() {
            return Err(Error::Invalid);
        }
        // SAFETY: the caller vouches for `data`.
        let (state, public) = unsafe { locate(data) }?;
        request = match NonNull::new(req) {
            Some(_) => Some(Reserved::new(&state, data as usize, public.stream as usize)?),
            None => None,
        };
        Ok(())
    });
    if prepared != AML_SUCCESS {
        return prepared;
    }
    let mut arg = aml_dma_cuda_op_arg { data, op_arg };
    let op = op.unwrap_or(aml_dma_cuda_copy_1D);
    // Not guarded: an exception of the operator is the caller's, and passes. `request` goes back on its way.
    copy::forget_size();
    // SAFETY: the caller vouches for the operator.
    let code = unsafe { op(dest, src, (&raw mut arg).cast()) };
    if code != AML_SUCCESS {
        return code;
    }
    guard(|| {
        let (Some(request), Some(req)) = (request, NonNull::new(req)) else {
            return Ok(());
        };
        let marked = request.mark()?;
        // SAFETY: the caller vouches that `req` is valid for a write.
        unsafe { req.write(marked.into_raw()) };
        Ok(())
    })
}

/// A request before its copy is marked; it goes back to its pool when nothing comes of it.
struct Reserved(Option<Request>);

impl Reserved {
    fn new(state: &Arc<StreamState>, data: usize, stream: usize) -> Result<Reserved> {
        let _current = state.context.enter()?;
        Ok(Reserved(Some(state.pool.request(state.clone(), data, stream)?)))
    }

    fn mark(mut self) -> Result<Request> {
        let mut request = self.0.take().expect("it is there until it is marked");
        let state = request.stream_state().clone();
        let marked = completion::mark(&mut request, copy::queued_size());
        if let Err(error) = marked {
            self.0 = Some(request);
            if let Ok(_current) = state.context.enter() {
                completion::drain(state.stream);
            }
            return Err(error);
        }
        Ok(request)
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        if let Some(request) = self.0.take() {
            let state = request.stream_state().clone();
            state.pool.recycle(request, true);
        }
    }
}

/// Waits for a request.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aml_dma_cuda_request_wait(
    data: *mut aml_dma_cuda_data,
    req: *mut *mut aml_dma_request,
) -> c_int {
    guard(|| {
        // SAFETY: the caller vouches for both pointers.
        let (address, data, req) = unsafe { (data as usize, data.as_ref(), req.as_mut()) };
        let (data, req) = (data.ok_or(Error::Invalid)?, req.ok_or(Error::Invalid)?);
        let pointer = NonNull::new(*req).ok_or(Error::Invalid)?;
        // SAFETY: the caller vouches that this is a request of ours.
        let request = unsafe { Request::from_raw(pointer) };
        if !request.was_made_by(address, data.stream as usize) {
            request.into_raw(); // it stays the caller's
            return Err(Error::Invalid);
        }
        *req = std::ptr::null_mut();
        if let Err(error) = cuda_driver::ready() {
            request.into_raw(); // in a forked child: its memory is a copy that means nothing
            return Err(error.into());
        }
        completion::wait(request)
    })
}

/// Gives a request up.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aml_dma_cuda_request_destroy(
    data: *mut aml_dma_cuda_data,
    req: *mut *mut aml_dma_request,
) -> c_int {
    // SAFETY: the caller vouches for the same as there.
    unsafe { aml_dma_cuda_request_wait(data, req) } // CUDA cannot recall a copy
}

/// Waits for everything that was queued.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aml_dma_cuda_barrier(data: *mut aml_dma_cuda_data) -> c_int {
    guard(|| {
        // SAFETY: the caller vouches for `data`.
        let (state, _) = unsafe { locate(data) }?;
        dma::barrier(&state)
    })
}

/// Copies a dense layout.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn aml_dma_cuda_copy_1D(
    dst: *mut aml_layout,
    src: *const aml_layout,
    arg: *mut c_void,
) -> c_int {
    guard(|| {
        // SAFETY: the caller vouches for the argument.
        let arg = unsafe { arg.cast::<aml_dma_cuda_op_arg>().as_ref() }.ok_or(Error::Invalid)?;
        // SAFETY: and for the DMA in it.
        let (state, data) = unsafe { locate(arg.data) }?;
        let kind = CopyKind::new(data.kind)?;
        // SAFETY: and for layouts and memory.
        unsafe { copy::dense(&state, kind, dst, src, DevicePair::unpack(arg.op_arg)) }
    })
}

/// Copies bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn aml_dma_cuda_memcpy_op(
    dst: *mut aml_layout,
    src: *const aml_layout,
    arg: *mut c_void,
) -> c_int {
    guard(|| {
        // SAFETY: the caller vouches for the argument.
        let arg = unsafe { arg.cast::<aml_dma_cuda_op_arg>().as_ref() }.ok_or(Error::Invalid)?;
        // SAFETY: and for the DMA in it.
        let (state, data) = unsafe { locate(arg.data) }?;
        let kind = CopyKind::new(data.kind)?;
        if kind == CopyKind::DeviceToDevice {
            return Err(Error::NotSupported);
        }
        let pair = DevicePair { src: 0, dst: 0 };
        // SAFETY: and for the memory, which is all that the two pointers are here.
        unsafe { copy::flat(&state, kind, dst.cast(), src.cast(), arg.op_arg as usize, pair) }
    })
}

/// The operations of the table, with the types that AML gives them.
pub(crate) unsafe extern "C-unwind" fn ops_create_request(
    data: *mut aml_dma_data,
    req: *mut *mut aml_dma_request,
    dest: *mut aml_layout,
    src: *mut aml_layout,
    op: aml_dma_operator,
    op_arg: *mut c_void,
) -> c_int {
    // SAFETY: the state of a CUDA DMA is an `aml_dma_cuda_data`.
    unsafe { aml_dma_cuda_request_create(data.cast(), req, dest, src, op, op_arg) }
}

pub(crate) unsafe extern "C" fn ops_destroy_request(data: *mut aml_dma_data, req: *mut *mut aml_dma_request) -> c_int {
    // SAFETY: as above.
    unsafe { aml_dma_cuda_request_destroy(data.cast(), req) }
}

pub(crate) unsafe extern "C" fn ops_wait_request(data: *mut aml_dma_data, req: *mut *mut aml_dma_request) -> c_int {
    // SAFETY: as above.
    unsafe { aml_dma_cuda_request_wait(data.cast(), req) }
}

pub(crate) unsafe extern "C" fn ops_barrier(data: *mut aml_dma_data) -> c_int {
    // SAFETY: as above.
    unsafe { aml_dma_cuda_barrier(data.cast()) }
}

pub(crate) unsafe extern "C" fn ops_fprintf(
    data: *const aml_dma_data,
    stream: *mut FILE,
    prefix: *const c_char,
) -> c_int {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        let (data, file) = unsafe { (data.cast::<aml_dma_cuda_data>().as_ref(), NonNull::new(stream)) };
        let (data, file) = (data.ok_or(Error::Invalid)?, file.ok_or(Error::Invalid)?);
        let line = CString::new(dma::describe(data)).map_err(|_| Error::Invalid)?;
        // SAFETY: the file is open, and both strings end in NUL.
        let written = unsafe {
            (prefix.is_null() || libc::fputs(prefix, file.as_ptr()) >= 0)
                && libc::fputs(line.as_ptr(), file.as_ptr()) >= 0
        };
        if written { Ok(()) } else { Err(Error::Invalid) }
    })
}
