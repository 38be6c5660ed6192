//! The requests of a stream on their way to being marked: first an event is put behind the copy, then the side stream
//! is told to wait for it and to write the status word.
//!
//! One thread at a time has the duty to do so. In a burst of small copies it has the words of several written at once.
//! Threads that find the duty taken leave their requests to the next that takes it, so that all of them need one event.
//! What nobody comes back for, the straggler thread marks.

use crate::duty::{Apart, Duty, Taken};
use crate::error::Result;
use crate::request::{self, Mark, MarkList, MarkQueue};
use crate::straggler;
use crate::stream::StreamState;
use cuda_driver::{Stream, WORDS_PER_WRITE};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// The value that the device writes.
pub const DONE: u32 = crate::abi::AML_DMA_CUDA_REQUEST_STATUS_DONE as u32;

/// So many requests are marked together in a burst: more save little, and turn later.
const BURST: usize = 8;

/// The requests of one stream that are not marked yet.
#[derive(Default)]
pub struct Marking {
    /// Those that threads left to the next that takes the duty: there is no event behind them yet.
    left: Apart<MarkList>,
    duty: Apart<Duty<MarkQueue>>,
    /// How many there is an event behind.
    recorded: AtomicUsize,
    /// How often an event was recorded: while this stays the same, the stream lies still.
    rounds: AtomicUsize,
    /// Whether the straggler thread looks after the stream.
    watched: AtomicBool,
    /// Those that the driver refused to mark, and that were not waited for yet.
    refused: Mutex<Vec<Mark>>,
}

impl Marking {
    /// Whether some thread is about to hand requests to the driver.
    #[inline]
    pub fn is_busy(&self) -> bool {
        self.duty.is_taken()
    }

    /// Waits until the thread that hands requests to the driver is out of it.
    pub fn await_idle(&self) {
        drop(self.duty.take_in_turn());
    }

    /// How often an event was recorded.
    pub fn rounds(&self) -> usize {
        self.rounds.load(Ordering::Relaxed)
    }

    /// Has the straggler thread look after `state`, whose this is.
    #[inline]
    pub fn watch(&self, state: &Arc<StreamState>) {
        if !self.watched.load(Ordering::SeqCst) && !self.watched.swap(true, Ordering::SeqCst) {
            straggler::watch(state);
        }
    }

    /// Says that the straggler thread no longer looks after the stream.
    pub fn unwatch(&self) {
        self.watched.swap(false, Ordering::SeqCst);
    }

    /// The requests that the driver refused to mark. Each is good while it is in there.
    pub fn refused(&self) -> MutexGuard<'_, Vec<Mark>> {
        self.refused.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn refuse(&self, mark: Mark) {
        self.refused().push(mark);
        mark.refuse(); // from now on it may be freed
    }

    fn is_empty(&self) -> bool {
        self.recorded.load(Ordering::SeqCst) == 0 && self.left.is_empty()
    }
}

/// When a request is marked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum When {
    /// At once.
    Now,
    /// With those that follow it in a burst of small copies, all by one event.
    InBurst,
    /// In its own time, since its copy takes longer than the straggler thread sleeps.
    Later,
}

/// Puts an event behind the copy of `mark`, and has its word written. The stream's context is current.
pub fn mark(state: &Arc<StreamState>, mark: Mark, when: When) -> Result<()> {
    let marking = &state.marking;
    let when = if when == When::Now || straggler::is_there() { when } else { When::Now };
    // A program may destroy a stream of its own once that is done, so there nothing may be left to do.
    let duty = match when {
        When::InBurst if state.stays() => marking.duty.take(),
        _ => Some(marking.duty.take_in_turn()),
    };
    let Some(mut duty) = duty else {
        marking.left.push(mark);
        marking.watch(state);
        return Ok(());
    };
    mark.set_alone(when == When::Later);
    let recorded = record(state, &mut duty, Some(mark));
    if when == When::Now || duty.len() >= BURST && when == When::InBurst {
        submit_all(state, &mut duty);
    }
    leave(state, duty);
    recorded
}

/// Puts an event behind what other threads left, before something long is queued behind it.
#[inline]
pub fn record_left(state: &Arc<StreamState>) {
    if !state.marking.left.is_empty() {
        let mut duty = state.marking.duty.take_in_turn();
        let _ = record(state, &mut duty, None); // those that failed are refused
        leave(state, duty);
    }
}

/// Marks all that was left or recorded before. The stream's context is current.
pub fn mark_all(state: &Arc<StreamState>) {
    if !state.marking.is_empty() || state.marking.is_busy() {
        see_to(state, state.marking.duty.take_in_turn());
    }
}

/// The same, unless another thread has the duty. Tells whether nothing is left.
pub fn try_mark_all(state: &Arc<StreamState>) -> bool {
    if let Some(duty) = state.marking.duty.take() {
        see_to(state, duty);
    }
    state.marking.is_empty()
}

fn see_to(state: &Arc<StreamState>, mut duty: Taken<'_, MarkQueue>) {
    let _ = record(state, &mut duty, None);
    submit_all(state, &mut duty);
    leave(state, duty);
}

/// Gives the duty up. What is left, or was left meanwhile, is the straggler thread's.
fn leave(state: &Arc<StreamState>, duty: Taken<'_, MarkQueue>) {
    state.marking.recorded.store(duty.len(), Ordering::SeqCst);
    drop(duty);
    if !state.marking.is_empty() {
        state.marking.watch(state);
    }
}

/// Puts one event behind the copy of `own` and those that were left. When that fails they are refused, but for `own`.
fn record(state: &StreamState, recorded: &mut MarkQueue, own: Option<Mark>) -> Result<()> {
    let marking = &state.marking;
    let mut left = if marking.left.is_empty() { None } else { Some(marking.left.take()) };
    let others = || left.as_mut().and_then(Iterator::next);
    let mut marks = own.into_iter().chain(std::iter::from_fn(others));
    let Some(leader) = marks.next() else { return Ok(()) };
    let outcome = leader.record(state.stream);
    match outcome {
        Ok(()) => {
            marking.rounds.fetch_add(1, Ordering::Relaxed);
            for mark in marks {
                mark.share_event_of(leader);
                recorded.push(mark);
            }
            recorded.push(leader);
        }
        Err(_) => {
            marks.for_each(|mark| marking.refuse(mark));
            if own.is_none() {
                marking.refuse(leader);
            }
        }
    }
    Ok(outcome?)
}

fn submit_all(state: &StreamState, recorded: &mut MarkQueue) {
    let mut batch = Batch::default();
    while let Some(mark) = recorded.pop() {
        if batch.count == WORDS_PER_WRITE || mark.is_alone() {
            std::mem::take(&mut batch).submit(state);
        }
        let alone = mark.is_alone();
        batch.add(mark);
        if alone {
            std::mem::take(&mut batch).submit(state);
        }
    }
    batch.submit(state);
}

/// Has the word of `mark` written by the side stream, without a look at other requests.
pub fn mark_alone(state: &StreamState, mark: Mark) -> Result<()> {
    mark.record(state.stream)?;
    let mut batch = Batch::default();
    batch.add(mark);
    batch.submit(state);
    Ok(())
}

/// Requests whose words are written together.
#[derive(Default)]
struct Batch {
    marks: [Option<Mark>; WORDS_PER_WRITE],
    count: usize,
}

impl Batch {
    /// Adds a request; from now on its slot is kept until its word was written or refused.
    fn add(&mut self, mark: Mark) {
        mark.hand();
        self.marks[self.count] = Some(mark);
        self.count += 1;
    }

    fn marks(&self) -> impl Iterator<Item = Mark> {
        self.marks[..self.count].iter().copied().flatten()
    }

    fn submit(&self, state: &StreamState) {
        if self.count > 0 {
            let seen_to = self.try_submit(state);
            self.marks().skip(seen_to).for_each(|mark| state.marking.refuse(mark));
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

    /// Lets `side` wait for the copies: the event of the last lies behind those of the others.
    fn let_wait(&self, side: Stream) -> cuda_driver::Result<()> {
        let event = self.marks().last().and_then(Mark::event).expect("a request is recorded before it is marked");
        side.wait_for(event)
    }
}
