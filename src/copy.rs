//! The copy operators: how many bytes, whether they lie in one block, and which call of the driver moves them.

use crate::abi::aml_layout;
use crate::completion::{Queued, before_long};
use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::peer::DevicePair;
use crate::staging::{self, Direction};
use crate::stream::StreamState;
use cuda_driver::copy;
use libc::c_void;
use std::cell::Cell;
use std::ptr;
use std::sync::Arc;

/// The direction of a copy, with CUDA's numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CopyKind {
    /// Host to host.
    HostToHost = 0,
    /// Host to device.
    HostToDevice = 1,
    /// Device to host.
    DeviceToHost = 2,
    /// Device to device.
    DeviceToDevice = 3,
    /// As the pointers tell.
    Default = 4,
}

impl CopyKind {
    /// The kind with this number.
    pub fn new(number: i32) -> Result<CopyKind> {
        Ok(match number {
            0 => CopyKind::HostToHost,
            1 => CopyKind::HostToDevice,
            2 => CopyKind::DeviceToHost,
            3 => CopyKind::DeviceToDevice,
            4 => CopyKind::Default,
            _ => return Err(Error::Invalid),
        })
    }

    /// CUDA's name of the kind.
    pub fn name(self) -> &'static str {
        match self {
            CopyKind::HostToHost => "HostToHost",
            CopyKind::HostToDevice => "HostToDevice",
            CopyKind::DeviceToHost => "DeviceToHost",
            CopyKind::DeviceToDevice => "DeviceToDevice",
            CopyKind::Default => "Default",
        }
    }
}

thread_local! {
    /// The copy that this thread queued last.
    static QUEUED: Cell<Option<Queued>> = const { Cell::new(None) };
}

/// Forgets the last copy, before an operator runs.
pub fn forget_queued() {
    QUEUED.set(None);
}

/// The copy that was queued since; none when an operator queued something else.
pub fn queued() -> Option<Queued> {
    QUEUED.get()
}

/// Copies `size` bytes on the stream of `state`, whose context is current.
///
/// # Safety
/// The memory is as the driver wants it; see `cuda_driver::copy`.
pub unsafe fn flat(
    state: &Arc<StreamState>,
    kind: CopyKind,
    dst: *mut c_void,
    src: *const c_void,
    size: usize,
    pair: DevicePair,
) -> Result<()> {
    let may_be_pageable = matches!(kind, CopyKind::HostToHost | CopyKind::DeviceToHost | CopyKind::Default);
    let queued = Queued {
        size,
        on_device: kind == CopyKind::DeviceToDevice,
        finished: false,
        host: if may_be_pageable && size > 0 { dst } else { ptr::null() },
    };
    QUEUED.set(Some(queued));
    if !queued.is_small() {
        before_long(state);
    }
    if size == 0 {
        return Ok(());
    }
    if dst.is_null() || src.is_null() {
        return Err(Error::Invalid);
    }
    let expected = match kind {
        CopyKind::HostToDevice => Some(Direction::Up),
        CopyKind::DeviceToHost => Some(Direction::Down),
        _ => None,
    };
    // SAFETY: the caller vouches for the memory.
    unsafe {
        if kind != CopyKind::DeviceToDevice
            && let Some(way) = staging::direction(state, expected, dst, src, size)
            && staging::copy(state, (way, expected.is_some()), dst, src, size)?
        {
            if way == Direction::Down {
                say_finished();
            }
            return Ok(());
        }
        plain(state, kind, dst, src, size, pair)
    }
}

fn say_finished() {
    QUEUED.set(QUEUED.get().map(|copy| Queued { finished: true, ..copy }));
}

/// Copies with one call of the driver. The stream's context is current.
///
/// # Safety
/// As for `flat`.
pub unsafe fn plain(
    state: &StreamState,
    kind: CopyKind,
    dst: *mut c_void,
    src: *const c_void,
    size: usize,
    pair: DevicePair,
) -> Result<()> {
    let stream = state.stream;
    // SAFETY: the caller vouches for the memory.
    unsafe {
        match kind {
            CopyKind::HostToHost | CopyKind::Default => copy::unified(dst, src, size, stream)?,
            CopyKind::HostToDevice => copy::host_to_device(dst, src, size, stream)?,
            CopyKind::DeviceToHost => copy::device_to_host(dst, src, size, stream)?,
            CopyKind::DeviceToDevice => {
                let (src_context, dst_context) = pair.contexts(state.context)?;
                copy::peer((dst, dst_context), (src, src_context), size, stream)?;
            }
        }
    }
    Ok(())
}

/// Copies one dense layout into another. The context of `state` is current.
///
/// # Safety
/// The layouts are AML's, and their memory is as the driver wants it.
pub unsafe fn dense(
    state: &Arc<StreamState>,
    kind: CopyKind,
    dst: *mut aml_layout,
    src: *const aml_layout,
    pair: DevicePair,
) -> Result<()> {
    // SAFETY: the caller vouches for the layouts.
    let (dst, src) = unsafe { (Layout::new(dst)?.block()?, Layout::new(src)?.block()?) };
    if dst.size < src.size {
        return Err(Error::Invalid);
    }
    // SAFETY: the caller vouches for the memory, and both blocks have `src.size` bytes.
    unsafe { flat(state, kind, dst.pointer, src.pointer, src.size, pair) }
}
