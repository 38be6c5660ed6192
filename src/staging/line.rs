//! Copies of a few MiB: the pinned buffer is as large as the copy. The calling thread alone talks to the driver, and so
//! as seldom as it can; the others move memory.

use super::arena::Fence;
use super::crew::Crew;
use super::{Direction, Route};
use crate::error::Result;
use crate::thread;
use std::hint::spin_loop;
use std::ops::Range;
use std::ptr::copy_nonoverlapping;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// A copy from the device comes in so many pieces, so that the first can be moved while the rest still comes.
pub const PIECES: usize = 4;
/// A copy has no more chunks than this.
const MOST_CHUNKS: usize = 64;
/// So many bytes, at least, are sent to the device at a time, but for the last.
const LEAST_SENT: usize = 256 << 10;

/// One copy, as the threads see it.
pub struct Line {
    route: Route,
    buffer: usize,
    chunk: usize,
    /// How many chunks there are.
    count: usize,
    /// The first chunk that nobody has taken.
    next: AtomicUsize,
    /// On the way up: which chunks are in the buffer.
    ready: [AtomicBool; MOST_CHUNKS],
    /// On the way down: how many bytes are in the buffer.
    arrived: AtomicUsize,
    failed: AtomicBool,
}

impl Line {
    /// A copy through `buffer`, in chunks of at least `chunk` bytes.
    pub fn new(route: Route, chunk: usize, buffer: *mut u8) -> Line {
        let chunk = chunk.max(route.size.div_ceil(MOST_CHUNKS));
        Line {
            route,
            buffer: buffer as usize,
            chunk,
            count: route.size.div_ceil(chunk),
            next: AtomicUsize::new(0),
            ready: [const { AtomicBool::new(false) }; MOST_CHUNKS],
            arrived: AtomicUsize::new(0),
            failed: AtomicBool::new(false),
        }
    }

    /// Copies, with up to `threads` threads. The stream's context is current.
    ///
    /// # Safety
    /// As for `super::copy`; the buffer is pinned, free, and as large as the copy.
    pub unsafe fn run(&self, threads: usize, fences: &mut [Fence; PIECES]) -> Result<()> {
        // SAFETY: the caller vouches for the memory; each chunk is moved by one thread.
        unsafe {
            match self.route.way {
                Direction::Up => Crew::run(threads, || self.send(), &|_| while self.fill_next().is_some() {}),
                Direction::Down => Crew::run(threads, || self.fetch(fences), &|_| while self.empty_next().is_some() {}),
            }
        }
    }

    fn buffer_at(&self, offset: usize) -> *mut u8 {
        (self.buffer + offset) as *mut u8
    }

    /// The bytes of chunk `index`.
    fn range(&self, index: usize) -> Range<usize> {
        index * self.chunk..self.route.size.min((index + 1) * self.chunk)
    }

    /// The next chunk that nobody has taken; none after an error.
    fn take(&self) -> Option<usize> {
        let index = self.next.fetch_add(1, Ordering::Relaxed);
        (index < self.count && !self.failed.load(Ordering::Relaxed)).then_some(index)
    }

    /// Moves a chunk into the buffer.
    unsafe fn fill_next(&self) -> Option<()> {
        let index = self.take()?;
        let bytes = self.range(index);
        // SAFETY: the caller vouches for the source, and the buffer is free.
        unsafe {
            copy_nonoverlapping(self.route.src_at(bytes.start).cast(), self.buffer_at(bytes.start), bytes.len());
        }
        self.ready[index].store(true, Ordering::Release);
        Some(())
    }

    /// Queues what is in the buffer, and fills it while there is too little.
    unsafe fn send(&self) -> Result<()> {
        let (mut sent, mut filled) = (0, 0);
        let mut turns = 0;
        while sent < self.count {
            filled += self.ready[filled..self.count].iter().take_while(|ready| ready.load(Ordering::Acquire)).count();
            let bytes = sent * self.chunk..self.route.size.min(filled * self.chunk);
            if bytes.len() >= LEAST_SENT || filled == self.count {
                // SAFETY: these bytes are in the buffer; the caller vouches for the destination.
                unsafe { self.queue(self.route.dst_at(bytes.start), self.buffer_at(bytes.start).cast(), bytes.len())? };
                sent = filled;
            // SAFETY: as for this function.
            } else if unsafe { self.fill_next() }.is_none() {
                look_again(&mut turns); // the others are at their last chunks
            }
        }
        Ok(())
    }

    /// Moves a chunk out of the buffer, once it has arrived there.
    unsafe fn empty_next(&self) -> Option<()> {
        let index = self.take()?;
        let bytes = self.range(index);
        let mut turns = 0;
        while self.arrived.load(Ordering::Acquire) < bytes.end {
            if self.failed.load(Ordering::Acquire) {
                return None;
            }
            look_again(&mut turns);
        }
        // SAFETY: the bytes are in the buffer; the caller vouches for the destination.
        unsafe {
            copy_nonoverlapping(self.buffer_at(bytes.start), self.route.dst_at(bytes.start).cast(), bytes.len());
        }
        Some(())
    }

    /// Queues all pieces, tells the others as they arrive, and lends a hand with what is left.
    unsafe fn fetch(&self, fences: &mut [Fence; PIECES]) -> Result<()> {
        let piece = self.route.size.div_ceil(PIECES).next_multiple_of(4096);
        let pieces = || (0..self.route.size).step_by(piece).map(|start| start..self.route.size.min(start + piece));
        for (bytes, fence) in pieces().zip(&mut *fences) {
            // SAFETY: the buffer is free; the caller vouches for the source.
            unsafe { self.queue(self.buffer_at(bytes.start).cast(), self.route.src_at(bytes.start), bytes.len())? };
            self.noted(fence.raise(self.route.stream, self.route.context))?;
        }
        for (bytes, fence) in pieces().zip(fences) {
            self.noted(fence.pass())?;
            self.arrived.store(bytes.end, Ordering::Release);
        }
        // SAFETY: as for this function.
        while unsafe { self.empty_next() }.is_some() {}
        Ok(())
    }

    unsafe fn queue(&self, dst: *mut libc::c_void, src: *const libc::c_void, size: usize) -> Result<()> {
        // SAFETY: the caller vouches for the memory.
        self.noted(unsafe { self.route.queue(dst, src, size) })
    }

    /// Tells the others about an error.
    fn noted(&self, outcome: Result<()>) -> Result<()> {
        outcome.inspect_err(|_| self.failed.store(true, Ordering::Release))
    }
}

/// Lets a moment pass: other threads may need the core for what this one waits for.
fn look_again(turns: &mut u32) {
    *turns = turns.wrapping_add(1);
    if *turns % 1024 == 0 { thread::give_way(*turns / 1024) } else { spin_loop() }
}
