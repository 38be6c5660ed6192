//! The exported functions as a program calls them, where the C programs do not reach: what can be set, and what can be asked.
//! All of it is one state of the process, so one test at a time runs, each on devices that no other fails.
#![expect(
    clippy::undocumented_unsafe_blocks,
    reason = "every pointer leads to a value of the test, or is NULL where it may be"
)]
use crate::control::settings;
use crate::result::*;
use crate::sync::{Guard, Mutex};
use crate::types::*;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicU32, Ordering::*};

#[allow(clashing_extern_declarations, reason = "the same functions, seen from outside")]
unsafe extern "C" {
    safe fn cuInit(flags: c_uint) -> CUresult;
    fn cuDevicePrimaryCtxRetain(place: *mut CUcontext, ordinal: CUdevice) -> CUresult;
    safe fn cuDevicePrimaryCtxRelease_v2(ordinal: CUdevice) -> CUresult;
    safe fn cuDevicePrimaryCtxReset_v2(ordinal: CUdevice) -> CUresult;
    fn cuDeviceCanAccessPeer(place: *mut c_int, one: CUdevice, other: CUdevice) -> CUresult;
    fn cuCtxCreate_v2(place: *mut CUcontext, flags: c_uint, ordinal: CUdevice) -> CUresult;
    safe fn cuCtxDestroy_v2(handle: CUcontext) -> CUresult;
    safe fn cuCtxSetCurrent(handle: CUcontext) -> CUresult;
    safe fn cuCtxSynchronize() -> CUresult;
    safe fn cuCtxEnablePeerAccess(peer: CUcontext, flags: c_uint) -> CUresult;
    fn cuStreamCreate(place: *mut CUstream, flags: c_uint) -> CUresult;
    safe fn cuStreamDestroy_v2(handle: CUstream) -> CUresult;
    safe fn cuStreamQuery(handle: CUstream) -> CUresult;
    safe fn cuStreamSynchronize(handle: CUstream) -> CUresult;
    safe fn cuStreamWriteValue32_v2(stream: CUstream, address: CUdeviceptr, value: u32, flags: c_uint) -> CUresult;
    safe fn cuStreamWaitValue32_v2(stream: CUstream, address: CUdeviceptr, value: u32, flags: c_uint) -> CUresult;
    fn cuEventCreate(place: *mut CUevent, flags: c_uint) -> CUresult;
    safe fn cuEventDestroy_v2(handle: CUevent) -> CUresult;
    safe fn cuEventQuery(handle: CUevent) -> CUresult;
    fn cuMemAlloc_v2(place: *mut CUdeviceptr, len: usize) -> CUresult;
    fn cuMemAllocManaged(place: *mut CUdeviceptr, len: usize, flags: c_uint) -> CUresult;
    safe fn cuMemFree_v2(address: CUdeviceptr) -> CUresult;
    fn cuMemHostAlloc(place: *mut *mut c_void, len: usize, flags: c_uint) -> CUresult;
    fn cuMemHostRegister_v2(address: *mut c_void, len: usize, flags: c_uint) -> CUresult;
    fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize) -> CUresult;
    fn cuModuleLoadData(place: *mut CUmodule, image: *const c_void) -> CUresult;

    fn cuemu_fail(name: *const c_char, nth: u64, result: CUresult) -> CUresult;
    safe fn cuemu_fail_clear();
    safe fn cuemu_fail_pending() -> usize;
    safe fn cuemu_fail_stream(handle: CUstream, after: u64, result: CUresult) -> CUresult;
    safe fn cuemu_hold(handle: CUstream) -> CUresult;
    safe fn cuemu_release(handle: CUstream) -> CUresult;
    safe fn cuemu_set_peer_access(allowed: c_int);
    safe fn cuemu_set_compute_mode(mode: c_int);
    safe fn cuemu_set_reuse_handles(reuse: c_int);
    safe fn cuemu_live_contexts() -> usize;
    safe fn cuemu_live_streams() -> usize;
    safe fn cuemu_live_events() -> usize;
    safe fn cuemu_live_device_allocations() -> usize;
    safe fn cuemu_live_host_allocations() -> usize;
    safe fn cuemu_live_managed_allocations() -> usize;
    safe fn cuemu_live_registrations() -> usize;
    safe fn cuemu_live_modules() -> usize;
    safe fn cuemu_primary_count(ordinal: CUdevice) -> c_int;
    fn cuemu_calls(name: *const c_char) -> u64;
    safe fn cuemu_stale_uses() -> u64;
    safe fn cuemu_log_start();
    safe fn cuemu_log_stop();
    safe fn cuemu_log_length() -> usize;
    fn cuemu_log_get(index: usize, thread: *mut c_int, name: *mut c_char, room: usize, code: *mut CUresult)
    -> CUresult;
}

/// More than a test may fail, each for one of them.
const DEVICES: i32 = 4;
const FAILING: CUdevice = 3;

/// Keeps the other tests waiting, and starts the driver.
fn alone() -> Guard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    let guard = ONE.lock();
    settings().devices.store(DEVICES, Relaxed);
    assert_eq!(cuInit(0), CUDA_SUCCESS);
    assert_eq!(cuCtxSetCurrent(0), CUDA_SUCCESS);
    guard
}

/// What a function writes to where it is told.
fn made<T: Default>(make: impl FnOnce(*mut T) -> CUresult) -> T {
    let mut value = T::default();
    assert_eq!(make(&raw mut value), CUDA_SUCCESS);
    value
}

/// A new context, which becomes current.
fn context(device: CUdevice) -> CUcontext {
    made(|place| unsafe { cuCtxCreate_v2(place, 0, device) })
}

fn stream() -> CUstream {
    made(|place| unsafe { cuStreamCreate(place, CU_STREAM_NON_BLOCKING) })
}

/// Registers a page of words, which stays for ever.
fn words() -> (&'static [AtomicU32], CUdeviceptr) {
    let page: &'static mut Vec<AtomicU32> = Box::leak(Box::new((0..2048).map(|_| AtomicU32::new(0)).collect()));
    let start = page.as_mut_ptr();
    assert_eq!(unsafe { cuMemHostRegister_v2(start.cast(), page.len() * 4, 0) }, CUDA_SUCCESS);
    (page, start as CUdeviceptr)
}

fn info() -> CUresult {
    let (mut free, mut total) = (0, 0);
    unsafe { cuMemGetInfo_v2(&raw mut free, &raw mut total) }
}

#[test]
fn a_rule_fails_the_call_that_it_names_and_no_other() {
    let _alone = alone();
    let own = context(0);
    let name = c"cuMemGetInfo_v2".as_ptr();
    unsafe {
        assert_eq!(cuemu_fail(c"cuNothing".as_ptr(), 1, 2), CUDA_ERROR_NOT_FOUND);
        assert_eq!(cuemu_fail(name, 2, CUDA_ERROR_OUT_OF_MEMORY), CUDA_SUCCESS);
    }
    assert_eq!((info(), cuemu_fail_pending()), (CUDA_SUCCESS, 1));
    assert_eq!(cuCtxSynchronize(), CUDA_SUCCESS);
    assert_eq!((info(), cuemu_fail_pending()), (CUDA_ERROR_OUT_OF_MEMORY, 0));
    assert_eq!(info(), CUDA_SUCCESS);
    assert_eq!(unsafe { cuemu_fail(name, 0, CUDA_ERROR_UNKNOWN) }, CUDA_SUCCESS);
    assert_eq!([info(), info(), info()], [CUDA_ERROR_UNKNOWN; 3]);
    cuemu_fail_clear();
    assert_eq!((info(), cuemu_fail_pending()), (CUDA_SUCCESS, 0));
    assert_eq!(unsafe { cuemu_fail(null(), 2, CUDA_ERROR_UNKNOWN) }, CUDA_SUCCESS);
    assert_eq!([cuCtxSynchronize(), info(), info()], [CUDA_SUCCESS, CUDA_ERROR_UNKNOWN, CUDA_SUCCESS]);
    assert_eq!(cuCtxDestroy_v2(own), CUDA_SUCCESS);
}

#[test]
fn a_stream_fails_at_the_piece_of_work_that_was_named_and_the_device_is_lost() {
    let _alone = alone();
    let (beside, own) = (context(0), context(FAILING));
    let (first, (words, address)) = (stream(), words());
    assert_eq!(cuemu_fail_stream(first, 2, CUDA_ERROR_LAUNCH_FAILED), CUDA_SUCCESS);
    assert_eq!(cuemu_hold(first), CUDA_SUCCESS);
    for word in 0..4 {
        assert_eq!(cuStreamWriteValue32_v2(first, address + 4 * word, 1, 0), CUDA_SUCCESS);
    }
    assert_eq!(cuemu_release(first), CUDA_SUCCESS);
    assert_eq!(cuStreamSynchronize(first), CUDA_ERROR_LAUNCH_FAILED);
    let written: Vec<_> = words[..4].iter().map(|word| word.load(Acquire)).collect();
    assert_eq!(written, [1, 1, 0, 0]);
    assert_eq!(info(), CUDA_ERROR_LAUNCH_FAILED);
    let mut other = 0;
    assert_eq!(unsafe { cuCtxCreate_v2(&raw mut other, 0, FAILING) }, CUDA_ERROR_LAUNCH_FAILED);
    assert_eq!(unsafe { cuDevicePrimaryCtxRetain(&raw mut other, FAILING) }, CUDA_ERROR_LAUNCH_FAILED);
    assert_eq!(cuDevicePrimaryCtxReset_v2(FAILING), CUDA_SUCCESS);
    assert_eq!(cuCtxDestroy_v2(own), CUDA_SUCCESS);
    assert_eq!(cuCtxSetCurrent(beside), CUDA_SUCCESS);
    assert_eq!(info(), CUDA_SUCCESS);
    assert_eq!(cuCtxDestroy_v2(beside), CUDA_SUCCESS);
}

#[test]
fn a_stream_goes_on_when_it_was_released_as_often_as_it_was_held() {
    let _alone = alone();
    let own = context(0);
    let (held, (words, address)) = (stream(), words());
    assert_eq!([cuemu_hold(held), cuemu_hold(held)], [CUDA_SUCCESS; 2]);
    assert_eq!(cuStreamWriteValue32_v2(held, address, 5, 0), CUDA_SUCCESS);
    assert_eq!(cuemu_release(held), CUDA_SUCCESS);
    assert_eq!(cuStreamQuery(held), CUDA_ERROR_NOT_READY);
    assert_eq!(words[0].load(Acquire), 0);
    assert_eq!(cuemu_release(held), CUDA_SUCCESS);
    assert_eq!(cuStreamSynchronize(held), CUDA_SUCCESS);
    assert_eq!(words[0].load(Acquire), 5);
    assert_eq!(cuemu_release(held), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(cuemu_hold(16), CUDA_ERROR_INVALID_HANDLE);
    assert_eq!(cuCtxDestroy_v2(own), CUDA_SUCCESS);
}

#[test]
fn the_end_of_a_context_waits_for_no_hold_and_no_word() {
    let _alone = alone();
    let own = context(0);
    let (held, waiting, (words, address)) = (stream(), stream(), words());
    assert_eq!(cuemu_hold(held), CUDA_SUCCESS);
    assert_eq!(cuStreamWriteValue32_v2(held, address, 5, 0), CUDA_SUCCESS);
    assert_eq!(cuStreamWaitValue32_v2(waiting, address + 4, 1, CU_STREAM_WAIT_VALUE_EQ), CUDA_SUCCESS);
    assert_eq!(cuCtxDestroy_v2(own), CUDA_SUCCESS);
    assert_eq!(words[0].load(Acquire), 5);
    assert_eq!(cuStreamQuery(held), CUDA_ERROR_CONTEXT_IS_DESTROYED);
}

/// Contexts, streams, events, and memory of each sort, modules.
fn live() -> [usize; 8] {
    [
        cuemu_live_contexts(),
        cuemu_live_streams(),
        cuemu_live_events(),
        cuemu_live_device_allocations(),
        cuemu_live_host_allocations(),
        cuemu_live_managed_allocations(),
        cuemu_live_registrations(),
        cuemu_live_modules(),
    ]
}

#[test]
fn what_is_made_is_counted_until_it_is_given_back_or_its_context_goes() {
    let _alone = alone();
    let before = live();
    let own = context(1);
    let one = stream();
    let event = made(|place| unsafe { cuEventCreate(place, 0) });
    let memory = made(|place| unsafe { cuMemAlloc_v2(place, 16) });
    let mut pinned = null_mut();
    assert_eq!(unsafe { cuMemHostAlloc(&raw mut pinned, 16, 0) }, CUDA_SUCCESS);
    made(|place| unsafe { cuMemAllocManaged(place, 16, CU_MEM_ATTACH_GLOBAL) });
    words();
    made(|place| unsafe { cuModuleLoadData(place, c".version 6.0\n.target sm_50\n".as_ptr().cast()) });
    assert_eq!(live(), before.map(|count| count + 1));
    stream();
    assert_eq!(cuStreamDestroy_v2(one), CUDA_SUCCESS);
    assert_eq!(cuEventDestroy_v2(event), CUDA_SUCCESS);
    assert_eq!(cuMemFree_v2(memory), CUDA_SUCCESS);
    assert_eq!(live()[1..4], [before[1] + 1, before[2], before[3]]);
    assert_eq!(cuCtxDestroy_v2(own), CUDA_SUCCESS);
    assert_eq!(live(), before);
}

#[test]
fn holders_of_a_primary_context_are_counted_beyond_a_reset() {
    let _alone = alone();
    assert_eq!([cuemu_primary_count(1), cuemu_primary_count(-1), cuemu_primary_count(DEVICES)], [0, -1, -1]);
    made(|place| unsafe { cuDevicePrimaryCtxRetain(place, 1) });
    made(|place| unsafe { cuDevicePrimaryCtxRetain(place, 1) });
    assert_eq!(cuemu_primary_count(1), 2);
    assert_eq!(cuDevicePrimaryCtxReset_v2(1), CUDA_SUCCESS);
    assert_eq!(cuemu_primary_count(1), 2);
    assert_eq!([cuDevicePrimaryCtxRelease_v2(1), cuDevicePrimaryCtxRelease_v2(1)], [CUDA_SUCCESS; 2]);
    assert_eq!(cuemu_primary_count(1), 0);
    assert_eq!(cuDevicePrimaryCtxRelease_v2(1), CUDA_ERROR_INVALID_CONTEXT);
}

#[test]
fn the_log_tells_who_called_what_and_what_it_answered() {
    let _alone = alone();
    cuemu_log_start();
    let before = unsafe { cuemu_calls(c"cuCtxSynchronize".as_ptr()) };
    cuCtxSynchronize();
    let other = std::thread::spawn(|| (unsafe { libc::gettid() }, cuInit(1)).0).join().unwrap();
    cuemu_log_stop();
    cuCtxSynchronize();
    assert_eq!(unsafe { cuemu_calls(c"cuCtxSynchronize".as_ptr()) }, before + 2);
    assert_eq!(cuemu_log_length(), 2);
    let read = |index, room| {
        let (mut thread, mut code, mut name) = (0, 0, [1; 32]);
        let answer = unsafe { cuemu_log_get(index, &raw mut thread, name.as_mut_ptr(), room, &raw mut code) };
        let name = unsafe { CStr::from_ptr(name.as_ptr()) }.to_str().unwrap().to_owned();
        (answer, thread, name, code)
    };
    let own = unsafe { libc::gettid() };
    assert_eq!(read(0, 32), (CUDA_SUCCESS, own, "cuCtxSynchronize".into(), CUDA_ERROR_INVALID_CONTEXT));
    assert_eq!(read(1, 4), (CUDA_SUCCESS, other, "cuI".into(), CUDA_ERROR_INVALID_VALUE));
    assert_eq!(unsafe { cuemu_log_get(2, null_mut(), null_mut(), 0, null_mut()) }, CUDA_ERROR_NOT_FOUND);
}

#[test]
fn a_handle_that_is_gone_is_refused_and_counted() {
    let _alone = alone();
    let own = context(0);
    let (gone, left) = (stream(), stream());
    let event = made(|place| unsafe { cuEventCreate(place, 0) });
    let before = cuemu_stale_uses();
    assert_eq!([cuStreamDestroy_v2(gone), cuEventDestroy_v2(event)], [CUDA_SUCCESS; 2]);
    assert_eq!(cuStreamQuery(left), CUDA_SUCCESS);
    assert_eq!(cuemu_stale_uses(), before);
    assert_eq!([cuStreamQuery(gone), cuEventQuery(event)], [CUDA_ERROR_INVALID_HANDLE; 2]);
    assert_eq!(cuemu_stale_uses(), before + 2);
    assert_eq!(cuCtxDestroy_v2(own), CUDA_SUCCESS);
    assert_eq!(cuStreamQuery(left), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    assert_eq!(cuemu_stale_uses(), before + 3);
}

#[test]
fn handles_are_used_again_only_when_a_test_wants_it() {
    let _alone = alone();
    let own = context(0);
    let first = stream();
    assert_eq!(cuStreamDestroy_v2(first), CUDA_SUCCESS);
    let second = stream();
    assert_ne!(first, second);
    assert_eq!(cuStreamDestroy_v2(second), CUDA_SUCCESS);
    cuemu_set_reuse_handles(1);
    let third = stream();
    cuemu_set_reuse_handles(0);
    assert_eq!(second, third);
    assert_eq!(cuCtxDestroy_v2(own), CUDA_SUCCESS);
}

#[test]
fn devices_may_be_taken_by_somebody_else() {
    let _alone = alone();
    let mut own = 0;
    let mut create = || unsafe { cuCtxCreate_v2(&raw mut own, 0, 0) };
    for mode in [CU_COMPUTEMODE_PROHIBITED, CU_COMPUTEMODE_EXCLUSIVE_PROCESS] {
        cuemu_set_compute_mode(mode);
        assert_eq!(create(), CUDA_ERROR_DEVICE_UNAVAILABLE);
    }
    cuemu_set_compute_mode(0);
    assert_eq!(create(), CUDA_SUCCESS);
    assert_eq!(cuCtxDestroy_v2(own), CUDA_SUCCESS);
}

#[test]
fn access_between_devices_may_be_denied() {
    let _alone = alone();
    let (one, other) = (context(0), context(1));
    let able = || made(|place| unsafe { cuDeviceCanAccessPeer(place, 0, 1) });
    cuemu_set_peer_access(0);
    assert_eq!((able(), cuCtxEnablePeerAccess(one, 0)), (0, CUDA_ERROR_PEER_ACCESS_UNSUPPORTED));
    cuemu_set_peer_access(1);
    assert_eq!((able(), cuCtxEnablePeerAccess(one, 0)), (1, CUDA_SUCCESS));
    assert_eq!([cuCtxDestroy_v2(one), cuCtxDestroy_v2(other)], [CUDA_SUCCESS; 2]);
}

#[test]
fn the_host_cannot_touch_memory_of_a_device() {
    let _alone = alone();
    let own = context(0);
    let memory = made(|place| unsafe { cuMemAlloc_v2(place, 4096) });
    let mut status = 0;
    // SAFETY: the child does nothing but read, and is expected to die of it.
    unsafe {
        let child = libc::fork();
        if child == 0 {
            libc::setrlimit(libc::RLIMIT_CORE, &libc::rlimit { rlim_cur: 0, rlim_max: 0 });
            libc::signal(libc::SIGSEGV, libc::SIG_DFL);
            (memory as *const u8).read_volatile();
            libc::_exit(0);
        }
        assert_eq!(libc::waitpid(child, &raw mut status, 0), child);
    }
    assert!(libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGSEGV, "status {status}");
    assert_eq!(cuCtxDestroy_v2(own), CUDA_SUCCESS);
}
