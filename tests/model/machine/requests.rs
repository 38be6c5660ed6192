//! What a thread does with requests, streams, contexts and DMAs, besides copying.

use super::driver::{NON_BLOCKING, driver, printed, within};
use super::holds::Waits;
use super::line::Line;
use super::memory::{Lent, difference};
use super::worker::{Outstanding, Worker, ensure, status};
use super::world::{HandedOver, Made, Outcome, Slot, SlotSort};
use aml_dma_cuda::abi::{AML_DMA_CUDA_REQUEST_STATUS_DONE as DONE, AML_DMA_CUDA_REQUEST_STATUS_PENDING as PENDING, *};
use aml_dma_cuda::capi::*;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

/// At most so many requests are on their way to other threads.
const HANDED_OVER: usize = 16;

impl<'a> Worker<'a> {
    /// The slot, to be used.
    pub fn slot(&self, index: usize) -> RwLockReadGuard<'a, Slot> {
        self.world.slots[index].read().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// The slot, to be changed, unless somebody uses it.
    fn slot_alone(&self, index: usize) -> Option<RwLockWriteGuard<'a, Slot>> {
        self.world.slots[index].try_write().ok()
    }

    /// Has a request waited for or destroyed, by its DMA or another with the same stream.
    fn give_back(&mut self, slot: usize, mut request: *mut aml_dma_request, cancel: bool, choice: u8) -> Outcome {
        let guard = self.slot(slot);
        let seat = self.seat(&guard, slot).ok_or("a DMA went before its requests")?;
        let data = if choice & 8 != 0 { seat.twin } else { seat.data };
        // SAFETY: data and request live, and the request is nobody else's.
        self.call_for(AML_SUCCESS, if cancel { "request_destroy" } else { "request_wait" }, || unsafe {
            if cancel {
                aml_dma_cuda_request_destroy(data.cast(), &mut request)
            } else {
                aml_dma_cuda_request_wait(data.cast(), &mut request)
            }
        })?;
        ensure!(request.is_null(), "the pointer to the request was not set to NULL");
        guard.outstanding.fetch_sub(1, Ordering::AcqRel);
        Ok(())
    }

    /// Waits for one of the thread's requests: then its copy has arrived.
    pub fn finish(&mut self, which: usize, cancel: bool, choice: u8) -> Outcome {
        let outstanding = self.requests.swap_remove(which);
        let waiting = self.waiting(Waits::For(outstanding.line.group), choice);
        self.give_back(outstanding.slot, outstanding.request, cancel, choice)?;
        drop(waiting);
        self.arrived(&outstanding)
    }

    /// Looks at what a request that is done has brought.
    fn arrived(&mut self, outstanding: &Outstanding) -> Outcome {
        self.note_done(&outstanding.line, outstanding.position);
        let Some(dst) = outstanding.dst else { return Ok(()) };
        self.check(dst).map_err(|text| format!("a request is done, but {text}"))
    }

    /// Looks at the status of a request.
    pub fn poll(&mut self, which: usize) -> Outcome {
        let outstanding = &mut self.requests[which];
        let status = outstanding.status();
        ensure!(status == PENDING || status == DONE, "the status is {status}");
        ensure!(status == DONE || !outstanding.was_done, "the status was DONE, and is PENDING again");
        let was_done = std::mem::replace(&mut outstanding.was_done, status == DONE);
        let request = outstanding.request.cast::<aml_dma_cuda_request>();
        // SAFETY: the request lives, and its mutex is for the program's use.
        let locked = unsafe {
            let lock = &raw mut (*request).lock;
            libc::pthread_mutex_trylock(lock) == 0 && libc::pthread_mutex_unlock(lock) == 0
        };
        ensure!(locked, "the request's mutex is not one");
        if status == PENDING || was_done {
            return Ok(());
        }
        let (line, position, dst) = (outstanding.line.clone(), outstanding.position, outstanding.dst);
        self.note_done(&line, position);
        dst.map_or(Ok(()), |dst| self.check(dst)).map_err(|text| format!("a status is DONE, but {text}"))
    }

    /// A request whose stream nobody holds becomes DONE by itself.
    pub fn expect(&mut self, which: usize, choice: u8) -> Outcome {
        let outstanding = &self.requests[which];
        let waiting = self.waiting(Waits::For(outstanding.line.group), choice);
        let mut turns = 0;
        while outstanding.status() != DONE && !self.world.has_failed() {
            turns += 1;
            if turns > 100 {
                std::thread::sleep(Duration::from_micros(20))
            } else {
                std::thread::yield_now()
            };
        }
        drop(waiting);
        if self.world.has_failed() { Ok(()) } else { self.poll(which) }
    }

    /// Waits for a whole stream: all that this thread queued there has arrived, and its requests are DONE.
    pub fn barrier(&mut self, slot: usize, choice: u8) -> Outcome {
        let guard = self.slot(slot);
        let Some(seat) = self.seat(&guard, slot) else { return Ok(()) };
        let waiting = self.waiting(Waits::For(seat.line.group), choice);
        // SAFETY: the DMA lives while the slot is read.
        self.call_for(AML_SUCCESS, "barrier", || unsafe { aml_dma_cuda_barrier(seat.data.cast()) })?;
        drop(waiting);
        for outstanding in &self.requests {
            let concerned = outstanding.line.id == seat.line.id;
            ensure!(!concerned || outstanding.status() == DONE, "a request is not DONE after a barrier");
        }
        let known = self.known(&seat.line);
        known.done = known.queued;
        for index in 0..self.kept.buffers.all.len() {
            let used = self.kept.buffers.all[index].used.as_ref();
            if used.is_some_and(|used| used.line.id == seat.line.id) {
                self.check(index).map_err(|text| format!("after a barrier, {text}"))?;
                if self.is_idle(index) && self.kept.buffers.all[index].lent.is_none() {
                    self.kept.buffers.all[index].used = None;
                }
            }
        }
        Ok(())
    }

    /// Holds the stream of a DMA.
    pub fn hold(&mut self, slot: usize) -> Outcome {
        let guard = self.slot(slot);
        if let Some(seat) = self.seat(&guard, slot) {
            self.world.holds.hold(&seat.line);
        }
        Ok(())
    }

    /// Takes that back.
    pub fn release(&mut self, slot: usize) -> Outcome {
        let guard = self.slot(slot);
        if let Some(seat) = self.seat(&guard, slot) {
            self.world.holds.release(Waits::For(seat.line.group));
        }
        Ok(())
    }

    /// Leaves a request to whoever takes it.
    pub fn hand_over(&mut self, choice: u8) -> Outcome {
        let mut handed_over = self.world.handed_over.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if self.requests.is_empty() || handed_over.len() >= HANDED_OVER {
            return Ok(());
        }
        let outstanding = self.requests.swap_remove(usize::from(choice) % self.requests.len());
        let returned = Arc::new(AtomicBool::new(false));
        let mut arrival = None;
        if let Some(dst) = outstanding.dst {
            let buffer = &mut self.kept.buffers.all[dst];
            let is_last = buffer
                .used
                .as_ref()
                .is_some_and(|used| used.line.id == outstanding.line.id && used.last_write == outstanding.position);
            if is_last && !buffer.large && buffer.lent.is_none() {
                arrival = Some((buffer.place, buffer.address, buffer.content.clone()));
                let (line, position) = (outstanding.line.id, outstanding.position);
                buffer.lent = Some(Lent { returned: returned.clone(), line, position });
            }
        }
        let Outstanding { request, slot, line, .. } = outstanding;
        handed_over.push(HandedOver { request: request as usize, slot, group: line.group, arrival, returned });
        Ok(())
    }

    /// Waits for a request that another thread made.
    pub fn take_over(&mut self, choice: u8, delay: u8) -> Outcome {
        let handed_over = {
            let mut all = self.world.handed_over.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            if all.is_empty() {
                return Ok(());
            }
            let which = usize::from(choice) % all.len();
            all.swap_remove(which)
        };
        let waiting = self.waiting(Waits::For(handed_over.group), delay);
        self.give_back(handed_over.slot, handed_over.request as *mut _, choice & 0x80 != 0, delay)?;
        drop(waiting);
        if let Some((place, address, content)) = handed_over.arrival {
            let service = self.service(place.context);
            if let Some(text) = difference(place.sort, address, &content, service) {
                return Err(format!("another thread's request is done, but of a buffer in {place:?} {text}"));
            }
        }
        handed_over.returned.store(true, Ordering::Release);
        Ok(())
    }

    /// Makes a context current, above the others.
    pub fn push(&mut self, place: usize) -> Outcome {
        if self.stack.len() < 4 {
            // SAFETY: the context lives.
            let code = unsafe { (driver().cuCtxPushCurrent_v2)(self.world.contexts[place]) };
            ensure!(code == 0, "a context cannot be pushed: {code}");
            self.stack.push(place);
        }
        Ok(())
    }

    /// Takes the current context off.
    pub fn pop(&mut self) -> Outcome {
        if let Some(place) = self.stack.pop() {
            let mut popped = 0;
            // SAFETY: `popped` is valid for a write.
            let code = unsafe { (driver().cuCtxPopCurrent_v2)(&mut popped) };
            ensure!(code == 0 && popped == self.world.contexts[place], "another context was current");
        }
        Ok(())
    }

    /// Has the library make a DMA.
    pub fn create(&mut self, slot: usize, kind: u8) -> Outcome {
        let Some(mut guard) = self.slot_alone(slot) else { return Ok(()) };
        let SlotSort::Made(made @ None) = &mut guard.sort else { return Ok(()) };
        let kind = (kind % 5).into();
        let mut dma = ptr::null_mut();
        // SAFETY: `dma` is valid for a write.
        self.call_for(AML_SUCCESS, "create", || unsafe { aml_dma_cuda_create(&mut dma, kind) })?;
        ensure!(!dma.is_null(), "create stored no DMA");
        let place = self.current();
        let context = self.world.contexts[place];
        // SAFETY: the DMA was just made, and says which stream it has.
        let (flags, of, public) = unsafe {
            let data = *(*dma).data.cast::<aml_dma_cuda_data>();
            let (mut flags, mut of) = (0, 0);
            let code = within(context, || {
                (driver().cuStreamGetFlags)(data.stream as usize, &mut flags)
                    | (driver().cuStreamGetCtx)(data.stream as usize, &mut of)
            });
            ensure!(code == 0, "the stream of a new DMA is none: {code}");
            (flags, of, data)
        };
        ensure!(flags == NON_BLOCKING, "the stream of a new DMA has flags {flags}");
        ensure!(of == context, "the stream of a new DMA belongs to context {of:x}, not {context:x}");
        ensure!(public.kind == kind, "the kind of a new DMA is {}, not {kind}", public.kind);
        *made = Some(Made { dma, line: Line::new((place, context), public.stream as usize, false) });
        guard.kind.store(kind, Ordering::Relaxed);
        Ok(())
    }

    /// Has the library destroy a DMA that has no requests, which waits for its copies.
    pub fn destroy(&mut self, slot: usize, choice: u8) -> Outcome {
        while let Some(which) = self.requests.iter().position(|outstanding| outstanding.slot == slot) {
            if !matches!(self.slot(slot).sort, SlotSort::Made(_)) {
                return Ok(());
            }
            self.finish(which, false, choice)?;
        }
        let Some(mut guard) = self.slot_alone(slot) else { return Ok(()) };
        let outstanding = guard.outstanding.load(Ordering::Acquire);
        let SlotSort::Made(place) = &mut guard.sort else { return Ok(()) };
        let Some(made) = place.as_ref().filter(|_| outstanding == 0) else { return Ok(()) };
        let (mut dma, line) = (made.dma, made.line.clone());
        let holds = &self.world.holds;
        let held = self.known(&line).held.is_some_and(|serial| holds.while_held(serial, || ()).is_some());
        if !held {
            holds.release(Waits::For(line.group)); // no work would keep it from going before its release
        }
        let waiting = self.waiting(Waits::For(line.group), if held { choice } else { 0 });
        let alone = line.in_use.write().unwrap_or_else(|poisoned| poisoned.into_inner());
        // SAFETY: the DMA is the library's, and nobody uses it.
        self.call_for(AML_SUCCESS, "destroy", || unsafe { aml_dma_cuda_destroy(&mut dma) })?;
        drop(waiting);
        ensure!(dma.is_null(), "destroy did not set the pointer to NULL");
        *place = None;
        line.end();
        drop(alone);
        for index in 0..self.kept.buffers.all.len() {
            if self.kept.buffers.all[index].used.as_ref().is_some_and(|used| used.line.id == line.id) {
                self.check(index).map_err(|text| format!("after destroy, {text}"))?;
            }
        }
        Ok(())
    }

    /// Changes the direction of a DMA's copies.
    pub fn set_kind(&mut self, slot: usize, kind: u8) -> Outcome {
        let Some(guard) = self.slot_alone(slot) else { return Ok(()) };
        if let Some(seat) = self.seat(&guard, slot) {
            // SAFETY: the DMA lives, and nobody uses it.
            unsafe { (*seat.data).kind = (kind % 5).into() };
            guard.kind.store((kind % 5).into(), Ordering::Relaxed);
        }
        Ok(())
    }

    /// Has the library print a DMA.
    pub fn describe(&mut self, slot: usize) -> Outcome {
        let guard = self.slot(slot);
        let Some(seat) = self.seat(&guard, slot) else { return Ok(()) };
        // SAFETY: nobody writes to the table of operations.
        let print = unsafe { aml_dma_cuda::statics::aml_dma_cuda_ops.fprintf }.ok_or("fprintf is NULL")?;
        let mut text = String::new();
        self.call_for(AML_SUCCESS, "fprintf", || {
            // SAFETY: the DMA lives, the file is open, and the prefix ends in NUL.
            let (code, printed) = printed(|file| unsafe { print(seat.data.cast(), file, c"> ".as_ptr()) });
            text = printed;
            code
        })?;
        ensure!(text.starts_with("> ") && text.find('\n') == Some(text.len() - 1), "{text:?} is not one line");
        ensure!(
            text.contains(
                ["HostToHost", "HostToDevice", "DeviceToHost", "DeviceToDevice", "Default"][seat.kind as usize]
            ),
            "{text:?} does not name kind {}",
            seat.kind
        );
        let device = super::world::device_of(seat.line.place);
        ensure!(text.contains(&format!("device {device}")), "{text:?} does not name device {device}");
        Ok(())
    }

    /// Notes a new request.
    pub fn keep(&mut self, request: *mut aml_dma_request, slot: &Slot, outstanding: Outstanding) -> Outcome {
        let status = status(request);
        ensure!(status == PENDING || status == DONE, "the status of a new request is {status}");
        slot.outstanding.fetch_add(1, Ordering::AcqRel);
        self.requests.push(outstanding);
        Ok(())
    }
}
