//! Copies of any size: each thread takes the next chunk, moves it through the two buffers of its own desk, and queues it
//! by itself.

use super::Route;
use super::arena::{BUFFERS, Desk};
use crate::error::{Error, Result};
use libc::c_void;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};

/// One copy, as the threads see it.
pub struct Job<'a> {
    route: Route,
    chunk: usize,
    next: AtomicUsize,
    failed: AtomicBool,
    error: Mutex<Option<Error>>,
    /// Whether there are more chunks than buffers.
    reuses: bool,
    desks: &'a [Mutex<Desk>],
}

/// A piece of the copy.
#[derive(Clone, Copy)]
struct Chunk {
    dst: *mut c_void,
    src: *const c_void,
    size: usize,
}

impl<'a> Job<'a> {
    /// A copy at these desks, one for each thread, in chunks no larger than a buffer.
    pub fn new(route: Route, chunk: usize, desks: &'a [Mutex<Desk>]) -> Job<'a> {
        Job {
            route,
            chunk,
            next: AtomicUsize::new(0),
            failed: AtomicBool::new(false),
            error: Mutex::new(None),
            reuses: route.size.div_ceil(chunk) > BUFFERS * desks.len(),
            desks,
        }
    }

    /// How it went.
    pub fn outcome(&self) -> Result<()> {
        self.error().map_or(Ok(()), Err)
    }

    fn error(&self) -> MutexGuard<'_, Option<Error>> {
        self.error.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// The next chunk that nobody has taken; none after an error.
    fn take(&self) -> Option<Chunk> {
        let offset = self.next.fetch_add(1, Ordering::Relaxed).checked_mul(self.chunk)?;
        if offset >= self.route.size || self.failed.load(Ordering::Relaxed) {
            return None;
        }
        let (dst, src) = (self.route.dst_at(offset), self.route.src_at(offset));
        Some(Chunk { dst, src, size: self.chunk.min(self.route.size - offset) })
    }

    /// What one thread does, at its own desk.
    ///
    /// # Safety
    /// As for `super::copy`.
    pub unsafe fn work(&self, place: usize) {
        let mut desk = self.desks[place].lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        // SAFETY: the caller vouches for the memory.
        let worked = self.route.context.enter().map_err(Error::from).and_then(|_current| unsafe {
            match self.route.way {
                super::Direction::Up => self.up(&mut desk),
                super::Direction::Down => self.down(&mut desk),
            }
        });
        if let Err(error) = worked {
            self.error().get_or_insert(error);
            self.failed.store(true, Ordering::Relaxed);
        }
    }

    unsafe fn up(&self, desk: &mut Desk) -> Result<()> {
        while let Some(chunk) = self.take() {
            let buffer = desk.next();
            if std::mem::take(&mut buffer.unfenced) {
                buffer.fence.raise(self.route.stream, self.route.context)?; // late, but seldom
            }
            buffer.fence.pass()?;
            // SAFETY: the buffer is free and as large as the largest chunk; the caller vouches for the source.
            unsafe {
                std::ptr::copy_nonoverlapping(chunk.src.cast(), buffer.pointer(), chunk.size);
                self.route.queue(chunk.dst, buffer.pointer().cast(), chunk.size)?;
            }
            if self.reuses {
                buffer.fence.raise(self.route.stream, self.route.context)?;
            } else {
                buffer.unfenced = true; // most are not used again before the fence behind the whole copy
            }
        }
        desk.buffers.iter_mut().for_each(|buffer| buffer.unfenced = false);
        Ok(())
    }

    unsafe fn down(&self, desk: &mut Desk) -> Result<()> {
        // One chunk comes from the device while the one before is moved to its destination.
        let mut coming: Option<Chunk> = None;
        loop {
            let next = self.take();
            if let Some(chunk) = next {
                let buffer = desk.next();
                buffer.fence.pass()?;
                // SAFETY: the buffer is free and as large as the largest chunk; the caller vouches for the source.
                unsafe { self.route.queue(buffer.pointer().cast(), chunk.src, chunk.size)? };
                buffer.fence.raise(self.route.stream, self.route.context)?;
            }
            if let Some(chunk) = coming {
                let buffer = if next.is_some() { desk.other() } else { desk.current() };
                buffer.fence.pass()?;
                // SAFETY: the chunk has arrived in its buffer; the caller vouches for the destination.
                unsafe { std::ptr::copy_nonoverlapping(buffer.pointer(), chunk.dst.cast(), chunk.size) };
            }
            coming = next;
            if coming.is_none() {
                return Ok(());
            }
        }
    }
}
