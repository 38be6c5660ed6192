//! The threads that move memory for staged copies. They start with the first one, follow the CPU affinity of the
//! process, and sleep while there is nothing to do.

use crate::thread;
use once_cell::sync::{Lazy, OnceCell};
use std::hint::spin_loop;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// More threads than this do not make a link faster.
const MOST: usize = 8;
/// As long as this a thread looks out for the next copy before it sleeps.
const ALERT: Duration = Duration::from_micros(100);

/// The work of one copy: called once by each thread that takes part, with its place.
type Work<'a> = &'a (dyn Fn(usize) + Sync);

/// All threads.
#[derive(Default)]
pub struct Crew {
    state: Mutex<State>,
    posted: AtomicUsize,
    call: Condvar,
    finished: Condvar,
}

#[derive(Default)]
struct State {
    /// The work, while places are left.
    work: Option<Work<'static>>,
    /// The places that nobody has taken.
    places: std::ops::Range<usize>,
    /// How many threads are at work.
    busy: usize,
    /// How many threads there are.
    threads: usize,
}

static CREW: Lazy<Crew> = Lazy::new(Crew::default);

impl Crew {
    /// How many threads take part in a copy, the calling one counted: `AML_DMA_CUDA_COPY_THREADS`, else as many as the
    /// process may run at a time, up to eight.
    pub fn size() -> usize {
        static SIZE: OnceCell<usize> = OnceCell::new();
        *SIZE.get_or_init(|| {
            let wanted = cuda_driver::setting("AML_DMA_CUDA_COPY_THREADS").and_then(|value| value.parse().ok());
            wanted.unwrap_or_else(|| thread::processors().min(MOST)).min(2 * MOST)
        })
    }

    /// Has `work` done by up to `threads` threads, of which the calling one is the first. Returns when all are finished.
    pub fn run(threads: usize, work: Work) {
        // SAFETY: below, the call returns only when no thread uses the work any more, nor can take it.
        let work_for_others: Work<'static> = unsafe { std::mem::transmute(work) };
        let places = 1..CREW.hire(threads - 1) + 1;
        let mut state = CREW.state();
        state.work = Some(work_for_others);
        state.places = places.clone();
        drop(state);
        CREW.posted.fetch_add(1, Ordering::Release);
        for _ in places {
            CREW.call.notify_one();
        }
        let leave = Leave;
        work(0);
        drop(leave);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Starts threads until there are `wanted`, and tells how many of those there are.
    fn hire(&'static self, wanted: usize) -> usize {
        while self.state().threads < wanted {
            if !thread::start(|| self.work()) {
                break;
            }
            self.state().threads += 1;
        }
        wanted.min(self.state().threads)
    }

    fn work(&self) {
        loop {
            let seen = self.posted.load(Ordering::Acquire);
            let mut state = self.state();
            if let (Some(work), Some(place)) = (state.work, state.places.next()) {
                state.busy += 1;
                drop(state);
                work(place);
                let mut state = self.state();
                state.busy -= 1;
                if state.busy == 0 {
                    self.finished.notify_one();
                }
                continue;
            }
            drop(state);
            let start = Instant::now();
            while self.posted.load(Ordering::Acquire) == seen && start.elapsed() < ALERT {
                for _ in 0..32 {
                    spin_loop();
                }
            }
            let mut state = self.state();
            while state.places.is_empty() {
                state = self.call.wait(state).unwrap_or_else(|poisoned| poisoned.into_inner());
            }
        }
    }
}

/// Takes the work back when the calling thread is finished with its part, also when that panicked.
struct Leave;

impl Drop for Leave {
    fn drop(&mut self) {
        let mut state = CREW.state();
        state.places = 0..0;
        state.work = None;
        while state.busy > 0 {
            state = CREW.finished.wait(state).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
    }
}
