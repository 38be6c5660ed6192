//! Large copies of pageable memory, through pinned buffers with several threads.
//!
//! The driver moves pageable memory with one thread, at a fraction of the link's speed. Here the copy is cut into
//! chunks, and each thread takes the next one, moves it between the program's memory and a pinned buffer of its own,
//! and queues it on the program's stream. The promises are the driver's: when the call returns, the source of a copy
//! to the device may be reused, and the destination of one to the host is filled; and the stream's order holds.

mod arena;
mod crew;

use crate::completion::drain;
use crate::error::{Error, Result};
use crate::patience::await_stream;
use crate::stream::StreamState;
use arena::{Arena, BUFFERS, Desk};
use crew::Crew;
use cuda_driver::{Context, MemorySort, Stream, copy, device, memory_sort};
use libc::c_void;
use once_cell::sync::Lazy;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, TryLockError};

/// Copies below this size are left to the driver, without a question.
const THRESHOLD: usize = 512 << 10;
/// The smallest and the largest chunk: small ones let threads begin sooner, large ones cost fewer calls.
const CHUNKS: (usize, usize) = (256 << 10, 1 << 20);
/// It takes so many bytes to be worth another thread.
const LEAST_PER_THREAD: usize = 256 << 10;
/// Each thread should get so many chunks: more even out the threads, but all want the driver's lock for each.
const CHUNKS_PER_THREAD: usize = 2;

/// The way that a staged copy goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// From pageable memory to a device.
    Up,
    /// From a device to pageable memory.
    Down,
}

/// The buffers of the process. One copy uses them at a time; another one meanwhile is left to the driver.
static ARENA: Lazy<Mutex<Arena>> = Lazy::new(Mutex::default);

/// Whether a copy goes from pageable memory to a device or back, and is large enough to be staged. The stream's context
/// is current. `expected` is the direction that the kind of the copy names, where it names one.
pub fn direction(
    state: &StreamState,
    expected: Option<Direction>,
    dst: *mut c_void,
    src: *const c_void,
    size: usize,
) -> Option<Direction> {
    if size < THRESHOLD || state.stream.is_per_thread() || Crew::size() < 2 {
        return None; // the calling thread's own stream is another one on other threads
    }
    let way = match (memory_sort(dst), memory_sort(src)) {
        (MemorySort::Device, MemorySort::Pageable) => Direction::Up,
        (MemorySort::Pageable, MemorySort::Device) => Direction::Down,
        _ => return None,
    };
    let on_device = if way == Direction::Up { dst.cast_const() } else { src };
    // What the driver would refuse as a whole, it has to see as a whole.
    let whole = device::range(on_device).is_ok_and(|range| range.end - on_device as u64 >= size as u64);
    (whole && expected.is_none_or(|expected| expected == way)).then_some(way)
}

/// Copies `size` bytes the way that `direction` gave. `named` says that the kind of the copy names it; else the driver
/// takes memory of any device, and has to be asked in a way that leaves it the choice. False when the buffers cannot be had: then nothing was done.
///
/// # Safety
/// As for `cuda_driver::copy`.
pub unsafe fn copy(
    state: &StreamState,
    (way, named): (Direction, bool),
    dst: *mut c_void,
    src: *const c_void,
    size: usize,
) -> Result<bool> {
    let mut arena = match ARENA.try_lock() {
        Ok(arena) => arena,
        Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
        Err(TryLockError::WouldBlock) => return Ok(false),
    };
    let threads = Crew::size().min(size / LEAST_PER_THREAD);
    if way == Direction::Down {
        await_stream(state.stream)?; // nothing comes before, and waiting takes one thread only
    }
    let chunk = (size / (threads * CHUNKS_PER_THREAD)).clamp(CHUNKS.0, CHUNKS.1).next_multiple_of(4096);
    arena.fence.pass()?;
    let Some(desks) = arena.desks(threads, Crew::size(), CHUNKS.1, state.context) else { return Ok(false) };
    let job = Job {
        stream: state.stream,
        context: state.context,
        way,
        named,
        dst: dst as usize,
        src: src as usize,
        size,
        chunk,
        next: AtomicUsize::new(0),
        failed: AtomicBool::new(false),
        error: Mutex::new(None),
        reuses: size.div_ceil(chunk) > BUFFERS * threads,
        desks,
    };
    // SAFETY: the caller vouches for the memory; each chunk is moved by one thread.
    Crew::run(threads.min(size.div_ceil(chunk)), &|place| unsafe { job.work(place) });
    let worked = job.error().map_or(Ok(()), Err);
    let fenced = worked.and_then(|()| match way {
        Direction::Up => arena.fence.raise(state.stream, state.context),
        Direction::Down => Ok(()),
    });
    if fenced.is_err() {
        drain(state); // no chunk may arrive after the error was returned
    }
    fenced.map(|()| true)
}

/// One copy, as the threads see it.
struct Job<'a> {
    stream: Stream,
    context: Context,
    way: Direction,
    named: bool,
    dst: usize,
    src: usize,
    size: usize,
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

impl Job<'_> {
    fn error(&self) -> MutexGuard<'_, Option<Error>> {
        self.error.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// The next chunk that nobody has taken; none after an error.
    fn take(&self) -> Option<Chunk> {
        let offset = self.next.fetch_add(1, Ordering::Relaxed).checked_mul(self.chunk)?;
        if offset >= self.size || self.failed.load(Ordering::Relaxed) {
            return None;
        }
        let (dst, src) = ((self.dst + offset) as *mut c_void, (self.src + offset) as *const c_void);
        Some(Chunk { dst, src, size: self.chunk.min(self.size - offset) })
    }

    /// What one thread does, at its own desk.
    ///
    /// # Safety
    /// As for `copy`.
    unsafe fn work(&self, place: usize) {
        let mut desk = self.desks[place].lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        // SAFETY: the caller vouches for the memory.
        let worked = self.context.enter().map_err(Error::from).and_then(|_current| unsafe {
            match self.way {
                Direction::Up => self.up(&mut desk),
                Direction::Down => self.down(&mut desk),
            }
        });
        if let Err(error) = worked {
            self.error().get_or_insert(error);
            self.failed.store(true, Ordering::Relaxed);
        }
    }

    /// Queues the copy of a chunk to or from its buffer.
    ///
    /// # Safety
    /// As for `copy`.
    unsafe fn queue(&self, dst: *mut c_void, src: *const c_void, size: usize) -> Result<()> {
        // SAFETY: the caller vouches for the memory.
        unsafe {
            match self.way {
                _ if !self.named => copy::unified(dst, src, size, self.stream)?,
                Direction::Up => copy::host_to_device(dst, src, size, self.stream)?,
                Direction::Down => copy::device_to_host(dst, src, size, self.stream)?,
            }
        }
        Ok(())
    }

    unsafe fn up(&self, desk: &mut Desk) -> Result<()> {
        while let Some(chunk) = self.take() {
            let buffer = desk.next();
            if std::mem::take(&mut buffer.unfenced) {
                buffer.fence.raise(self.stream, self.context)?; // late, but seldom
            }
            buffer.fence.pass()?;
            // SAFETY: the buffer is free and as large as the largest chunk; the caller vouches for the source.
            unsafe {
                std::ptr::copy_nonoverlapping(chunk.src.cast(), buffer.pointer(), chunk.size);
                self.queue(chunk.dst, buffer.pointer().cast(), chunk.size)?;
            }
            if self.reuses {
                buffer.fence.raise(self.stream, self.context)?;
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
                unsafe { self.queue(buffer.pointer().cast(), chunk.src, chunk.size)? };
                buffer.fence.raise(self.stream, self.context)?;
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
