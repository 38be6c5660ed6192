//! A stream as the model sees it: work on it is done in the order in which it was queued.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, RwLock};

/// The handle of a thread's own default stream.
pub const PER_THREAD: usize = 2;

/// A stream.
pub struct Line {
    /// A number of its own.
    pub id: u64,
    /// The context it lives in, and its place among the contexts of the model.
    pub context: usize,
    pub place: usize,
    /// How the driver calls it.
    pub handle: usize,
    /// Streams with the same number wait for each other: the legacy one of a context, and those that block for it.
    pub group: u64,
    over: AtomicBool,
    /// Read by those who use the stream past the library, so that it is not destroyed meanwhile.
    pub in_use: RwLock<()>,
}

/// The contexts have the first numbers as groups.
const FIRST: u64 = 16;

impl Line {
    /// The stream `handle` of the context in that place.
    pub fn new((place, context): (usize, usize), handle: usize, blocking: bool) -> Arc<Line> {
        static IDS: AtomicU64 = AtomicU64::new(FIRST);
        let id = IDS.fetch_add(1, Ordering::Relaxed);
        let group = if blocking { place as u64 } else { id };
        Arc::new(Line { id, context, place, handle, group, over: AtomicBool::new(false), in_use: RwLock::default() })
    }

    /// Whether any thread can name it.
    pub fn can_be_held(&self) -> bool {
        self.handle != PER_THREAD && !self.is_over()
    }

    /// Says that the stream was destroyed, after all its work.
    pub fn end(&self) {
        self.over.store(true, Ordering::Release);
    }

    /// Whether it was.
    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }
}
