//! Operators of the program's own: they fail before and after they queued a copy, queue none or two, use the DMA that
//! they are called for, or its stream.

use super::copies::Call;
use super::dense::Dense;
use super::driver::{driver, within};
use super::holds::Waits;
use super::worker::Worker;
use super::world::Outcome;
use aml_dma_cuda::abi::*;
use aml_dma_cuda::capi::*;
use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::ptr;

/// What an operator does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Deed {
    Nothing,
    Fail,
    CopyThenFail,
    CopyTwice,
    CopyByRequest,
    CopyThenBarrier,
    CopyByDriver,
}

const DEEDS: [Deed; 7] = [
    Deed::Nothing,
    Deed::Fail,
    Deed::CopyThenFail,
    Deed::CopyTwice,
    Deed::CopyByRequest,
    Deed::CopyThenBarrier,
    Deed::CopyByDriver,
];

/// Codes of operators: all but 0 are theirs to choose.
const CODES: [c_int; 6] = [-1, -3, -100, 7, c_int::MIN, 600];

/// What an operator is told, and tells.
struct Script {
    deed: Deed,
    code: c_int,
    /// What the operators of the library want.
    pair: *mut c_void,
    data: *mut aml_dma_cuda_data,
    layouts: (*mut aml_layout, *mut aml_layout),
    /// The context of the stream, and what to copy, for the driver.
    context: usize,
    block: (usize, usize, usize),
    /// What was not as it has to be.
    fault: Cell<Option<&'static str>>,
    calls: Cell<usize>,
}

unsafe extern "C-unwind" fn operate(dst: *mut aml_layout, src: *const aml_layout, arg: *mut c_void) -> c_int {
    // SAFETY: the library gives its argument, which has ours, which outlives the call.
    unsafe {
        let arg = &*arg.cast::<aml_dma_cuda_op_arg>();
        let script = &*arg.op_arg.cast::<Script>();
        script.calls.set(script.calls.get() + 1);
        if arg.data != script.data || (dst, src.cast_mut()) != script.layouts {
            script.fault.set(Some("an operator got other arguments"));
        }
        script.run(dst, src)
    }
}

impl Script {
    /// # Safety
    /// The layouts and the DMA live, and may be copied.
    unsafe fn run(&self, dst: *mut aml_layout, src: *const aml_layout) -> c_int {
        // SAFETY: the caller vouches for it.
        let copy = || unsafe {
            let mut inner = aml_dma_cuda_op_arg { data: self.data, op_arg: self.pair };
            aml_dma_cuda_copy_1D(dst, src, (&raw mut inner).cast())
        };
        let data = self.data.cast::<aml_dma_data>();
        match self.deed {
            Deed::Nothing => AML_SUCCESS,
            Deed::Fail => self.code,
            Deed::CopyThenFail => match copy() {
                AML_SUCCESS => self.code,
                other => other,
            },
            Deed::CopyTwice => copy() | copy(),
            // SAFETY: as above.
            Deed::CopyByRequest => unsafe {
                let mut request = ptr::null_mut();
                match aml_dma_cuda_request_create(data, &mut request, dst, src.cast_mut(), None, self.pair) {
                    AML_SUCCESS => aml_dma_cuda_request_wait(data, &mut request),
                    other => other,
                }
            },
            Deed::CopyThenBarrier => match copy() {
                // SAFETY: as above.
                AML_SUCCESS => unsafe { aml_dma_cuda_barrier(data) },
                other => other,
            },
            Deed::CopyByDriver => {
                let (dst, src, size) = self.block;
                // SAFETY: as above; the stream is the one that the operator may use.
                within(self.context, || unsafe {
                    (driver().cuMemcpyAsync)(dst, src, size, (*self.data).stream as usize)
                })
            }
        }
    }
}

impl Worker<'_> {
    /// Copies with an operator of the program's own.
    pub fn operate(&mut self, index: usize, [sorts, what, size, flags, pick]: [u8; 5]) -> Outcome {
        let slot = self.slot(index);
        let Some(seat) = self.seat(&slot, index) else { return Ok(()) };
        let Some(pair) = Self::sorts(seat.kind, true, sorts) else { return Ok(()) };
        let Some(pair) = self.pair(&seat, pair, true, false, false, pick)? else { return Ok(()) };
        let (deed, size) = (DEEDS[usize::from(what) % DEEDS.len()], 1 + usize::from(size) * 16);
        let buffers = &self.kept.buffers.all;
        let (dst, src) = (buffers[pair.dst].address, buffers[pair.src].address);
        let (to, from) = (Dense::block(dst, 1, vec![size]), Dense::block(src, 1, vec![size]));
        let script = Script {
            deed,
            code: CODES[usize::from(flags) % CODES.len()],
            pair: self.devices(&seat, pair),
            data: seat.data,
            layouts: (to.raw(), from.raw()),
            context: self.world.contexts[seat.line.place],
            block: (dst, src, size),
            fault: Cell::new(None),
            calls: Cell::new(0),
        };
        let call = Call {
            op: Some(operate),
            op_arg: (&raw const script).cast_mut().cast(),
            dst: to.raw(),
            src: from.raw(),
            with_request: flags & 0x80 == 0,
        };
        let fails = matches!(deed, Deed::Fail | Deed::CopyThenFail);
        let waits = match deed {
            Deed::CopyByRequest | Deed::CopyThenBarrier => Some(Waits::For(seat.line.group)),
            Deed::Nothing | Deed::Fail => None,
            _ => self.waits(&seat, pair, size),
        };
        let waiting = waits.map(|waits| self.waiting(waits, flags));
        let request = self.start(&seat, &call, if fails { script.code } else { AML_SUCCESS })?;
        drop(waiting);
        super::worker::ensure!(script.calls.get() == 1, "an operator was called {} times", script.calls.get());
        if let Some(fault) = script.fault.get() {
            return Err(fault.into());
        }
        let copies = !matches!(deed, Deed::Nothing | Deed::Fail);
        if copies {
            self.apply(pair, |to, from| to[..size].copy_from_slice(&from[..size]));
            let position = self.note(&seat.line, Some((pair.dst, pair.src)));
            if matches!(deed, Deed::CopyByRequest | Deed::CopyThenBarrier) {
                self.note_done(&seat.line, position);
                self.check(pair.dst).map_err(|text| format!("{deed:?}: {text}"))?;
            }
            self.after(pair, pick)?;
        }
        if let Some(request) = request {
            // The request stands for all that was queued before it.
            let position = self.note(&seat.line, None);
            self.keep_at(request, &seat, &slot, position, copies.then_some(pair.dst))?;
        }
        Ok(())
    }
}
