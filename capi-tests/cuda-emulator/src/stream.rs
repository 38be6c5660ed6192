//! Streams: queues of work, each run in order by a thread of its own that starts with the first piece.
//! The legacy stream and the blocking streams of its context wait for what was queued before on the other side.
use crate::context::{self, Context};
use crate::control;
use crate::handle::Table;
use crate::result::*;
use crate::sync::{Condvar, Mutex};
use crate::types::*;
use crate::work::Work;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::*};

/// What a stream is in its context.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// The default stream with implicit synchronisation.
    Legacy,
    /// A thread's default stream.
    PerThread,
    /// Made by the program.
    Created,
}

/// A stream.
pub struct Stream {
    /// What the program calls it; default streams have no handle of their own.
    pub handle: CUstream,
    /// Number that no other stream of the process has.
    pub id: u64,
    /// Where it lives.
    pub context: Arc<Context>,
    /// The context's life in which it was made.
    pub generation: u64,
    /// CU_STREAM_NON_BLOCKING or 0.
    pub flags: u32,
    /// What cuStreamGetPriority answers.
    pub priority: i32,
    role: Role,
    queue: Mutex<Queue>,
    arrived: Condvar,
    finished: Condvar,
    /// Copies of the queue's numbers, to see at a glance whether anything is outstanding.
    submitted: AtomicU64,
    completed: AtomicU64,
    letting_go: AtomicBool,
    destroyed: AtomicBool,
}

#[derive(Default)]
struct Queue {
    items: VecDeque<Item>,
    submitted: u64,
    completed: u64,
    started: bool,
    asleep: bool,
    closed: bool,
    waiters: u32,
    holds: u32,
    failure: Option<(u64, CUresult)>,
}

/// A piece of work and what must be done before it: on each of these streams, all up to that number.
struct Item {
    after: Vec<Point>,
    work: Work,
}

/// A place in a stream's work.
#[derive(Clone)]
pub struct Point {
    /// The stream.
    pub stream: Arc<Stream>,
    /// Reached when so many pieces are done.
    pub number: u64,
}

impl Point {
    /// Whether all work up to here is done.
    pub fn reached(&self) -> bool {
        self.stream.queue.lock().completed >= self.number
    }

    /// Waits until all work up to here is done.
    pub fn wait(&self) {
        let mut queue = self.stream.queue.lock();
        while queue.completed < self.number {
            queue.waiters += 1;
            self.stream.finished.wait(&mut queue);
            queue.waiters -= 1;
        }
    }
}

static STREAMS: Table<Stream> = Table::new();
static IDS: AtomicU64 = AtomicU64::new(1);

impl Stream {
    fn make(handle: CUstream, context: &Arc<Context>, flags: u32, priority: i32, role: Role) -> Self {
        Self {
            handle,
            id: IDS.fetch_add(1, Relaxed),
            context: context.clone(),
            generation: context.generation.load(Acquire),
            flags,
            priority,
            role,
            queue: Mutex::default(),
            arrived: Condvar::new(),
            finished: Condvar::new(),
            submitted: AtomicU64::new(0),
            completed: AtomicU64::new(0),
            letting_go: AtomicBool::new(false),
            destroyed: AtomicBool::new(false),
        }
    }

    /// A default stream of a context.
    pub fn default_of(context: &Arc<Context>, role: Role) -> Arc<Self> {
        let handle = if role == Role::Legacy { CU_STREAM_LEGACY } else { CU_STREAM_PER_THREAD };
        Arc::new(Self::make(handle, context, 0, 0, role))
    }

    /// Whether it and the legacy stream wait for each other.
    fn is_blocking(&self) -> bool {
        self.role != Role::Legacy && self.flags & CU_STREAM_NON_BLOCKING == 0
    }

    fn is_idle(&self) -> bool {
        self.completed.load(Acquire) == self.submitted.load(Acquire)
    }

    /// Whether it was destroyed and its work is done.
    fn is_over(&self) -> bool {
        self.destroyed.load(Acquire) && self.is_idle()
    }

    /// The code that work here answers.
    pub fn check(&self) -> Result {
        if self.role != Role::Created {
            return self.context.check();
        }
        self.context.check_since(self.generation, CUDA_ERROR_INVALID_HANDLE)
    }

    /// What the legacy stream's implicit synchronisation makes the next piece of work wait for.
    fn implicit(&self) -> Vec<Point> {
        if self.is_blocking() {
            let legacy = self.context.used_legacy().filter(|legacy| !legacy.is_idle());
            legacy.map(|legacy| legacy.end()).into_iter().collect()
        } else if self.role == Role::Legacy {
            let streams = self.context.streams.lock();
            streams
                .iter()
                .filter(|stream| stream.is_blocking() && !stream.is_idle())
                .map(|stream| stream.end())
                .collect()
        } else {
            Vec::new()
        }
    }

    /// Queues a piece of work, and answers the point at which it is done.
    pub fn submit(self: &Arc<Self>, work: Work) -> Result<Point> {
        self.submit_after(work, Vec::new())
    }

    /// As `submit`, and not before these points.
    pub fn submit_after(self: &Arc<Self>, work: Work, mut after: Vec<Point>) -> Result<Point> {
        self.check()?;
        after.extend(self.implicit());
        let mut queue = self.queue.lock();
        if queue.closed {
            return Err(CUDA_ERROR_CONTEXT_IS_DESTROYED);
        }
        if !queue.started {
            start(self.clone())?;
            queue.started = true;
        }
        queue.items.push_back(Item { after, work });
        queue.submitted += 1;
        let number = queue.submitted;
        self.submitted.store(number, Release);
        if queue.asleep {
            queue.asleep = false;
            self.arrived.wake();
        }
        drop(queue);
        Ok(Point { stream: self.clone(), number })
    }

    /// The point at which all that is queued now is done.
    pub fn end(self: &Arc<Self>) -> Point {
        let number = self.queue.lock().submitted;
        Point { stream: self.clone(), number }
    }

    /// Whether all work is done; of the legacy stream also that of the blocking streams.
    pub fn query(self: &Arc<Self>) -> Result {
        let reached = self.end().reached() && self.implicit_of_legacy().iter().all(Point::reached);
        self.check()?;
        if reached { Ok(()) } else { Err(CUDA_ERROR_NOT_READY) }
    }

    /// Waits until all work is done; of the legacy stream also that of the blocking streams.
    pub fn synchronize(self: &Arc<Self>) -> Result {
        self.drain();
        self.implicit_of_legacy().iter().for_each(Point::wait);
        self.check()
    }

    fn implicit_of_legacy(&self) -> Vec<Point> {
        if self.role == Role::Legacy { self.implicit() } else { Vec::new() }
    }

    /// Waits until all work queued now is done.
    pub fn drain(self: &Arc<Self>) {
        self.end().wait();
    }

    /// Holds the stream before its next piece of work, once more.
    pub fn hold(&self) {
        self.queue.lock().holds += 1;
    }

    /// Takes one hold back.
    pub fn release(&self) -> Result {
        let mut queue = self.queue.lock();
        queue.holds = queue.holds.checked_sub(1).ok_or(CUDA_ERROR_INVALID_VALUE)?;
        self.wake(&mut queue);
        Ok(())
    }

    /// The piece of work after `more` others fails with this code.
    pub fn fail_after(&self, more: u64, code: CUresult) {
        let mut queue = self.queue.lock();
        queue.failure = Some((queue.completed + more + 1, code));
    }

    /// Takes all holds off, ends waits for values and takes no more work: the context is going away.
    pub fn let_go(&self) {
        self.letting_go.store(true, Release);
        let mut queue = self.queue.lock();
        queue.holds = 0;
        queue.closed = true;
        self.wake(&mut queue);
    }

    /// Whether waits for values must end.
    pub fn is_let_go(&self) -> bool {
        self.letting_go.load(Acquire) || self.context.device.check().is_err()
    }

    /// Lets the thread end when the work is done.
    pub fn close(&self) {
        let mut queue = self.queue.lock();
        queue.closed = true;
        self.wake(&mut queue);
    }

    /// Makes a default stream usable in the next life of its context.
    pub fn reopen(&self) {
        let mut queue = self.queue.lock();
        queue.closed = false;
        queue.failure = None;
        self.letting_go.store(false, Release);
    }

    fn wake(&self, queue: &mut Queue) {
        if queue.asleep {
            queue.asleep = false;
            self.arrived.wake();
        }
    }

    /// The life of the stream's thread.
    fn run(self: Arc<Self>) {
        let mut queue = self.queue.lock();
        loop {
            while queue.items.is_empty() || queue.holds > 0 {
                if queue.closed && queue.items.is_empty() {
                    queue.started = false;
                    return;
                }
                queue.asleep = true;
                self.arrived.wait(&mut queue);
            }
            let Some(item) = queue.items.pop_front() else {
                continue;
            };
            let number = queue.completed + 1;
            let failure = queue.failure.filter(|failure| failure.0 == number).map(|failure| failure.1);
            drop(queue);
            self.carry_out(item, failure);
            queue = self.queue.lock();
            queue.completed = number;
            self.completed.store(number, Release);
            if queue.waiters > 0 {
                self.finished.wake_all();
            }
        }
    }

    fn carry_out(&self, item: Item, failure: Option<CUresult>) {
        item.after.iter().for_each(Point::wait);
        if let Some(code) = failure {
            self.context.device.fail(code);
        }
        if self.context.device.check().is_err() {
            return;
        }
        if let Err(code) = item.work.carry_out(self) {
            self.context.device.fail(code);
        }
    }
}

/// Starts a stream's thread. It takes no signals, and nobody joins it.
fn start(stream: Arc<Stream>) -> Result {
    // SAFETY: both sets are valid for reads and writes.
    let before = unsafe {
        let mut all = std::mem::zeroed();
        let mut before = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
        before
    };
    let started = std::thread::Builder::new()
        .name(format!("cuemu-{}", stream.id))
        .stack_size(1 << 20)
        .spawn(move || stream.run());
    // SAFETY: `before` was filled above.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut()) };
    started.map(drop).map_err(|_| CUDA_ERROR_OPERATING_SYSTEM)
}

/// Makes a stream in a context.
pub fn create(context: &Arc<Context>, flags: u32, priority: i32) -> Arc<Stream> {
    let made = STREAMS.insert(|handle| Stream::make(handle, context, flags, priority, Role::Created));
    let mut streams = context.streams.lock();
    streams.retain(|stream| !stream.is_over());
    streams.push(made.clone());
    made.clone()
}

/// Destroys a stream: what is queued is still done.
pub fn destroy(handle: CUstream) -> Result {
    if handle <= CU_STREAM_PER_THREAD {
        return Err(CUDA_ERROR_INVALID_HANDLE);
    }
    let stream = created(handle)?;
    let outcome = stream.check();
    STREAMS.remove(handle)?;
    stream.destroyed.store(true, Release);
    stream.close();
    stream.context.streams.lock().retain(|stream| !stream.is_over());
    outcome
}

/// The stream that the program made. A GPU's driver would look behind the handle: one that is gone is a use to be counted.
fn created(handle: CUstream) -> Result<Arc<Stream>> {
    let found = STREAMS.get(handle);
    if found.as_ref().is_ok_and(|stream| !stream.context.is_over(stream.generation)) {
        return found;
    }
    control::count_stale();
    found
}

/// The stream of a handle: 0, 1 and 2 are default streams of the current context.
pub fn resolve(handle: CUstream) -> Result<Arc<Stream>> {
    match handle {
        0 | CU_STREAM_LEGACY => Ok(context::current()?.legacy().clone()),
        CU_STREAM_PER_THREAD => Ok(context::current()?.per_thread()),
        _ => created(handle),
    }
}

/// As `resolve`, able to work.
pub fn working(handle: CUstream) -> Result<Arc<Stream>> {
    let stream = resolve(handle)?;
    stream.check()?;
    Ok(stream)
}

/// Number of streams in living contexts.
pub fn live() -> usize {
    STREAMS.select(|stream| !stream.context.is_over(stream.generation)).len()
}
