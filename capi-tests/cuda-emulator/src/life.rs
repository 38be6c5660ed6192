//! The driver's own life: not initialised, ready, gone when the process ends, unusable in a forked child.
//! Each state is one atomic read, so that a child never meets a lock that its parent held.
use crate::result::*;
use crate::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering::*};

const FRESH: u8 = 0;
const READY: u8 = 1;
const ENDED: u8 = 2;

static STATE: AtomicU8 = AtomicU8::new(FRESH);
static FORKED: AtomicBool = AtomicBool::new(false);
static STARTING: Mutex<()> = Mutex::new(());

extern "C" fn in_child() {
    FORKED.store(true, Release);
}

extern "C" fn at_exit() {
    if !forked() {
        STATE.store(ENDED, Release);
    }
}

/// Whether this process was forked off one that had initialised the driver.
pub fn forked() -> bool {
    FORKED.load(Acquire)
}

/// Whether the driver may be used.
pub fn ready() -> Result {
    match STATE.load(Acquire) {
        READY => Ok(()),
        ENDED => Err(CUDA_ERROR_DEINITIALIZED),
        _ => Err(CUDA_ERROR_NOT_INITIALIZED),
    }
}

/// What cuInit does: prepares the devices by `begin`, once.
pub fn start(begin: impl FnOnce() -> Result) -> Result {
    let _one_at_a_time = STARTING.lock();
    match STATE.load(Acquire) {
        READY => return Ok(()),
        ENDED => return Err(CUDA_ERROR_DEINITIALIZED),
        _ => begin()?,
    }
    // SAFETY: both handlers only store an atomic.
    unsafe {
        libc::pthread_atfork(None, None, Some(in_child));
        libc::atexit(at_exit);
    }
    STATE.store(READY, Release);
    Ok(())
}
