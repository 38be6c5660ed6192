//! The stream that a thread used last, for it to find again without a lock.
//!
//! This is no thread-local with a destructor: the C library, which keeps a list of those, ends the process where it has no
//! memory for one more. A key of POSIX threads can be refused, and then the thread does without.

use super::StreamState;
use cuda_driver::{Context, Stream};
use libc::{c_void, pthread_key_t};
use std::cell::{Cell, RefCell};
use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A stream, and by what it is found.
pub struct Cached {
    /// See `GENERATION`.
    pub generation: u64,
    /// The DMA that it was found by.
    pub data: usize,
    pub stream: Stream,
    /// The context that was asked for; none where the DMA alone tells.
    pub context: Option<Context>,
    pub state: Arc<StreamState>,
}

/// What tells that a thread ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Unwatched,
    Watched,
    Over,
}

struct Slot {
    entry: RefCell<ManuallyDrop<Option<Cached>>>,
    end: Cell<End>,
}

const _: () = assert!(!std::mem::needs_drop::<Slot>());

thread_local! {
    static SLOT: Slot = const { Slot { entry: RefCell::new(ManuallyDrop::new(None)), end: Cell::new(End::Unwatched) } };
}

/// What `look` finds in what the calling thread remembers.
#[inline]
pub fn look<T>(look: impl FnOnce(&Cached) -> Option<T>) -> Option<T> {
    SLOT.with(|slot| look(slot.entry.try_borrow().ok()?.as_ref()?))
}

/// Has the calling thread remember `entry`. Gives back the one before, or `entry` where the thread cannot remember it: who
/// drops it may be the last to know a stream.
pub fn keep(entry: Cached) -> Option<Cached> {
    SLOT.with(|slot| {
        if slot.end.get() == End::Unwatched {
            slot.watch();
        }
        match slot.entry.try_borrow_mut() {
            Ok(mut place) if slot.end.get() == End::Watched => place.replace(entry),
            _ => Some(entry),
        }
    })
}

/// Has the calling thread forget what it remembers, and gives that.
pub fn take() -> Option<Cached> {
    SLOT.with(|slot| slot.take())
}

impl Slot {
    fn take(&self) -> Option<Cached> {
        self.entry.try_borrow_mut().ok()?.take()
    }

    #[cold]
    fn watch(&self) {
        // SAFETY: `forget` is called with the slot of the thread that ends.
        if key().is_some_and(|key| unsafe { libc::pthread_setspecific(key, (&raw const *self).cast()) } == 0) {
            self.end.set(End::Watched);
        }
    }
}

/// The key whose destructor is `forget`.
fn key() -> Option<pthread_key_t> {
    /// The key, plus one.
    static KEY: AtomicUsize = AtomicUsize::new(0);
    let known = KEY.load(Ordering::Acquire);
    if known > 0 {
        return Some((known - 1) as pthread_key_t);
    }
    let mut key = 0;
    // SAFETY: `key` is valid for a write, and the library with its function is never unloaded.
    if unsafe { libc::pthread_key_create(&mut key, Some(forget)) } != 0 {
        return None;
    }
    match KEY.compare_exchange(0, key as usize + 1, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => Some(key),
        Err(other) => {
            // SAFETY: nobody else knows it.
            unsafe { libc::pthread_key_delete(key) }; // another thread was faster
            Some((other - 1) as pthread_key_t)
        }
    }
}

unsafe extern "C" fn forget(slot: *mut c_void) {
    // SAFETY: it is the slot of this thread, whose memory stays until its keys are seen to.
    let slot = unsafe { &*slot.cast::<Slot>() };
    slot.end.set(End::Over); // what other keys' destructors call is not remembered
    drop(slot.take());
}
