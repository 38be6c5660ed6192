//! One thread of a run: what it knows of its requests, its buffers and the streams, and what it checks.

use super::driver::{driver, make_stream, must, stack, within};
use super::holds::{Waiting, Waits};
use super::line::{Line, PER_THREAD};
use super::memory::{Buffers, Kinds, Place, Service, Sort, Used};
use super::step::{Action, Step};
use super::world::{Outcome, Slot, SlotSort, World};
use aml_dma_cuda::abi::*;
use std::collections::HashMap;
use std::ffi::c_int;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::time::Duration;

/// Calls of the library that were made.
pub static CALLS: AtomicU64 = AtomicU64::new(0);

/// Ends a step with a fault unless something is as it has to be.
macro_rules! ensure {
    ($condition:expr, $($text:tt)*) => { if !$condition { return Err(format!($($text)*)); } };
}
pub(super) use ensure;

/// What a thread keeps from run to run.
#[derive(Default)]
pub struct Kept {
    pub buffers: Buffers,
    /// Streams in the primary contexts, by context.
    pub services: HashMap<usize, usize>,
}

/// How far a thread knows a stream to be.
pub struct Progress {
    pub line: Arc<Line>,
    /// So many pieces of work this thread has queued there, and so many are done.
    pub queued: u64,
    pub done: u64,
    /// The hold under which one was seen to be pending.
    pub held: Option<u64>,
}

/// A request of this thread.
pub struct Outstanding {
    pub request: *mut aml_dma_request,
    pub slot: usize,
    pub line: Arc<Line>,
    pub position: u64,
    /// The buffer that its copy writes to.
    pub dst: Option<usize>,
    pub was_done: bool,
}

impl Outstanding {
    /// The status word.
    pub fn status(&self) -> c_int {
        status(self.request)
    }
}

/// The status word of a request.
pub fn status(request: *mut aml_dma_request) -> c_int {
    // SAFETY: the request was not given back, so its word can be read.
    unsafe { AtomicI32::from_ptr(&raw mut (*request.cast::<aml_dma_cuda_request>()).status) }.load(Ordering::Acquire)
}

/// A DMA as this thread would use it now.
pub struct Seat {
    pub slot: usize,
    pub data: *mut aml_dma_cuda_data,
    /// Another with the same stream, or the same.
    pub twin: *mut aml_dma_cuda_data,
    pub line: Arc<Line>,
    pub kind: c_int,
    /// Whether nobody else uses `data`.
    pub own: bool,
}

/// A thread.
pub struct Worker<'a> {
    pub world: &'a World,
    pub kept: &'a mut Kept,
    /// The places of the contexts on the thread's stack.
    pub stack: Vec<usize>,
    pub requests: Vec<Outstanding>,
    pub progress: HashMap<u64, Progress>,
    per_thread: HashMap<usize, Arc<Line>>,
    created_service: Option<usize>,
    own: HashMap<usize, [Box<aml_dma_cuda_data>; 2]>,
    pub tag: u64,
}

impl<'a> Worker<'a> {
    /// A thread without contexts and requests.
    pub fn new(world: &'a World, kept: &'a mut Kept, number: usize) -> Worker<'a> {
        Worker {
            world,
            kept,
            stack: Vec::new(),
            requests: Vec::new(),
            progress: HashMap::new(),
            per_thread: HashMap::new(),
            created_service: None,
            own: HashMap::new(),
            tag: (number as u64) << 32,
        }
    }

    /// Does what one step says.
    pub fn run(&mut self, step: &Step) -> Outcome {
        let [first, second, ..] = step.choices;
        let slot = step.dma % self.world.slots.len();
        match step.action {
            Action::Copy => self.copy(slot, step.choices),
            Action::CopyLayout => self.copy_layout(slot, step.choices),
            Action::Operate => self.operate(slot, step.choices),
            Action::Misuse => self.misuse(slot, step.choices),
            Action::Wait | Action::Cancel if self.requests.is_empty() => Ok(()),
            Action::Wait => self.finish(usize::from(first) % self.requests.len(), false, second),
            Action::Cancel => self.finish(usize::from(first) % self.requests.len(), true, second),
            Action::Poll | Action::Expect if self.requests.is_empty() => Ok(()),
            Action::Poll => self.poll(usize::from(first) % self.requests.len()),
            Action::Expect => self.expect(usize::from(first) % self.requests.len(), second),
            Action::Barrier => self.barrier(slot, first),
            Action::Hold => self.hold(slot),
            Action::Release => self.release(slot),
            Action::HandOver => self.hand_over(first),
            Action::TakeOver => self.take_over(first, second),
            Action::Push => self.push(usize::from(first) % self.world.contexts.len()),
            Action::Pop => self.pop(),
            Action::Create => self.create(slot, first),
            Action::Destroy => self.destroy(slot, first),
            Action::SetKind => self.set_kind(slot, first),
            Action::Describe => self.describe(slot),
        }
    }

    /// Waits for all that is left, and looks at all that arrived.
    pub fn end(mut self) -> Outcome {
        while let Some(last) = self.requests.len().checked_sub(1) {
            self.finish(last / 2, last % 5 == 0, last as u8)?;
        }
        let lines: Vec<_> = self.progress.values().map(|progress| progress.line.clone()).collect();
        for line in lines {
            self.settle(&line)?;
        }
        for index in 0..self.kept.buffers.all.len() {
            if self.kept.buffers.all[index].used.is_some() {
                self.check(index)?;
            }
        }
        while !self.stack.is_empty() {
            self.pop()?;
        }
        if let Some(stream) = self.created_service {
            // SAFETY: it was made by this thread, and its work is done.
            must(unsafe { (driver().cuStreamDestroy_v2)(stream) });
        }
        Ok(())
    }

    /// After a fault: lets go of what can be let go of.
    pub fn give_up(mut self) {
        for mut outstanding in std::mem::take(&mut self.requests) {
            let slot = self.world.slots[outstanding.slot].read();
            let slot = slot.unwrap_or_else(|poisoned| poisoned.into_inner());
            if let Some(seat) = self.seat(&slot, outstanding.slot) {
                let _waiting = self.waiting(Waits::ForAll, 0);
                // SAFETY: the request is this thread's, and the DMA its own.
                unsafe { aml_dma_cuda::capi::aml_dma_cuda_request_wait(seat.data.cast(), &mut outstanding.request) };
            }
        }
        let mut popped = 0;
        // SAFETY: `popped` is valid for a write.
        while unsafe { (driver().cuCtxPopCurrent_v2)(&mut popped) } == 0 {}
    }

    /// Calls the library: afterwards the thread's contexts are what they were.
    pub fn call(&self, work: impl FnOnce() -> c_int) -> Outcome<c_int> {
        CALLS.fetch_add(1, Ordering::Relaxed);
        let code = work();
        let (found, wanted) = (stack(), self.stack.iter().map(|&place| self.world.contexts[place]).collect::<Vec<_>>());
        ensure!(found == wanted, "the thread's contexts are {found:x?}, and were {wanted:x?}");
        Ok(code)
    }

    /// As `call`, for a call that has to answer with `wanted`.
    pub fn call_for(&self, wanted: c_int, name: &str, work: impl FnOnce() -> c_int) -> Outcome {
        let code = self.call(work)?;
        ensure!(code == wanted, "{name} answered {code}, not {wanted}");
        Ok(())
    }

    /// The place of the context that CUDA's own streams belong to now.
    pub fn current(&self) -> usize {
        self.stack.last().copied().unwrap_or(0)
    }

    /// Sees to it that a wait does not last for ever; `choice` says when held streams are released.
    pub fn waiting(&self, waits: Waits, choice: u8) -> Waiting<'a> {
        let delay = [0, 0, 0, 20, 100, 1000, 0, 50][usize::from(choice & 7)];
        self.world.holds.waiting(waits, Duration::from_micros(delay))
    }

    /// How the model copies in the context in that place.
    pub fn service(&mut self, place: usize) -> Service {
        let context = self.world.contexts[place];
        let make = || make_stream(context, super::driver::NON_BLOCKING);
        let stream = if place == super::world::CREATED {
            *self.created_service.get_or_insert_with(make)
        } else {
            *self.kept.services.entry(place).or_insert_with(make)
        };
        Service { context, stream }
    }

    /// The DMA of a slot, if there is one.
    pub fn seat(&mut self, slot: &Slot, index: usize) -> Option<Seat> {
        let current = self.current();
        let contexts = &self.world.contexts;
        let (line, data) = match &slot.sort {
            SlotSort::Made(made) => (made.as_ref()?.line.clone(), Some(made.as_ref()?.data())),
            SlotSort::Static => {
                (self.world.legacy[current].clone(), Some(&raw mut aml_dma_cuda::statics::aml_dma_cuda_data))
            }
            SlotSort::Special(PER_THREAD) => {
                let new = || Line::new((current, contexts[current]), PER_THREAD, true);
                (self.per_thread.entry(current).or_insert_with(new).clone(), None)
            }
            SlotSort::Special(_) => (self.world.legacy[current].clone(), None),
            SlotSort::Own(line) => (line.clone(), None),
        };
        if let Some(data) = data {
            let kind = slot.kind.load(Ordering::Relaxed);
            return Some(Seat { slot: index, data, twin: data, line, kind, own: false });
        }
        let stream = match slot.sort {
            SlotSort::Special(handle) => handle,
            _ => line.handle,
        };
        let new = || {
            let data = aml_dma_cuda_data { stream: stream as cudaStream_t, kind: super::world::DEFAULT };
            [Box::new(data), Box::new(data)]
        };
        let [data, twin] = self.own.entry(index).or_insert_with(new);
        let kind = data.kind;
        Some(Seat { slot: index, data: &raw mut **data, twin: &raw mut **twin, line, kind, own: true })
    }

    /// What is known of a stream.
    pub fn known(&mut self, line: &Arc<Line>) -> &mut Progress {
        let new = || Progress { line: line.clone(), queued: 0, done: 0, held: None };
        self.progress.entry(line.id).or_insert_with(new)
    }

    /// Notes that all up to that piece of work is done.
    pub fn note_done(&mut self, line: &Arc<Line>, position: u64) {
        let known = self.known(line);
        known.done = known.done.max(position);
    }

    /// Whether a piece of work is done, as far as this thread knows.
    pub fn is_done(&self, line: &Line, position: u64) -> bool {
        line.is_over() || self.progress.get(&line.id).is_none_or(|known| known.done >= position)
    }

    /// Takes a buffer back that was lent, if it was returned. True when it is this thread's.
    fn regain(&mut self, index: usize) -> bool {
        let Some(lent) = &self.kept.buffers.all[index].lent else { return true };
        if !lent.returned.load(Ordering::Acquire) {
            return false;
        }
        let (line, position) = (lent.line, lent.position);
        self.kept.buffers.all[index].lent = None;
        if let Some(known) = self.progress.get_mut(&line) {
            known.done = known.done.max(position);
        }
        true
    }

    /// Whether nothing that was queued uses the buffer.
    pub fn is_idle(&self, index: usize) -> bool {
        let used = self.kept.buffers.all[index].used.as_ref();
        used.is_none_or(|used| self.is_done(&used.line, used.last))
    }

    /// A buffer in a place that may be used on a stream now, filled; none when all are lent.
    pub fn buffer(
        &mut self,
        place: Place,
        large: bool,
        choice: usize,
        line: &Line,
        except: Option<usize>,
    ) -> Outcome<Option<usize>> {
        let context = self.world.contexts[place.context];
        let mut candidates = self.kept.buffers.in_place(place, large, context);
        let count = candidates.len();
        candidates.rotate_left(choice % count);
        candidates.retain(|&index| Some(index) != except && self.regain(index));
        let fits = |index: &usize| {
            let used = self.kept.buffers.all[*index].used.as_ref();
            used.is_none_or(|used| used.line.id == line.id || self.is_done(&used.line, used.last))
        };
        let found = match candidates.iter().copied().find(fits) {
            Some(index) => index,
            None => {
                let Some(&index) = candidates.first() else { return Ok(None) };
                let other = self.kept.buffers.all[index].used.as_ref().map(|used| used.line.clone());
                if let Some(other) = other {
                    self.settle(&other)?;
                }
                index
            }
        };
        if self.kept.buffers.all[found].content.is_empty() {
            self.fill(found);
        }
        Ok(Some(found))
    }

    /// Gives a buffer new content. Nothing uses it.
    pub fn fill(&mut self, index: usize) {
        self.tag += 1;
        let (tag, place) = (self.tag, self.kept.buffers.all[index].place);
        let service = self.service(place.context);
        self.kept.buffers.all[index].fill(tag, service);
    }

    /// Notes a piece of work on a stream: a copy between two buffers, or none that moves any byte. Gives its position.
    pub fn note(&mut self, line: &Arc<Line>, copy: Option<(usize, usize)>) -> u64 {
        let known = self.known(line);
        known.queued += 1;
        let position = known.queued;
        let Some((dst, src)) = copy else { return position };
        let sort = |worker: &Self, index: usize| worker.kept.buffers.all[index].place.sort;
        if sort(self, dst) == Sort::Pageable || sort(self, dst).is_host() && sort(self, src).is_host() {
            self.note_done(line, position); // so it was filled when the call returned, and all before that was done
            return position;
        }
        for (index, writes) in [(src, false), (dst, true)] {
            if sort(self, index) == Sort::Pageable {
                continue; // it was taken along
            }
            let buffer = &mut self.kept.buffers.all[index];
            let last_write = match &buffer.used {
                _ if writes => position,
                Some(used) if used.line.id == line.id => used.last_write,
                _ => 0,
            };
            buffer.used = Some(Used { line: line.clone(), last: position, last_write });
        }
        position
    }

    /// Looks whether a buffer contains what it has to, if that is settled.
    pub fn check(&mut self, index: usize) -> Outcome {
        if !self.regain(index) {
            return Ok(());
        }
        let buffer = &self.kept.buffers.all[index];
        if buffer.used.as_ref().is_some_and(|used| !self.is_done(&used.line, used.last_write)) {
            return Ok(());
        }
        let place = buffer.place;
        let service = self.service(place.context);
        match self.kept.buffers.all[index].difference(service) {
            None => Ok(()),
            Some(text) => Err(format!("a buffer in {place:?}: {text}")),
        }
    }

    /// Waits for a stream without the library.
    pub fn settle(&mut self, line: &Arc<Line>) -> Outcome {
        let in_use = line.in_use.read().unwrap_or_else(|poisoned| poisoned.into_inner());
        if !line.is_over() {
            let _waiting = self.waiting(Waits::For(line.group), 0);
            // SAFETY: the stream lives.
            let code = within(line.context, || unsafe { (driver().cuStreamSynchronize)(line.handle) });
            ensure!(code == 0, "the driver lost a stream: {code}");
        }
        drop(in_use);
        let known = self.known(line);
        known.done = known.queued;
        Ok(())
    }

    /// The pairs of sorts of destination and source for a copy, by choice.
    pub fn sorts(kind: c_int, taken: bool, choice: u8) -> Option<(super::memory::Sort, super::memory::Sort)> {
        let pairs = Kinds::table().pairs(kind, taken);
        (!pairs.is_empty()).then(|| pairs[usize::from(choice) % pairs.len()])
    }
}
