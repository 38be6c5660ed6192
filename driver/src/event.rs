//! Events: points in the work of a stream that can be asked about and waited for.

use crate::error::{Result, check, done};
use crate::ffi::*;
use crate::stream::Stream;
use cust::sys::CUevent;
use std::ptr;

const CU_EVENT_DISABLE_TIMING: u32 = 2;

/// An event, by its handle. Whoever holds one vouches that it was not destroyed, nor its context.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Event(CUevent);

// SAFETY: handles are plain values; the driver may be called with one from any thread.
unsafe impl Send for Event {}
// SAFETY: as above.
unsafe impl Sync for Event {}

impl Event {
    /// A new event of the current context, without a time.
    pub fn new() -> Result<Event> {
        let mut event = ptr::null_mut();
        // SAFETY: `event` is valid for a write.
        check("cuEventCreate", unsafe { cuEventCreate(&mut event, CU_EVENT_DISABLE_TIMING) })?;
        Ok(Event(event))
    }

    pub(crate) fn raw(self) -> CUevent {
        self.0
    }

    /// Destroys the event.
    pub fn destroy(self) -> Result<()> {
        // SAFETY: the event lives.
        check("cuEventDestroy", unsafe { cuEventDestroy_v2(self.0) })
    }

    /// Puts the event behind the work that `stream` has now.
    #[inline]
    pub fn record(self, stream: Stream) -> Result<()> {
        // SAFETY: event and stream live.
        check("cuEventRecord", unsafe { cuEventRecord(self.0, stream.raw()) })
    }

    /// Whether the work before the event is done.
    #[inline]
    pub fn is_done(self) -> Result<bool> {
        // SAFETY: the event lives.
        done("cuEventQuery", unsafe { cuEventQuery(self.0) })
    }

    /// Waits for the work before the event.
    pub fn synchronize(self) -> Result<()> {
        // SAFETY: the event lives.
        check("cuEventSynchronize", unsafe { cuEventSynchronize(self.0) })
    }
}
