//! Stands in for CUDA's driver under Miri, which calls no foreign function: as much as the unit tests need.
//! One context, whose memory is the host's, and one thread, which does the work of all streams in the order it came.

use cuda_driver::sys::{CUcontext, CUdeviceptr, CUevent, CUhostFn, CUstream, CUstreamBatchMemOpParams};
use libc::{c_int, c_uint, c_ulong, c_ulonglong, c_void};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard};

/// The only context there is; it is current everywhere.
const CONTEXT: usize = 0x1000;

const INVALID_VALUE: c_uint = 1;
const INVALID_CONTEXT: c_uint = 201;
const NOT_READY: c_uint = 600;

enum Work {
    Write(CUdeviceptr, u32),
    Copy { dst: u64, src: u64, size: usize },
    Call(CUhostFn, usize),
}

impl Work {
    fn carry_out(self) {
        // SAFETY: whoever queued it keeps the memory until then.
        unsafe {
            match self {
                Work::Write(word, value) => AtomicU32::from_ptr(word as *mut u32).store(value, Ordering::Release),
                Work::Copy { dst, src, size } => std::ptr::copy_nonoverlapping(src as *const u8, dst as *mut u8, size),
                Work::Call(function, argument) => function.expect("there is one")(argument as *mut c_void),
            }
        }
    }
}

/// What is still to be done.
struct Queue {
    work: VecDeque<Work>,
    /// How much work there has been.
    count: u64,
    served: bool,
}

static QUEUE: Mutex<Queue> = Mutex::new(Queue { work: VecDeque::new(), count: 0, served: false });
static MORE: Condvar = Condvar::new();
/// How much work is done.
static DONE: AtomicU64 = AtomicU64::new(0);
/// How much work there was when something was queued on the legacy stream the last time.
static LEGACY: AtomicU64 = AtomicU64::new(0);

fn queue() -> MutexGuard<'static, Queue> {
    QUEUE.lock().expect("the driver does not panic")
}

fn serve() {
    loop {
        let mut queue = queue();
        while queue.work.is_empty() {
            queue = MORE.wait(queue).expect("the driver does not panic");
        }
        let work = queue.work.pop_front();
        drop(queue);
        work.into_iter().for_each(Work::carry_out);
        DONE.fetch_add(1, Ordering::Release);
    }
}

/// The number of the last work of a stream, or of what an event lies behind.
///
/// # Safety
/// The stream or event lives.
unsafe fn last<'a>(handle: *mut c_void) -> &'a AtomicU64 {
    // SAFETY: the caller vouches for the handle, which `new` gave.
    unsafe { handle.cast::<AtomicU64>().as_ref() }.unwrap_or(&LEGACY)
}

fn new() -> *mut c_void {
    Box::into_raw(Box::new(AtomicU64::new(0))).cast()
}

fn put(stream: CUstream, work: impl IntoIterator<Item = Work>) -> c_uint {
    let mut queue = queue();
    for work in work {
        queue.work.push_back(work);
        queue.count += 1;
    }
    // SAFETY: whoever calls the driver vouches for the stream.
    unsafe { last(stream.cast()) }.store(queue.count, Ordering::Relaxed);
    if !std::mem::replace(&mut queue.served, true) {
        std::thread::spawn(serve);
    }
    drop(queue);
    MORE.notify_one();
    0
}

fn ask(handle: *mut c_void) -> c_uint {
    // SAFETY: whoever calls the driver vouches for stream or event.
    let last = unsafe { last(handle) }.load(Ordering::Relaxed);
    if DONE.load(Ordering::Acquire) >= last { 0 } else { NOT_READY }
}

fn wait(handle: *mut c_void) -> c_uint {
    while ask(handle) == NOT_READY {
        std::thread::yield_now();
    }
    0
}

#[unsafe(no_mangle)]
extern "C" fn cuInit(_flags: c_uint) -> c_uint {
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuCtxGetCurrent(context: *mut CUcontext) -> c_uint {
    // SAFETY: the caller vouches for it.
    unsafe { *context = CONTEXT as CUcontext };
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuCtxGetId(context: CUcontext, id: *mut c_ulonglong) -> c_uint {
    // SAFETY: the caller vouches for it.
    unsafe {
        if context as usize != CONTEXT {
            return INVALID_CONTEXT;
        }
        *id = 1;
        0
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuStreamCreate(stream: *mut CUstream, _flags: c_uint) -> c_uint {
    // SAFETY: the caller vouches for it.
    unsafe { *stream = new().cast() };
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuStreamDestroy_v2(stream: CUstream) -> c_uint {
    // SAFETY: the caller vouches for it.
    unsafe { drop(Box::from_raw(stream.cast::<AtomicU64>())) };
    0
}

#[unsafe(no_mangle)]
extern "C" fn cuStreamQuery(stream: CUstream) -> c_uint {
    ask(stream.cast())
}

#[unsafe(no_mangle)]
extern "C" fn cuStreamSynchronize(stream: CUstream) -> c_uint {
    wait(stream.cast())
}

// What comes later is done later anyway.
#[unsafe(no_mangle)]
extern "C" fn cuStreamWaitEvent(_stream: CUstream, _event: CUevent, _flags: c_uint) -> c_uint {
    0
}

#[unsafe(no_mangle)]
extern "C" fn cuStreamWriteValue32_v2(stream: CUstream, address: CUdeviceptr, value: u32, _flags: c_uint) -> c_uint {
    put(stream, [Work::Write(address, value)])
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuStreamBatchMemOp_v2(
    stream: CUstream,
    count: c_uint,
    operations: *mut CUstreamBatchMemOpParams,
    _flags: c_uint,
) -> c_uint {
    // SAFETY: the caller vouches for it.
    unsafe {
        let operations = std::slice::from_raw_parts(operations, count as usize);
        put(stream, operations.iter().map(|operation| Work::Write(operation.pad[1], operation.pad[2] as u32)))
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuEventCreate(event: *mut CUevent, _flags: c_uint) -> c_uint {
    // SAFETY: the caller vouches for it.
    unsafe { *event = new().cast() };
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuEventDestroy_v2(event: CUevent) -> c_uint {
    // SAFETY: the caller vouches for it.
    unsafe { drop(Box::from_raw(event.cast::<AtomicU64>())) };
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuEventRecord(event: CUevent, stream: CUstream) -> c_uint {
    // SAFETY: the caller vouches for it.
    unsafe { last(event.cast()).store(last(stream.cast()).load(Ordering::Relaxed), Ordering::Relaxed) };
    0
}

#[unsafe(no_mangle)]
extern "C" fn cuEventQuery(event: CUevent) -> c_uint {
    ask(event.cast())
}

#[unsafe(no_mangle)]
extern "C" fn cuEventSynchronize(event: CUevent) -> c_uint {
    wait(event.cast())
}

#[unsafe(no_mangle)]
extern "C" fn cuLaunchHostFunc(stream: CUstream, function: CUhostFn, argument: *mut c_void) -> c_uint {
    put(stream, [Work::Call(function, argument as usize)])
}

#[unsafe(no_mangle)]
extern "C" fn cuMemHostRegister_v2(_pointer: *mut c_void, _size: usize, _flags: c_uint) -> c_uint {
    0
}

#[unsafe(no_mangle)]
extern "C" fn cuMemHostUnregister(_pointer: *mut c_void) -> c_uint {
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemHostGetDevicePointer_v2(
    device: *mut CUdeviceptr,
    host: *mut c_void,
    _flags: c_uint,
) -> c_uint {
    // SAFETY: the caller vouches for it.
    unsafe { *device = host as u64 };
    0
}

// It knows of no memory: all of it is pageable.
#[unsafe(no_mangle)]
extern "C" fn cuPointerGetAttribute(_value: *mut c_void, _attribute: c_uint, _pointer: CUdeviceptr) -> c_uint {
    INVALID_VALUE
}

#[unsafe(no_mangle)]
extern "C" fn cuMemcpyHtoDAsync_v2(dst: CUdeviceptr, src: *const c_void, size: usize, stream: CUstream) -> c_uint {
    put(stream, [Work::Copy { dst, src: src as u64, size }])
}

#[unsafe(no_mangle)]
extern "C" fn cuMemcpyDtoHAsync_v2(dst: *mut c_void, src: CUdeviceptr, size: usize, stream: CUstream) -> c_uint {
    put(stream, [Work::Copy { dst: dst as u64, src, size }])
}

// What the C library is asked for, and Miri does not know.
#[unsafe(no_mangle)]
extern "C" fn getauxval(_type: c_ulong) -> c_ulong {
    0
}

#[unsafe(no_mangle)]
extern "C" fn atexit(_function: extern "C" fn()) -> c_int {
    0
}
