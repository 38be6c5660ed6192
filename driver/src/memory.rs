//! Memory and copies: device, managed and pinned memory, registered host memory, and one function for each way
//! that the driver copies. Copies are asynchronous unless their memory is pageable, as CUDA has it.

use crate::error::{Code, Error, Result, check, probe};
use crate::ffi::*;
use libc::c_void;
use std::ptr::{self, NonNull};

const CU_MEMHOSTREGISTER_PORTABLE_DEVICEMAP: u32 = 1 | 2;
const CU_MEMHOSTALLOC_PORTABLE: u32 = 1;

/// Device and managed memory of the current context.
pub mod device {
    use super::*;

    const CU_MEM_ATTACH_GLOBAL: u32 = 1;

    /// Allocates `size` bytes on the device.
    pub fn allocate(size: usize) -> Result<u64> {
        let mut pointer = 0;
        // SAFETY: `pointer` is valid for a write.
        check("cuMemAlloc", unsafe { cuMemAlloc_v2(&mut pointer, size) })?;
        Ok(pointer)
    }

    /// Allocates `size` bytes that host and device both reach.
    pub fn allocate_managed(size: usize, global: bool) -> Result<u64> {
        const CU_MEM_ATTACH_HOST: u32 = 2;
        let flags = if global { CU_MEM_ATTACH_GLOBAL } else { CU_MEM_ATTACH_HOST };
        let mut pointer = 0;
        // SAFETY: `pointer` is valid for a write.
        check("cuMemAllocManaged", unsafe { cuMemAllocManaged(&mut pointer, size, flags) })?;
        Ok(pointer)
    }

    /// The allocation that `pointer` lies in, as addresses.
    pub fn range(pointer: *const c_void) -> Result<std::ops::Range<u64>> {
        let (mut base, mut size) = (0, 0);
        // SAFETY: both are valid for a write; the driver only looks the address up.
        check("cuMemGetAddressRange", unsafe { cuMemGetAddressRange_v2(&mut base, &mut size, pointer as u64) })?;
        Ok(base..base + size as u64)
    }

    /// Frees what `allocate` or `allocate_managed` gave; the driver refuses what is no such pointer.
    ///
    /// # Safety
    /// Nothing uses the memory any more.
    pub unsafe fn free(pointer: u64) -> Result<()> {
        // SAFETY: the caller vouches for the pointer.
        check("cuMemFree", unsafe { cuMemFree_v2(pointer) })
    }
}

/// Pinned host memory, visible to every context.
#[derive(Debug)]
pub struct HostMemory {
    pointer: NonNull<u8>,
    size: usize,
}

// SAFETY: it is memory, owned by whoever holds the value.
unsafe impl Send for HostMemory {}
// SAFETY: as above; only raw pointers into it are given out.
unsafe impl Sync for HostMemory {}

impl HostMemory {
    /// Allocates `size` bytes in the current context.
    pub fn allocate(size: usize) -> Result<HostMemory> {
        HostMemory::allocate_with(size, CU_MEMHOSTALLOC_PORTABLE)
    }

    /// Allocates `size` bytes with the flags of `cuMemHostAlloc`.
    pub fn allocate_with(size: usize, flags: u32) -> Result<HostMemory> {
        let mut pointer = ptr::null_mut();
        // SAFETY: `pointer` is valid for a write.
        check("cuMemHostAlloc", unsafe { cuMemHostAlloc(&mut pointer, size, flags) })?;
        let pointer = NonNull::new(pointer.cast()).ok_or(Error::new("cuMemHostAlloc", Code::OUT_OF_MEMORY))?;
        Ok(HostMemory { pointer, size })
    }

    /// Where it begins.
    pub fn pointer(&self) -> *mut u8 {
        self.pointer.as_ptr()
    }

    /// Its size in bytes.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Gives the memory to the caller, to be freed by `free_raw`.
    pub fn into_raw(self) -> *mut c_void {
        self.pointer.as_ptr().cast()
    }

    /// Frees the memory.
    pub fn free(self) -> Result<()> {
        // SAFETY: the pointer came from the driver, and the value is gone now.
        unsafe { HostMemory::free_raw(self.pointer.as_ptr().cast()) }
    }

    /// Frees what `into_raw` gave.
    ///
    /// # Safety
    /// Nothing uses the memory any more.
    pub unsafe fn free_raw(pointer: *mut c_void) -> Result<()> {
        // SAFETY: the caller vouches for the pointer.
        check("cuMemFreeHost", unsafe { cuMemFreeHost(pointer) })
    }
}

/// Host memory that the device can reach, at the same address.
#[derive(Debug)]
pub struct Registration {
    pointer: *mut c_void,
}

// SAFETY: it is an address.
unsafe impl Send for Registration {}

impl Registration {
    /// Registers `size` bytes at `pointer` in the current context, for every context.
    ///
    /// # Safety
    /// The memory is mapped, and stays so until it is unregistered or its context is gone.
    pub unsafe fn new(pointer: *mut c_void, size: usize) -> Result<Registration> {
        // SAFETY: the caller vouches for the memory.
        check("cuMemHostRegister", unsafe {
            cuMemHostRegister_v2(pointer, size, CU_MEMHOSTREGISTER_PORTABLE_DEVICEMAP)
        })?;
        Ok(Registration { pointer })
    }

    /// The address of the memory on the device.
    pub fn device_pointer(&self) -> Result<u64> {
        let mut device = 0;
        // SAFETY: `device` is valid for a write; the memory is registered.
        check("cuMemHostGetDevicePointer", unsafe { cuMemHostGetDevicePointer_v2(&mut device, self.pointer, 0) })?;
        Ok(device)
    }

    /// Ends it.
    pub fn end(self) -> Result<()> {
        // SAFETY: the memory is registered.
        unsafe { Registration::end_raw(self.pointer) }
    }

    /// Leaves the memory registered; `end_raw` ends it.
    pub fn into_raw(self) -> *mut c_void {
        self.pointer
    }

    /// Ends the registration of the memory at `pointer`.
    ///
    /// # Safety
    /// Nothing of the device uses the memory any more.
    pub unsafe fn end_raw(pointer: *mut c_void) -> Result<()> {
        // SAFETY: the driver refuses what is not registered.
        check("cuMemHostUnregister", unsafe { cuMemHostUnregister(pointer) })
    }
}

/// The sorts of memory that make a difference to a copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MemorySort {
    /// Host memory that CUDA does not know.
    Pageable,
    /// Host memory that is allocated by CUDA, or registered with it.
    Pinned,
    /// Memory of a device, or managed memory.
    Device,
    /// The driver does not say, because something has failed.
    Unknown,
}

/// What sort of memory `pointer` points to, as the current context sees it.
pub fn memory_sort(pointer: *const c_void) -> MemorySort {
    const CU_POINTER_ATTRIBUTE_MEMORY_TYPE: u32 = 2;
    const CU_MEMORYTYPE_HOST: u32 = 1;
    let mut sort: u32 = 0;
    // SAFETY: the attribute is 32 bits wide; the driver only looks the address up.
    let answer = probe("cuPointerGetAttribute", unsafe {
        cuPointerGetAttribute((&raw mut sort).cast(), CU_POINTER_ATTRIBUTE_MEMORY_TYPE, pointer as u64)
    });
    match (answer, sort) {
        (Err(error), _) if error.code == Code::INVALID_VALUE => MemorySort::Pageable, // its way to say so
        (Err(_), _) => MemorySort::Unknown,
        (Ok(()), CU_MEMORYTYPE_HOST) => MemorySort::Pinned,
        (Ok(()), _) => MemorySort::Device,
    }
}

/// The first address and the size of the allocation or registration that `pointer` points into; none where CUDA knows
/// of none.
pub fn allocation_of(pointer: *const c_void) -> Option<(usize, usize)> {
    const CU_POINTER_ATTRIBUTE_RANGE_START_ADDR: u32 = 11;
    const CU_POINTER_ATTRIBUTE_RANGE_SIZE: u32 = 12;
    let attribute = |number| {
        let mut value: usize = 0;
        // SAFETY: both attributes are as wide as an address; the driver only looks the pointer up.
        let answer = probe("cuPointerGetAttribute", unsafe {
            cuPointerGetAttribute((&raw mut value).cast(), number, pointer as u64)
        });
        answer.ok().map(|()| value)
    };
    let size = attribute(CU_POINTER_ATTRIBUTE_RANGE_SIZE).filter(|&size| size != 0)?;
    Some((attribute(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR)?, size))
}

/// Whether `pointer` points to managed memory.
pub fn is_managed(pointer: *const c_void) -> bool {
    const CU_POINTER_ATTRIBUTE_IS_MANAGED: u32 = 8;
    let mut managed: u32 = 0;
    // SAFETY: the attribute is at most 32 bits wide; the driver only looks the address up.
    let answer = probe("cuPointerGetAttribute", unsafe {
        cuPointerGetAttribute((&raw mut managed).cast(), CU_POINTER_ATTRIBUTE_IS_MANAGED, pointer as u64)
    });
    answer.is_ok() && managed != 0
}

/// Copies on a stream. Each is checked by the driver when it is called: kinds of memory, and ranges of device memory.
///
/// # Safety
/// For all: what is not pageable stays allocated until the copy is done; host memory is valid for `size` bytes, the
/// destination for writing. Device memory the driver checks by itself.
pub mod copy {
    #![allow(clippy::missing_safety_doc)] // said once, above
    use super::*;
    use crate::context::Context;
    use crate::stream::Stream;
    use cust::sys::{CUDA_MEMCPY2D, CUDA_MEMCPY3D, CUDA_MEMCPY3D_PEER};

    /// Between any two sorts of memory, which the driver finds out.
    #[inline]
    pub unsafe fn unified(dst: *mut c_void, src: *const c_void, size: usize, stream: Stream) -> Result<()> {
        // SAFETY: the caller vouches for the memory.
        check("cuMemcpyAsync", unsafe { cuMemcpyAsync(dst as u64, src as u64, size, stream.raw()) })
    }

    /// From host to device.
    #[inline]
    pub unsafe fn host_to_device(dst: *mut c_void, src: *const c_void, size: usize, stream: Stream) -> Result<()> {
        // SAFETY: the caller vouches for the memory.
        check("cuMemcpyHtoDAsync", unsafe { cuMemcpyHtoDAsync_v2(dst as u64, src, size, stream.raw()) })
    }

    /// From device to host.
    #[inline]
    pub unsafe fn device_to_host(dst: *mut c_void, src: *const c_void, size: usize, stream: Stream) -> Result<()> {
        // SAFETY: the caller vouches for the memory.
        check("cuMemcpyDtoHAsync", unsafe { cuMemcpyDtoHAsync_v2(dst, src as u64, size, stream.raw()) })
    }

    /// From device to device.
    #[inline]
    pub unsafe fn device_to_device(dst: *mut c_void, src: *const c_void, size: usize, stream: Stream) -> Result<()> {
        // SAFETY: the caller vouches for the memory.
        check("cuMemcpyDtoDAsync", unsafe { cuMemcpyDtoDAsync_v2(dst as u64, src as u64, size, stream.raw()) })
    }

    /// From the device of one context to that of another.
    #[inline]
    pub unsafe fn peer(
        (dst, dst_context): (*mut c_void, Context),
        (src, src_context): (*const c_void, Context),
        size: usize,
        stream: Stream,
    ) -> Result<()> {
        // SAFETY: the caller vouches for the memory.
        check("cuMemcpyPeerAsync", unsafe {
            cuMemcpyPeerAsync(dst as u64, dst_context.raw(), src as u64, src_context.raw(), size, stream.raw())
        })
    }

    /// Rows of a plane.
    pub unsafe fn plane(copy: &CUDA_MEMCPY2D, stream: Stream) -> Result<()> {
        // SAFETY: the caller vouches for the memory.
        check("cuMemcpy2DAsync", unsafe { cuMemcpy2DAsync_v2(copy, stream.raw()) })
    }

    /// Planes of a volume.
    pub unsafe fn volume(copy: &CUDA_MEMCPY3D, stream: Stream) -> Result<()> {
        // SAFETY: the caller vouches for the memory.
        check("cuMemcpy3DAsync", unsafe { cuMemcpy3DAsync_v2(copy, stream.raw()) })
    }

    /// Planes of a volume, from the device of one context to that of another.
    pub unsafe fn volume_peer(copy: &CUDA_MEMCPY3D_PEER, stream: Stream) -> Result<()> {
        // SAFETY: the caller vouches for the memory.
        check("cuMemcpy3DPeerAsync", unsafe { cuMemcpy3DPeerAsync(copy, stream.raw()) })
    }
}
