//! Copies of one block of bytes: which memory each form accepts, and when the call returns.
//! The runtime's kinds are these forms: HostToDevice is HtoD, Default and HostToHost are unified.
use crate::context::{self, Context};
use crate::memory::{Asker, Place, Sort, place};
use crate::result::*;
use crate::stream::Stream;
use crate::work::Work;
use std::sync::Arc;

/// Up to so many bytes of pageable memory are taken along with the command; more are waited for. On an H200 1 MiB is
/// not waited for, and 8 MiB are.
pub const INLINE: usize = 1 << 20;

/// Under which name the copy was asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// cuMemcpy and cuMemcpyAsync: any memory on both sides.
    Unified,
    /// The destination is a device pointer.
    HtoD,
    /// The source is a device pointer.
    DtoH,
    /// Both are.
    DtoD,
    /// Both are, of the contexts named in the call.
    Peer,
}

impl Form {
    fn device_dst(self) -> bool {
        matches!(self, Form::HtoD | Form::DtoD | Form::Peer)
    }

    fn device_src(self) -> bool {
        matches!(self, Form::DtoH | Form::DtoD | Form::Peer)
    }

    fn any_device(self) -> bool {
        matches!(self, Form::Unified | Form::Peer)
    }
}

/// The context by which the pointers of a call on `stream` are judged: the current one, else the stream's.
pub fn acting(stream: &Stream) -> Arc<Context> {
    context::top().filter(|top| top.is_alive()).unwrap_or_else(|| stream.context.clone())
}

/// Whether it is the host's memory, as a copy sees it.
pub fn is_host(sort: Option<Sort>) -> bool {
    matches!(sort, None | Some(Sort::Pinned | Sort::Registered))
}

/// Whether the call returns while the copy is still to come. From host to host it does not, pinned or not.
pub fn is_asynchronous(dst: Option<Sort>, src: Option<Sort>) -> bool {
    dst.is_some() && src.is_some() && !(is_host(dst) && is_host(src))
}

/// Finds both sides of a copy.
pub fn sides(stream: &Stream, form: Form, dst: (usize, usize), src: (usize, usize)) -> Result<(Place, Place)> {
    let context = &*acting(stream);
    let any_device = form.any_device();
    let to = place(dst.0, dst.1, Asker { context, as_device: form.device_dst(), any_device })?;
    let from = place(src.0, src.1, Asker { context, as_device: form.device_src(), any_device })?;
    Ok((to, from))
}

/// Queues a copy, and returns when the form and the memory say so.
pub fn asynchronous(stream: &Arc<Stream>, form: Form, dst: usize, src: usize, len: usize) -> Result {
    stream.check()?;
    if len == 0 {
        return Ok(());
    }
    let (to, from) = sides(stream, form, (dst, len), (src, len))?;
    if is_asynchronous(to.sort, from.sort) {
        stream.submit(Work::Copy { dst: to.bytes, src: from.bytes, len })?;
        return Ok(());
    }
    if from.sort.is_none() && !is_host(to.sort) {
        return from_pageable(stream, to.bytes, from.bytes, len);
    }
    stream.submit(Work::Copy { dst: to.bytes, src: from.bytes, len })?.wait();
    stream.check()
}

/// The source may be reused at once: small ones are taken along, of large ones only the end is still on its way.
fn from_pageable(stream: &Arc<Stream>, dst: usize, src: usize, len: usize) -> Result {
    let head = len.saturating_sub(INLINE);
    if head > 0 {
        stream.submit(Work::Copy { dst, src, len: head })?.wait();
        stream.check()?;
    }
    // SAFETY: the program promised that `len` bytes at `src` can be read.
    let bytes = unsafe { std::slice::from_raw_parts((src + head) as *const u8, len - head) }.into();
    stream.submit(Work::Staged { dst: dst + head, bytes })?;
    Ok(())
}

/// Copies on a default stream, and returns when it is done, unless no host memory takes part.
pub fn synchronous(stream: &Arc<Stream>, form: Form, dst: usize, src: usize, len: usize) -> Result {
    stream.check()?;
    if len == 0 {
        return Ok(());
    }
    let (to, from) = sides(stream, form, (dst, len), (src, len))?;
    let done = stream.submit(Work::Copy { dst: to.bytes, src: from.bytes, len })?;
    if to.sort == Some(Sort::Device) && from.sort == Some(Sort::Device) {
        return Ok(());
    }
    done.wait();
    stream.check()
}
