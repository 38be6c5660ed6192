//! The log of calls: kept in memory when a test asks for it, or written as it grows to the file that CUEMU_LOG names.
//! One line a call: thread id, name, code.
use crate::entry::Entry;
use crate::result::CUresult;
use crate::sync::Mutex;
use std::fs::File;
use std::io::Write;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// A call that was made.
#[derive(Clone, Copy)]
pub struct Call {
    /// The kernel's id of the thread.
    pub thread: i32,
    /// What was called.
    pub entry: Entry,
    /// What it answered.
    pub code: CUresult,
}

static KEEPING: AtomicBool = AtomicBool::new(false);
static KEPT: Mutex<Vec<Call>> = Mutex::new(Vec::new());

fn file() -> Option<&'static Mutex<File>> {
    static FILE: OnceLock<Option<Mutex<File>>> = OnceLock::new();
    let open = || {
        let path = std::env::var_os("CUEMU_LOG")?;
        File::options().append(true).create(true).open(path).ok().map(Mutex::new)
    };
    FILE.get_or_init(open).as_ref()
}

/// Notes a call, if anybody wants to know.
pub fn record(entry: Entry, code: CUresult) {
    let file = file();
    let keeping = KEEPING.load(Relaxed);
    if file.is_none() && !keeping {
        return;
    }
    // SAFETY: gettid has no preconditions.
    let call = Call { thread: unsafe { libc::gettid() }, entry, code };
    if keeping {
        KEPT.lock().push(call);
    }
    if let Some(file) = file {
        let line = format!("{} {} {}\n", call.thread, entry.name(), code);
        // A log that cannot be written must not change what the program sees.
        let _ = file.lock().write_all(line.as_bytes());
    }
}

/// Starts with an empty log.
pub fn start() {
    KEPT.lock().clear();
    KEEPING.store(true, Relaxed);
}

/// Stops; what was logged stays to be read.
pub fn stop() {
    KEEPING.store(false, Relaxed);
}

/// How many calls were logged.
pub fn length() -> usize {
    KEPT.lock().len()
}

/// One of them.
pub fn get(index: usize) -> Option<Call> {
    KEPT.lock().get(index).copied()
}
