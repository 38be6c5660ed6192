//! The CUDA area: memory of a device, managed memory, page-locked host memory, or the program's own made reachable.
//! Contexts are entered for one call and left again; a device that is named means its primary context.

use super::mapped::{Room, forget, take};
use crate::errors::refuse;
use crate::text::write_line;
use aml_abi::{
    AML_EBUSY, AML_EINVAL, AML_ENOMEM, AML_ENOTSUP, AML_EPERM, AML_FAILURE, AML_SUCCESS, aml_area, aml_area_data,
    aml_area_mmap_options, aml_area_ops, assert_layout,
};
use cuda_driver::{
    Code, Context, Device, Entered, Error, HostMemory, Registration, device, primary_context, ready, runtime_device,
};
use libc::{FILE, c_char, c_int, c_void};
use std::ptr;

/// Device memory.
pub const AML_AREA_CUDA_FLAG_DEFAULT: c_int = 0;
/// Page-locked host memory.
pub const AML_AREA_CUDA_FLAG_ALLOC_HOST: c_int = 1 << 0;
/// Managed memory.
pub const AML_AREA_CUDA_FLAG_ALLOC_UNIFIED: c_int = 1 << 1;
/// Host memory that devices reach.
pub const AML_AREA_CUDA_FLAG_ALLOC_MAPPED: c_int = 1 << 2;
/// Page-locked for all contexts.
pub const AML_AREA_CUDA_FLAG_ALLOC_GLOBAL: c_int = 1 << 3;

const HOST: c_int = AML_AREA_CUDA_FLAG_ALLOC_HOST | AML_AREA_CUDA_FLAG_ALLOC_MAPPED;
const ALL: c_int = HOST | AML_AREA_CUDA_FLAG_ALLOC_UNIFIED | AML_AREA_CUDA_FLAG_ALLOC_GLOBAL;
const CURRENT: c_int = -1;

/// State of a CUDA area.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct aml_area_cuda_data {
    /// What memory it maps.
    pub flags: c_int,
    /// Device to map on; -1 is the current one.
    pub device: c_int,
}

/// Options of one mapping.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct aml_area_cuda_mmap_options {
    /// Device to map on instead of the area's; -1 keeps that.
    pub device: c_int,
    /// Memory to map where the area maps the program's own.
    pub ptr: *mut c_void,
}

assert_layout!(aml_area_cuda_data, 8, { flags: 0, device: 4 });
assert_layout!(aml_area_cuda_mmap_options, 16, { device: 0, ptr: 8 });

/// Operations of every CUDA area.
#[unsafe(no_mangle)]
pub static mut aml_area_cuda_ops: aml_area_ops =
    aml_area_ops { mmap: Some(aml_area_cuda_mmap), munmap: Some(aml_area_cuda_munmap), fprintf: Some(fprintf) };

/// Device memory of the current device.
#[unsafe(no_mangle)]
pub static mut aml_area_cuda: aml_area =
    aml_area { ops: &raw mut aml_area_cuda_ops, data: (&raw mut DEVICE_DATA).cast() };

/// Managed memory.
#[unsafe(no_mangle)]
pub static mut aml_area_cuda_unified: aml_area =
    aml_area { ops: &raw mut aml_area_cuda_ops, data: (&raw mut UNIFIED_DATA).cast() };

static mut DEVICE_DATA: aml_area_cuda_data = aml_area_cuda_data { flags: AML_AREA_CUDA_FLAG_DEFAULT, device: CURRENT };
static mut UNIFIED_DATA: aml_area_cuda_data =
    aml_area_cuda_data { flags: AML_AREA_CUDA_FLAG_ALLOC_UNIFIED, device: CURRENT };

/// The driver's answer as an error number of AML.
fn code(error: Error) -> c_int {
    const INVALID_VALUE: Code = Code(1);
    const INVALID_DEVICE: Code = Code(101);
    const HOST_MEMORY_ALREADY_REGISTERED: Code = Code(712);
    const NOT_PERMITTED: Code = Code(800);
    const NOT_SUPPORTED: Code = Code(801);
    match error.code {
        INVALID_VALUE | INVALID_DEVICE => AML_EINVAL,
        Code::OUT_OF_MEMORY => AML_ENOMEM,
        HOST_MEMORY_ALREADY_REGISTERED => AML_EBUSY,
        NOT_PERMITTED => AML_EPERM,
        NOT_SUPPORTED => AML_ENOTSUP,
        _ => AML_FAILURE,
    }
}

/// Whether flags are known, and ask for one kind of memory.
fn sensible(flags: c_int) -> bool {
    let unified = flags & AML_AREA_CUDA_FLAG_ALLOC_UNIFIED != 0;
    flags & !ALL == 0 && !(unified && flags & HOST != 0)
}

/// An area and its state, in one block of the C allocator.
#[repr(C)]
struct Block {
    area: aml_area,
    data: aml_area_cuda_data,
}

/// Makes an area.
///
/// # Safety
/// `area` is NULL or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aml_area_cuda_create(area: *mut *mut aml_area, device: c_int, flags: c_int) -> c_int {
    if area.is_null() || device < CURRENT || !sensible(flags) {
        return -AML_EINVAL;
    }
    match ready().and_then(|()| Device::count()) {
        Ok(1..) => {}
        _ => return -AML_FAILURE,
    }
    if device != CURRENT
        && let Err(error) = Device::get(device)
    {
        return -code(error);
    }
    // SAFETY: a plain allocation.
    let block = unsafe { libc::malloc(size_of::<Block>()) }.cast::<Block>();
    if block.is_null() {
        return -AML_ENOMEM;
    }
    // SAFETY: the block is new, and `area` valid for a write.
    unsafe {
        let data = (&raw mut (*block).data).cast();
        block.write(Block {
            area: aml_area { ops: &raw mut aml_area_cuda_ops, data },
            data: aml_area_cuda_data { flags, device },
        });
        area.write(&raw mut (*block).area);
    }
    AML_SUCCESS
}

/// Frees an area.
///
/// # Safety
/// `area` is NULL or valid for reads and writes; what it holds is NULL, a static area, or one that was made by
/// [`aml_area_cuda_create`] and that nobody else uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aml_area_cuda_destroy(area: *mut *mut aml_area) {
    // SAFETY: the caller's promise.
    let Some(area) = (unsafe { area.as_mut() }) else {
        return;
    };
    if *area == &raw mut aml_area_cuda || *area == &raw mut aml_area_cuda_unified {
        return;
    }
    // SAFETY: the area is the first thing in its block; free takes NULL.
    unsafe { libc::free((*area).cast()) };
    *area = ptr::null_mut();
}

/// Maps memory.
///
/// # Safety
/// `area_data` is NULL or a CUDA area's, `options` NULL or a CUDA area's; memory that these name is `size` bytes, and
/// stays mapped until [`aml_area_cuda_munmap`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aml_area_cuda_mmap(
    area_data: *const aml_area_data,
    size: usize,
    options: *mut aml_area_mmap_options,
) -> *mut c_void {
    // SAFETY: the caller's promise.
    let Some(&data) = (unsafe { area_data.cast::<aml_area_cuda_data>().as_ref() }) else {
        return refuse(AML_EINVAL);
    };
    let none = aml_area_cuda_mmap_options { device: CURRENT, ptr: ptr::null_mut() };
    // SAFETY: the caller's promise.
    let options = unsafe { options.cast::<aml_area_cuda_mmap_options>().as_ref() }.unwrap_or(&none);
    let named = if options.device == CURRENT { data.device } else { options.device };
    let maps = data.flags & AML_AREA_CUDA_FLAG_ALLOC_MAPPED != 0;
    if size == 0 || named < CURRENT || !sensible(data.flags) || (!maps && !options.ptr.is_null()) {
        return refuse(AML_EINVAL);
    }
    // SAFETY: the caller's promise.
    let memory = enter(named).and_then(|_current| unsafe { map(data.flags, size, options.ptr) });
    memory.unwrap_or_else(|error| refuse(code(error)))
}

/// Maps in the current context.
///
/// # Safety
/// `own` is NULL or `size` bytes that stay mapped.
unsafe fn map(flags: c_int, size: usize, own: *mut c_void) -> Result<*mut c_void, Error> {
    const PORTABLE: u32 = 1;
    const DEVICEMAP: u32 = 2;
    if !own.is_null() {
        let room = Room::keep().map_err(|_| Error::new("memory of the host", Code::OUT_OF_MEMORY))?;
        // SAFETY: the caller's promise.
        let registration = unsafe { Registration::new(own, size) }?;
        return match registration.device_pointer() {
            Ok(device) => {
                room.fill(device as usize, registration.into_raw() as usize);
                Ok(device as *mut c_void)
            }
            Err(error) => {
                let _ = registration.end();
                Err(error)
            }
        };
    }
    if flags & HOST != 0 {
        let portable = if flags & AML_AREA_CUDA_FLAG_ALLOC_GLOBAL != 0 { PORTABLE } else { 0 };
        let reached = if flags & AML_AREA_CUDA_FLAG_ALLOC_MAPPED != 0 { DEVICEMAP } else { 0 };
        let memory = HostMemory::allocate_with(size, portable | reached)?.into_raw();
        // What was mapped here before went with its context, without our hearing of it.
        forget(memory as usize);
        return Ok(memory);
    }
    let pointer = if flags & AML_AREA_CUDA_FLAG_ALLOC_UNIFIED != 0 {
        device::allocate_managed(size, true)
    } else {
        device::allocate(size)
    };
    pointer.map(|pointer| pointer as *mut c_void)
}

/// Gives memory back.
///
/// # Safety
/// `area_data` is NULL or a CUDA area's, `ptr` NULL or mapped with the same state and no longer used.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aml_area_cuda_munmap(
    area_data: *const aml_area_data,
    ptr: *mut c_void,
    _size: usize,
) -> c_int {
    // SAFETY: the caller's promise.
    let Some(&data) = (unsafe { area_data.cast::<aml_area_cuda_data>().as_ref() }) else {
        return -AML_EINVAL;
    };
    if ptr.is_null() {
        return AML_SUCCESS;
    }
    // SAFETY: the caller's promise.
    match enter_owner(ptr, data.device).and_then(|_current| unsafe { unmap(data.flags, ptr) }) {
        Ok(()) => AML_SUCCESS,
        Err(error) => -code(error),
    }
}

/// Gives memory back in the current context; the driver refuses what is not of this kind.
///
/// # Safety
/// `ptr` is no longer used.
unsafe fn unmap(flags: c_int, ptr: *mut c_void) -> Result<(), Error> {
    let own = if flags & AML_AREA_CUDA_FLAG_ALLOC_MAPPED != 0 { take(ptr as usize) } else { None };
    if let Some((own, room)) = own {
        // SAFETY: the caller's promise.
        let ended = unsafe { Registration::end_raw(own as *mut c_void) };
        if ended.is_err() {
            room.fill(ptr as usize, own); // Still mapped: the caller may try again.
        }
        return ended;
    }
    // SAFETY: the caller's promise.
    unsafe { if flags & HOST != 0 { HostMemory::free_raw(ptr) } else { device::free(ptr as u64) } }
}

/// Makes the context of a device current; for -1 leaves the current one, or takes that which the runtime would use.
fn enter(device: c_int) -> Result<Entered, Error> {
    ready()?;
    let context = match device {
        CURRENT => match Context::current()? {
            Some(context) => context,
            None => primary_context(runtime_device()?)?,
        },
        _ => primary_context(Device::get(device)?)?,
    };
    context.enter()
}

/// Makes the context of some memory current, wherever it was mapped.
fn enter_owner(ptr: *mut c_void, device: c_int) -> Result<Entered, Error> {
    ready()?;
    if let Ok(context) = Context::of_memory(ptr) {
        return context.enter();
    }
    // Not known to CUDA: no context is made only to be told so.
    match Context::current()? {
        None if device == CURRENT => Err(Error::new("cuPointerGetAttribute", Code(1))),
        _ => enter(device),
    }
}

/// # Safety
/// `data` is NULL or a CUDA area's, `stream` an open stream, `prefix` NULL or a C string.
unsafe extern "C" fn fprintf(data: *const aml_area_data, stream: *mut FILE, prefix: *const c_char) -> c_int {
    // SAFETY: the caller's promise.
    let Some(&data) = (unsafe { data.cast::<aml_area_cuda_data>().as_ref() }) else {
        return -AML_EINVAL;
    };
    let has = |flag| data.flags & flag != 0;
    let memory = match () {
        () if has(AML_AREA_CUDA_FLAG_ALLOC_UNIFIED) => "managed memory",
        () if has(AML_AREA_CUDA_FLAG_ALLOC_MAPPED) => "mapped host memory",
        () if has(AML_AREA_CUDA_FLAG_ALLOC_HOST) => "page-locked host memory",
        () => "device memory",
    };
    let flags = data.flags;
    // SAFETY: the caller's promise.
    unsafe {
        match data.device {
            CURRENT => {
                let text = format_args!("area-cuda: {memory} of the current device, flags {flags:#x}");
                write_line(stream, prefix, text)
            }
            device => {
                let text = format_args!("area-cuda: {memory} of device {device}, flags {flags:#x}");
                write_line(stream, prefix, text)
            }
        }
    }
}
