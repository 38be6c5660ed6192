//! What belongs to the process: whether the driver was initialised, whether this is a fork of such a process,
//! and the environment variables, which a setuid program does not get to see.

use crate::error::{Code, Error, Result, check};
use crate::ffi::cuInit;
use once_cell::sync::OnceCell;
use std::sync::atomic::{AtomicU8, Ordering};

const UNUSED: u8 = 0;
const READY: u8 = 1;
const FORKED: u8 = 2;

static STATE: AtomicU8 = AtomicU8::new(UNUSED);

/// Succeeds when the driver can be used: initialises it on the first call, and fails in a child that was forked
/// from a process that had used it. A failed initialisation is tried again by the next call.
#[inline]
pub fn ready() -> Result<()> {
    match STATE.load(Ordering::Acquire) {
        READY => Ok(()),
        FORKED => Err(FORK),
        _ => initialise(),
    }
}

/// Whether this is a child that was forked from a process that had used the driver. Asking calls nothing.
pub fn is_forked() -> bool {
    STATE.load(Ordering::Acquire) == FORKED
}

/// The error of everything in such a child.
pub const FORK: Error = Error::new("fork", Code::NOT_INITIALIZED);

#[cold]
fn initialise() -> Result<()> {
    // SAFETY: no pointers; any thread may initialise the driver, also several at once.
    check("cuInit", unsafe { cuInit(0) })?;
    static WATCH: std::sync::Once = std::sync::Once::new();
    WATCH.call_once(|| {
        // SAFETY: the handler only stores to an atomic.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    });
    STATE.store(READY, Ordering::Release);
    Ok(())
}

extern "C" fn in_child() {
    STATE.store(FORKED, Ordering::Release);
}

/// Whether `AML_DMA_CUDA_LOG` asks for a line on stderr for each CUDA call that fails.
pub fn logging() -> bool {
    static LOGGING: OnceCell<bool> = OnceCell::new();
    *LOGGING.get_or_init(|| setting("AML_DMA_CUDA_LOG").is_some_and(|value| !value.is_empty() && value != "0"))
}

/// An environment variable; none in a setuid or setgid program, where the environment is not to be trusted.
pub fn setting(name: &str) -> Option<String> {
    // SAFETY: no pointers.
    let trusted = unsafe { libc::getauxval(libc::AT_SECURE) } == 0;
    trusted.then(|| std::env::var(name).ok()).flatten()
}
