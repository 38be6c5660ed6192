//! Allocation, registration, and what is known about a pointer.
use super::{needed, put};
use crate::context;
use crate::entry::{Entry, call};
use crate::memory::{self, Block, Sort};
use crate::result::*;
use crate::types::*;
use std::ffi::{c_int, c_uint, c_void};
use std::sync::Arc;

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemAlloc_v2(place: *mut CUdeviceptr, len: usize) -> CUresult {
    call(Entry::cuMemAlloc_v2, || {
        needed(place)?;
        // SAFETY: not NULL, so valid for writes.
        unsafe { put(place, memory::allocate_device(len)? as CUdeviceptr) }
    })
}

/// Rows begin at multiples of this.
const PITCH: usize = 512;

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemAllocPitch_v2(
    place: *mut CUdeviceptr,
    pitch: *mut usize,
    width: usize,
    height: usize,
    element: c_uint,
) -> CUresult {
    call(Entry::cuMemAllocPitch_v2, || {
        needed(place)?;
        needed(pitch)?;
        if !matches!(element, 4 | 8 | 16) || width == 0 || height == 0 {
            return Err(CUDA_ERROR_INVALID_VALUE);
        }
        let row = width.checked_next_multiple_of(PITCH).ok_or(CUDA_ERROR_INVALID_VALUE)?;
        let len = row.checked_mul(height).ok_or(CUDA_ERROR_INVALID_VALUE)?;
        // SAFETY: neither is NULL, so both are valid for writes.
        unsafe {
            put(place, memory::allocate_device(len)? as CUdeviceptr)?;
            put(pitch, row)
        }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemAllocManaged(place: *mut CUdeviceptr, len: usize, flags: c_uint) -> CUresult {
    call(Entry::cuMemAllocManaged, || {
        needed(place)?;
        if !matches!(flags, CU_MEM_ATTACH_GLOBAL | CU_MEM_ATTACH_HOST) {
            return Err(CUDA_ERROR_INVALID_VALUE);
        }
        // SAFETY: not NULL, so valid for writes.
        unsafe { put(place, memory::allocate_host(len, Sort::Managed, flags)? as CUdeviceptr) }
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuMemFree_v2(address: CUdeviceptr) -> CUresult {
    call(Entry::cuMemFree_v2, || {
        context::working_if_any()?;
        if address == 0 {
            return Ok(());
        }
        memory::free(address as usize, &[Sort::Device, Sort::Managed], CUDA_ERROR_INVALID_VALUE)
    })
}

unsafe fn host_alloc(entry: Entry, place: *mut *mut c_void, len: usize, flags: c_uint) -> CUresult {
    call(entry, || {
        needed(place)?;
        if flags & !CU_MEMHOSTALLOC_MASK != 0 {
            return Err(CUDA_ERROR_INVALID_VALUE);
        }
        // Nothing is allocated of no bytes, and that is no error.
        let start =
            if len == 0 { context::working().map(|_| 0) } else { memory::allocate_host(len, Sort::Pinned, flags) }?;
        // SAFETY: not NULL, so valid for writes.
        unsafe { put(place, start as *mut c_void) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemHostAlloc(place: *mut *mut c_void, len: usize, flags: c_uint) -> CUresult {
    // SAFETY: as the program promised.
    unsafe { host_alloc(Entry::cuMemHostAlloc, place, len, flags) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemAllocHost_v2(place: *mut *mut c_void, len: usize) -> CUresult {
    // SAFETY: as the program promised.
    unsafe { host_alloc(Entry::cuMemAllocHost_v2, place, len, 0) }
}

#[unsafe(no_mangle)]
extern "C" fn cuMemFreeHost(address: *mut c_void) -> CUresult {
    call(Entry::cuMemFreeHost, || {
        context::working_if_any()?;
        if address.is_null() {
            return Ok(());
        }
        memory::free(address as usize, &[Sort::Pinned], CUDA_ERROR_INVALID_VALUE)
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuMemHostRegister_v2(address: *mut c_void, len: usize, flags: c_uint) -> CUresult {
    call(Entry::cuMemHostRegister_v2, || {
        // Memory of a device on the bus is not to be had here, so none can be registered.
        if flags & !CU_MEMHOSTREGISTER_MASK != 0 || flags & CU_MEMHOSTREGISTER_IOMEMORY != 0 {
            return Err(CUDA_ERROR_INVALID_VALUE);
        }
        memory::register(address as usize, len, flags)
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuMemHostUnregister(address: *mut c_void) -> CUresult {
    call(Entry::cuMemHostUnregister, || {
        context::working_if_any()?;
        if address.is_null() {
            return Err(CUDA_ERROR_INVALID_VALUE);
        }
        // Known memory that no registration begins with is an error of another sort.
        let otherwise = match memory::find(address as usize) {
            Some(_) => CUDA_ERROR_INVALID_VALUE,
            None => CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED,
        };
        memory::free(address as usize, &[Sort::Registered], otherwise)
    })
}

/// The host block that an address lies in.
fn host_block(address: usize) -> Result<Arc<Block>> {
    let found = memory::find(address).filter(|block| matches!(block.sort, Sort::Pinned | Sort::Registered));
    found.ok_or(CUDA_ERROR_INVALID_VALUE)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemHostGetDevicePointer_v2(
    place: *mut CUdeviceptr,
    address: *mut c_void,
    flags: c_uint,
) -> CUresult {
    call(Entry::cuMemHostGetDevicePointer_v2, || {
        context::working()?;
        needed(place)?;
        if flags != 0 {
            return Err(CUDA_ERROR_INVALID_VALUE);
        }
        host_block(address as usize)?;
        // SAFETY: not NULL, so valid for writes.
        unsafe { put(place, address as CUdeviceptr) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemHostGetFlags(place: *mut c_uint, address: *mut c_void) -> CUresult {
    call(Entry::cuMemHostGetFlags, || {
        context::working()?;
        let block = memory::find(address as usize).filter(|block| block.sort != Sort::Device);
        let block = block.ok_or(CUDA_ERROR_INVALID_VALUE)?;
        // All memory of the host is reached from the devices, asked for or not. Flags of managed memory are others.
        let own = if block.sort == Sort::Managed { 0 } else { block.flags };
        let flags = own | CU_MEMHOSTALLOC_DEVICEMAP;
        // SAFETY: NULL or valid for writes.
        unsafe { put(place, flags) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemGetAddressRange_v2(
    base: *mut CUdeviceptr,
    size: *mut usize,
    address: CUdeviceptr,
) -> CUresult {
    call(Entry::cuMemGetAddressRange_v2, || {
        context::working()?;
        let block = memory::find(address as usize).ok_or(CUDA_ERROR_NOT_FOUND)?;
        // SAFETY: each is NULL or valid for writes.
        unsafe {
            if !base.is_null() {
                put(base, block.start as CUdeviceptr)?;
            }
            if !size.is_null() {
                put(size, block.len)?;
            }
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize) -> CUresult {
    call(Entry::cuMemGetInfo_v2, || {
        let (is_free, in_all) = context::working()?.device.heap.info();
        needed(free)?;
        needed(total)?;
        // SAFETY: neither is NULL, so both are valid for writes.
        unsafe {
            put(free, is_free)?;
            put(total, in_all)
        }
    })
}

/// Writes one attribute of a block.
///
/// # Safety
/// `data` must be valid for writes of the attribute's type.
unsafe fn attribute(data: *mut c_void, number: c_int, block: &Block, address: CUdeviceptr) -> Result {
    let on_device = block.sort == Sort::Device;
    // SAFETY: the caller's promise.
    unsafe {
        match number {
            1 => put(data.cast::<CUcontext>(), block.context.handle),
            2 if block.sort == Sort::Device || block.sort == Sort::Managed => {
                put(data.cast::<c_uint>(), CU_MEMORYTYPE_DEVICE)
            }
            2 => put(data.cast::<c_uint>(), CU_MEMORYTYPE_HOST),
            3 => put(data.cast::<CUdeviceptr>(), address),
            4 if on_device => Err(CUDA_ERROR_INVALID_VALUE),
            4 => put(data.cast::<CUdeviceptr>(), address),
            6 => put(data.cast::<c_uint>(), (block.sort == Sort::Managed).into()),
            7 => put(data.cast::<u64>(), block.id),
            8 => put(data.cast::<c_uint>(), (block.sort == Sort::Managed).into()),
            9 => put(data.cast::<c_int>(), block.context.device.ordinal),
            10 => put(data.cast::<c_uint>(), on_device.into()),
            11 => put(data.cast::<CUdeviceptr>(), block.start as CUdeviceptr),
            12 => put(data.cast::<usize>(), block.len),
            13 => put(data.cast::<c_uint>(), 1),
            _ => Err(CUDA_ERROR_INVALID_VALUE),
        }
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuPointerGetAttribute(data: *mut c_void, number: c_int, address: CUdeviceptr) -> CUresult {
    call(Entry::cuPointerGetAttribute, || {
        needed(data)?;
        let block = memory::find(address as usize).ok_or(CUDA_ERROR_INVALID_VALUE)?;
        // SAFETY: not NULL, so valid for writes of the attribute's type.
        unsafe { attribute(data, number, &block, address) }
    })
}

/// Size of an attribute's type.
fn size_of_attribute(number: c_int) -> Result<usize> {
    match number {
        1 | 3 | 4 | 7 | 11 | 12 => Ok(8),
        2 | 6 | 8..=10 | 13 => Ok(4),
        _ => Err(CUDA_ERROR_INVALID_VALUE),
    }
}

/// Pointers that the driver does not know are no error here: most of their attributes are 0, but the host's address is the
/// pointer itself, there is no device, and no range is written.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuPointerGetAttributes(
    count: c_uint,
    numbers: *mut c_int,
    data: *mut *mut c_void,
    address: CUdeviceptr,
) -> CUresult {
    call(Entry::cuPointerGetAttributes, || {
        needed(numbers)?;
        needed(data)?;
        if count == 0 {
            return Err(CUDA_ERROR_INVALID_VALUE);
        }
        // SAFETY: neither is NULL, so both are valid for reads of `count` entries.
        let (numbers, data) = unsafe {
            let count = count as usize;
            (std::slice::from_raw_parts(numbers, count), std::slice::from_raw_parts(data, count))
        };
        let block = memory::find(address as usize);
        for (&number, &data) in numbers.iter().zip(data) {
            needed(data)?;
            let size = size_of_attribute(number)?;
            // SAFETY: not NULL, so valid for writes of the attribute's type.
            unsafe {
                match (&block, number) {
                    (Some(block), _) => {
                        data.cast::<u8>().write_bytes(0, size);
                        let _ = attribute(data, number, block, address);
                    }
                    (None, 4) => put(data.cast::<CUdeviceptr>(), address)?,
                    (None, 9) => put(data.cast::<c_int>(), -2)?,
                    (None, 11 | 12) => {}
                    (None, _) => data.cast::<u8>().write_bytes(0, size),
                }
            }
        }
        Ok(())
    })
}
