//! How a request becomes DONE without anybody calling, and how one waits for it.
//!
//! The status word is written by the device. Where the stream was idle, the copy's own stream writes it, which takes one
//! call and is the quickest to see. A busy stream would have to stop between copies for that, so there `marking` puts an
//! event behind the copy, and a side stream waits for it and writes. The event also is what a wait asks in the end, so
//! that a request is waited for alone. A driver that cannot write words calls a function instead, as AML's own library
//! does.

#[cfg(all(test, miri))]
mod tests;

use crate::duty::Holder;
use crate::error::Result;
use crate::marking::{self, DONE, When};
use crate::patience::{Patience, asked_twice, await_stream};
use crate::request::Request;
use crate::stream::StreamState;
use cuda_driver::{Context, MemorySort, memory_sort};
use libc::c_void;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Copies that take no longer than this over a link, or within a device, are marked several at a time.
const SMALL: usize = 64 << 10;
const SMALL_ON_DEVICE: usize = 4 << 20;
/// Behind longer copies the side stream is as quick as the copy's own, and does not delay the next copy.
const SHORT: usize = 8 << 20;

/// A copy that was queued, as far as it is known.
#[derive(Clone, Copy, Debug)]
pub struct Queued {
    /// Its size in bytes.
    pub size: usize,
    /// Whether it goes from device to device.
    pub on_device: bool,
    /// Whether it was done when the driver's call returned.
    pub finished: bool,
    /// The memory that it goes to, where that may be the host's; else NULL.
    pub host: *const c_void,
}

impl Queued {
    /// Whether it is known to: such a copy is over when the driver's call returns, so nothing need tell when it is.
    ///
    /// Each question costs, so a busy stream is not asked about that copied to other memory the last time.
    fn went_to_pageable_memory(self, state: &StreamState, idle: bool) -> bool {
        if self.host.is_null() || !idle && !state.to_pageable.load(Ordering::Relaxed) {
            return false;
        }
        let pageable = memory_sort(self.host) == MemorySort::Pageable;
        state.to_pageable.store(pageable, Ordering::Relaxed);
        pageable
    }

    fn is_short(self) -> bool {
        self.size <= SHORT
    }

    /// Whether it is marked together with others.
    pub fn is_small(self) -> bool {
        self.size <= if self.on_device { SMALL_ON_DEVICE } else { SMALL }
    }
}

/// Marks the copy that was just queued on the stream of `request`, and is described by `copy` where it is known: from
/// now on the request turns to DONE by itself. The stream's context is current.
///
/// When this fails the copy may still be under way; the caller drains the stream.
pub fn mark(request: &Request, copy: Option<Queued>) -> Result<()> {
    let state = request.stream_state();
    let idle = state.outstanding.fetch_add(1, Ordering::AcqRel) == 0;
    if copy.is_some_and(|copy| copy.finished || copy.went_to_pageable_memory(state, idle)) {
        request.set_done();
        return Ok(());
    }
    let mark = request.mark();
    let marked = if state.stream.is_per_thread() {
        marking::mark_per_thread(state, mark)
    } else if !idle {
        let when = match copy {
            Some(copy) if copy.is_small() => When::InBurst,
            Some(copy) if !copy.is_short() => When::Later,
            _ => When::Now,
        };
        marking::mark(state, mark, when)
    } else if state.pool.device_writes.load(Ordering::Relaxed) && copy.is_none_or(Queued::is_short) {
        // SAFETY: a status word lies in a registered slab of this context, and its slot is kept until it was written.
        match unsafe { state.stream.write(&[mark.word()], DONE) } {
            Ok(()) => {
                mark.hand();
                Ok(())
            }
            Err(_) => marking::mark(state, mark, When::Now),
        }
    } else {
        marking::mark(state, mark, When::Now)
    };
    if marked.is_err() {
        state.outstanding.fetch_sub(1, Ordering::AcqRel);
    }
    marked
}

/// To be called before something is queued that takes long: what was queued before it is not to wait for it. The
/// stream's context is current.
#[inline]
pub fn before_long(state: &Arc<StreamState>) {
    marking::mark_left(state);
}

/// Marks what has lain still on a stream; see `marking::try_mark_all`. False when that has to be tried again.
pub fn mark_stragglers(state: &Arc<StreamState>, who: Holder) -> bool {
    if state.is_closed() {
        return true;
    }
    match state.context.enter() {
        Ok(_current) => marking::try_mark_all(state, who),
        Err(_) => !state.context.lives(),
    }
}

/// Waits for a request and frees it; later work on the stream need not be done.
pub fn wait(request: Request) -> Result<()> {
    let outcome = await_done(&request);
    if outcome.is_err() {
        drain_behind(&request);
    }
    free(request);
    outcome
}

/// Waits for the copy of `request`, whose failure is going to be reported: nothing may be written afterwards.
#[cold]
fn drain_behind(request: &Request) {
    let state = request.stream_state();
    let waited = request.event().is_some_and(|event| event.synchronize().is_ok());
    if !waited && !state.is_closed() && !state.stream.is_per_thread() {
        drain(state);
    }
}

fn await_done(request: &Request) -> Result<()> {
    if request.is_done() {
        return Ok(());
    }
    let state = request.stream_state();
    let finished = Patience::looking().wait(
        || {
            if !request.is_handed() && !state.marking.is_busy() {
                mark_stragglers(state, Holder::Program); // it is one of them
            }
            request.is_done()
        },
        || {
            let _current = state.context.enter()?;
            if state.is_closed() {
                return request.event().map_or(Ok(true), |event| asked_twice(|| event.is_done()));
            }
            let copied = match request.event() {
                Some(event) => asked_twice(|| event.is_done())?,
                None => asked_twice(|| state.stream.is_done())?,
            };
            // The word may come later: in one batch with that of a copy behind work of the program's own. But nobody
            // may be in the driver for it any more: the stream or its context may go next.
            Ok(copied && request.is_handed() && !state.marking.is_busy())
        },
    );
    if finished.is_ok() && request.is_refused() {
        request.set_done();
    }
    finished
}

/// Gives a request back that was made and marked.
fn free(mut request: Request) {
    let refused = request.is_refused();
    let state = request.take_stream_state();
    state.outstanding.fetch_sub(1, Ordering::AcqRel);
    if refused {
        state.marking.forget_refused(request.mark());
    }
    // A word that was not written yet may still be, unless nobody has told the device.
    let settled = refused || request.is_done() || !request.is_handed() && marking::withdraw(&state, request.mark());
    state.pool.recycle(request, settled);
}

/// Waits for all work of the stream, and until each request that was made on it before is DONE.
pub fn settle(state: &Arc<StreamState>, context: Context) -> Result<()> {
    let settled = try_settle(state, context);
    if settled.is_err() {
        drain(state);
    }
    settled
}

fn try_settle(state: &Arc<StreamState>, context: Context) -> Result<()> {
    let _current = context.enter()?;
    let requests = state.outstanding.load(Ordering::Acquire) > 0;
    let written = requests.then(|| marking::mark_all(state));
    await_stream(state.stream)?;
    written.map_or(Ok(()), |written| written.settle(state))
}

/// Waits for all work of the stream after a failure, before that is reported: nothing may be written to the program's
/// memory afterwards. Where this fails as well the context is gone or the device lost, and nothing moves any more.
#[cold]
pub fn drain(state: &StreamState) {
    let Ok(_current) = state.context.enter() else { return };
    if await_stream(state.stream).is_err() {
        let _ = state.stream.synchronize();
    }
}
