//! Calls that have to be refused, and that change nothing.

use super::copies::{Call, POISON, Pair, device_pair};
use super::dense::Dense;
use super::driver::printed;
use super::memory::{DEVICE_TO_DEVICE, Place, Sort};
use super::worker::{Seat, Worker, ensure};
use super::world::Outcome;
use aml_dma_cuda::abi::*;
use aml_dma_cuda::capi::*;
use aml_dma_cuda::statics;
use std::ffi::c_int;
use std::ptr;

/// A device that is not there.
const ABSENT: i32 = 77;

impl Worker<'_> {
    /// One call that is refused.
    pub fn misuse(&mut self, index: usize, [what, which, choice, ..]: [u8; 5]) -> Outcome {
        match what % 16 {
            0..4 => self.misuse_dmas(what % 16, which),
            4..9 => self.misuse_requests(index, what % 16 - 4, which),
            9..15 => self.misuse_layouts(index, what % 16 - 9, which, choice),
            _ => self.misuse_peers(index, which),
        }
    }

    fn misuse_dmas(&mut self, what: u8, which: u8) -> Outcome {
        let kinds: [c_int; 4] = [5, -1, c_int::MAX, 77];
        let kind = kinds[usize::from(which) % kinds.len()];
        let mut dma = POISON as *mut aml_dma;
        let mut none = ptr::null_mut();
        let mut shared = &raw mut statics::aml_dma_cuda;
        // SAFETY: each pointer is NULL or valid.
        unsafe {
            match what {
                0 => self.call_for(-AML_EINVAL, "create of NULL", || aml_dma_cuda_create(ptr::null_mut(), 4))?,
                1 => self.call_for(-AML_EINVAL, "create", || aml_dma_cuda_create(&mut dma, kind))?,
                2 => self.call_for(-AML_EINVAL, "destroy of NULL", || aml_dma_cuda_destroy(ptr::null_mut()))?,
                _ => self.call_for(-AML_EINVAL, "destroy of the static", || aml_dma_cuda_destroy(&mut shared))?,
            }
            self.call_for(AML_SUCCESS, "destroy of none", || aml_dma_cuda_destroy(&mut none))?;
        }
        ensure!(dma as usize == POISON && none.is_null(), "a refused call stored a DMA");
        ensure!(shared == &raw mut statics::aml_dma_cuda, "the pointer to the static DMA changed");
        Ok(())
    }

    fn misuse_requests(&mut self, index: usize, what: u8, which: u8) -> Outcome {
        let slot = self.slot(index);
        let Some(seat) = self.seat(&slot, index) else { return Ok(()) };
        let data = seat.data.cast::<aml_dma_data>();
        let layout = Dense::block(0, 1, vec![0]);
        let mut request = POISON as *mut aml_dma_request;
        let mut none = ptr::null_mut();
        let refused = -AML_EINVAL;
        // SAFETY: each pointer is NULL or valid.
        unsafe {
            match what {
                0 => {
                    let (dest, src) = (layout.raw(), layout.raw());
                    let (data, dest, src) = match which % 3 {
                        0 => (ptr::null_mut(), dest, src),
                        1 => (data, ptr::null_mut(), src),
                        _ => (data, dest, ptr::null_mut()),
                    };
                    self.call_for(refused, "request_create with a NULL", || {
                        aml_dma_cuda_request_create(data, &mut request, dest, src, None, ptr::null_mut())
                    })?;
                }
                1 => self.call_for(refused, "wait for NULL", || aml_dma_cuda_request_wait(data, ptr::null_mut()))?,
                2 => self.call_for(refused, "wait for no request", || aml_dma_cuda_request_destroy(data, &mut none))?,
                3 => {
                    self.call_for(refused, "barrier of NULL", || aml_dma_cuda_barrier(ptr::null_mut()))?;
                    let print = statics::aml_dma_cuda_ops.fprintf.ok_or("fprintf is NULL")?;
                    self.call_for(refused, "fprintf of NULL", || {
                        let (code, text) = printed(|file| print(ptr::null(), file, c"> ".as_ptr()));
                        if text.is_empty() { code } else { 0 }
                    })?;
                    self.call_for(refused, "fprintf to NULL", || print(data, ptr::null_mut(), ptr::null()))?;
                }
                _ => return self.misuse_by_another(&seat, which),
            }
        }
        ensure!(request as usize == POISON && none.is_null(), "a refused call stored a request");
        Ok(())
    }

    /// A DMA with another stream has no business with a request.
    fn misuse_by_another(&mut self, seat: &Seat, which: u8) -> Outcome {
        if self.requests.is_empty() {
            return Ok(());
        }
        let outstanding = &self.requests[usize::from(which) % self.requests.len()];
        // SAFETY: the DMA lives.
        let stream = unsafe { (*seat.data).stream } as usize;
        // Handles 0 and 1 name the same stream, so they are no others to each other.
        let defaults = stream < 3 && outstanding.line.handle < 3;
        if outstanding.slot == seat.slot || stream == outstanding.line.handle || defaults {
            return Ok(());
        }
        let before = outstanding.request;
        for data in [seat.data.cast::<aml_dma_data>(), ptr::null_mut()] {
            let mut request = before;
            // SAFETY: the request lives, and the DMA does or is NULL.
            self.call_for(-AML_EINVAL, "wait by another DMA", || unsafe {
                aml_dma_cuda_request_wait(data, &mut request)
            })?;
            ensure!(request == before, "a refused wait changed the request");
        }
        Ok(())
    }

    fn misuse_layouts(&mut self, index: usize, what: u8, which: u8, choice: u8) -> Outcome {
        let slot = self.slot(index);
        let Some(seat) = self.seat(&slot, index) else { return Ok(()) };
        // These are refused before memory is looked at.
        let block = |dims: &[usize]| Dense::block(0x1000, 8, dims.to_vec());
        let gap = || Dense::new(0x1000, choice & 1 != 0, 8, vec![4, 3], vec![8, 40]);
        let mut wanted = -AML_EINVAL;
        let mut op: aml_dma_operator = None;
        let (dst, src) = match what {
            0 => {
                wanted = -AML_ENOTSUP;
                if which & 1 == 0 { (block(&[12]), gap()) } else { (gap(), block(&[12])) }
            }
            1 => (block(&[11]), block(&[3, 4])),
            2 => (block(&[usize::MAX / 8]), block(&[1 << 32, 1 << 31])),
            3 => {
                op = Some(aml_dma_cuda_copy_layout);
                if which & 1 == 0 { (block(&[4, 3]), block(&[3, 4])) } else { (block(&[12]), block(&[4, 3])) }
            }
            4 => {
                op = Some(aml_dma_cuda_copy_layout);
                (Dense::block(0x1000, 4, vec![4, 3]), gap())
            }
            _ => {
                // An operator called without its argument.
                let layout = block(&[1]);
                // SAFETY: the layouts live.
                return self.call_for(-AML_EINVAL, "an operator without argument", || unsafe {
                    let operators = [aml_dma_cuda_copy_1D, aml_dma_cuda_memcpy_op, aml_dma_cuda_copy_layout];
                    let operator = operators[usize::from(which) % operators.len()];
                    operator(layout.raw(), layout.raw(), ptr::null_mut())
                });
            }
        };
        let (dst_raw, src_raw) = (dst.raw(), src.raw());
        let call = Call { op, op_arg: ptr::null_mut(), dst: dst_raw, src: src_raw, with_request: choice & 2 == 0 };
        self.start(&seat, &call, wanted).map(drop)
    }

    /// A device that is not there, and a copy past the end of a device's memory.
    fn misuse_peers(&mut self, index: usize, which: u8) -> Outcome {
        let slot = self.slot(index);
        let Some(seat) = self.seat(&slot, index) else { return Ok(()) };
        if seat.kind != DEVICE_TO_DEVICE {
            let (op, size): (aml_dma_operator, usize) = (Some(aml_dma_cuda_memcpy_op), 1 << 13);
            let small = Place { sort: Sort::Device, context: seat.line.place };
            let large = Place { sort: Sort::Pinned, context: 0 };
            let Some(small) = self.buffer(small, false, 0, &seat.line, None)? else { return Ok(()) };
            let Some(large) = self.buffer(large, true, 0, &seat.line, None)? else { return Ok(()) };
            let buffers = &self.kept.buffers.all;
            let (small, large) = (buffers[small].address as *mut _, buffers[large].address as *mut _);
            let to_device = if matches!(seat.kind, 0 | 4) { which & 2 == 0 } else { seat.kind == 1 };
            let (dst, src) = if to_device { (small, large) } else { (large, small) };
            let call = Call { op, op_arg: size as *mut _, dst, src, with_request: which & 1 == 0 };
            return self.start(&seat, &call, -AML_FAILURE).map(drop);
        }
        let Some(Pair { dst, src, .. }) = self.pair(&seat, (Sort::Device, Sort::Device), true, false, true, which)?
        else {
            return Ok(());
        };
        let block = |worker: &Self, index: usize| Dense::block(worker.kept.buffers.all[index].address, 1, vec![8]);
        let (dst, src) = (block(self, dst), block(self, src));
        let pairs = [(0, ABSENT), (ABSENT, 0), (-1, 0), (0, -1)];
        let (from, to) = pairs[usize::from(which) % pairs.len()];
        let call = Call {
            op: None,
            op_arg: device_pair(from, to),
            dst: dst.raw(),
            src: src.raw(),
            with_request: which & 4 == 0,
        };
        self.start(&seat, &call, -AML_FAILURE)?;
        let by_address = Call { op: Some(aml_dma_cuda_memcpy_op), op_arg: 8 as *mut _, ..call };
        self.start(&seat, &by_address, -AML_ENOTSUP).map(drop)
    }
}
