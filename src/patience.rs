//! How to wait: first spinning, since most copies are short; then sleeping, so that a long one costs no core.

use crate::error::{Error, Result};
use crate::thread;
use cuda_driver::{Event, Stream};
use std::hint::spin_loop;
use std::time::{Duration, Instant};

/// A way of waiting.
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
                thread::nap((waited / 64).min(LONGEST));
            } else if waited > KEEP_CORE {
                std::thread::yield_now();
            }
        }
    }
}

/// Waits for what `stream` has now. Its context is current.
pub fn await_stream(stream: Stream) -> Result<()> {
    if stream.is_done()? {
        return Ok(());
    }
    let Ok(event) = Event::new() else { return Ok(stream.synchronize()?) };
    let waited = match event.record(stream) {
        Ok(()) => await_event(event),
        Err(_) => stream.synchronize().map_err(Error::from),
    };
    let _ = event.destroy(); // the work is done all the same
    waited
}

/// Waits for the work before `event`.
pub fn await_event(event: Event) -> Result<()> {
    Patience::asking_every(16).wait(|| false, || asked_twice(|| event.is_done()))
}

/// The answer to a question, or to the same one again: an error that passes is no reason to leave a copy alone.
pub fn asked_twice(question: impl Fn() -> cuda_driver::Result<bool>) -> Result<bool> {
    Ok(question().or_else(|_| question())?)
}
