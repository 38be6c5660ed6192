//! Copies of rectangles and boxes.
use crate::entry::{Entry, call};
use crate::region::{self, Request};
use crate::result::*;
use crate::types::*;
use crate::{context, stream};

/// What the program's struct says.
///
/// # Safety
/// `copy` must be NULL or valid for reads.
unsafe fn rectangle(copy: *const CUDA_MEMCPY2D) -> Result<Request> {
    // SAFETY: the caller's promise.
    unsafe { copy.as_ref() }.map(CUDA_MEMCPY2D::request).ok_or(CUDA_ERROR_INVALID_VALUE)
}

/// What the program's struct says.
///
/// # Safety
/// `copy` must be NULL or valid for reads.
unsafe fn cuboid(copy: *const CUDA_MEMCPY3D, peer: bool) -> Result<Request> {
    // SAFETY: the caller's promise.
    let copy = unsafe { copy.as_ref() }.ok_or(CUDA_ERROR_INVALID_VALUE)?;
    if peer {
        context::check_peers(copy.dstContext, copy.srcContext)?;
    }
    Ok(copy.request(peer))
}

fn wait(entry: Entry, request: impl FnOnce() -> Result<Request>) -> CUresult {
    call(entry, || region::submit(context::working()?.legacy(), &request()?, true))
}

fn queue(entry: Entry, request: impl FnOnce() -> Result<Request>, handle: CUstream) -> CUresult {
    call(entry, || region::submit(&stream::working(handle)?, &request()?, false))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemcpy2D_v2(copy: *const CUDA_MEMCPY2D) -> CUresult {
    // SAFETY: as the program promised.
    wait(Entry::cuMemcpy2D_v2, || unsafe { rectangle(copy) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemcpy2DUnaligned_v2(copy: *const CUDA_MEMCPY2D) -> CUresult {
    // SAFETY: as the program promised.
    wait(Entry::cuMemcpy2DUnaligned_v2, || unsafe { rectangle(copy) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemcpy2DAsync_v2(copy: *const CUDA_MEMCPY2D, stream: CUstream) -> CUresult {
    // SAFETY: as the program promised.
    queue(Entry::cuMemcpy2DAsync_v2, || unsafe { rectangle(copy) }, stream)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemcpy3D_v2(copy: *const CUDA_MEMCPY3D) -> CUresult {
    // SAFETY: as the program promised.
    wait(Entry::cuMemcpy3D_v2, || unsafe { cuboid(copy, false) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemcpy3DAsync_v2(copy: *const CUDA_MEMCPY3D, stream: CUstream) -> CUresult {
    // SAFETY: as the program promised.
    queue(Entry::cuMemcpy3DAsync_v2, || unsafe { cuboid(copy, false) }, stream)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemcpy3DPeer(copy: *const CUDA_MEMCPY3D) -> CUresult {
    // SAFETY: as the program promised.
    wait(Entry::cuMemcpy3DPeer, || unsafe { cuboid(copy, true) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemcpy3DPeerAsync(copy: *const CUDA_MEMCPY3D, stream: CUstream) -> CUresult {
    // SAFETY: as the program promised.
    queue(Entry::cuMemcpy3DPeerAsync, || unsafe { cuboid(copy, true) }, stream)
}
