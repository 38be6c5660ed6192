//! Copies between layouts whose elements lie at regular distances: probed, planned, checked, and only then queued.
//! The operator `aml_dma_cuda_copy_layout`.

use crate::abi::aml_layout;
use crate::completion;
use crate::copy::{self, CopyKind};
use crate::error::{Error, Result};
use crate::few::Few;
use crate::kernel::{self, Job};
use crate::lattice::Lattice;
use crate::layout::Layout;
use crate::peer::DevicePair;
use crate::plan::{Axis, Call, Grid, Plan};
use crate::stream::StreamState;
use cuda_driver::sys::{CUDA_MEMCPY2D, CUDA_MEMCPY3D, CUDA_MEMCPY3D_PEER, CUmemorytype};
use cuda_driver::{Code, Context, MemorySort, allocation_of, is_managed, memory_sort};
use libc::c_void;
use std::ptr;
use std::sync::Arc;

/// Copies the elements of one layout to those of another with the same coordinates. The context of `state` is current.
///
/// # Safety
/// The layouts are AML's, and their memory is as the driver wants it.
pub unsafe fn copy(
    state: &Arc<StreamState>,
    kind: CopyKind,
    dst: *mut aml_layout,
    src: *const aml_layout,
    pair: DevicePair,
) -> Result<()> {
    // SAFETY: the caller vouches for the layouts.
    let (dst, src) = unsafe { (Layout::new(dst)?, Layout::new(src)?) };
    let (mut to, mut from) = (Lattice::new(dst)?, Lattice::new(src)?);
    to.measure()?;
    from.measure()?;
    if !to.matches(&from) {
        return Err(Error::Invalid);
    }
    let size = from.bytes()?;
    if size == 0 {
        return Ok(());
    }
    to.probe()?;
    from.probe()?;
    if to.are_one_block(&from) {
        // SAFETY: the caller vouches for the memory, which is one block on both sides.
        return unsafe { copy::flat(state, kind, to.origin, from.origin, size, pair) };
    }
    to.bound()?;
    from.bound()?;
    let mut axes = Few::new();
    for index in 0..from.ndims() {
        let ((length, dst), (_, src)) = (to.dimension(index), from.dimension(index));
        axes.push(Axis { length, dst, src })?;
    }
    let grid = Grid::new(from.element_size, &axes)?;
    if grid.axes.is_empty() {
        // SAFETY: as above.
        return unsafe { copy::flat(state, kind, to.at(grid.dst), from.at(grid.src), grid.run, pair) };
    }
    completion::before_long(state);
    let plan = Plan::new(&grid, state.context.device()?.max_pitch()?)?;
    let route = Route::new(state, kind, pair)?;
    if plan.calls() > 1 {
        in_one_allocation(&to)?;
        in_one_allocation(&from)?;
        if route.peers.is_none() && on_device_of(state, &to) && on_device_of(state, &from) {
            let job = Job::new(&grid, to.at(grid.dst) as u64, from.at(grid.src) as u64);
            // SAFETY: both sides were found to lie in one allocation each of the stream's context.
            if job.map_or(Ok(false), |job| unsafe { kernel::launch(state, &job) })? {
                return Ok(());
            }
        }
    }
    let mut queued = false;
    let outcome = plan.each(|call| {
        // SAFETY: the caller vouches for the memory; the plan keeps to the elements.
        unsafe { route.issue(call, &to, &from) }?;
        queued = true;
        Ok(())
    });
    if outcome.is_err() && queued {
        completion::drain(state); // nothing may write to the caller's memory after the error
    }
    outcome
}

/// Fails where some of many calls might be refused for their range: both ends must belong to one allocation, or both
/// to none that CUDA knows of.
fn in_one_allocation(side: &Lattice) -> Result<()> {
    let within = match allocation_of(side.lowest as *const c_void) {
        Some((start, size)) => side.last.wrapping_sub(start) < size,
        None => allocation_of(side.last as *const c_void).is_none(),
    };
    if within {
        return Ok(());
    }
    Err(cuda_driver::Error::new("cuPointerGetAttribute", Code::INVALID_VALUE).into())
}

/// Whether a kernel on the stream reaches that side: memory of the stream's own context, and not managed, which may be
/// the host's at the moment.
fn on_device_of(state: &StreamState, side: &Lattice) -> bool {
    let pointer = side.lowest as *const c_void;
    memory_sort(pointer) == MemorySort::Device
        && !is_managed(pointer)
        && Context::of_memory(pointer).is_ok_and(|owner| owner == state.context)
}

/// How the calls of one copy go to the driver.
struct Route<'a> {
    state: &'a StreamState,
    kind: CopyKind,
    pair: DevicePair,
    /// Where the memory lies, as the kind says.
    dst: CUmemorytype,
    src: CUmemorytype,
    /// The contexts of the source and the destination of a copy that is not within the stream's own.
    peers: Option<(Context, Context)>,
}

impl<'a> Route<'a> {
    fn new(state: &'a StreamState, kind: CopyKind, pair: DevicePair) -> Result<Route<'a>> {
        use CUmemorytype::{
            CU_MEMORYTYPE_DEVICE as DEVICE, CU_MEMORYTYPE_HOST as HOST, CU_MEMORYTYPE_UNIFIED as UNIFIED,
        };
        let (src, dst) = match kind {
            CopyKind::HostToHost | CopyKind::Default => (UNIFIED, UNIFIED),
            CopyKind::HostToDevice => (HOST, DEVICE),
            CopyKind::DeviceToHost => (DEVICE, HOST),
            CopyKind::DeviceToDevice => (DEVICE, DEVICE),
        };
        let peers = match kind {
            CopyKind::DeviceToDevice => {
                let own = (state.context, state.context);
                Some(pair.contexts(state.context)?).filter(|peers| *peers != own)
            }
            _ => None,
        };
        Ok(Route { state, kind, pair, dst, src, peers })
    }

    /// Queues one call. The stream's context is current.
    ///
    /// # Safety
    /// The call keeps to memory that is as the driver wants it.
    unsafe fn issue(&self, call: Call, dst: &Lattice, src: &Lattice) -> Result<()> {
        let (dst, src) = (dst.at(call.dst), src.at(call.src).cast_const());
        let extent = call.extent;
        let stream = self.state.stream;
        // SAFETY: the caller vouches for the memory.
        unsafe {
            match (extent.height, extent.depth, self.peers) {
                (1, 1, _) => copy::plain(self.state, self.kind, dst, src, extent.width, self.pair),
                (_, _, Some(contexts)) => {
                    Ok(cuda_driver::copy::volume_peer(&self.volume_peer(call, dst, src, contexts), stream)?)
                }
                (_, 1, None) => Ok(cuda_driver::copy::plane(&self.plane(call, dst, src), stream)?),
                _ => Ok(cuda_driver::copy::volume(&self.volume(call, dst, src), stream)?),
            }
        }
    }

    fn plane(&self, call: Call, dst: *mut c_void, src: *const c_void) -> CUDA_MEMCPY2D {
        CUDA_MEMCPY2D {
            srcXInBytes: 0,
            srcY: 0,
            srcMemoryType: self.src,
            srcHost: src,
            srcDevice: src as u64,
            srcArray: ptr::null_mut(),
            srcPitch: call.extent.src.row,
            dstXInBytes: 0,
            dstY: 0,
            dstMemoryType: self.dst,
            dstHost: dst,
            dstDevice: dst as u64,
            dstArray: ptr::null_mut(),
            dstPitch: call.extent.dst.row,
            WidthInBytes: call.extent.width,
            Height: call.extent.height,
        }
    }

    fn volume(&self, call: Call, dst: *mut c_void, src: *const c_void) -> CUDA_MEMCPY3D {
        CUDA_MEMCPY3D {
            srcXInBytes: 0,
            srcY: 0,
            srcZ: 0,
            srcLOD: 0,
            srcMemoryType: self.src,
            srcHost: src,
            srcDevice: src as u64,
            srcArray: ptr::null_mut(),
            reserved0: ptr::null_mut(),
            srcPitch: call.extent.src.row,
            srcHeight: call.extent.src.rows,
            dstXInBytes: 0,
            dstY: 0,
            dstZ: 0,
            dstLOD: 0,
            dstMemoryType: self.dst,
            dstHost: dst,
            dstDevice: dst as u64,
            dstArray: ptr::null_mut(),
            reserved1: ptr::null_mut(),
            dstPitch: call.extent.dst.row,
            dstHeight: call.extent.dst.rows,
            WidthInBytes: call.extent.width,
            Height: call.extent.height,
            Depth: call.extent.depth,
        }
    }

    fn volume_peer(
        &self,
        call: Call,
        dst: *mut c_void,
        src: *const c_void,
        (src_context, dst_context): (Context, Context),
    ) -> CUDA_MEMCPY3D_PEER {
        CUDA_MEMCPY3D_PEER {
            srcXInBytes: 0,
            srcY: 0,
            srcZ: 0,
            srcLOD: 0,
            srcMemoryType: self.src,
            srcHost: src,
            srcDevice: src as u64,
            srcArray: ptr::null_mut(),
            srcContext: src_context.raw(),
            srcPitch: call.extent.src.row,
            srcHeight: call.extent.src.rows,
            dstXInBytes: 0,
            dstY: 0,
            dstZ: 0,
            dstLOD: 0,
            dstMemoryType: self.dst,
            dstHost: dst,
            dstDevice: dst as u64,
            dstArray: ptr::null_mut(),
            dstContext: dst_context.raw(),
            dstPitch: call.extent.dst.row,
            dstHeight: call.extent.dst.rows,
            WidthInBytes: call.extent.width,
            Height: call.extent.height,
            Depth: call.extent.depth,
        }
    }
}
