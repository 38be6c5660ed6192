//! Large copies of pageable memory, through pinned buffers with several threads.
//!
//! The driver moves pageable memory with one thread, at a fraction of the link's speed. Here several threads move the
//! chunks of a copy between the program's memory and pinned buffers. In a copy of a few MiB one of them talks to the
//! driver, since its lock is what limits those; in a larger one each thread does. The promises are the driver's: when
//! the call returns, the source of a copy to the device may be reused, and the destination of one to the host is
//! filled; and the stream's order holds.

mod arena;
mod crew;
mod desks;
mod line;
#[cfg(all(test, miri))]
mod tests;

use crate::completion::drain;
use crate::error::Result;
use crate::patience::await_stream;
use crate::stream::StreamState;
use arena::{Arena, BUFFER};
use crew::Crew;
use cuda_driver::{Context, MemorySort, Stream, copy, device, memory_sort};
use desks::Job;
use libc::c_void;
use line::Line;
use once_cell::sync::Lazy;
use std::sync::{Mutex, TryLockError};
use std::time::Duration;

/// Copies below this size are left to the driver, without a question.
const THRESHOLD: usize = 512 << 10;
/// The smallest and the largest chunk: small ones let threads begin sooner, large ones cost fewer calls.
const CHUNKS: (usize, usize) = (256 << 10, BUFFER);
/// It takes so many bytes to be worth another thread.
const LEAST_PER_THREAD: usize = 256 << 10;
/// Each thread should get so many chunks: more even out the threads, but all want the driver's lock for each.
const CHUNKS_PER_THREAD: usize = 2;

/// Copies up to this size are moved in line, if there are buffers enough.
const LINE: usize = 16 << 20;
/// The same for these: there a thread costs less.
const LEAST_IN_LINE: usize = 64 << 10;
const CHUNKS_IN_LINE: usize = 4;

/// As long as this the copy before may keep the buffers: many times what such a copy takes.
const PATIENCE: Duration = Duration::from_millis(2);

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
/// takes memory of any device, and has to be asked in a way that leaves it the choice. False when the buffers cannot be
/// had: then nothing was done.
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
    if way == Direction::Down {
        await_stream(state.stream)?; // nothing comes before, and waiting takes one thread only
    }
    if !arena.fence.pass_within(PATIENCE)? {
        return Ok(false); // another stream stands still with the buffers, and must not hold up this one
    }
    let route =
        Route { stream: state.stream, context: state.context, way, named, dst: dst as usize, src: src as usize, size };
    // SAFETY: the caller vouches for the memory.
    let moved = unsafe {
        if size <= LINE.min(Arena::size()) { in_line(&mut arena, route) } else { at_desks(&mut arena, route) }
    };
    let fenced = moved.and_then(|moved| match way {
        Direction::Up if moved => arena.fence.raise(state.stream, state.context).map(|()| moved),
        _ => Ok(moved),
    });
    if fenced.is_err() {
        drain(state); // no chunk may arrive after the error was returned
    }
    fenced
}

unsafe fn in_line(arena: &mut Arena, route: Route) -> Result<bool> {
    let threads = Crew::size().min(route.size / LEAST_IN_LINE);
    let chunk = (route.size / (threads * CHUNKS_IN_LINE)).next_multiple_of(4096);
    let Some((buffer, fences)) = arena.line(route.size, route.context) else {
        return Ok(false);
    };
    let line = Line::new(route, chunk, buffer);
    // SAFETY: the caller vouches for the memory, and the buffer is as large as the copy.
    unsafe { line.run(threads, fences) }.map(|()| true)
}

unsafe fn at_desks(arena: &mut Arena, route: Route) -> Result<bool> {
    let threads = Crew::size().min(route.size / LEAST_PER_THREAD);
    let chunk = (route.size / (threads * CHUNKS_PER_THREAD)).clamp(CHUNKS.0, CHUNKS.1).next_multiple_of(4096);
    let Some(desks) = arena.desks(threads, route.context) else { return Ok(false) };
    let job = Job::new(route, chunk, desks);
    // SAFETY: the caller vouches for the memory; each chunk is moved by one thread.
    unsafe {
        Crew::run(threads.min(route.size.div_ceil(chunk)), || job.work(0), &|place| job.work(place));
    }
    job.outcome().map(|()| true)
}

/// What is copied, where to, and on which stream.
#[derive(Clone, Copy)]
struct Route {
    stream: Stream,
    context: Context,
    way: Direction,
    /// Whether the kind of the copy names the direction.
    named: bool,
    dst: usize,
    src: usize,
    size: usize,
}

impl Route {
    fn dst_at(&self, offset: usize) -> *mut c_void {
        (self.dst + offset) as *mut c_void
    }

    fn src_at(&self, offset: usize) -> *const c_void {
        (self.src + offset) as *const c_void
    }

    /// Queues the copy of a part to or from a buffer.
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
}
