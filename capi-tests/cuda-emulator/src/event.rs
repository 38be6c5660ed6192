//! Events: marks in a stream's order.
//! An event that was never recorded counts as reached; recording again forgets the mark before.
use crate::context::Context;
use crate::control;
use crate::handle::Table;
use crate::result::*;
use crate::stream::{Point, Stream};
use crate::sync::Mutex;
use crate::types::*;
use crate::work::Work;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::*};
use std::time::Instant;

/// An event.
pub struct Event {
    /// What the program calls it.
    pub handle: CUevent,
    /// Where it lives.
    pub context: Arc<Context>,
    /// The context's life in which it was made.
    pub generation: u64,
    /// CU_EVENT_ flags.
    pub flags: u32,
    last: Mutex<Option<(Point, Arc<Mark>)>>,
}

/// When the stream came to the event.
#[derive(Default)]
pub struct Mark {
    nanos: AtomicU64,
}

impl Mark {
    /// Called by the stream's thread.
    pub fn reach(&self) {
        static START: OnceLock<Instant> = OnceLock::new();
        let since = START.get_or_init(Instant::now).elapsed().as_nanos() as u64;
        self.nanos.store(since + 1, Release);
    }
}

static EVENTS: Table<Event> = Table::new();

/// Makes an event in a context.
pub fn create(context: &Arc<Context>, flags: u32) -> Arc<Event> {
    let generation = context.generation.load(Acquire);
    EVENTS.insert(|handle| Event { handle, context: context.clone(), generation, flags, last: Mutex::new(None) })
}

/// Destroys an event; who waits for its mark goes on waiting.
pub fn destroy(handle: CUevent) -> Result {
    let event = get(handle)?;
    let outcome = event.check();
    EVENTS.remove(handle)?;
    outcome
}

/// The event of a handle. What stands for none, NULL apart, was destroyed: a use to be counted.
fn get(handle: CUevent) -> Result<Arc<Event>> {
    let found = EVENTS.get(handle);
    if found.is_err() && handle != 0 {
        control::count_stale();
    }
    found
}

/// The event of a handle, in a working context.
pub fn working(handle: CUevent) -> Result<Arc<Event>> {
    let event = get(handle)?;
    event.check()?;
    Ok(event)
}

/// Number of events in living contexts.
pub fn live() -> usize {
    EVENTS.select(|event| !event.context.is_over(event.generation)).len()
}

impl Event {
    /// The code that a call with it answers.
    fn check(&self) -> Result {
        self.context.check_since(self.generation, CUDA_ERROR_INVALID_CONTEXT)
    }

    /// Marks the place that the stream's queue has come to. Both must be of one context.
    pub fn record(&self, stream: &Arc<Stream>) -> Result {
        if stream.context.handle != self.context.handle {
            return Err(CUDA_ERROR_INVALID_HANDLE);
        }
        let mark = Arc::new(Mark::default());
        let point = stream.submit(Work::Record(mark.clone()))?;
        *self.last.lock() = Some((point, mark));
        Ok(())
    }

    /// The place of the last mark, if there is one.
    pub fn point(&self) -> Option<Point> {
        self.last.lock().as_ref().map(|last| last.0.clone())
    }

    /// Whether the last mark was reached.
    pub fn query(&self) -> Result {
        let reached = self.point().is_none_or(|point| point.reached());
        self.check()?;
        if reached { Ok(()) } else { Err(CUDA_ERROR_NOT_READY) }
    }

    /// Waits for the last mark.
    pub fn synchronize(&self) -> Result {
        if let Some(point) = self.point() {
            point.wait();
        }
        self.check()
    }

    /// Milliseconds from another event's mark to this one's.
    pub fn milliseconds_since(&self, start: &Self) -> Result<f32> {
        if (self.flags | start.flags) & CU_EVENT_DISABLE_TIMING != 0 {
            return Err(CUDA_ERROR_INVALID_HANDLE);
        }
        let time = |event: &Self| {
            let last = event.last.lock();
            let (_, mark) = last.as_ref().ok_or(CUDA_ERROR_INVALID_HANDLE)?;
            match mark.nanos.load(Acquire) {
                0 => Err(CUDA_ERROR_NOT_READY),
                nanos => Ok(nanos),
            }
        };
        let (from, to) = (time(start)?, time(self)?);
        Ok(((to as f64 - from as f64) / 1e6) as f32)
    }
}
