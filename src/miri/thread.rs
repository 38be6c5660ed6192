//! Stands in for `thread` under Miri, where threads have no attributes, and there are no signals to leave alone.

use std::sync::atomic::AtomicU32;
use std::time::Duration;

/// Starts a thread, and tells whether there is one now.
pub fn start<F: FnOnce() + Send + 'static>(work: F) -> bool {
    std::thread::Builder::new().spawn(work).is_ok()
}

/// How many CPUs the process may use.
pub fn processors() -> usize {
    3
}

/// Sleeps for a while.
pub fn nap(time: Duration) {
    std::thread::sleep(time);
}

/// Lets other threads run.
pub fn give_way(_turn: u32) {
    std::thread::yield_now();
}

/// Sleeps until `wake`, unless `word` is another than `seen` already. May return early.
pub fn sleep_on(word: &AtomicU32, seen: u32) {
    let (operation, no_timeout) = (libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG, std::ptr::null::<libc::timespec>());
    // SAFETY: the word lives during the call.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), operation, seen, no_timeout) };
}

/// Wakes up to `count` threads that sleep on `word`.
pub fn wake(word: &AtomicU32, count: u32) {
    // SAFETY: the word lives during the call.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG, count) };
}
