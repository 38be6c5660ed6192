//! The request: the 48 public bytes, the private rest behind them, and the memory that both lie in.
//! The status word is written by the device, so requests lie in slabs of ordinary memory that are registered with
//! CUDA: a context that goes away cannot take them along, and a status can always be read.

mod list;
mod pool;
#[cfg(test)]
pub mod tests;

pub use list::{MarkList, MarkQueue};
pub use pool::Pool;

use crate::abi::{
    AML_DMA_CUDA_REQUEST_STATUS_DONE as DONE, AML_DMA_CUDA_REQUEST_STATUS_PENDING as PENDING, aml_dma_cuda_request,
    aml_dma_request,
};
use crate::stream::StreamState;
use cuda_driver::{Event, Stream};
use libc::{c_int, c_void, pthread_mutex_t};
use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU8, Ordering};

/// How far a request has come on its way to the driver; see `marking`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
enum Handover {
    /// Somebody will have the status word written.
    Promised,
    /// It is being handed to the driver, or was: the request is in no list any more.
    Handed,
    /// The driver refused. Whoever waits has to look at the event.
    Refused,
}

/// What lies behind a request pointer. Never freed one by one: a slot goes back to its pool.
#[repr(C, align(128))]
struct Slot {
    public: aml_dma_cuda_request,
    /// The DMA that the request was made on: the address of its data, and its stream.
    data: usize,
    stream: usize,
    /// Where the request was queued.
    state: Option<Arc<StreamState>>,
    /// Stays with the slot, and with the context of its pool.
    event: Option<Event>,
    progress: Progress,
}

/// What changes while one thread owns a request and another marks it. Of a slot that others may know, this alone or a
/// single field is borrowed: a reference to all of it would say that the rest stands still.
struct Progress {
    /// Next in a list: of free slots, of condemned ones, or of those that wait to be recorded or marked.
    next: AtomicPtr<Slot>,
    handover: AtomicU8,
    /// Whether the event was recorded for this request.
    recorded: AtomicBool,
    /// Whether the status word is not to wait for those of other requests.
    alone: AtomicBool,
}

impl Progress {
    /// That of a slot.
    ///
    /// # Safety
    /// The slot's memory stays as long as the reference does.
    unsafe fn of<'a>(slot: NonNull<Slot>) -> &'a Progress {
        // SAFETY: the caller vouches for the slot, and all in here are atomics.
        unsafe { &(*slot.as_ptr()).progress }
    }
}

const _: () = assert!(size_of::<Slot>() == 128);
/// The mutex in the public part needs no more than zeros.
const _: () = assert!(size_of::<pthread_mutex_t>() == 40 && size_of::<c_int>() == 4);

/// A request, owned by whoever has the value.
#[derive(Debug)]
pub struct Request(NonNull<Slot>);

// SAFETY: what others reach while a request is owned, they reach through its atomics.
unsafe impl Send for Request {}

impl Request {
    /// The request behind a pointer that `into_raw` gave.
    ///
    /// # Safety
    /// `pointer` came from `into_raw` and was not given back since.
    pub unsafe fn from_raw(pointer: NonNull<aml_dma_request>) -> Request {
        Request(pointer.cast())
    }

    /// Gives the request to the program.
    pub fn into_raw(self) -> *mut aml_dma_request {
        self.0.as_ptr().cast()
    }

    fn progress(&self) -> &Progress {
        // SAFETY: slots outlive requests.
        unsafe { Progress::of(self.0) }
    }

    fn status(&self) -> &AtomicI32 {
        // SAFETY: an aligned word that lives as long as the slot; device and program write it whole.
        unsafe { AtomicI32::from_ptr(&raw mut (*self.0.as_ptr()).public.status) }
    }

    /// Whether the status word says that the copy is done.
    #[inline]
    pub fn is_done(&self) -> bool {
        self.status().load(Ordering::Acquire) == DONE
    }

    /// Turns the status word to DONE.
    pub fn set_done(&self) {
        self.status().store(DONE, Ordering::Release);
    }

    /// Whether the request was made through `data`, or through another with the same stream.
    pub fn was_made_by(&self, data: usize, stream: usize) -> bool {
        let slot = self.0.as_ptr();
        // SAFETY: slots outlive requests, and these fields do not change while a request is owned.
        unsafe { (*slot).data == data || (*slot).stream == stream }
    }

    /// Where the request was queued.
    pub fn stream_state(&self) -> &Arc<StreamState> {
        // SAFETY: slots outlive requests, and whoever else marks it does not look at this field.
        unsafe { &(*self.0.as_ptr()).state }.as_ref().expect("a request has a stream")
    }

    /// The same, taken away: the request is about to be given back.
    pub fn take_stream_state(&mut self) -> Arc<StreamState> {
        // SAFETY: the request is owned, and whoever still marks it does not look at this field.
        unsafe { &mut (*self.0.as_ptr()).state }.take().expect("a request has a stream")
    }

    /// The event behind the copy, where there is one.
    pub fn event(&self) -> Option<Event> {
        // SAFETY: the event of a slot that is recorded does not change while the request is owned.
        self.progress().recorded.load(Ordering::Acquire).then(|| unsafe { (*self.0.as_ptr()).event }).flatten()
    }

    /// Whether the status word was refused.
    pub fn is_refused(&self) -> bool {
        self.progress().handover.load(Ordering::Acquire) == Handover::Refused as u8
    }

    /// Whether nobody needs the request any more to have its status word written.
    pub fn is_handed(&self) -> bool {
        self.progress().handover.load(Ordering::Acquire) != Handover::Promised as u8
    }

    /// Says that the status word will not be written.
    pub fn refuse(&self) {
        self.progress().handover.store(Handover::Refused as u8, Ordering::Release);
    }

    /// A second name for the request, for those who mark it.
    pub fn mark(&self) -> Mark {
        Mark(self.0)
    }
}

/// A request as those see it who mark it: good until its status word was written or refused, and no longer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Mark(NonNull<Slot>);

// SAFETY: what is reached through it are atomics, and fields that do not change while it is good.
unsafe impl Send for Mark {}

impl Mark {
    /// The status word.
    pub fn word(self) -> *mut u32 {
        // SAFETY: only an address is computed.
        unsafe { (&raw mut (*self.0.as_ptr()).public.status).cast() }
    }

    /// What `done` wants.
    pub fn argument(self) -> *mut c_void {
        self.word().cast()
    }

    /// The event behind the copy.
    pub fn event(self) -> Option<Event> {
        self.request_view(|request| request.event())
    }

    /// Records the event behind what `stream` has now. The context of the stream is current, and nobody else sees to
    /// the request.
    pub fn record(self, stream: Stream) -> cuda_driver::Result<()> {
        let slot = self.0.as_ptr();
        // SAFETY: nobody looks at the event of a slot that is not recorded yet, but for the one thread that records.
        let own = unsafe { &mut (*slot).event };
        let event = match *own {
            Some(event) => event,
            None => *own.insert(Event::new()?),
        };
        event.record(stream)?;
        self.request_view(|request| request.progress().recorded.store(true, Ordering::Release));
        Ok(())
    }

    /// Says whether the status word is not to wait for those of other requests.
    pub fn set_alone(self, alone: bool) {
        self.request_view(|request| request.progress().alone.store(alone, Ordering::Relaxed));
    }

    /// Whether it is not to wait for them.
    pub fn is_alone(self) -> bool {
        self.request_view(|request| request.progress().alone.load(Ordering::Relaxed))
    }

    /// Says that the request was taken out of the list. Until its status word was written or refused, its slot is
    /// kept even when the request is given up.
    pub fn hand(self) {
        self.request_view(|request| request.progress().handover.store(Handover::Handed as u8, Ordering::Release));
    }

    /// See `Request::refuse`.
    pub fn refuse(self) {
        self.request_view(|request| request.refuse());
    }

    /// See `Request::set_done`.
    pub fn set_done(self) {
        self.request_view(|request| request.set_done());
    }

    fn next(self) -> *mut Slot {
        self.request_view(|request| request.progress().next.load(Ordering::Relaxed))
    }

    fn set_next(self, next: *mut Slot) {
        self.request_view(|request| request.progress().next.store(next, Ordering::Relaxed));
    }

    fn request_view<T>(self, look: impl FnOnce(&Request) -> T) -> T {
        look(&ManuallyDrop::new(Request(self.0)))
    }
}

/// Turns a status word to DONE: what the driver calls where the device cannot write.
///
/// # Safety
/// `argument` is a status word of a slot.
pub unsafe extern "C" fn done(argument: *mut c_void) {
    // SAFETY: the caller vouches for the word.
    unsafe { AtomicI32::from_ptr(argument.cast()) }.store(DONE, Ordering::Release);
}
