//! Which context a call belongs to: that of the stream, and for CUDA's own stream handles the one that is current,
//! or where none is, the primary context of the thread's CUDA device.

use crate::error::Result;
use cuda_driver::{Context, Stream, primary_context, runtime_device};

/// The context that work on `stream` belongs to.
///
/// # Safety
/// `stream` lives.
#[inline]
pub unsafe fn context_of(stream: Stream) -> Result<Context> {
    if !stream.is_default() {
        // SAFETY: the caller vouches for the stream.
        return Ok(unsafe { Context::of_stream(stream) }?);
    }
    match Context::current()? {
        Some(context) => Ok(context),
        None => Ok(primary_context(runtime_device()?)?),
    }
}
