//! Threads of the library's own: they leave the program's signals alone, and run where the process may.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

const STACK: usize = 256 << 10;

/// Starts a thread, and tells whether there is one now.
pub fn start(work: impl FnOnce() + Send + 'static) -> bool {
    without_signals(|| {
        let thread = std::thread::Builder::new().name("aml-dma-cuda".into()).stack_size(STACK);
        thread
            .spawn(|| {
                follow_process();
                work();
            })
            .is_ok()
    })
}

/// Runs `work` with all signals blocked: a thread that it starts leaves them to the program's own.
fn without_signals<T>(work: impl FnOnce() -> T) -> T {
    // SAFETY: both sets are valid, and the mask comes back afterwards.
    unsafe {
        let mut all = std::mem::zeroed();
        let mut before = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
        let result = work();
        libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut());
        result
    }
}

/// The CPUs that the process as a whole may use. The calling thread may be bound to one of them.
fn affinity() -> Option<libc::cpu_set_t> {
    // SAFETY: the set is valid, and as large as it is said to be.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        (libc::sched_getaffinity(libc::getpid(), size_of_val(&set), &mut set) == 0).then_some(set)
    }
}

/// Lets the calling thread run wherever the process may.
fn follow_process() {
    if let Some(set) = affinity() {
        // SAFETY: the set is valid, and as large as it is said to be. A refusal changes nothing.
        unsafe { libc::sched_setaffinity(0, size_of_val(&set), &set) };
    }
}

/// How many CPUs the process may use.
pub fn processors() -> usize {
    // SAFETY: the set is valid.
    affinity().map_or(1, |set| unsafe { libc::CPU_COUNT(&set) } as usize)
}

/// A number that tells the calling thread from every other.
pub fn number() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(1);
    thread_local!(static NUMBER: usize = NEXT.fetch_add(1, Ordering::Relaxed));
    NUMBER.with(|&number| number)
}

/// Sleeps until `wake`, unless `word` is another than `seen` already. May return early.
pub fn sleep_on(word: &AtomicU32, seen: u32) {
    let no_timeout = std::ptr::null::<libc::timespec>();
    // SAFETY: the word lives during the call.
    unsafe {
        libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG, seen, no_timeout)
    };
}

/// Wakes up to `count` threads that sleep on `word`.
pub fn wake(word: &AtomicU32, count: u32) {
    // SAFETY: the word lives during the call.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG, count) };
}
