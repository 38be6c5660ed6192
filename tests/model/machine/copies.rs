//! Copies: by each of the library's operators, by operators of the program's own, with and without a request.

use super::dense::Dense;
use super::holds::Waits;
use super::memory::{DEVICE_TO_DEVICE, Place, Sort};
use super::worker::{Outstanding, Seat, Worker, ensure};
use super::world::{Outcome, Slot, SlotSort, device_of};
use aml_dma_cuda::abi::{AML_DMA_CUDA_REQUEST_STATUS_PENDING as PENDING, *};
use aml_dma_cuda::capi::*;
use std::ffi::{c_int, c_void};

/// What is in a request's place before it is made.
pub const POISON: usize = 0x5eed_0bad;

/// Copies of pageable memory from this size on are staged, by buffers that all streams share.
const STAGED: usize = 512 << 10;

const LAYOUTS: unsafe extern "C-unwind" fn(*mut aml_layout, *const aml_layout, *mut c_void) -> c_int =
    aml_dma_cuda_copy_layout;

const SMALL_SIZES: [usize; 16] = [64, 0, 1, 2, 3, 7, 8, 16, 100, 255, 1000, 2048, 4095, 4096, 4097, 4120];
const LARGE_SIZES: [usize; 8] =
    [STAGED, STAGED - 1, STAGED + 1, 64 << 10, (64 << 10) + 1, 100_000, 700_001, (768 << 10) + 20];

/// Two buffers, and whether copies between them are taken.
#[derive(Clone, Copy)]
pub struct Pair {
    pub dst: usize,
    pub src: usize,
    pub taken: bool,
}

/// `AML_DMA_CUDA_DEVICE_PAIR`
pub fn device_pair(src: i32, dst: i32) -> *mut c_void {
    ((u64::from(dst as u32) << 32) | u64::from(src as u32)) as *mut c_void
}

/// How a request is to be made.
pub struct Call {
    pub op: aml_dma_operator,
    pub op_arg: *mut c_void,
    pub dst: *mut aml_layout,
    pub src: *mut aml_layout,
    pub with_request: bool,
}

impl Worker<'_> {
    /// Makes sure that there is a DMA in a slot of the library's.
    fn occupy(&mut self, slot: usize, kind: u8) -> Outcome {
        let empty = matches!(self.slot(slot).sort, SlotSort::Made(None));
        if empty { self.create(slot, kind) } else { Ok(()) }
    }

    /// A device's memory that a DMA may be asked to copy: its own context's, or where the kind allows it, any.
    fn device_place(&self, seat: &Seat, own: bool, choice: usize) -> usize {
        let any = matches!(seat.kind, 0 | DEVICE_TO_DEVICE | 4) && !own;
        if any { choice % self.world.contexts.len() } else { seat.line.place }
    }

    /// Two buffers that may be used on the DMA's stream now, the source perhaps with new content.
    pub fn pair(
        &mut self,
        seat: &Seat,
        (to, from): (Sort, Sort),
        taken: bool,
        large: bool,
        own: bool,
        choice: u8,
    ) -> Outcome<Option<Pair>> {
        let choice = usize::from(choice);
        let place = |worker: &Self, sort, choice| Place {
            sort,
            context: if sort == Sort::Device { worker.device_place(seat, own, choice) } else { 0 },
        };
        let (to, from) = (place(self, to, choice), place(self, from, choice / 3));
        let Some(src) = self.buffer(from, large, choice, &seat.line, None)? else { return Ok(None) };
        let Some(dst) = self.buffer(to, large, choice / 4, &seat.line, Some(src))? else { return Ok(None) };
        if choice & 3 == 0 && self.is_idle(src) {
            self.fill(src);
        }
        Ok(Some(Pair { dst, src, taken }))
    }

    /// The pair of devices that the operators want, for two buffers.
    pub fn devices(&self, seat: &Seat, pair: Pair) -> *mut c_void {
        let device = |index: usize| {
            let place = self.kept.buffers.all[index].place;
            device_of(if place.sort == Sort::Device { place.context } else { seat.line.place })
        };
        device_pair(device(pair.src), device(pair.dst))
    }

    /// What a copy may have to wait for before the call returns: CUDA copies from host to host, and to pageable memory,
    /// at once, and what is staged goes through buffers that all streams share. A pageable source is taken along.
    pub fn waits(&self, seat: &Seat, pair: Pair, size: usize) -> Option<Waits> {
        let sort = |index: usize| self.kept.buffers.all[index].place.sort;
        let (to, from) = (sort(pair.dst), sort(pair.src));
        if !pair.taken {
            None
        } else if size >= STAGED && (to == Sort::Pageable || from == Sort::Pageable) {
            Some(Waits::ForAll)
        } else if to == Sort::Pageable || to.is_host() && from.is_host() {
            Some(Waits::For(seat.line.group))
        } else {
            None
        }
    }

    /// Calls `request_create`, which has to answer with `wanted`.
    pub fn start(&mut self, seat: &Seat, call: &Call, wanted: c_int) -> Outcome<Option<*mut aml_dma_request>> {
        let mut request = POISON as *mut aml_dma_request;
        let place = if call.with_request { &raw mut request } else { std::ptr::null_mut() };
        // SAFETY: the DMA lives, and layouts and memory are as the operator wants them.
        self.call_for(wanted, "request_create", || unsafe {
            aml_dma_cuda_request_create(seat.data.cast(), place, call.dst, call.src, call.op, call.op_arg)
        })?;
        let made = wanted == AML_SUCCESS && call.with_request;
        ensure!(made == (request as usize != POISON), "the place of the request has {request:p}");
        ensure!(!made || !request.is_null(), "the request is NULL");
        Ok(made.then_some(request))
    }

    /// Makes a request for a copy between two buffers, checks what can be checked at once, and notes the rest.
    /// `apply` does the same to the destination's content.
    pub fn transfer(
        &mut self,
        seat: &Seat,
        slot: &Slot,
        call: &Call,
        (pair, size): (Pair, usize),
        choice: u8,
        apply: impl FnOnce(&mut [u8], &[u8]),
    ) -> Outcome {
        let wanted = if pair.taken || size == 0 { AML_SUCCESS } else { -AML_FAILURE };
        let held = self.world.holds.serial(&seat.line);
        let on_device = |index: usize| self.kept.buffers.all[index].place.sort == Sort::Device;
        let waits = match call.op {
            // The first of these in a context loads a kernel, and CUDA does that when the context stands still.
            Some(op) if std::ptr::fn_addr_eq(op, LAYOUTS) && on_device(pair.dst) && on_device(pair.src) => {
                Some(Waits::ForAll)
            }
            _ => self.waits(seat, pair, size),
        };
        let waiting = waits.map(|waits| self.waiting(waits, choice));
        let request = self.start(seat, call, wanted)?;
        drop(waiting);
        let moves = wanted == AML_SUCCESS && size > 0;
        if let Some((held, request)) = held.zip(request) {
            self.is_pending(seat, pair, held, request)?;
        }
        if moves {
            self.apply(pair, apply);
        }
        if wanted == AML_SUCCESS {
            let position = self.note(&seat.line, moves.then_some((pair.dst, pair.src)));
            if let Some(request) = request {
                self.keep_at(request, seat, slot, position, moves.then_some(pair.dst))?;
            }
        }
        self.after(pair, choice)
    }

    /// Changes what the destination has to contain.
    pub fn apply(&mut self, pair: Pair, apply: impl FnOnce(&mut [u8], &[u8])) {
        let mut content = std::mem::take(&mut self.kept.buffers.all[pair.dst].content);
        apply(&mut content, &self.kept.buffers.all[pair.src].content);
        self.kept.buffers.all[pair.dst].content = content;
    }

    /// Notes a new request.
    pub fn keep_at(
        &mut self,
        request: *mut aml_dma_request,
        seat: &Seat,
        slot: &Slot,
        position: u64,
        dst: Option<usize>,
    ) -> Outcome {
        let (line, was_done) = (seat.line.clone(), false);
        self.keep(request, slot, Outstanding { request, slot: seat.slot, line, position, dst, was_done })
    }

    /// Pageable memory is the program's own again when the call returns.
    pub fn after(&mut self, pair: Pair, choice: u8) -> Outcome {
        let is_pageable = |worker: &Self, index: usize| worker.kept.buffers.all[index].place.sort == Sort::Pageable;
        if is_pageable(self, pair.dst) {
            self.check(pair.dst).map_err(|text| format!("when the call returned, {text}"))?;
        }
        if is_pageable(self, pair.src) && choice & 16 != 0 {
            self.fill(pair.src);
        }
        Ok(())
    }

    /// While the stream is held, as it was before the request was made, it is PENDING and nothing arrives.
    fn is_pending(&mut self, seat: &Seat, pair: Pair, held: u64, request: *mut aml_dma_request) -> Outcome {
        let buffer = &self.kept.buffers.all[pair.dst];
        let quiet = buffer.is_of_host() && self.is_idle(pair.dst);
        let seen = self.world.holds.while_held(held, || {
            // SAFETY: only copies write to it, and those that were queued are done or held.
            (super::worker::status(request), !quiet || unsafe { buffer.bytes() } == &buffer.content[..])
        });
        if let Some((status, unchanged)) = seen {
            ensure!(status == PENDING, "the status is {status} while the stream is held");
            ensure!(unchanged, "a buffer changed while the stream is held");
            self.known(&seat.line).held = Some(held);
        }
        Ok(())
    }

    /// Copies a block, by `copy_1D`, by no operator, or by `memcpy_op`.
    pub fn copy(&mut self, index: usize, [sorts, size, shape, flags, pick]: [u8; 5]) -> Outcome {
        self.occupy(index, sorts)?;
        let slot = self.slot(index);
        let Some(mut seat) = self.seat(&slot, index) else { return Ok(()) };
        if seat.own && flags & 2 != 0 {
            seat.kind = (sorts % 5).into();
            // SAFETY: the data is this thread's own.
            unsafe { (*seat.data).kind = seat.kind };
        }
        let large = shape & 31 == 31;
        let refused = if flags & 0xf0 == 0xf0 { Self::sorts(seat.kind, false, sorts / 5) } else { None };
        let Some(pair) = refused.or_else(|| Self::sorts(seat.kind, true, sorts / 5)) else { return Ok(()) };
        let Some(pair) = self.pair(&seat, pair, refused.is_none(), large, false, pick)? else { return Ok(()) };
        let sizes: &[usize] = if large { &LARGE_SIZES } else { &SMALL_SIZES };
        let size = sizes[usize::from(size) % sizes.len()];
        let (dst_at, src_at) = (usize::from(pick) % 41, usize::from(shape) % 41);
        let (mut dst, mut src) =
            (self.kept.buffers.all[pair.dst].address + dst_at, self.kept.buffers.all[pair.src].address + src_at);
        if size == 0 && flags & 12 == 12 {
            (dst, src) = (16, 8); // nobody looks at them
        }
        let dims = match shape >> 5 & 3 {
            0 => (1, vec![size]),
            1 => (1, vec![1, size, 1]),
            2 if size % 8 == 0 => (8, vec![size / 8]),
            _ if size % 2 == 0 => (1, vec![2, size / 2]),
            _ => (1, vec![size, 1]),
        };
        let room = self.kept.buffers.all[pair.dst].size - dst_at - size;
        let to = Dense::block(dst, 1, vec![size + if flags & 4 != 0 { room } else { 0 }]);
        let from = Dense::block(src, dims.0, dims.1);
        let by_address = shape & 0x80 != 0 && seat.kind != DEVICE_TO_DEVICE;
        let mut call = Call {
            op: if flags & 8 != 0 { Some(aml_dma_cuda_copy_1D) } else { None },
            op_arg: self.devices(&seat, pair),
            dst: to.raw(),
            src: from.raw(),
            with_request: flags & 1 == 0 || flags & 0x20 != 0,
        };
        if by_address {
            let op: aml_dma_operator = Some(aml_dma_cuda_memcpy_op);
            call = Call { op, op_arg: size as *mut c_void, dst: dst as *mut _, src: src as *mut _, ..call };
        }
        self.transfer(&seat, &slot, &call, (pair, size), flags >> 2 ^ pick, |to, from| {
            to[dst_at..dst_at + size].copy_from_slice(&from[src_at..src_at + size]);
        })
    }

    /// Copies each element of one layout to that of another, which may lie in another order.
    pub fn copy_layout(&mut self, index: usize, [sorts, shape, gaps, flags, pick]: [u8; 5]) -> Outcome {
        self.occupy(index, sorts)?;
        let slot = self.slot(index);
        let Some(seat) = self.seat(&slot, index) else { return Ok(()) };
        let device = |sort| sort == Sort::Device;
        let pairs: Vec<_> = super::memory::Kinds::table()
            .pairs(seat.kind, true)
            .into_iter()
            .filter(|&(to, from)| match seat.kind {
                1 => device(to) && !device(from) && from != Sort::Managed,
                2 => device(from) && !device(to) && to != Sort::Managed,
                DEVICE_TO_DEVICE => device(to) && device(from),
                _ => true,
            })
            .collect();
        let pair = pairs[usize::from(sorts) % pairs.len()];
        let own = seat.kind != DEVICE_TO_DEVICE;
        let Some(pair) = self.pair(&seat, pair, true, false, own, pick)? else { return Ok(()) };
        let element = [8, 1, 2, 4][usize::from(flags >> 6)];
        let number = |at: u8, count: u8| usize::from(shape >> at) % usize::from(count) + usize::from(shape != 0xff);
        let dims: Vec<_> =
            [number(0, 6), number(2, 5), number(4, 4)].into_iter().take(usize::from(pick % 3) + 1).collect();
        let side = |address: usize, row_major: bool, stride: usize, gap: usize| {
            let mut native = dims.clone();
            if row_major {
                native.reverse();
            }
            let mut step = element * stride;
            let steps: Vec<_> = native.iter().map(|&dim| (step, step = step * dim.max(1) + gap).0).collect();
            Dense::new(address, row_major, element, native, steps)
        };
        let at = [usize::from(pick) % 41, usize::from(shape) % 41];
        let buffers = &self.kept.buffers.all;
        let starts = [buffers[pair.dst].address, buffers[pair.src].address];
        let to = side(starts[0] + at[0], flags & 1 != 0, 1 + usize::from(gaps & 1), usize::from(gaps >> 1 & 7));
        let from = side(starts[1] + at[1], flags & 2 != 0, 1 + usize::from(gaps >> 4 & 1), usize::from(gaps >> 5 & 7));
        let call = Call {
            op: Some(aml_dma_cuda_copy_layout),
            op_arg: self.devices(&seat, pair),
            dst: to.raw(),
            src: from.raw(),
            with_request: flags & 4 == 0,
        };
        let size = element * dims.iter().product::<usize>();
        self.transfer(&seat, &slot, &call, (pair, size), flags >> 3, |content, source| {
            for element_number in 0..dims.iter().product::<usize>() {
                let mut rest = element_number;
                let coords: Vec<_> = dims.iter().map(|&dim| (rest % dim, rest /= dim).0).collect();
                let (dst, src) = (to.offset(&coords) + at[0], from.offset(&coords) + at[1]);
                content[dst..dst + element].copy_from_slice(&source[src..src + element]);
            }
        })
    }
}
