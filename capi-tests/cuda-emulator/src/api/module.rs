//! Modules and kernels.
use super::{needed, put};
use crate::entry::{Entry, call};
use crate::kernel::Launch;
use crate::result::*;
use crate::types::*;
use crate::work::Work;
use crate::{context, module, stream};
use std::ffi::{CStr, c_char, c_uint, c_void};

/// Device code in ELF, and several of them in one: the emulator can run neither.
const BINARIES: [&[u8]; 2] = [b"\x7fELF", b"\x50\xed\x55\xba"];

#[unsafe(no_mangle)]
unsafe extern "C" fn cuModuleLoadData(place: *mut CUmodule, image: *const c_void) -> CUresult {
    call(Entry::cuModuleLoadData, || {
        let context = context::working()?;
        needed(place)?;
        if image.is_null() {
            return Err(CUDA_ERROR_INVALID_VALUE);
        }
        // SAFETY: not NULL, so a text that ends in a zero, or a binary, whose first bytes hold one.
        let text = unsafe { CStr::from_ptr(image.cast()) };
        if BINARIES.iter().any(|magic| text.to_bytes().starts_with(magic)) {
            return Err(CUDA_ERROR_NO_BINARY_FOR_GPU);
        }
        let text = text.to_str().map_err(|_| CUDA_ERROR_INVALID_IMAGE)?;
        let loaded = module::load(&context, text)?;
        // The driver puts code on the device when nothing runs there.
        if let Err(code) = context.synchronize() {
            module::unload(loaded)?;
            return Err(code);
        }
        // SAFETY: not NULL, so valid for writes.
        unsafe { put(place, loaded) }
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuModuleUnload(handle: CUmodule) -> CUresult {
    call(Entry::cuModuleUnload, || {
        let context = context::working()?;
        context.synchronize()?; // as when it is loaded
        module::unload(handle)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuModuleGetFunction(place: *mut CUfunction, handle: CUmodule, name: *const c_char) -> CUresult {
    call(Entry::cuModuleGetFunction, || {
        context::working()?;
        needed(place)?;
        if name.is_null() {
            return Err(CUDA_ERROR_INVALID_VALUE);
        }
        // SAFETY: not NULL, so a text that ends in a zero.
        let name = unsafe { CStr::from_ptr(name) }.to_str().map_err(|_| CUDA_ERROR_NOT_FOUND)?;
        // SAFETY: not NULL, so valid for writes.
        unsafe { put(place, module::function(handle, name)?) }
    })
}

/// The parameters, each read with the size that the text declares.
///
/// # Safety
/// `pointers` must be NULL or hold one valid pointer for each size.
unsafe fn parameters(pointers: *mut *mut c_void, sizes: &[usize]) -> Result<Vec<u64>> {
    if sizes.is_empty() {
        return Ok(Vec::new());
    }
    needed(pointers)?;
    let read = |(index, &size): (usize, &usize)| {
        let mut value = [0; 8];
        // SAFETY: the caller's promise.
        unsafe {
            let from = *pointers.add(index);
            needed(from)?;
            std::ptr::copy_nonoverlapping(from.cast(), value.as_mut_ptr(), size.min(8));
        }
        Ok(u64::from_ne_bytes(value))
    };
    sizes.iter().enumerate().map(read).collect()
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuLaunchKernel(
    function: CUfunction,
    grid_x: c_uint,
    grid_y: c_uint,
    grid_z: c_uint,
    block_x: c_uint,
    block_y: c_uint,
    block_z: c_uint,
    _shared_bytes: c_uint,
    handle: CUstream,
    pointers: *mut *mut c_void,
    extra: *mut *mut c_void,
) -> CUresult {
    call(Entry::cuLaunchKernel, || {
        let function = module::working(function)?;
        let stream = stream::working(handle)?;
        if stream.context.handle != function.context.handle {
            return Err(CUDA_ERROR_INVALID_HANDLE);
        }
        let (grid, block) = ([grid_x, grid_y, grid_z], [block_x, block_y, block_z]);
        let threads = block.iter().map(|&side| u64::from(side)).product::<u64>();
        if grid.contains(&0) || block.contains(&0) || threads > 1024 {
            return Err(CUDA_ERROR_INVALID_VALUE);
        }
        // Parameters packed in one buffer are not known here.
        if !extra.is_null() {
            return Err(CUDA_ERROR_NOT_SUPPORTED);
        }
        // SAFETY: as the program promised.
        let parameters = unsafe { parameters(pointers, &function.parameters) }?;
        let (context, body) = (function.context.clone(), function.body);
        let run = move || body(&Launch { context: &context, grid, block, parameters });
        stream.submit(Work::Kernel(Box::new(run))).map(drop)
    })
}
