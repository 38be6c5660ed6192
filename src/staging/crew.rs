//! The threads that move memory for staged copies. They start with the first one, follow the CPU affinity of the
//! process, look out for the next copy for a moment, and sleep while there is none.

use crate::thread;
use once_cell::sync::{Lazy, OnceCell};
use std::hint::spin_loop;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// More threads than this do not make a link faster.
const MOST: usize = 8;
/// As long as this a thread looks out for the next copy: being woken takes longer than a small copy does.
const ALERT: Duration = Duration::from_millis(1);

/// The others' work: called once by each thread that takes part, with its place.
type Work<'a> = &'a (dyn Fn(usize) + Sync);

/// All threads.
#[derive(Default)]
pub struct Crew {
    state: Mutex<State>,
    /// Counts the copies; threads sleep on it.
    posted: AtomicU32,
    sleeping: AtomicU32,
    /// How many threads have the work, the calling one not counted.
    busy: AtomicU32,
}

#[derive(Default)]
struct State {
    /// The work, while places are left.
    work: Option<Work<'static>>,
    /// The places that nobody has taken.
    places: Range<usize>,
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

    /// Has `own` done by the calling thread, and `work` by up to `threads` - 1 others, whose places count from 1.
    /// Returns when all are finished, and gives what `own` gave.
    pub fn run<T>(threads: usize, own: impl FnOnce() -> T, work: Work) -> T {
        // SAFETY: `Leave` lets nobody take the work any more, and waits for those who have, before this call returns.
        let for_others: Work<'static> = unsafe { std::mem::transmute(work) };
        let places = 1..CREW.hire(threads - 1) + 1;
        let leave = Leave;
        CREW.post(for_others, places);
        let outcome = own();
        drop(leave);
        outcome
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Starts threads until there are `wanted`, and tells how many of those there are.
    fn hire(&'static self, wanted: usize) -> usize {
        while self.state().threads < wanted && thread::start(|| self.serve()) {
            self.state().threads += 1;
        }
        wanted.min(self.state().threads)
    }

    fn post(&self, work: Work<'static>, places: Range<usize>) {
        let count = places.len() as u32;
        let mut state = self.state();
        state.work = Some(work);
        state.places = places;
        drop(state);
        self.posted.fetch_add(1, Ordering::SeqCst);
        if self.sleeping.load(Ordering::SeqCst) > 0 {
            thread::wake(&self.posted, count);
        }
    }

    /// Takes a place of the work, if one is left.
    fn take(&self) -> Option<(Work<'static>, usize)> {
        let mut state = self.state();
        let (work, place) = (state.work?, state.places.next()?);
        self.busy.fetch_add(1, Ordering::AcqRel);
        Some((work, place))
    }

    /// What each thread does, for the rest of the process.
    fn serve(&self) {
        loop {
            let seen = self.posted.load(Ordering::SeqCst);
            if let Some((work, place)) = self.take() {
                work(place);
                self.busy.fetch_sub(1, Ordering::AcqRel);
                continue;
            }
            let start = Instant::now();
            while self.posted.load(Ordering::Acquire) == seen {
                if start.elapsed() > ALERT {
                    self.sleeping.fetch_add(1, Ordering::SeqCst);
                    thread::sleep_on(&self.posted, seen);
                    self.sleeping.fetch_sub(1, Ordering::SeqCst);
                    break;
                }
                (0..32).for_each(|_| spin_loop());
                std::thread::yield_now();
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
        drop(state);
        // They are at their last chunk.
        let mut turn = 0_u32;
        while CREW.busy.load(Ordering::Acquire) > 0 {
            (0..32).for_each(|_| spin_loop());
            thread::give_way(turn);
            turn = turn.wrapping_add(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread::yield_now;

    #[test]
    fn nobody_has_the_work_any_more_when_it_returns() {
        for _ in 0..20 {
            let (begun, ended) = (AtomicU32::new(0), AtomicU32::new(0));
            let own = || {
                while begun.load(Ordering::Relaxed) == 0 {
                    yield_now();
                }
                7
            };
            let outcome = Crew::run(3, own, &|place| {
                assert!((1..3).contains(&place));
                begun.fetch_add(1, Ordering::Relaxed);
                (0..20).for_each(|_| yield_now());
                ended.fetch_add(1, Ordering::Relaxed);
            });
            assert_eq!((outcome, begun.into_inner()), (7, ended.into_inner()));
        }
    }
}
