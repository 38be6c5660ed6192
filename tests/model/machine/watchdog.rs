//! Ends the process when a run does not come to an end, and says which it was.

use super::step::Sequence;
use std::sync::{Mutex, Once};
use std::time::{Duration, Instant};

/// As long as this a run may take: no speed is asked for, but an end.
const PATIENCE: Duration = Duration::from_secs(10);

static RUN: Mutex<Option<(Instant, Vec<u8>)>> = Mutex::new(None);

/// The run is watched until the value is dropped.
pub struct Watched;

/// Watches a run.
pub fn watch(bytes: &[u8]) -> Watched {
    static STARTED: Once = Once::new();
    STARTED.call_once(|| {
        std::thread::Builder::new().name("watchdog".into()).spawn(look).expect("a thread starts");
    });
    set(Some((Instant::now(), bytes.to_vec())));
    Watched
}

fn set(run: Option<(Instant, Vec<u8>)>) {
    *RUN.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = run;
}

impl Drop for Watched {
    fn drop(&mut self) {
        set(None);
    }
}

fn look() {
    loop {
        std::thread::sleep(Duration::from_secs(1));
        let run = RUN.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clone();
        if let Some((start, bytes)) = run
            && start.elapsed() > PATIENCE
        {
            eprintln!("this did not come to an end:\n{:?}", Sequence::decode(&bytes));
            std::process::abort();
        }
    }
}
