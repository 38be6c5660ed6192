//! Streams: making and destroying them, waiting for them, and having them write words of memory.

use crate::error::{Result, check, done};
use crate::event::Event;
use crate::ffi::*;
use cust::sys::{CUhostFn, CUstream, CUstreamBatchMemOpParams};
use libc::c_void;
use std::ptr;

/// How many words one call lets a stream write.
pub const WORDS_PER_WRITE: usize = 16;

const CU_STREAM_NON_BLOCKING: u32 = 1;

/// A stream, by its handle.
///
/// The driver crashes on a handle that was destroyed, so whoever makes one of these vouches that the stream lives
/// whenever it is used; the context it belongs to is current in every call, unless it says otherwise.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Stream(CUstream);

// SAFETY: handles are plain values; the driver may be called with one from any thread.
unsafe impl Send for Stream {}
// SAFETY: as above.
unsafe impl Sync for Stream {}

impl Stream {
    /// The legacy default stream of the current context.
    pub const NULL: Stream = Stream(ptr::null_mut());
    /// The same, by CUDA's second name for it.
    pub const LEGACY: Stream = Stream(1 as CUstream);
    /// The default stream of the calling thread.
    pub const PER_THREAD: Stream = Stream(2 as CUstream);

    /// The stream with this handle.
    ///
    /// # Safety
    /// The stream lives as long as the value is used.
    pub const unsafe fn from_raw(handle: CUstream) -> Stream {
        Stream(handle)
    }

    /// The handle.
    pub fn raw(self) -> CUstream {
        self.0
    }

    /// Whether the handle is one of CUDA's own, which stand for a stream of whatever context is current.
    pub fn is_default(self) -> bool {
        (self.0 as usize) <= 2
    }

    /// Whether the handle stands for another stream on each thread.
    pub fn is_per_thread(self) -> bool {
        self == Stream::PER_THREAD
    }

    /// A new stream that does not wait for the legacy default stream.
    pub fn new_non_blocking() -> Result<Stream> {
        let mut stream = ptr::null_mut();
        // SAFETY: `stream` is valid for a write.
        check("cuStreamCreate", unsafe { cuStreamCreate(&mut stream, CU_STREAM_NON_BLOCKING) })?;
        Ok(Stream(stream))
    }

    /// Destroys the stream, once its work is done.
    pub fn destroy(self) -> Result<()> {
        // SAFETY: the stream lives.
        check("cuStreamDestroy", unsafe { cuStreamDestroy_v2(self.0) })
    }

    /// Whether all work of the stream is done.
    pub fn is_done(self) -> Result<bool> {
        // SAFETY: the stream lives.
        done("cuStreamQuery", unsafe { cuStreamQuery(self.0) })
    }

    /// Waits for all work of the stream.
    pub fn synchronize(self) -> Result<()> {
        // SAFETY: the stream lives.
        check("cuStreamSynchronize", unsafe { cuStreamSynchronize(self.0) })
    }

    /// Lets later work of the stream wait for `event`.
    #[inline]
    pub fn wait_for(self, event: Event) -> Result<()> {
        // SAFETY: stream and event live.
        check("cuStreamWaitEvent", unsafe { cuStreamWaitEvent(self.0, event.raw(), 0) })
    }

    /// Lets the stream write `value` to each of `words`, after the work before it, and after that work's own writes.
    ///
    /// # Safety
    /// Each word lies in memory registered in the stream's context, and stays there until it was written.
    #[inline]
    pub unsafe fn write(self, words: &[*mut u32], value: u32) -> Result<()> {
        if let [word] = *words {
            // SAFETY: the caller vouches for the word; registered memory has the same address on the device.
            return check("cuStreamWriteValue32", unsafe { cuStreamWriteValue32_v2(self.0, word as u64, value, 0) });
        }
        const WRITE_VALUE_32: u32 = 2;
        // SAFETY: all zeros is a value of this union of integers.
        let mut operations: [CUstreamBatchMemOpParams; WORDS_PER_WRITE] = unsafe { std::mem::zeroed() };
        for some in words.chunks(WORDS_PER_WRITE) {
            for (operation, &word) in operations.iter_mut().zip(some) {
                // Laid out by hand: operation (32 bits) at 0, address at 8, value at 16, flags at 24, as the C union is.
                operation.pad = [WRITE_VALUE_32 as u64, word as u64, value as u64, 0, 0, 0];
            }
            // SAFETY: the first `some.len()` operations are filled; the caller vouches for the words.
            check("cuStreamBatchMemOp", unsafe {
                cuStreamBatchMemOp_v2(self.0, some.len() as u32, operations.as_mut_ptr(), 0)
            })?;
        }
        Ok(())
    }

    /// Lets the driver call `function` with `argument` once the work before it is done. It is not called when that work fails.
    ///
    /// # Safety
    /// `argument` is what `function` wants, then; and `function` calls nothing of CUDA.
    pub unsafe fn call(self, function: unsafe extern "C" fn(*mut c_void), argument: *mut c_void) -> Result<()> {
        let function: CUhostFn = Some(function);
        // SAFETY: the stream lives, and the caller vouches for the rest.
        check("cuLaunchHostFunc", unsafe { cuLaunchHostFunc(self.0, function, argument) })
    }
}
