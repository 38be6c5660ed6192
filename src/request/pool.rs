//! The memory that requests lie in. Slots come in slabs that are registered with CUDA, so that the device can write
//! status words; free ones lie at hand on shelves, so that threads need not wait for each other.

#[cfg(test)]
mod tests;

use super::{Handover, PENDING, Progress, Request, Slot};
use crate::duty::Apart;
use crate::error::{Error, Result};
use crate::stream::StreamState;
use cuda_driver::{Context, Registration};
use std::cell::Cell;
use std::mem::ManuallyDrop;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// The requests of one context.
pub struct Pool {
    /// The context that the slabs are registered in, and the events belong to.
    pub context: Context,
    /// Whether the device writes status words; else the driver calls `done`.
    pub device_writes: AtomicBool,
    /// Free slots at hand, for the threads that go by the same number.
    shelves: [Apart<Mutex<List>>; SHELVES],
    store: Mutex<Store>,
}

/// The slots that are on no shelf.
struct Store {
    free: List,
    /// Slots that were given up while the device may still write to them.
    condemned: List,
    slabs: Vec<Slab>,
}

impl Store {
    /// Looks at the `count` slots that were condemned first, and moves those that were written to `list`.
    fn reprieve(&mut self, list: &mut List, count: usize) {
        for _ in 0..count.min(self.condemned.len) {
            let Some(slot) = self.condemned.pop() else { return };
            let written = ManuallyDrop::new(Request(slot)).is_done();
            if written { list.push(slot) } else { self.condemned.append(slot) }
        }
    }
}

/// A list of slots that nobody else refers to.
struct List {
    first: *mut Slot,
    last: *mut Slot,
    len: usize,
}

// SAFETY: the list owns its slots.
unsafe impl Send for List {}

impl List {
    const EMPTY: List = List { first: ptr::null_mut(), last: ptr::null_mut(), len: 0 };

    fn push(&mut self, slot: NonNull<Slot>) {
        // SAFETY: the slot is owned by whoever calls.
        unsafe { Progress::of(slot) }.next.store(self.first, Ordering::Relaxed);
        if self.first.is_null() {
            self.last = slot.as_ptr();
        }
        self.first = slot.as_ptr();
        self.len += 1;
    }

    /// Adds a slot behind the others.
    fn append(&mut self, slot: NonNull<Slot>) {
        let Some(last) = NonNull::new(self.last).filter(|_| self.len > 0) else { return self.push(slot) };
        // SAFETY: the slot is owned by whoever calls, and the last one is in the list, so it is ours.
        unsafe {
            Progress::of(slot).next.store(ptr::null_mut(), Ordering::Relaxed);
            Progress::of(last).next.store(slot.as_ptr(), Ordering::Relaxed);
        }
        self.last = slot.as_ptr();
        self.len += 1;
    }

    fn pop(&mut self) -> Option<NonNull<Slot>> {
        let slot = NonNull::new(self.first)?;
        // SAFETY: the slot is in the list, so it is ours.
        self.first = unsafe { Progress::of(slot) }.next.load(Ordering::Relaxed);
        self.len -= 1;
        Some(slot)
    }

    /// Moves up to `count` slots to `other`.
    fn give(&mut self, other: &mut List, count: usize) {
        for _ in 0..count {
            let Some(slot) = self.pop() else { return };
            other.push(slot);
        }
    }
}

/// So many threads can take and give back requests at once without one waiting for another.
const SHELVES: usize = 16;
/// So many slots go between a shelf and the store at a time; a shelf holds up to twice as many.
const LOT: usize = 32;

const FIRST_SLAB: usize = if cfg!(miri) { 256 } else { 2048 }; // enough for all shelves
const LARGEST_SLAB: usize = if cfg!(miri) { 512 } else { 8192 };

impl Pool {
    /// The requests of `context`; memory comes with the first.
    pub fn new(context: Context) -> Pool {
        Pool {
            context,
            device_writes: AtomicBool::new(true),
            shelves: std::array::from_fn(|_| Apart(Mutex::new(List::EMPTY))),
            store: Mutex::new(Store { free: List::EMPTY, condemned: List::EMPTY, slabs: Vec::new() }),
        }
    }

    /// The shelf of the calling thread.
    fn shelf(&self) -> MutexGuard<'_, List> {
        thread_local! {
            static NUMBER: Cell<Option<usize>> = const { Cell::new(None) };
        }
        static THREADS: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.try_with(|number| {
            number.get().unwrap_or_else(|| {
                let next = THREADS.fetch_add(1, Ordering::Relaxed) % SHELVES;
                number.set(Some(next));
                next
            })
        });
        self.shelves[number.unwrap_or(0)].lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn store(&self) -> MutexGuard<'_, Store> {
        self.store.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// A request in state PENDING on `state`, made through `data`. Its context is current.
    pub fn request(state: Arc<StreamState>, data: usize) -> Result<Request> {
        let slot = match state.pool.take() {
            Some(slot) => slot,
            None => state.pool.grow()?,
        };
        // SAFETY: the slot came out of the free list, so nobody else knows it.
        unsafe {
            let slot = &mut *slot.as_ptr();
            AtomicI32::from_ptr(&raw mut slot.public.status).store(PENDING, Ordering::Relaxed);
            slot.public.lock = libc::PTHREAD_MUTEX_INITIALIZER;
            slot.data = data;
            slot.stream = state.stream.raw() as usize;
            slot.state = Some(state);
            *slot.progress.recorded.get_mut() = false;
            *slot.progress.alone.get_mut() = false;
            *slot.progress.handover.get_mut() = Handover::Promised as u8;
        }
        Ok(Request(slot))
    }

    /// Takes a request back. `settled` says that its status word was written, or never will be.
    pub fn recycle(&self, request: Request, settled: bool) {
        let slot = request.0;
        // SAFETY: the request is owned, and whoever still marks it does not look at this field.
        drop(unsafe { &mut (*slot.as_ptr()).state }.take());
        if !settled {
            self.store().condemned.append(slot);
            return;
        }
        let mut shelf = self.shelf();
        shelf.push(slot);
        if shelf.len > 2 * LOT {
            shelf.give(&mut self.store().free, LOT);
        }
    }

    /// A slot of the thread's shelf, which is filled first where it is empty.
    fn take(&self) -> Option<NonNull<Slot>> {
        let mut shelf = self.shelf();
        if shelf.first.is_null() {
            let mut store = self.store();
            store.reprieve(&mut shelf, LOT);
            if shelf.len < LOT {
                store.free.give(&mut shelf, LOT);
            }
        }
        shelf.pop()
    }

    /// More slots: condemned ones that were written after all, else a new slab.
    #[cold]
    fn grow(&self) -> Result<NonNull<Slot>> {
        let count = {
            let mut store = self.store();
            let (mut written, all) = (List::EMPTY, store.condemned.len);
            store.reprieve(&mut written, all);
            written.give(&mut store.free, all);
            if let Some(slot) = store.free.pop() {
                return Ok(slot);
            }
            if store.slabs.is_empty() { FIRST_SLAB } else { LARGEST_SLAB }
        };
        let slab = Slab::new(count)?;
        if self.device_writes.load(Ordering::Relaxed) && slab.register().is_err() {
            // The driver will do: slower, but nothing is lost.
            self.device_writes.store(false, Ordering::Relaxed);
        }
        let mut store = self.store();
        for slot in slab.slots().skip(1) {
            store.free.push(slot);
        }
        let first = slab.first;
        store.slabs.push(slab);
        Ok(first)
    }
}

impl Drop for Pool {
    /// Nobody has a request of the pool any more. Its memory is given back where the context has gone, and with it the
    /// registration and all that might write there.
    fn drop(&mut self) {
        if !self.context.lives() {
            let store = self.store.get_mut().unwrap_or_else(|poisoned| poisoned.into_inner());
            let (mut written, all) = (List::EMPTY, store.condemned.len);
            store.reprieve(&mut written, all);
            if store.condemned.len > 0 {
                return; // a context that is just going may still write there
            }
            store.slabs.drain(..).for_each(Slab::unmap);
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
