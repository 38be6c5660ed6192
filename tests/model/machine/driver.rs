//! The driver as the test itself calls it, past the library: contexts, streams and memory of the program's own, and,
//! where the driver is the software one, what only that can do and tell.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ptr;
use std::sync::OnceLock;

/// Declares a table of functions that are looked up by name.
macro_rules! functions {
    ($(#[$doc:meta])* $table:ident { $($name:ident($($argument:ty),*) $(-> $result:ty)?;)* }) => {
        $(#[$doc])*
        #[allow(non_snake_case)]
        pub struct $table { $(pub $name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)* }

        impl $table {
            fn look_up(library: *mut c_void) -> Option<$table> {
                $(#[allow(non_snake_case)] let $name = {
                    let name = concat!(stringify!($name), "\0");
                    // SAFETY: the name ends in NUL, and a function of that name has that type.
                    unsafe {
                        let found = libc::dlsym(library, name.as_ptr().cast());
                        if found.is_null() {
                            return None;
                        }
                        std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($argument),*) $(-> $result)?>(found)
                    }
                };)*
                Some($table { $($name),* })
            }
        }
    };
}

functions! {
    /// Entry points of every driver. Handles and addresses are plain numbers here.
    Driver {
        cuInit(c_uint) -> c_int;
        cuDevicePrimaryCtxRetain(*mut usize, c_int) -> c_int;
        cuDevicePrimaryCtxRelease_v2(c_int) -> c_int;
        cuDevicePrimaryCtxReset_v2(c_int) -> c_int;
        cuCtxCreate_v2(*mut usize, c_uint, c_int) -> c_int;
        cuCtxDestroy_v2(usize) -> c_int;
        cuCtxPushCurrent_v2(usize) -> c_int;
        cuCtxPopCurrent_v2(*mut usize) -> c_int;
        cuStreamCreate(*mut usize, c_uint) -> c_int;
        cuStreamDestroy_v2(usize) -> c_int;
        cuStreamSynchronize(usize) -> c_int;
        cuStreamGetFlags(usize, *mut c_uint) -> c_int;
        cuStreamGetCtx(usize, *mut usize) -> c_int;
        cuMemAlloc_v2(*mut usize, usize) -> c_int;
        cuMemAllocManaged(*mut usize, usize, c_uint) -> c_int;
        cuMemFree_v2(usize) -> c_int;
        cuMemHostAlloc(*mut usize, usize, c_uint) -> c_int;
        cuMemFreeHost(usize) -> c_int;
        cuMemcpyAsync(usize, usize, usize, usize) -> c_int;
    }
}

functions! {
    /// What only the software driver has.
    Emulator {
        cuemu_hold(usize) -> c_int;
        cuemu_release(usize) -> c_int;
        cuemu_set_delay(u64);
        cuemu_set_reuse_handles(c_int);
        cuemu_live_contexts() -> usize;
        cuemu_live_streams() -> usize;
        cuemu_live_events() -> usize;
        cuemu_live_device_allocations() -> usize;
        cuemu_live_host_allocations() -> usize;
        cuemu_live_managed_allocations() -> usize;
        cuemu_live_registrations() -> usize;
        cuemu_live_modules() -> usize;
        cuemu_primary_count(c_int) -> c_int;
        cuemu_stale_uses() -> u64;
    }
}

/// The non-blocking flag of a stream.
pub const NON_BLOCKING: c_uint = 1;

struct Both {
    driver: Driver,
    emulator: Option<Emulator>,
}

fn both() -> &'static Both {
    static FOUND: OnceLock<Both> = OnceLock::new();
    FOUND.get_or_init(|| {
        // SAFETY: the name ends in NUL. Whoever opened a driver before gets the same one.
        let library = unsafe { libc::dlopen(c"libcuda.so.1".as_ptr(), libc::RTLD_NOW) };
        assert!(!library.is_null(), "there is no driver");
        let driver = Driver::look_up(library).expect("the driver has all that is needed");
        // SAFETY: no pointers.
        assert_eq!(unsafe { (driver.cuInit)(0) }, 0, "cuInit");
        Both { driver, emulator: Emulator::look_up(library) }
    })
}

/// The driver, initialised.
pub fn driver() -> &'static Driver {
    &both().driver
}

/// The software driver, where it is that.
pub fn emulator() -> Option<&'static Emulator> {
    both().emulator.as_ref()
}

/// Panics unless a call of the test's own, which may not fail, succeeded.
#[track_caller]
pub fn must(code: c_int) {
    assert_eq!(code, 0, "a call of the test itself failed");
}

/// Runs `work` with a context pushed.
pub fn within<T>(context: usize, work: impl FnOnce() -> T) -> T {
    let driver = driver();
    let mut popped = 0;
    // SAFETY: the context lives.
    must(unsafe { (driver.cuCtxPushCurrent_v2)(context) });
    let result = work();
    // SAFETY: `popped` is valid for a write.
    must(unsafe { (driver.cuCtxPopCurrent_v2)(&mut popped) });
    result
}

/// The contexts on this thread's stack, the current one last.
pub fn stack() -> Vec<usize> {
    let driver = driver();
    let mut stack = Vec::new();
    let mut context = 0;
    // SAFETY: `context` is valid for a write; what was popped is pushed again.
    unsafe {
        while (driver.cuCtxPopCurrent_v2)(&mut context) == 0 {
            stack.push(context);
        }
        stack.reverse();
        for &context in &stack {
            must((driver.cuCtxPushCurrent_v2)(context));
        }
    }
    stack
}

/// A new stream of the context.
pub fn make_stream(context: usize, flags: c_uint) -> usize {
    let mut stream = 0;
    // SAFETY: `stream` is valid for a write.
    within(context, || must(unsafe { (driver().cuStreamCreate)(&mut stream, flags) }));
    stream
}

/// Copies between any two places, on a stream of the context that is nobody else's.
pub fn move_bytes(context: usize, stream: usize, dst: usize, src: usize, size: usize) {
    // SAFETY: the caller's places have so many bytes, and nothing else uses them.
    within(context, || unsafe {
        must((driver().cuMemcpyAsync)(dst, src, size, stream));
        must((driver().cuStreamSynchronize)(stream));
    });
}

/// What `print` writes to a file.
pub fn printed(print: impl FnOnce(*mut libc::FILE) -> c_int) -> (c_int, String) {
    let (mut text, mut size) = (ptr::null_mut::<c_char>(), 0);
    // SAFETY: both places outlive the file, whose text is there, NUL at its end, once the file is closed.
    unsafe {
        let file = libc::open_memstream(&mut text, &mut size);
        assert!(!file.is_null());
        let code = print(file);
        libc::fclose(file);
        let result = CStr::from_ptr(text).to_string_lossy().into_owned();
        libc::free(text.cast());
        (code, result)
    }
}
