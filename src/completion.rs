//! How a request becomes DONE without anybody calling, and how one waits for it.
//!
//! Behind each copy lies an event, at its exact place in the stream, so a request can be waited for alone. The status
//! word is written by the device: by the copy's own stream when that was idle, else by a side stream that waits for
//! the event, so that the copies need not stop. One call of the driver can write several words, so threads that use
//! one stream leave their requests to whichever of them is marking already. A driver that cannot write words calls
//! a function instead, as AML's own library does.

use crate::error::{Error, Result};
use crate::request::{self, Mark, Recording, Request};
use crate::straggler;
use crate::stream::StreamState;
use cuda_driver::{Context, Event, Stream, WORDS_PER_WRITE};
use std::hint::spin_loop;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// The value that the device writes.
const DONE: u32 = crate::abi::AML_DMA_CUDA_REQUEST_STATUS_DONE as u32;

/// So many requests are marked together in a burst: more save little, and turn later.
const BURST: usize = 8;
/// Copies that take no longer than this over a link, or within a device, are worth it.
const SMALL: usize = 64 << 10;
const SMALL_ON_DEVICE: usize = 4 << 20;
/// Behind longer copies the side stream is as quick as the copy's own, and does not delay the next copy.
const SHORT: usize = 8 << 20;

/// A copy that was queued, as far as it is known.
#[derive(Clone, Copy, Debug)]
pub struct Queued {
    /// Its size in bytes.
    pub size: usize,
    /// Whether it goes from device to device.
    pub on_device: bool,
    /// Whether it was done when the driver's call returned, as a copy to pageable memory is.
    pub finished: bool,
}

impl Queued {
    fn is_short(self) -> bool {
        self.size <= SHORT
    }

    fn is_small(self) -> bool {
        self.size <= if self.on_device { SMALL_ON_DEVICE } else { SMALL }
    }
}

/// Marks the copy that was just queued on the stream of `request`, and is described by `copy` where it is known: from
/// now on the request turns to DONE by itself. The stream's context is current.
///
/// When this fails the copy may still be under way; the caller drains the stream.
pub fn mark(request: &mut Request, copy: Option<Queued>) -> Result<()> {
    let state = request.stream_state().clone();
    let idle = state.outstanding.fetch_add(1, Ordering::AcqRel) == 0;
    if copy.is_some_and(|copy| copy.finished) {
        request.set_done();
        return Ok(());
    }
    let marked = if idle && can_write_in_stream(&state) && copy.is_none_or(Queued::is_short) {
        // SAFETY: a status word lies in a registered slab of this context, and its slot is kept until it was written.
        unsafe { state.stream.write(&[request.mark().word()], DONE) }.map_err(Error::from).or_else(|_| {
            record(&state, request)?;
            flush(&state);
            Ok(())
        })
    } else {
        let in_burst = !idle && copy.is_some_and(Queued::is_small);
        mark_aside(&state, request, in_burst)
    };
    if marked.is_err() {
        state.outstanding.fetch_sub(1, Ordering::AcqRel);
    }
    marked
}

fn can_write_in_stream(state: &StreamState) -> bool {
    // The calling thread's own stream cannot be asked about from another thread, so it wants an event.
    !state.stream.is_per_thread() && state.pool.device_writes.load(Ordering::Relaxed)
}

/// Has the side stream mark `request`: at once, or with those that follow it in a burst of small copies.
fn mark_aside(state: &Arc<StreamState>, request: &mut Request, in_burst: bool) -> Result<()> {
    if state.stream.is_per_thread() {
        return mark_alone(state, request); // other threads mean another stream
    }
    if !in_burst {
        flush(state); // the words of those before must not wait for this one
    }
    let unmarked = record(state, request)?;
    if !in_burst || unmarked >= BURST || !straggler::is_there() {
        flush(state);
    } else if !state.watched.swap(true, Ordering::AcqRel) {
        straggler::watch(state);
    }
    Ok(())
}

fn mark_alone(state: &StreamState, request: &Request) -> Result<()> {
    let mark = request.mark();
    mark.record_for(std::iter::once(mark), state.stream)?;
    let mut batch = Batch::default();
    mark.hand();
    batch.add(mark);
    batch.submit(state);
    Ok(())
}

/// Puts an event behind the copy of `request`, and the request among those to be marked; tells how many those are.
///
/// Threads that do this at the same time share an event, since each wants the driver's lock for it.
fn record(state: &StreamState, request: &Request) -> Result<usize> {
    state.unrecorded.push(request.mark());
    let mut turns = 0;
    loop {
        match request.recording() {
            Recording::Done => return Ok(state.unmarked.len()),
            Recording::Failed(code) => return Err(cuda_driver::Error { call: "cuEventRecord", code }.into()),
            Recording::Awaited if !state.recording.swap(true, Ordering::AcqRel) => {
                record_all(state);
                state.recording.store(false, Ordering::Release);
            }
            Recording::Awaited if turns < 64 => {
                turns += 1;
                (0..16).for_each(|_| spin_loop());
            }
            Recording::Awaited => std::thread::yield_now(),
        }
    }
}

fn record_all(state: &StreamState) {
    let mut batch = Batch::default();
    let mut taken = state.unrecorded.take();
    loop {
        let next = taken.next();
        if batch.count == WORDS_PER_WRITE || (next.is_none() && batch.count > 0) {
            batch.record(state);
            batch = Batch::default();
        }
        match next {
            Some(mark) => batch.add(mark),
            None => return,
        }
    }
}

/// Marks what has lain still on a stream. False when that has to be tried again.
pub fn mark_stragglers(state: &StreamState) -> bool {
    if state.is_closed() {
        return true;
    }
    match state.context.enter() {
        Ok(_current) => flush(state),
        Err(_) => return !state.context.lives(),
    }
    true
}

/// Sees to the requests that nobody has seen to yet, unless another thread is at it. The context is current.
///
/// A request that the driver refuses is marked as such; it has its event, and whoever waits looks at that.
fn flush(state: &StreamState) {
    while !state.unmarked.is_empty() {
        if state.marking.swap(true, Ordering::AcqRel) {
            return; // whoever holds it looks again when done
        }
        mark_all(state);
        state.marking.store(false, Ordering::Release);
    }
}

fn mark_all(state: &StreamState) {
    let mut batch = Batch::default();
    for mark in state.unmarked.take() {
        if batch.count == WORDS_PER_WRITE {
            batch.submit(state);
            batch = Batch::default();
        }
        mark.hand();
        batch.add(mark);
    }
    batch.submit(state);
}

/// Requests that one event is recorded for, or whose words are written together.
#[derive(Default)]
struct Batch {
    marks: [Option<Mark>; WORDS_PER_WRITE],
    count: usize,
}

impl Batch {
    fn add(&mut self, mark: Mark) {
        self.marks[self.count] = Some(mark);
        self.count += 1;
    }

    fn marks(&self) -> impl Iterator<Item = Mark> {
        self.marks.iter().copied().flatten()
    }

    fn record(&self, state: &StreamState) {
        let Some(leader) = self.marks().next() else { return };
        let recorded = leader.record_for(self.marks(), state.stream);
        for mark in self.marks() {
            match recorded {
                Ok(()) => {
                    state.pushed.fetch_add(1, Ordering::Relaxed);
                    state.unmarked.push(mark);
                    mark.set_recording(Recording::Done);
                }
                Err(error) => mark.set_recording(Recording::Failed(error.code)),
            }
        }
    }

    fn submit(&self, state: &StreamState) {
        if self.count > 0 {
            let seen_to = self.try_submit(state);
            let refused = || self.marks().skip(seen_to);
            state.refused().extend(refused());
            refused().for_each(Mark::refuse); // from now on they may be freed
        }
    }

    /// Has the words written, and tells how many of them will be.
    fn try_submit(&self, state: &StreamState) -> usize {
        let side = match state.side() {
            Ok(side) if self.let_wait(side).is_ok() => side,
            // The copies' own stream comes behind them anyway. It is another one on each thread where it is the thread's.
            _ if !state.stream.is_per_thread() => state.stream,
            _ => return 0,
        };
        if state.pool.device_writes.load(Ordering::Relaxed) {
            let mut words = [std::ptr::null_mut(); WORDS_PER_WRITE];
            for (word, mark) in words.iter_mut().zip(self.marks()) {
                *word = mark.word();
            }
            // SAFETY: status words lie in registered slabs of this context, and are kept until they were written.
            match unsafe { side.write(&words[..self.count], DONE) } {
                Ok(()) => return self.count,
                // One call is all or nothing: this driver cannot write, so let it call.
                Err(_) => state.pool.device_writes.store(false, Ordering::Relaxed),
            }
        }
        let call = |mark: &Mark| {
            // SAFETY: the argument is a status word, kept until it was written.
            let call = |stream: Stream| unsafe { stream.call(request::done, mark.argument()) };
            call(side).is_ok() || !state.stream.is_per_thread() && call(state.stream).is_ok()
        };
        self.marks().take_while(call).count()
    }

    /// Lets `side` wait for the copies: the event of the first mark lies behind those of the others.
    fn let_wait(&self, side: Stream) -> cuda_driver::Result<()> {
        let event = self.marks().next().and_then(Mark::event).expect("a request is recorded before it is marked");
        side.wait_for(event)
    }
}

/// Waits for a request and frees it; later work on the stream need not be done.
pub fn wait(request: Request) -> Result<()> {
    let outcome = await_done(&request);
    if outcome.is_err() {
        drain_behind(&request);
    }
    free(request);
    outcome
}

/// Waits for the copy of `request`, whose failure is going to be reported: nothing may be written afterwards.
#[cold]
fn drain_behind(request: &Request) {
    let state = request.stream_state();
    let waited = request.event().is_some_and(|event| event.synchronize().is_ok());
    if !waited && !state.is_closed() && !state.stream.is_per_thread() {
        drain(state);
    }
}

fn await_done(request: &Request) -> Result<()> {
    if request.is_done() {
        return Ok(());
    }
    let state = request.stream_state();
    if !state.unmarked.is_empty() {
        mark_stragglers(state); // it may be one of them
    }
    let finished = Patience::looking().wait(
        || request.is_done(),
        || {
            let _current = state.context.enter()?;
            if state.is_closed() {
                return request.event().map_or(Ok(true), |event| asked_twice(|| event.is_done()));
            }
            flush(state);
            let copied = match request.event() {
                Some(event) => asked_twice(|| event.is_done())?,
                None => asked_twice(|| state.stream.is_done())?,
            };
            // The word may come later: in one batch with that of a copy behind work of the program's own. But nobody
            // may be in the driver for it any more: the stream or its context may go next.
            Ok(copied && (request.event().is_none() || request.is_handed() && !state.is_marking()))
        },
    );
    if finished.is_ok() && request.is_refused() {
        request.set_done();
    }
    finished
}

/// Gives a request back that was made and marked.
fn free(request: Request) {
    let state = request.stream_state().clone();
    state.outstanding.fetch_sub(1, Ordering::AcqRel);
    let refused = request.is_refused();
    if refused {
        state.refused().retain(|&refused| refused != request.mark());
    }
    // A word that was not written yet may still be, unless the context went with all its work.
    let settled = refused || request.is_done();
    state.pool.recycle(request, settled);
}

/// Waits for all work of the stream, and until each request that was made on it before is DONE.
pub fn settle(state: &StreamState, context: Context) -> Result<()> {
    let settled = try_settle(state, context);
    if settled.is_err() {
        drain(state);
    }
    settled
}

fn try_settle(state: &StreamState, context: Context) -> Result<()> {
    let _current = context.enter()?;
    let requests = state.outstanding.load(Ordering::Acquire) > 0;
    if requests {
        flush(state);
    }
    await_stream(state.stream)?;
    if requests {
        // Another thread may be marking a request that was made before; its word is in the side stream soon.
        state.await_marking();
        if let Some(side) = state.existing_side() {
            await_stream(side)?;
        }
        state.refused().drain(..).for_each(Mark::set_done);
    }
    Ok(())
}

/// Waits for what `stream` has now. Its context is current.
pub fn await_stream(stream: Stream) -> Result<()> {
    if stream.is_done()? {
        return Ok(());
    }
    let Ok(event) = Event::new() else { return Ok(stream.synchronize()?) };
    let waited = match event.record(stream) {
        Ok(()) => Patience::asking_every(16).wait(|| false, || asked_twice(|| event.is_done())),
        Err(_) => stream.synchronize().map_err(Error::from),
    };
    let _ = event.destroy(); // the work is done all the same
    waited
}

/// The answer to a question, or to the same one again: an error that passes is no reason to leave a copy alone.
fn asked_twice(question: impl Fn() -> cuda_driver::Result<bool>) -> Result<bool> {
    Ok(question().or_else(|_| question())?)
}

/// Waits for all work of the stream after a failure, before that is reported: nothing may be written to the program's
/// memory afterwards. Where this fails as well the context is gone or the device lost, and nothing moves any more.
#[cold]
pub fn drain(state: &StreamState) {
    let Ok(_current) = state.context.enter() else { return };
    if await_stream(state.stream).is_err() {
        let _ = state.stream.synchronize();
    }
}

/// How to wait: first spinning, since most copies are short; then sleeping, so that a long one costs no core.
pub struct Patience {
    /// How often to look, or where nothing else tells, to spin, before the driver may be asked.
    looks: u32,
    /// Whether the driver is asked each time; else now and then.
    asking: bool,
}

/// As long as this a thread spins. The longest copy that is still worth it takes some milliseconds.
const SPIN: Duration = Duration::from_millis(6);
/// As long as this it keeps its core while it spins.
const KEEP_CORE: Duration = Duration::from_micros(50);
/// The driver is asked for the first time after this, where a word tells as well.
const FIRST_QUESTION: Duration = Duration::from_micros(30);
/// The longest time between two questions, and the longest sleep.
const LONGEST: Duration = Duration::from_millis(1);

impl Patience {
    /// For a wait where memory tells that it is over.
    pub fn looking() -> Patience {
        Patience { looks: 16, asking: false }
    }

    /// For a wait where only the driver tells, asked each time after so many turns of the loop.
    pub fn asking_every(turns: u32) -> Patience {
        Patience { looks: turns, asking: true }
    }

    /// Waits until `look`, which costs nothing, says that it is over, or `ask`, which calls the driver, says so or fails.
    pub fn wait(&self, look: impl Fn() -> bool, ask: impl Fn() -> Result<bool>) -> Result<()> {
        let start = Instant::now();
        let mut next = if self.asking { Duration::ZERO } else { FIRST_QUESTION };
        loop {
            for _ in 0..self.looks {
                if look() {
                    return Ok(());
                }
                spin_loop();
            }
            let waited = start.elapsed();
            if waited >= next {
                if ask()? {
                    return Ok(());
                }
                if !self.asking || waited > SPIN {
                    next = waited + (waited / 2).clamp(FIRST_QUESTION, LONGEST);
                }
            }
            if waited > SPIN {
                std::thread::sleep((waited / 64).min(LONGEST));
            } else if waited > KEEP_CORE {
                std::thread::yield_now();
            }
        }
    }
}
