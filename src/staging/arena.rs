//! The pinned buffers: ordinary memory that is registered with CUDA, so that a context that goes away cannot take it
//! along. Each thread of a copy has a desk with two of them.

use super::crew::Crew;
use super::line::PIECES;
use crate::error::Result;
use crate::patience::Patience;
use cuda_driver::{Context, Event, Registration, Stream};
use std::cell::Cell;
use std::ptr;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// The memory of all desks together is at most this.
const LIMIT: usize = 64 << 20;

/// So many buffers are on a desk.
pub const BUFFERS: usize = 2;
/// The size of a buffer.
pub const BUFFER: usize = 1 << 20;

/// All desks.
#[derive(Default)]
pub struct Arena {
    desks: Vec<Mutex<Desk>>,
    /// Behind the last copy, for the buffers that got no fence of their own.
    pub fence: Fence,
    /// Behind the pieces of a copy in line.
    pieces: [Fence; PIECES],
    memory: Option<Memory>,
}

struct Memory {
    pointer: *mut u8,
    size: usize,
    /// Where it is registered; for all contexts, as long as this one lives.
    context: Option<Context>,
}

// SAFETY: it is memory, used by whoever holds the buffers that it is cut into.
unsafe impl Send for Memory {}

impl Arena {
    /// How many bytes all buffers have. The crew does not grow, so this stays the same.
    pub fn size() -> usize {
        (BUFFERS * Crew::size() * BUFFER).min(LIMIT)
    }

    /// Desks for `threads` threads, with pinned buffers. None when the memory cannot be had. `context` is current.
    pub fn desks(&mut self, threads: usize, context: Context) -> Option<&[Mutex<Desk>]> {
        let memory = pinned(&mut self.memory, context)?;
        if self.desks.is_empty() {
            self.desks = (0..memory.size / BUFFER / BUFFERS)
                // SAFETY: both buffers lie within the memory.
                .map(|desk| unsafe {
                    let first = memory.pointer.add(BUFFERS * desk * BUFFER);
                    Mutex::new(Desk { buffers: [Buffer::new(first), Buffer::new(first.add(BUFFER))], used: 0 })
                })
                .collect();
        }
        (self.desks.len() >= threads).then_some(&self.desks[..threads])
    }

    /// All buffers as one of `size` bytes, pinned, and the fences for what comes to it. None when the memory cannot be
    /// had, or is less. `context` is current.
    pub fn line(&mut self, size: usize, context: Context) -> Option<(*mut u8, &mut [Fence; PIECES])> {
        let memory = pinned(&mut self.memory, context)?;
        (memory.size >= size).then_some((memory.pointer, &mut self.pieces))
    }
}

fn pinned(memory: &mut Option<Memory>, context: Context) -> Option<&mut Memory> {
    if memory.is_none() {
        *memory = Memory::map(Arena::size());
    }
    let memory = memory.as_mut()?;
    memory.pin(context)?;
    Some(memory)
}

impl Memory {
    fn map(size: usize) -> Option<Memory> {
        // SAFETY: a fresh mapping; nothing else is touched.
        let pointer = unsafe {
            libc::mmap(
                ptr::null_mut(),
                size,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        (pointer != libc::MAP_FAILED).then_some(Memory { pointer: pointer.cast(), size, context: None })
    }

    /// Registers the memory, unless it still is.
    fn pin(&mut self, context: Context) -> Option<()> {
        if self.context.is_some_and(Context::lives) {
            return Some(());
        }
        // SAFETY: the memory is mapped, and never unmapped.
        let registration = unsafe { Registration::new(self.pointer.cast(), self.size) };
        self.context = registration.is_ok().then_some(context);
        registration.ok()?.into_raw();
        Some(())
    }
}

/// Two buffers, used in turn.
pub struct Desk {
    /// All of them.
    pub buffers: [Buffer; BUFFERS],
    used: usize,
}

impl Desk {
    /// The buffer that was not used last.
    pub fn next(&mut self) -> &mut Buffer {
        self.used ^= 1;
        self.current()
    }

    /// The buffer that was used last.
    pub fn current(&mut self) -> &mut Buffer {
        &mut self.buffers[self.used]
    }

    /// The buffer that was used before the last.
    pub fn other(&mut self) -> &mut Buffer {
        &mut self.buffers[self.used ^ 1]
    }
}

/// A piece of pinned memory, and what tells that no copy uses it any more.
pub struct Buffer {
    pointer: *mut u8,
    /// Behind the copy that uses the buffer.
    pub fence: Fence,
    /// Whether a copy uses the buffer that has no fence yet.
    pub unfenced: bool,
}

// SAFETY: it is memory, used by whoever holds the value.
unsafe impl Send for Buffer {}

impl Buffer {
    fn new(pointer: *mut u8) -> Buffer {
        Buffer { pointer, fence: Fence::default(), unfenced: false }
    }

    /// Where it begins.
    pub fn pointer(&self) -> *mut u8 {
        self.pointer
    }
}

/// An event behind work that uses pinned memory.
#[derive(Default)]
pub struct Fence {
    event: Option<(Context, Event)>,
    raised: bool,
}

impl Fence {
    /// Puts the fence behind what `stream`, of `context`, which is current, has now.
    pub fn raise(&mut self, stream: Stream, context: Context) -> Result<()> {
        let event = match self.event {
            Some((of, event)) if of == context => event,
            before => {
                self.event = None;
                if let Some((of, event)) = before
                    && of.lives()
                {
                    let _ = event.destroy(); // its context may be going at this moment, and takes it along
                }
                let event = Event::new()?;
                self.event = Some((context, event));
                event
            }
        };
        event.record(stream)?;
        self.raised = true;
        Ok(())
    }

    /// Waits until the work before the fence is done. When its context is gone, so is the work.
    pub fn pass(&mut self) -> Result<()> {
        self.pass_before(|| false).map(drop)
    }

    /// The same, unless that takes longer than `time`: then false.
    pub fn pass_within(&mut self, time: Duration) -> Result<bool> {
        let start = Instant::now();
        self.pass_before(|| start.elapsed() > time)
    }

    fn pass_before(&mut self, is_late: impl Fn() -> bool) -> Result<bool> {
        let Some((context, event)) = self.event.filter(|_| self.raised) else { return Ok(true) };
        // One refused question must not give away what the device uses.
        let is_gone = || !context.lives() && !context.lives();
        let late = Cell::new(false);
        let ask = || match event.is_done() {
            Ok(false) => {
                late.set(is_late());
                Ok(late.get())
            }
            Ok(true) => Ok(true),
            Err(_) if is_gone() => Ok(true),
            Err(error) => Err(error.into()),
        };
        // Other threads queue copies meanwhile: leave the driver's lock to them.
        if !is_gone() {
            Patience::asking_every(64).wait(|| false, ask)?;
        }
        self.raised = late.get();
        Ok(!late.get())
    }
}
