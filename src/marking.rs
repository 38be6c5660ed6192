//! The requests of a stream on their way to being marked: first an event is put behind the copy, then the side stream
//! is told to wait for it and to write the status word.
//!
//! One thread at a time has the duty to do so. In a burst of small copies it has the words of several written at once.
//! A thread that finds the duty taken leaves its request to the next that takes it; what was left gets no events, but
//! one write of all words in the stream itself, since threads that use one stream want few calls of the driver more
//! than anything. What nobody comes back for, the straggler thread marks.

use crate::duty::{Apart, Duty, Holder, Taken};
use crate::error::{Error, Result};
use crate::patience::{await_event, await_stream};
use crate::request::{self, Mark, MarkList, MarkQueue};
use crate::straggler;
use crate::stream::StreamState;
use cuda_driver::{Event, Stream, WORDS_PER_WRITE};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// The value that the device writes.
pub const DONE: u32 = crate::abi::AML_DMA_CUDA_REQUEST_STATUS_DONE as u32;

/// So many requests are marked together in a burst: more save little, and turn later.
const BURST: usize = WORDS_PER_WRITE;
/// After so many requests that met no other thread, one thread is believed to have the stream for itself.
const CROWDED: usize = 16;
/// Where no more requests than this are outstanding, it is likely that each is waited for at once.
const MOST_WAITERS: usize = 64;

/// The requests of one stream that are not marked yet.
#[derive(Default)]
pub struct Marking {
    /// Those that threads left to the next that takes the duty: nothing tells yet when their copies are done.
    left: Apart<MarkList>,
    /// So many more requests may meet no other thread before one is believed to have the stream for itself.
    crowded: Apart<AtomicUsize>,
    duty: Apart<Duty<MarkQueue>>,
    /// How many there is an event behind.
    recorded: AtomicUsize,
    /// How often requests were seen to: while this stays the same, the stream lies still.
    rounds: AtomicUsize,
    /// Whether the straggler thread looks after the stream.
    watched: Apart<AtomicBool>,
    refused: Mutex<Refused>,
}

/// The requests that the driver refused to mark, and that were not waited for yet.
#[derive(Default)]
struct Refused {
    /// How many there have been.
    count: u64,
    /// Each with its number. A request is good while it is in here.
    list: Vec<(u64, Mark)>,
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

    /// How often requests were seen to.
    pub fn rounds(&self) -> usize {
        self.rounds.load(Ordering::Relaxed)
    }

    /// Has the straggler thread look after `state`, whose this is.
    #[inline]
    pub fn watch(&self, state: &Arc<StreamState>) {
        let watches = self.watched.load(Ordering::SeqCst) || self.watched.swap(true, Ordering::SeqCst);
        if !watches && !straggler::watch(state) {
            self.unwatch(); // the next one tries again
        }
    }

    /// Says that the straggler thread no longer looks after the stream.
    pub fn unwatch(&self) {
        self.watched.swap(false, Ordering::SeqCst);
    }

    /// Forgets a request that the driver refused to mark: it is given back.
    pub fn forget_refused(&self, mark: Mark) {
        self.refused().list.retain(|(_, refused)| *refused != mark);
    }

    fn refused(&self) -> MutexGuard<'_, Refused> {
        self.refused.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn refuse(&self, mark: Mark) {
        let mut refused = self.refused();
        refused.count += 1;
        let number = refused.count;
        if refused.list.try_reserve(1).is_ok() {
            refused.list.push((number, mark));
        }
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

/// Has the word of `mark` written behind its copy. The stream's context is current.
pub fn mark(state: &Arc<StreamState>, mark: Mark, when: When) -> Result<()> {
    let marking = &state.marking;
    let when = if when == When::Now || straggler::is_there() { when } else { When::Now };
    // A program may destroy a stream of its own once that is done, so there nothing may be left to do; and a write in
    // the legacy stream would wait for other streams.
    let duty = match when {
        When::InBurst if state.is_owned() => match marking.duty.take(Holder::Program) {
            Ok(duty) => Some(duty),
            // A program with one thread must not notice that there is another.
            Err(Holder::Library) => Some(marking.duty.take_in_turn()),
            Err(Holder::Program) => None,
        },
        _ => Some(marking.duty.take_in_turn()),
    };
    let Some(mut duty) = duty else {
        marking.left.push(mark);
        if marking.crowded.load(Ordering::Relaxed) < CROWDED {
            marking.crowded.store(CROWDED, Ordering::Relaxed);
        }
        marking.watch(state);
        return Ok(());
    };
    marking.rounds.fetch_add(1, Ordering::Relaxed);
    let recorded = if when == When::InBurst && write_in_crowd(state, mark) {
        Ok(())
    } else {
        if when == When::Now {
            submit_all(state, &mut duty, false); // their words must not wait for this one
        }
        mark.set_alone(when == When::Later);
        mark.record(state.stream).map(|()| duty.push(mark))
    };
    if when == When::Now || duty.len() >= BURST && when == When::InBurst {
        submit_all(state, &mut duty, false);
    }
    leave(state, duty);
    Ok(recorded?)
}

/// Where threads crowd on the stream: has the words of `mark` and of what was left written by one call. False where it
/// is better put among the recorded ones.
fn write_in_crowd(state: &StreamState, mark: Mark) -> bool {
    let marking = &state.marking;
    let crowded = marking.crowded.load(Ordering::Relaxed);
    if crowded == 0 {
        return false;
    }
    if marking.left.is_empty() {
        marking.crowded.store(crowded - 1, Ordering::Relaxed);
        if state.outstanding.load(Ordering::Relaxed) > MOST_WAITERS {
            return false; // nobody waits for this one yet
        }
    }
    write_left(state, Some(mark));
    true
}

/// Has the words of `own` and of what was left written by the stream itself.
fn write_left(state: &StreamState, own: Option<Mark>) {
    let left = if state.marking.left.is_empty() { None } else { Some(state.marking.left.take()) };
    let mut marks = own.into_iter().chain(left.into_iter().flatten()).peekable();
    while marks.peek().is_some() {
        let mut batch = Batch::default();
        marks.by_ref().take(WORDS_PER_WRITE).for_each(|mark| batch.add(mark));
        if batch.write(state, state.stream).is_err() {
            let mut recorded = MarkQueue::default();
            for mark in batch.marks() {
                match mark.record(state.stream) {
                    Ok(()) => recorded.push(mark),
                    Err(_) => state.marking.refuse(mark),
                }
            }
            submit_all(state, &mut recorded, false);
        }
    }
}

/// Sees to what other threads left, before something long is queued behind it. The stream's context is current.
#[inline]
pub fn mark_left(state: &Arc<StreamState>) {
    let marking = &state.marking;
    // What another thread took already, it may not have written yet.
    if !marking.left.is_empty() || state.is_owned() && marking.is_busy() {
        let duty = marking.duty.take_in_turn();
        write_left(state, None);
        leave(state, duty);
    }
}

/// Marks all that was left or recorded before, and gives what tells when the words have been written. The stream's
/// context is current.
pub fn mark_all(state: &Arc<StreamState>) -> Written {
    let mut duty = state.marking.duty.take_in_turn();
    write_left(state, None);
    submit_all(state, &mut duty, false);
    // Before another request is handed to the side stream, which nobody has to wait for.
    let event = state.existing_side().and_then(|side| {
        let event = Event::new().ok()?;
        let recorded = event.record(side);
        recorded.map(|()| event).map_err(|_| event.destroy()).ok()
    });
    let refusals = state.marking.refused().count;
    leave(state, duty);
    Written { event, refusals }
}

/// Tells when the words of the requests that were marked before have been written.
pub struct Written {
    /// Behind the writes; none where the side stream has to be asked, if there is one.
    event: Option<Event>,
    /// How many requests had been refused.
    refusals: u64,
}

impl Written {
    /// Waits until then, when the copies themselves are done.
    pub fn settle(self, state: &StreamState) -> Result<()> {
        match (self.event, state.existing_side()) {
            (Some(event), _) => await_event(event)?,
            (None, Some(side)) => await_stream(side)?,
            (None, None) => (),
        }
        let mut refused = state.marking.refused();
        let earlier = refused.list.iter().take_while(|(number, _)| *number <= self.refusals).count();
        refused.list.drain(..earlier).for_each(|(_, mark)| mark.set_done());
        Ok(())
    }
}

impl Drop for Written {
    fn drop(&mut self) {
        let _ = self.event.map(Event::destroy); // the work is done all the same
    }
}

/// Marks all that was left or recorded before, unless another thread has the duty. The library's own thread lets no
/// status word wait for another request. Tells whether nothing is left.
pub fn try_mark_all(state: &Arc<StreamState>, who: Holder) -> bool {
    if let Ok(mut duty) = state.marking.duty.take(who) {
        write_left(state, None);
        submit_all(state, &mut duty, who == Holder::Library);
        leave(state, duty);
    }
    state.marking.is_empty()
}

/// Takes a request out of the lists, because it is given up after a failure. False when it is in none any more.
#[cold]
pub fn withdraw(state: &Arc<StreamState>, mark: Mark) -> bool {
    let mut duty = state.marking.duty.take_in_turn();
    let mut found = false;
    let mut stays = |other: &Mark| {
        found |= *other == mark;
        *other != mark
    };
    state.marking.left.take().filter(&mut stays).for_each(|other| state.marking.left.push(other));
    for _ in 0..duty.len() {
        duty.pop().filter(&mut stays).into_iter().for_each(|other| duty.push(other));
    }
    leave(state, duty);
    found
}

/// Gives the duty up. What is left, or was left meanwhile, is the straggler thread's.
fn leave(state: &Arc<StreamState>, duty: Taken<'_, MarkQueue>) {
    state.marking.recorded.store(duty.len(), Ordering::SeqCst);
    drop(duty);
    if !state.marking.is_empty() {
        state.marking.watch(state);
    }
}

fn submit_all(state: &StreamState, recorded: &mut MarkQueue, each_alone: bool) {
    let mut batch = Batch::default();
    while let Some(mark) = recorded.pop() {
        let alone = each_alone || mark.is_alone();
        if batch.count == WORDS_PER_WRITE || alone {
            std::mem::take(&mut batch).submit(state);
        }
        batch.add(mark);
        if alone {
            std::mem::take(&mut batch).submit(state);
        }
    }
    batch.submit(state);
}

/// Has the word of `mark` written by the calling thread's own stream: the side stream would let the threads wait for
/// each other.
pub fn mark_per_thread(state: &StreamState, mark: Mark) -> Result<()> {
    mark.record(state.stream)?; // other threads can ask for nothing else
    let mut batch = Batch::default();
    batch.add(mark);
    // SAFETY: the argument is a status word, kept until it was written.
    let call = || unsafe { state.stream.call(request::done, mark.argument()) };
    if batch.write(state, state.stream).is_err() && call().is_err() {
        state.marking.refuse(mark);
    }
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
            // The copies' own stream comes behind them anyway.
            _ if state.is_there() => state.stream,
            _ => return 0,
        };
        match self.write(state, side) {
            Ok(()) => return self.count,
            // One call is all or nothing: this driver cannot write, so let it call.
            Err(_) => state.pool.device_writes.store(false, Ordering::Relaxed),
        }
        let call = |mark: &Mark| {
            // SAFETY: the argument is a status word, kept until it was written.
            let call = |stream: Stream| unsafe { stream.call(request::done, mark.argument()) };
            call(side).is_ok() || state.is_there() && call(state.stream).is_ok()
        };
        self.marks().take_while(call).count()
    }

    /// Has the words written by `stream`, which is one of `state`.
    fn write(&self, state: &StreamState, stream: Stream) -> Result<()> {
        if !state.pool.device_writes.load(Ordering::Relaxed) {
            return Err(Error::NotSupported);
        }
        let mut words = [std::ptr::null_mut(); WORDS_PER_WRITE];
        for (word, mark) in words.iter_mut().zip(self.marks()) {
            *word = mark.word();
        }
        // SAFETY: status words lie in registered slabs of this context, and are kept until they were written.
        Ok(unsafe { stream.write(&words[..self.count], DONE) }?)
    }

    /// Lets `side` wait for the copies: the event of the last lies behind those of the others.
    fn let_wait(&self, side: Stream) -> cuda_driver::Result<()> {
        let event = self.marks().last().and_then(Mark::event).expect("a request is recorded before it is marked");
        side.wait_for(event)
    }
}
