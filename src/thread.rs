//! Threads of the library's own: they leave the program's signals alone, and run where the process may.

use libc::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

const STACK: usize = 256 << 10;

/// Starts a thread, and tells whether there is one now.
///
/// Not by the standard library, which ends the process where memory has run out.
pub fn start<F: FnOnce() + Send + 'static>(work: F) -> bool {
    let work = Box::into_raw(Box::new(work));
    // SAFETY: the attributes are initialised, and `run` gets what it wants.
    let started = without_signals(|| unsafe {
        let mut thread = std::mem::zeroed();
        let mut attributes = std::mem::zeroed();
        if libc::pthread_attr_init(&mut attributes) != 0 {
            return false;
        }
        libc::pthread_attr_setdetachstate(&mut attributes, libc::PTHREAD_CREATE_DETACHED);
        libc::pthread_attr_setstacksize(&mut attributes, STACK);
        let code = libc::pthread_create(&mut thread, &attributes, run::<F>, work.cast());
        libc::pthread_attr_destroy(&mut attributes);
        code == 0
    });
    if !started {
        // SAFETY: no thread took it.
        drop(unsafe { Box::from_raw(work) });
    }
    started
}

extern "C" fn run<F: FnOnce()>(work: *mut c_void) -> *mut c_void {
    // SAFETY: `start` gave it away, with this type; the name ends in NUL.
    let work = unsafe {
        libc::pthread_setname_np(libc::pthread_self(), c"aml-dma-cuda".as_ptr());
        Box::from_raw(work.cast::<F>())
    };
    follow_process();
    let _ = catch_unwind(AssertUnwindSafe(work)); // a panic ends this thread alone
    ptr::null_mut()
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

/// Sleeps for a while. Not by the C library, whose `nanosleep` is where `pthread_cancel` ends a thread: that must not
/// happen in here.
pub fn nap(time: Duration) {
    let time = libc::timespec { tv_sec: time.as_secs() as libc::time_t, tv_nsec: time.subsec_nanos().into() };
    // SAFETY: the time is read, and nothing written.
    unsafe { libc::syscall(libc::SYS_nanosleep, &raw const time, ptr::null_mut::<libc::timespec>()) };
}

/// Lets other threads run, in turn `turn` of a loop that waits for one of them. Now and then it sleeps: a thread of
/// real-time priority yields to none without, and would wait for ever for one that is to run on its core.
pub fn give_way(turn: u32) {
    const MOMENT: Duration = Duration::from_micros(50);
    if turn % 256 == 255 { nap(MOMENT) } else { std::thread::yield_now() }
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
