//! Devices and contexts: which context is current, whether one still lives, and making one current for a while.
//! A context is known by its handle and its id, since a reset gives the same handle to a new context.

use crate::error::{Code, Error, Result, check, probe};
use crate::ffi::*;
use cust::sys::{CUcontext, CUdevice};
use libc::{c_int, c_ulonglong};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

/// A device, by its handle, which is also its ordinal.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Device(CUdevice);

/// A context, by its handle and its id.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Context {
    handle: CUcontext,
    id: c_ulonglong,
}

// SAFETY: handles are plain values; the driver may be called with one from any thread.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

impl Device {
    /// The device with this ordinal.
    pub fn get(ordinal: i32) -> Result<Device> {
        let mut device = 0;
        // SAFETY: `device` is valid for a write.
        check("cuDeviceGet", unsafe { cuDeviceGet(&mut device, ordinal) })?;
        Ok(Device(device))
    }

    /// How many devices there are.
    pub fn count() -> Result<i32> {
        let mut count = 0;
        // SAFETY: `count` is valid for a write.
        check("cuDeviceGetCount", unsafe { cuDeviceGetCount(&mut count) })?;
        Ok(count)
    }

    /// The ordinal.
    pub fn ordinal(self) -> i32 {
        self.0
    }

    /// Whether this device can reach the memory of `peer` by itself.
    pub fn can_access(self, peer: Device) -> Result<bool> {
        let mut can: c_int = 0;
        // SAFETY: `can` is valid for a write.
        check("cuDeviceCanAccessPeer", unsafe { cuDeviceCanAccessPeer(&mut can, self.0, peer.0) })?;
        Ok(can != 0)
    }

    /// How far apart, in bytes, the rows of a rectangle may lie.
    pub fn max_pitch(self) -> Result<usize> {
        const CU_DEVICE_ATTRIBUTE_MAX_PITCH: u32 = 11;
        let mut pitch: c_int = 0;
        // SAFETY: `pitch` is valid for a write.
        check("cuDeviceGetAttribute", unsafe {
            cuDeviceGetAttribute(&mut pitch, CU_DEVICE_ATTRIBUTE_MAX_PITCH, self.0)
        })?;
        Ok(pitch.max(0) as usize)
    }

    /// Whether the primary context exists.
    pub fn primary_is_active(self) -> Result<bool> {
        let (mut flags, mut active) = (0, 0);
        // SAFETY: both are valid for a write.
        check("cuDevicePrimaryCtxGetState", unsafe { cuDevicePrimaryCtxGetState(self.0, &mut flags, &mut active) })?;
        Ok(active != 0)
    }

    /// Takes one reference to the primary context, which makes it where there is none.
    pub fn retain_primary(self) -> Result<Context> {
        let mut handle = ptr::null_mut();
        // SAFETY: `handle` is valid for a write.
        check("cuDevicePrimaryCtxRetain", unsafe { cuDevicePrimaryCtxRetain(&mut handle, self.0) })?;
        Context::known(handle).inspect_err(|_| {
            let _ = self.release_primary();
        })
    }

    /// Gives one reference to the primary context back.
    pub fn release_primary(self) -> Result<()> {
        // SAFETY: no pointers.
        check("cuDevicePrimaryCtxRelease", unsafe { cuDevicePrimaryCtxRelease_v2(self.0) })
    }
}

/// The id of a context: tells a context from a later one with the same handle.
fn context_id(handle: CUcontext) -> Result<c_ulonglong> {
    static OLD_DRIVER: AtomicBool = AtomicBool::new(false);
    if !OLD_DRIVER.load(Ordering::Relaxed) {
        let mut id = 0;
        // SAFETY: `id` is valid for a write; the driver looks the handle up and refuses one it does not know.
        match probe("cuCtxGetId", unsafe { cuCtxGetId(handle, &mut id) }) {
            Err(error) if error.code == Code::NOT_FOUND => OLD_DRIVER.store(true, Ordering::Relaxed),
            answer => return answer.map(|()| id),
        }
    }
    let mut version = 0;
    // SAFETY: as above.
    probe("cuCtxGetApiVersion", unsafe { cuCtxGetApiVersion(handle, &mut version) })?;
    crate::token::id_of_life(handle)
}

impl Context {
    fn known(handle: CUcontext) -> Result<Context> {
        Ok(Context { handle, id: context_id(handle)? })
    }

    /// The context that is current on this thread, if one is.
    #[inline]
    pub fn current() -> Result<Option<Context>> {
        let handle = current_handle()?;
        if handle.is_null() { Ok(None) } else { Context::known(handle).map(Some) }
    }

    /// The context that `stream` was made in.
    ///
    /// # Safety
    /// `stream` is a stream that lives; the driver does not survive another.
    #[inline]
    pub unsafe fn of_stream(stream: crate::Stream) -> Result<Context> {
        let mut handle = ptr::null_mut();
        // SAFETY: `handle` is valid for a write, and the caller vouches for the stream.
        check("cuStreamGetCtx", unsafe { cuStreamGetCtx(stream.raw(), &mut handle) })?;
        Context::known(handle)
    }

    /// The context that the memory at `pointer` was allocated or registered in; an error where CUDA does not know it.
    pub fn of_memory(pointer: *const libc::c_void) -> Result<Context> {
        const CU_POINTER_ATTRIBUTE_CONTEXT: u32 = 1;
        let mut handle: CUcontext = ptr::null_mut();
        // SAFETY: the attribute is a handle; the driver only looks the address up.
        probe("cuPointerGetAttribute", unsafe {
            cuPointerGetAttribute((&raw mut handle).cast(), CU_POINTER_ATTRIBUTE_CONTEXT, pointer as u64)
        })?;
        if handle.is_null() {
            return Err(Error::new("cuPointerGetAttribute", Code::NOT_FOUND));
        }
        Context::known(handle)
    }

    /// The handle.
    pub fn raw(self) -> CUcontext {
        self.handle
    }

    /// Whether the context still is what it was: neither destroyed nor reset.
    #[inline]
    pub fn lives(self) -> bool {
        context_id(self.handle) == Ok(self.id)
    }

    /// Makes the context current on this thread until the value is dropped. A context that is gone is refused:
    /// the driver would push its handle, and fall over later.
    #[inline]
    pub fn enter(self) -> Result<Entered> {
        if !self.lives() {
            return Err(Error::new("cuCtxGetId", Code::CONTEXT_IS_DESTROYED));
        }
        // SAFETY: the context lives.
        unsafe { Entered::into(self.handle) }
    }

    /// The device that the context is on.
    pub fn device(self) -> Result<Device> {
        let _current = self.enter()?;
        let mut device = 0;
        // SAFETY: `device` is valid for a write.
        check("cuCtxGetDevice", unsafe { cuCtxGetDevice(&mut device) })?;
        Ok(Device(device))
    }

    /// Lets the current context reach the memory of `peer` by itself; success also where it could before.
    pub fn enable_access_to(peer: Context) -> Result<()> {
        // SAFETY: the driver refuses a context that it does not know.
        match probe("cuCtxEnablePeerAccess", unsafe { cuCtxEnablePeerAccess(peer.handle, 0) }) {
            Err(error) if error.code == Code::PEER_ACCESS_ALREADY_ENABLED => Ok(()),
            answer => answer,
        }
    }
}

#[inline]
fn current_handle() -> Result<CUcontext> {
    let mut handle = ptr::null_mut();
    // SAFETY: `handle` is valid for a write.
    check("cuCtxGetCurrent", unsafe { cuCtxGetCurrent(&mut handle) })?;
    Ok(handle)
}

/// A context that was made current; dropping it brings back the one before.
#[must_use]
pub struct Entered {
    /// NULL where it was current already.
    pushed: CUcontext,
}

impl Entered {
    /// Makes the context of a handle current.
    ///
    /// # Safety
    /// The context lives.
    #[inline]
    pub(crate) unsafe fn into(handle: CUcontext) -> Result<Entered> {
        if current_handle()? == handle {
            return Ok(Entered { pushed: ptr::null_mut() });
        }
        // SAFETY: the caller vouches for the handle.
        check("cuCtxPushCurrent", unsafe { cuCtxPushCurrent_v2(handle) })?;
        Ok(Entered { pushed: handle })
    }
}

impl Drop for Entered {
    #[inline]
    fn drop(&mut self) {
        let mut popped = ptr::null_mut();
        // SAFETY: `popped` is valid for a write.
        if !self.pushed.is_null() && unsafe { cuCtxPopCurrent_v2(&mut popped) } != 0 {
            self.pop_again();
        }
    }
}

impl Entered {
    /// A failure may be that of earlier work, and the context gone from the stack. Where it is still there, it must go.
    #[cold]
    fn pop_again(&self) {
        let mut popped = ptr::null_mut();
        if current_handle() == Ok(self.pushed) {
            // SAFETY: `popped` is valid for a write. Nothing can be done about another failure.
            unsafe { cuCtxPopCurrent_v2(&mut popped) };
        }
    }
}

/// The device that the CUDA runtime would use on this thread: its current one where a runtime is loaded, else 0.
pub fn runtime_device() -> Result<Device> {
    /// `cudaGetDevice`
    type GetDevice = unsafe extern "C" fn(*mut c_int) -> c_int;
    static FOUND: AtomicPtr<libc::c_void> = AtomicPtr::new(ptr::null_mut());
    let mut function = FOUND.load(Ordering::Acquire);
    if function.is_null() {
        // SAFETY: the name ends in NUL. Looked for again while there is none: a runtime may be loaded later.
        function = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"cudaGetDevice".as_ptr()) };
        FOUND.store(function, Ordering::Release);
    }
    let mut ordinal = 0;
    if !function.is_null() {
        // SAFETY: a symbol of that name is the runtime's function, of that type; `ordinal` is valid for a write.
        unsafe {
            let get_device: GetDevice = std::mem::transmute(function);
            if get_device(&mut ordinal) != 0 {
                ordinal = 0;
            }
        }
    }
    Device::get(ordinal)
}

/// The primary context of `device`, kept for the rest of the process: one reference, taken on first use and taken
/// anew when the context was reset in between.
pub fn primary_context(device: Device) -> Result<Context> {
    use once_cell::sync::Lazy;
    use std::collections::HashMap;
    use std::sync::Mutex;
    static KEPT: Lazy<Mutex<HashMap<Device, Context>>> = Lazy::new(Mutex::default);

    let kept = || KEPT.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if let Some(context) = kept().get(&device).copied()
        && context.lives()
    {
        return Ok(context);
    }
    let context = device.retain_primary()?; // no lock is held here: making a context takes long
    // One reference is enough. There was one already if another thread was faster, or if the context was reset, which
    // references survive.
    if kept().insert(device, context).is_some() {
        device.release_primary()?;
    }
    Ok(context)
}
