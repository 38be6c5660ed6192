//! The exported functions: check the arguments, convert them, call the core, turn the outcome into a code.
//! The documentation of each is the header's.
#![expect(clippy::missing_safety_doc, reason = "the documentation is the header's, and says what each pointer must be")]

use crate::abi::*;
use crate::boundary::guard;
use crate::completion::Queued;
use crate::copy::{self, CopyKind};
use crate::error::{Error, Result};
use crate::peer::DevicePair;
use crate::request::{Pool, Request};
use crate::stream::{self, StreamState};
use crate::{completion, dma, statics, strided};
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
    let state = unsafe { stream::state_of(address, stream::of_handle(data.stream)) }?;
    Ok((state, data))
}

/// Creates a DMA with a stream of its own.
///
/// The stream is a non-blocking one: it does not wait for the legacy default stream, nor that one for it. It belongs
/// to the context that is current on this thread, or, where none is, to the primary context of the thread's CUDA
/// device; the current context is the same afterwards.
///
/// @param dma Where the address of the new DMA is stored; untouched on failure. Destroy it with
/// aml_dma_cuda_destroy().
/// @param kind The direction of its copies, one of the five of `enum cudaMemcpyKind`. `cudaMemcpyDefault` lets the
/// driver tell it from the pointers.
/// @return `AML_SUCCESS`; `-AML_EINVAL` when `dma` is NULL or `kind` is none of the five; `-AML_ENOMEM` when memory
/// ran out; `-AML_FAILURE` when a CUDA call failed, or there is no driver or no device.
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

/// Destroys a DMA that aml_dma_cuda_create() made: waits for all that is on its stream, frees it, and sets `*dma` to
/// NULL.
///
/// Wait for its requests first: afterwards there is no state left to name to aml_dma_cuda_request_wait().
///
/// @param dma The address of the pointer to the DMA. `*dma` NULL is nothing to do, and a success.
/// @return `AML_SUCCESS`; `-AML_EINVAL` when `dma` is NULL or `*dma` is the static #aml_dma_cuda, which is left as it
/// is; `-AML_FAILURE` when CUDA failed or its context is gone: the DMA is freed all the same.
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
        let outcome = match cuda_driver::is_forked() {
            true => Err(cuda_driver::FORK.into()),
            // SAFETY: the caller vouches for the DMA.
            false => unsafe { dma::destroy(target) },
        };
        if outcome != Err(Error::Invalid) {
            // SAFETY: as above.
            unsafe { dma.write(std::ptr::null_mut()) };
        }
        outcome
    })
}

/// Starts a copy: calls the operator on this thread, which queues work on the stream of the DMA, and makes the request
/// that stands for that work.
///
/// The status of the request turns to #AML_DMA_CUDA_REQUEST_STATUS_DONE by itself when the work is done; in a burst of
/// small copies up to sixteen may turn together, when the last of them is done. Pageable memory is treated as CUDA does:
/// a source may be reused, and a destination is filled, when this call returns.
///
/// @param data The state of the DMA: `dma->data`, in truth a `struct aml_dma_cuda_data`, be it this library's or the
/// program's own.
/// @param req Where the request is stored. What it holds before is not looked at, and on failure it is untouched.
/// NULL makes no request: wait for the copy with aml_dma_cuda_barrier(). A request must be given to
/// aml_dma_cuda_request_wait() or aml_dma_cuda_request_destroy() once.
/// @param dest Where to copy to, first argument of the operator; not NULL.
/// @param src What to copy, second argument of the operator; not NULL.
/// @param op The operator, or NULL for aml_dma_cuda_copy_1D(). It gets the address of a
/// `struct aml_dma_cuda_op_arg`, which lives as long as the call. It may use this DMA, and a C++ operator may throw.
/// @param op_arg Passed on to the operator as the field `op_arg`.
/// @return `AML_SUCCESS`; `-AML_EINVAL` when `data`, `dest` or `src` is NULL; `-AML_ENOMEM` when memory ran out;
/// `-AML_FAILURE` when CUDA failed; whatever else the operator returned. A copy that was queued before the failure is
/// over when the error returns, except when it is the operator's own, or when CUDA fails to wait for it as well.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn aml_dma_cuda_request_create(
    data: *mut aml_dma_data,
    req: *mut *mut aml_dma_request,
    dest: *mut aml_layout,
    src: *mut aml_layout,
    op: aml_dma_operator,
    op_arg: *mut c_void,
) -> c_int {
    let mut unfinished = None;
    let code = guard(|| {
        if dest.is_null() || src.is_null() {
            return Err(Error::Invalid);
        }
        // SAFETY: the caller vouches for `data`.
        let (state, public) = unsafe { locate(data.cast()) }?;
        let _current = state.context.enter()?;
        let Some(operator) = Operator::of(op) else {
            let request = match NonNull::new(req) {
                Some(req) => Some((Reserved::new(state.clone(), data as usize)?, req)),
                None => None,
            };
            completion::before_long(&state); // it may be
            unfinished = Some((state, request));
            return Ok(());
        };
        let Some(req) = NonNull::new(req) else {
            // SAFETY: the caller vouches for layouts and memory.
            return unsafe { operator.run(&state, public.kind, dest, src, op_arg) };
        };
        let request = Reserved::new(state, data as usize)?;
        // SAFETY: as above.
        unsafe { operator.run(request.stream_state(), public.kind, dest, src, op_arg) }?;
        request.mark(req, copy::queued())
    });
    let (Some((state, request)), Some(op)) = (unfinished, op) else { return code };
    let mut arg = aml_dma_cuda_op_arg { data: data.cast(), op_arg };
    copy::forget_queued();
    // Not guarded: an exception of the operator is the caller's, and passes. `request` goes back on its way.
    // SAFETY: the caller vouches for the operator.
    let code = unsafe { op(dest, src, (&raw mut arg).cast()) };
    if code != AML_SUCCESS {
        return code;
    }
    guard(|| {
        if state.is_closed() {
            return Err(Error::Operator(-AML_FAILURE)); // the operator destroyed the DMA
        }
        let _current = state.context.enter().inspect_err(|_| completion::drain(&state))?;
        // The operator may have queued more than the copy.
        let queued = copy::queued().map(|copy| Queued { finished: false, host: std::ptr::null(), ..copy });
        request.map_or(Ok(()), |(request, req)| request.mark(req, queued))
    })
}

/// The operators of this library. Inside of a request they run without going out to C and in again.
#[derive(Clone, Copy)]
enum Operator {
    Dense,
    Bytes,
    Layouts,
}

impl Operator {
    /// Which of them a program names; NULL is the one for dense layouts. The address of a function may be another in
    /// the program than here: then it is called like any other operator.
    fn of(op: aml_dma_operator) -> Option<Operator> {
        let Some(op) = op else { return Some(Operator::Dense) };
        let is = |own: unsafe extern "C-unwind" fn(_, _, _) -> c_int| std::ptr::fn_addr_eq(op, own);
        if is(aml_dma_cuda_memcpy_op) {
            Some(Operator::Bytes)
        } else if is(aml_dma_cuda_copy_1D) {
            Some(Operator::Dense)
        } else if is(aml_dma_cuda_copy_layout) {
            Some(Operator::Layouts)
        } else {
            None
        }
    }

    /// Queues the copy. The context of `state` is current.
    ///
    /// # Safety
    /// `dst` and `src` are what the operator takes, and their memory is as the driver wants it.
    unsafe fn run(
        self,
        state: &Arc<StreamState>,
        kind: cudaMemcpyKind,
        dst: *mut aml_layout,
        src: *const aml_layout,
        op_arg: *mut c_void,
    ) -> Result<()> {
        let kind = CopyKind::new(kind)?;
        copy::forget_queued();
        let pair = DevicePair::unpack(op_arg);
        // SAFETY: the caller vouches for all of it.
        unsafe {
            match self {
                Operator::Dense => copy::dense(state, kind, dst, src, pair),
                Operator::Layouts => strided::copy(state, kind, dst, src, pair),
                Operator::Bytes if kind == CopyKind::DeviceToDevice => Err(Error::NotSupported),
                Operator::Bytes => {
                    let no_pair = DevicePair { src: 0, dst: 0 };
                    copy::flat(state, kind, dst.cast(), src.cast(), op_arg as usize, no_pair)
                }
            }
        }
    }

    /// What the exported operators do.
    ///
    /// # Safety
    /// `arg` is NULL or a `struct aml_dma_cuda_op_arg`, and the rest as for `run`.
    unsafe fn call(self, dst: *mut aml_layout, src: *const aml_layout, arg: *mut c_void) -> c_int {
        guard(|| {
            // SAFETY: the caller vouches for the argument.
            let arg = unsafe { arg.cast::<aml_dma_cuda_op_arg>().as_ref() }.ok_or(Error::Invalid)?;
            // SAFETY: and for the DMA in it.
            let (state, data) = unsafe { locate(arg.data) }?;
            let _current = state.context.enter()?;
            // SAFETY: and for the rest.
            unsafe { self.run(&state, data.kind, dst, src, arg.op_arg) }
        })
    }
}

/// A request before its copy is marked; it goes back to its pool when nothing comes of it.
struct Reserved(Option<Request>);

impl Reserved {
    /// Gets the memory. The context of `state` is current.
    fn new(state: Arc<StreamState>, data: usize) -> Result<Reserved> {
        Ok(Reserved(Some(Pool::request(state, data)?)))
    }

    /// Where the copy is queued.
    fn stream_state(&self) -> &Arc<StreamState> {
        self.0.as_ref().expect("it is there until it is marked").stream_state()
    }

    /// Marks what was queued, and stores the request. The context is current.
    fn mark(mut self, req: NonNull<*mut aml_dma_request>, queued: Option<Queued>) -> Result<()> {
        let request = self.0.take().expect("it is there until it is marked");
        if let Err(error) = completion::mark(&request, queued) {
            completion::drain(request.stream_state());
            self.0 = Some(request);
            return Err(error);
        }
        // SAFETY: the caller of `aml_dma_cuda_request_create` vouches that `req` is valid for a write.
        unsafe { req.write(request.into_raw()) };
        Ok(())
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

/// Waits for one request, frees it, and sets `*req` to NULL. Later requests on the same stream need not be done.
///
/// Nor need work that the program put on the stream by itself later, with one exception: where other threads call
/// functions of the same DMA of aml_dma_cuda_create() at the same time, a request for a small copy may have to wait for
/// what was put on the stream directly before another thread saw to it, some microseconds later.
///
/// @param data The state of the DMA that the request was made on, or another with the same stream.
/// @param req The address of the pointer to the request.
/// @return `AML_SUCCESS`; `-AML_EINVAL` when `data`, `req` or `*req` is NULL or the request is another DMA's, which
/// leaves it valid; `-AML_FAILURE` when the copy failed, the device did, or the context is gone: the request is freed
/// all the same.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aml_dma_cuda_request_wait(data: *mut aml_dma_data, req: *mut *mut aml_dma_request) -> c_int {
    guard(|| {
        // SAFETY: the caller vouches for both pointers.
        let (address, data, req) = unsafe { (data as usize, data.cast::<aml_dma_cuda_data>().as_ref(), req.as_mut()) };
        let (data, req) = (data.ok_or(Error::Invalid)?, req.ok_or(Error::Invalid)?);
        let pointer = NonNull::new(*req).ok_or(Error::Invalid)?;
        // SAFETY: the caller vouches that this is a request of ours.
        let request = unsafe { Request::from_raw(pointer) };
        // SAFETY: only the handle is looked at.
        let stream = unsafe { stream::of_handle(data.stream) };
        if !request.was_made_by(address, stream.raw() as usize) {
            request.into_raw(); // it stays the caller's
            return Err(Error::Invalid);
        }
        *req = std::ptr::null_mut();
        if cuda_driver::is_forked() {
            request.into_raw(); // its memory is a copy that means nothing
            return Err(cuda_driver::FORK.into());
        }
        completion::wait(request)
    })
}

/// Gives a request up. CUDA cannot recall a copy, so this waits for it: the same as aml_dma_cuda_request_wait().
///
/// @param data The state of the DMA that the request was made on, or another with the same stream.
/// @param req The address of the pointer to the request.
/// @return As aml_dma_cuda_request_wait().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aml_dma_cuda_request_destroy(
    data: *mut aml_dma_data,
    req: *mut *mut aml_dma_request,
) -> c_int {
    // SAFETY: the caller vouches for the same as there.
    unsafe { aml_dma_cuda_request_wait(data, req) } // CUDA cannot recall a copy
}

/// Waits for everything that was queued on the stream of the DMA, with and without a request.
///
/// The requests among it are DONE then, and must still be waited for or destroyed.
///
/// @param data The state of the DMA.
/// @return `AML_SUCCESS`; `-AML_EINVAL` when `data` is NULL; `-AML_FAILURE` when CUDA failed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aml_dma_cuda_barrier(data: *mut aml_dma_data) -> c_int {
    guard(|| {
        // SAFETY: the caller vouches for `data`.
        let located = unsafe { locate(data.cast()) };
        let (state, _) = located.inspect_err(|_| {
            // SAFETY: as above. One call that was refused must not let go of copies that are under way.
            if let Ok((state, _)) = unsafe { locate(data.cast()) } {
                completion::drain(&state);
            }
        })?;
        dma::barrier(&state)
    })
}

/// The operator for layouts of any number of dimensions whose elements are one block without gaps: copies all bytes of
/// `src` to the start of `dst`.
///
/// @param dst The layout to copy to, with at least as many bytes.
/// @param src The layout to copy.
/// @param arg A `struct aml_dma_cuda_op_arg`. Its `op_arg` names the two devices of a copy of kind
/// `cudaMemcpyDeviceToDevice`, as #AML_DMA_CUDA_DEVICE_PAIR makes it (NULL is device 0 twice); other kinds ignore it.
/// @return `AML_SUCCESS`, the copy being queued; `-AML_ENOTSUP` when one of the layouts is not one block;
/// `-AML_EINVAL` when a pointer is NULL, `dst` is smaller than `src`, or the size overflows; `-AML_FAILURE` when CUDA
/// refused the copy, because of the direction, the memory or a device that is not there. Nothing is copied on failure.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn aml_dma_cuda_copy_1D(
    dst: *mut aml_layout,
    src: *const aml_layout,
    arg: *mut c_void,
) -> c_int {
    // SAFETY: the caller vouches for the pointers.
    unsafe { Operator::Dense.call(dst, src, arg) }
}

/// The operator for plain memory: `dst` and `src` are the addresses of the bytes themselves, cast to layouts.
///
/// @param dst The address to copy to.
/// @param src The address to copy from.
/// @param arg A `struct aml_dma_cuda_op_arg`. Its `op_arg` is the number of bytes, cast to a pointer. With 0 the
/// addresses are not looked at.
/// @return `AML_SUCCESS`, the copy being queued; `-AML_ENOTSUP` for kind `cudaMemcpyDeviceToDevice`; `-AML_EINVAL`
/// when a pointer is NULL; `-AML_FAILURE` when CUDA refused the copy. Nothing is copied on failure.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn aml_dma_cuda_memcpy_op(
    dst: *mut aml_layout,
    src: *const aml_layout,
    arg: *mut c_void,
) -> c_int {
    // SAFETY: the caller vouches for the pointers.
    unsafe { Operator::Bytes.call(dst, src, arg) }
}

/// The operator for layouts whose elements lie at regular distances: pitched, strided, sliced, of any number of
/// dimensions and either order. Copies each element of `src` to the element of `dst` with the same coordinates, as the
/// user of the two layouts writes them. An extension: AML's own library has no such function.
///
/// A copy between a row major and a column major layout of equal dimensions is thus a transposition of what lies in
/// memory. Only the layouts' functions are asked: `ndims`, `element_size`, and `order`, `dims_native` and
/// `deref_native`, or where one of these lacks, `dims` and `deref`. The distances are found by asking for the second
/// element of each dimension, and held against the corners (beyond six dimensions: the far corner and the end of each
/// dimension) and the middle. Memory is not looked at, so it may be a device's.
///
/// The driver gets as few calls as its copies of blocks, rectangles and boxes allow. Three dimensions that have gaps
/// (those without gaps on both sides count as one) are one call; more, or distances that are no whole number of rows,
/// or wider than the device's limit for rows, take one call for each step along the dimensions left over, the ones
/// with the fewest steps. A transposition of m by n elements is min(m, n) calls of rows of one element, at about the
/// cost of as many copies. Where that many calls would stay within the memory of the stream's context, a kernel takes
/// their place. The first one in a context takes the time of loading it, some tens of milliseconds; and while CUDA
/// loads, it waits for the work that this context has under way, on whichever stream.
///
/// Pageable memory is treated as by CUDA's copies of rectangles. The two layouts must not overlap each other.
///
/// @param dst The layout to copy to. No element of it may overlap another.
/// @param src The layout to copy, with the same size of elements, number of dimensions and dimensions.
/// @param arg A `struct aml_dma_cuda_op_arg`. Its `op_arg` names the two devices of a copy of kind
/// `cudaMemcpyDeviceToDevice`, as #AML_DMA_CUDA_DEVICE_PAIR makes it (NULL is device 0 twice); other kinds ignore it.
/// @return `AML_SUCCESS`, the copy being queued, or nothing to copy; `-AML_EINVAL` when a pointer is NULL, sizes or
/// dimensions differ, or the bytes are more than memory can hold; `-AML_ENOTSUP` when the elements of a layout do not
/// lie at regular distances, those of `dst` may overlap (each dimension must step past all that the shorter steps
/// reach), or a layout lacks the functions; `-AML_ENOMEM` when memory ran out; `-AML_FAILURE` when CUDA refused the
/// copy, because of the direction, the memory or a device that is not there. Nothing is copied when it is refused.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn aml_dma_cuda_copy_layout(
    dst: *mut aml_layout,
    src: *const aml_layout,
    arg: *mut c_void,
) -> c_int {
    // SAFETY: the caller vouches for the pointers.
    unsafe { Operator::Layouts.call(dst, src, arg) }
}

/// Describes a DMA in one line of text; reached through the table of operations only.
pub(crate) unsafe extern "C" fn describe(data: *const aml_dma_data, stream: *mut FILE, prefix: *const c_char) -> c_int {
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
