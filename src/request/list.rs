//! Lists of requests that are to be marked, linked through the requests themselves: they cost no memory.

#[cfg(test)]
mod tests;

use super::{Mark, Slot};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, Ordering};

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
