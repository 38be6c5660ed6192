//! The request: the 48 public bytes, the private rest behind them, and the memory that both lie in.
//! The status word is written by the device, so requests lie in slabs of ordinary memory that are registered with
//! CUDA: a context that goes away cannot take them along, and a status can always be read.

use crate::abi::{
    AML_DMA_CUDA_REQUEST_STATUS_DONE as DONE, AML_DMA_CUDA_REQUEST_STATUS_PENDING as PENDING, aml_dma_cuda_request,
    aml_dma_request,
};
use crate::error::{Error, Result};
use crate::stream::StreamState;
use cuda_driver::{Context, Event, Registration, Stream};
use libc::{c_int, c_void, pthread_mutex_t};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

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
    /// Next in a list: of free slots, of condemned ones, or of those that wait to be recorded or marked.
    next: AtomicPtr<Slot>,
    handover: AtomicU8,
    /// Whether the event was recorded for this request.
    recorded: AtomicBool,
    /// Whether the status word is not to wait for those of other requests.
    alone: AtomicBool,
}

const _: () = assert!(size_of::<Slot>() == 128);

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

    fn slot(&self) -> &Slot {
        // SAFETY: slots outlive requests, and are changed through atomics alone while a request is owned.
        unsafe { self.0.as_ref() }
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
        let slot = self.slot();
        slot.data == data || slot.stream == stream
    }

    /// Where the request was queued.
    pub fn stream_state(&self) -> &Arc<StreamState> {
        self.slot().state.as_ref().expect("a request has a stream")
    }

    /// The same, taken away: the request is about to be given back.
    pub fn take_stream_state(&mut self) -> Arc<StreamState> {
        // SAFETY: the request is owned, and whoever still marks it does not look at this field.
        unsafe { self.0.as_mut() }.state.take().expect("a request has a stream")
    }

    /// The event behind the copy, where there is one.
    pub fn event(&self) -> Option<Event> {
        let slot = self.slot();
        if slot.recorded.load(Ordering::Acquire) { slot.event } else { None }
    }

    /// Whether the status word was refused.
    pub fn is_refused(&self) -> bool {
        self.slot().handover.load(Ordering::Acquire) == Handover::Refused as u8
    }

    /// Whether nobody needs the request any more to have its status word written.
    pub fn is_handed(&self) -> bool {
        self.slot().handover.load(Ordering::Acquire) != Handover::Promised as u8
    }

    /// Says that the status word will not be written.
    pub fn refuse(&self) {
        self.slot().handover.store(Handover::Refused as u8, Ordering::Release);
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
        self.request_view(|request| request.slot().recorded.store(true, Ordering::Release));
        Ok(())
    }

    /// Says whether the status word is not to wait for those of other requests.
    pub fn set_alone(self, alone: bool) {
        self.request_view(|request| request.slot().alone.store(alone, Ordering::Relaxed));
    }

    /// Whether it is not to wait for them.
    pub fn is_alone(self) -> bool {
        self.request_view(|request| request.slot().alone.load(Ordering::Relaxed))
    }

    /// Says that the request was taken out of the list. Until its status word was written or refused, its slot is
    /// kept even when the request is given up.
    pub fn hand(self) {
        self.request_view(|request| request.slot().handover.store(Handover::Handed as u8, Ordering::Release));
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
        self.request_view(|request| request.slot().next.load(Ordering::Relaxed))
    }

    fn set_next(self, next: *mut Slot) {
        self.request_view(|request| request.slot().next.store(next, Ordering::Relaxed));
    }

    fn request_view<T>(self, look: impl FnOnce(&Request) -> T) -> T {
        look(&std::mem::ManuallyDrop::new(Request(self.0)))
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

/// A list of requests, the last one first. Several threads may push; one takes them all.
#[derive(Default)]
pub struct MarkList(AtomicPtr<Slot>);

impl MarkList {
    /// Adds `mark`.
    pub fn push(&self, mark: Mark) {
        let mut head = self.0.load(Ordering::Relaxed);
        loop {
            mark.set_next(head);
            match self.0.compare_exchange_weak(head, mark.0.as_ptr(), Ordering::SeqCst, Ordering::Relaxed) {
                Ok(_) => return,
                Err(other) => head = other,
            }
        }
    }

    /// Whether there is nothing in the list.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.load(Ordering::SeqCst).is_null()
    }

    /// Takes all there is.
    pub fn take(&self) -> impl Iterator<Item = Mark> + use<> {
        let mut next = self.0.swap(ptr::null_mut(), Ordering::SeqCst);
        std::iter::from_fn(move || {
            let mark = Mark(NonNull::new(next)?);
            next = mark.next();
            Some(mark)
        })
    }
}

/// A queue of requests, the first one first, for one thread at a time.
#[derive(Default)]
pub struct MarkQueue {
    ends: Option<(Mark, Mark)>,
    len: usize,
}

impl MarkQueue {
    /// Adds `mark` behind the others.
    pub fn push(&mut self, mark: Mark) {
        mark.set_next(ptr::null_mut());
        let first = self.ends.map_or(mark, |(first, last)| {
            last.set_next(mark.0.as_ptr());
            first
        });
        self.ends = Some((first, mark));
        self.len += 1;
    }

    /// Takes the first.
    pub fn pop(&mut self) -> Option<Mark> {
        let (first, last) = self.ends?;
        self.ends = NonNull::new(first.next()).map(|next| (Mark(next), last));
        self.len -= 1;
        Some(first)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.len
    }
}

/// The requests of one context.
pub struct Pool {
    /// The context that the slabs are registered in, and the events belong to.
    pub context: Context,
    /// Whether the device writes status words; else the driver calls `done`.
    pub device_writes: AtomicBool,
    slots: Mutex<Slots>,
}

struct Slots {
    free: List,
    /// Slots that were given up while the device may still write to them.
    condemned: List,
    slabs: Vec<Slab>,
}

/// A list of slots that nobody else refers to.
struct List(*mut Slot);

// SAFETY: the list owns its slots.
unsafe impl Send for List {}

impl List {
    fn push(&mut self, slot: NonNull<Slot>) {
        // SAFETY: the slot is owned by whoever calls.
        unsafe { slot.as_ref() }.next.store(self.0, Ordering::Relaxed);
        self.0 = slot.as_ptr();
    }

    fn pop(&mut self) -> Option<NonNull<Slot>> {
        let slot = NonNull::new(self.0)?;
        // SAFETY: the slot is in the list, so it is ours.
        self.0 = unsafe { slot.as_ref() }.next.load(Ordering::Relaxed);
        Some(slot)
    }
}

const FIRST_SLAB: usize = 512;
const LARGEST_SLAB: usize = 8192;

impl Pool {
    /// The requests of `context`; memory comes with the first.
    pub fn new(context: Context) -> Pool {
        let slots = Slots { free: List(ptr::null_mut()), condemned: List(ptr::null_mut()), slabs: Vec::new() };
        Pool { context, device_writes: AtomicBool::new(true), slots: Mutex::new(slots) }
    }

    fn slots(&self) -> MutexGuard<'_, Slots> {
        self.slots.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// A request in state PENDING on `state`, made through `data`. The pool's context is current.
    pub fn request(&self, state: Arc<StreamState>, data: usize, stream: usize) -> Result<Request> {
        let popped = self.slots().free.pop();
        let slot = match popped {
            Some(slot) => slot,
            None => self.grow()?,
        };
        // SAFETY: the slot came out of the free list, so nobody else knows it.
        unsafe {
            let slot = &mut *slot.as_ptr();
            AtomicI32::from_ptr(&raw mut slot.public.status).store(PENDING, Ordering::Relaxed);
            slot.public.lock = libc::PTHREAD_MUTEX_INITIALIZER;
            slot.data = data;
            slot.stream = stream;
            slot.state = Some(state);
            *slot.recorded.get_mut() = false;
            *slot.alone.get_mut() = false;
            *slot.handover.get_mut() = Handover::Promised as u8;
        }
        Ok(Request(slot))
    }

    /// Takes a request back. `settled` says that its status word was written, or never will be.
    pub fn recycle(&self, request: Request, settled: bool) {
        let mut slot = request.0;
        // SAFETY: the request is owned, and whoever still marks it does not look at this field.
        drop(unsafe { slot.as_mut() }.state.take());
        let mut slots = self.slots();
        let list = if settled { &mut slots.free } else { &mut slots.condemned };
        list.push(slot);
    }

    /// More slots: condemned ones that were written after all, else a new slab.
    #[cold]
    fn grow(&self) -> Result<NonNull<Slot>> {
        let count = {
            let mut slots = self.slots();
            let mut waiting = List(std::mem::replace(&mut slots.condemned.0, ptr::null_mut()));
            while let Some(slot) = waiting.pop() {
                let request = std::mem::ManuallyDrop::new(Request(slot));
                let list = if request.is_done() { &mut slots.free } else { &mut slots.condemned };
                list.push(slot);
            }
            if let Some(slot) = slots.free.pop() {
                return Ok(slot);
            }
            if slots.slabs.is_empty() { FIRST_SLAB } else { LARGEST_SLAB }
        };
        let slab = Slab::new(count)?;
        if self.device_writes.load(Ordering::Relaxed) && slab.register().is_err() {
            // The driver will do: slower, but nothing is lost.
            self.device_writes.store(false, Ordering::Relaxed);
        }
        let mut slots = self.slots();
        for slot in slab.slots().skip(1) {
            slots.free.push(slot);
        }
        let first = slab.first;
        slots.slabs.push(slab);
        Ok(first)
    }
}

impl Drop for Pool {
    /// Nobody has a request of the pool any more. Its memory is given back where the context has gone, and with it the
    /// registration and all that might write there.
    fn drop(&mut self) {
        if !self.context.lives() {
            let slots = self.slots.get_mut().unwrap_or_else(|poisoned| poisoned.into_inner());
            slots.slabs.drain(..).for_each(Slab::unmap);
        }
    }
}

/// A piece of memory full of slots. It stays as long as there are requests, since a program may look at one long after
/// the context has gone.
struct Slab {
    first: NonNull<Slot>,
    count: usize,
}

// SAFETY: it is an address; who may touch the slots is said by the lists.
unsafe impl Send for Slab {}

impl Slab {
    fn new(count: usize) -> Result<Slab> {
        // SAFETY: a fresh mapping; nothing else is touched.
        let memory = unsafe {
            libc::mmap(
                ptr::null_mut(),
                count * size_of::<Slot>(),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if memory == libc::MAP_FAILED {
            return Err(Error::OutOfMemory);
        }
        // Page alignment is more than a slot's, and zeros are a slot without an event.
        let first = NonNull::new(memory.cast()).ok_or(Error::OutOfMemory)?;
        Ok(Slab { first, count })
    }

    fn unmap(self) {
        // SAFETY: it was mapped with this size, and nobody has a request in it.
        unsafe { libc::munmap(self.first.as_ptr().cast(), self.count * size_of::<Slot>()) };
    }

    fn register(&self) -> Result<()> {
        // SAFETY: the memory is mapped, and never unmapped.
        let registration = unsafe { Registration::new(self.first.as_ptr().cast(), self.count * size_of::<Slot>()) }?;
        match registration.device_pointer() {
            Ok(pointer) if pointer == self.first.as_ptr() as u64 => {
                registration.into_raw();
                Ok(())
            }
            answer => {
                registration.end()?;
                Err(answer.map_or_else(Error::from, |_| Error::NotSupported))
            }
        }
    }

    fn slots(&self) -> impl Iterator<Item = NonNull<Slot>> {
        let first = self.first;
        // SAFETY: the index stays within the slab.
        (0..self.count).map(move |index| unsafe { first.add(index) })
    }
}

/// The mutex in the public part needs no more than zeros.
const _: () = assert!(size_of::<pthread_mutex_t>() == 40 && size_of::<c_int>() == 4);
