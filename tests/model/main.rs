//! Random sequences of calls from up to eight threads, on the software driver, against a model of what each has to
//! answer and what must have arrived by then. The same machine is the cargo-fuzz target in `fuzz/`.
//!
//! `MODEL_OPERATIONS` says how many calls of the library to make at least. What is done is written down first, so that
//! `MODEL_REPLAY=FILE` does it again, also when it ended in a crash. With `MODEL_DRIVER=1` the driver is the machine's own
//! `libcuda.so.1`, which needs two devices; there no stream is held and nothing is counted.

mod machine;
#[path = "../software_driver/mod.rs"]
mod software_driver;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{TestError, TestRunner};
use std::cell::{Cell, RefCell};
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;

/// As many calls as there is time for in every `cargo test`.
const OPERATIONS: u64 = 40_000;
/// After so many it says how far it is.
const MILLION: u64 = 1_000_000;
/// The longest sequence.
const STEPS: usize = 400;
/// So many runs are written down before those before them are forgotten.
const REMEMBERED: u64 = 100;

/// Runs as text, one a line.
struct Diary {
    path: PathBuf,
    file: File,
    runs: u64,
}

impl Diary {
    fn begin(path: PathBuf) -> Diary {
        let file = File::create(&path).expect("a file can be made in the target directory");
        Diary { path, file, runs: 0 }
    }

    fn write(&mut self, bytes: &[u8]) {
        if self.runs % REMEMBERED == 0 {
            self.file = File::create(&self.path).expect("the file can be made anew");
        }
        self.runs += 1;
        let text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        writeln!(self.file, "{text}").expect("the file can be written");
    }
}

/// Does again what was written down.
fn replay(path: &str) {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("MODEL_REPLAY={path}: {error}"));
    for line in text.lines() {
        let digits = |at| u8::from_str_radix(line.get(at..at + 2)?, 16).ok();
        let bytes: Vec<u8> = (0..line.len()).step_by(2).map_while(digits).collect();
        if let Err(fault) = machine::run(&bytes) {
            panic!("{fault}\n{:?}", machine::Sequence::decode(&bytes));
        }
    }
}

fn sequences() -> impl Strategy<Value = Vec<u8>> {
    (any::<[u8; machine::HEADER]>(), vec(any::<[u8; machine::STEP]>(), 1..STEPS))
        .prop_map(|(header, steps)| [&header[..], &steps.concat()].concat())
}

#[test]
fn every_call_answers_as_the_model_says() {
    if std::env::var_os("MODEL_DRIVER").is_none() {
        software_driver::open();
    }
    if let Ok(path) = std::env::var("MODEL_REPLAY") {
        return replay(&path);
    }
    let wanted = std::env::var("MODEL_OPERATIONS").ok().and_then(|text| text.parse().ok()).unwrap_or(OPERATIONS);
    let built = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let directory = if built.is_dir() { built } else { std::env::temp_dir() };
    let path = |what: &str| directory.join(format!("model-{what}-{}", std::process::id()));
    let diary = RefCell::new(Diary::begin(path("runs")));
    let (first, told) = (Cell::new(true), Cell::new(0));
    let config = ProptestConfig { cases: 1, failure_persistence: None, max_shrink_iters: 20_000, ..Default::default() };
    let mut runs = 0u64;
    while machine::calls() < wanted {
        let outcome = TestRunner::new(config.clone()).run(&sequences(), |bytes| {
            diary.borrow_mut().write(&bytes);
            let outcome = machine::run(&bytes);
            if let Err(fault) = &outcome
                && first.replace(false)
            {
                // What follows only makes it smaller, and may hang or crash.
                eprintln!("{fault}\nMODEL_REPLAY={}", diary.borrow().path.display());
                diary.replace(Diary::begin(path("smaller")));
            }
            outcome.map_err(TestCaseError::fail)
        });
        match outcome {
            Ok(()) => {
                runs += 1;
                if machine::calls() / MILLION > told.replace(machine::calls() / MILLION) {
                    println!("{} calls in {runs} runs", machine::calls());
                }
            }
            Err(TestError::Fail(reason, bytes)) => {
                diary.replace(Diary::begin(path("smallest")));
                diary.borrow_mut().write(&bytes);
                let path = diary.borrow().path.display().to_string();
                panic!("after {runs} runs: {reason}\n{:?}MODEL_REPLAY={path}", machine::Sequence::decode(&bytes));
            }
            Err(TestError::Abort(reason)) => panic!("{reason}"),
        }
    }
    std::fs::remove_file(path("runs")).expect("it was written");
    println!("{} calls in {runs} runs", machine::calls());
}
