//! The thread that marks requests nobody came back for.
//!
//! A request in the middle of a burst is marked together with those that follow it. When none follow and nobody waits,
//! its status word has to turn all the same: this thread looks after streams whose last requests have lain still for
//! a moment. It sleeps while there are none, and ends with the process.

use crate::completion;
use crate::duty::Holder;
use crate::stream::StreamState;
use crate::thread;
use once_cell::sync::Lazy;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

/// As long as this requests lie still before they are marked.
const STILL: Duration = Duration::from_micros(50);

/// After so many looks they are marked even where more keep coming: long copies are left to this thread.
const MOST_LOOKS: u32 = 16;

const UNTRIED: u8 = 0;
const RUNS: u8 = 1;
const CANNOT: u8 = 2;

#[derive(Default)]
struct Watch {
    streams: Mutex<Vec<Watched>>,
    more: Condvar,
    thread: AtomicU8,
    /// Whether the thread may be in a call of the driver.
    busy: AtomicBool,
    /// Whether the process ends: the driver must be left alone.
    ending: AtomicBool,
}

struct Watched {
    stream: Arc<StreamState>,
    /// How many events had been recorded when it was last looked at.
    rounds: usize,
    /// How often it was looked at.
    looks: u32,
}

static WATCH: Lazy<Watch> = Lazy::new(Watch::default);

/// Whether there is a thread that can be relied on; starts it on the first call.
pub fn is_there() -> bool {
    match WATCH.thread.load(Ordering::Acquire) {
        RUNS => !WATCH.ending.load(Ordering::Relaxed),
        CANNOT => false,
        _ => start(),
    }
}

#[cold]
fn start() -> bool {
    let streams = WATCH.streams(); // one thread starts it
    if WATCH.thread.load(Ordering::Acquire) == UNTRIED {
        let started = thread::start(|| WATCH.run());
        // SAFETY: the handler lives as long as the library, which is never unloaded.
        let started = started && unsafe { libc::atexit(at_exit) } == 0;
        WATCH.thread.store(if started { RUNS } else { CANNOT }, Ordering::Release);
    }
    drop(streams);
    WATCH.thread.load(Ordering::Acquire) == RUNS
}

/// Looks after `stream` until none of its requests is unmarked. False where there is no memory to note that.
pub fn watch(stream: &Arc<StreamState>) -> bool {
    let mut streams = WATCH.streams();
    if streams.try_reserve(1).is_err() {
        return false;
    }
    streams.push(Watched { stream: stream.clone(), rounds: stream.marking.rounds(), looks: 0 });
    let first = streams.len() == 1;
    drop(streams);
    if first {
        WATCH.more.notify_one();
    }
    true
}

impl Watch {
    fn streams(&self) -> MutexGuard<'_, Vec<Watched>> {
        self.streams.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn run(&self) {
        let _gone = Gone(self);
        loop {
            let mut streams = self.streams();
            while streams.is_empty() {
                streams = self.more.wait(streams).unwrap_or_else(|poisoned| poisoned.into_inner());
            }
            drop(streams);
            thread::nap(STILL);
            let due = self.take_due();
            self.busy.store(true, Ordering::SeqCst);
            if self.ending.load(Ordering::SeqCst) {
                return;
            }
            for stream in &due {
                stream.marking.unwatch();
                if !completion::mark_stragglers(stream, Holder::Library) {
                    stream.marking.watch(stream);
                }
            }
            drop(due); // this may destroy a stream
            self.busy.store(false, Ordering::SeqCst);
        }
    }

    /// Takes out the streams that lie still, and those that have been busy for long.
    fn take_due(&self) -> Vec<Arc<StreamState>> {
        let mut due = Vec::new();
        self.streams().retain_mut(|watched| {
            let rounds = watched.stream.marking.rounds();
            let still = std::mem::replace(&mut watched.rounds, rounds) == rounds;
            watched.looks += 1;
            let keep = !still && watched.looks < MOST_LOOKS;
            if !keep {
                due.push(watched.stream.clone());
            }
            keep
        });
        due
    }
}

/// When this goes, so does the thread: nobody relies on it any more, or waits for it.
struct Gone<'a>(&'a Watch);

impl Drop for Gone<'_> {
    fn drop(&mut self) {
        self.0.thread.store(CANNOT, Ordering::Release);
        self.0.busy.store(false, Ordering::SeqCst);
    }
}

/// Keeps the thread out of the driver while that is taken down.
extern "C" fn at_exit() {
    if cuda_driver::ready().is_err() {
        return; // a forked child has no such thread
    }
    WATCH.ending.store(true, Ordering::SeqCst);
    let mut turn = 0_u32;
    while WATCH.busy.load(Ordering::SeqCst) {
        thread::give_way(turn);
        turn = turn.wrapping_add(1);
    }
    // Nobody comes after this.
    let left = std::mem::take(&mut *WATCH.streams());
    left.iter().for_each(|watched| _ = completion::mark_stragglers(&watched.stream, Holder::Library));
}
