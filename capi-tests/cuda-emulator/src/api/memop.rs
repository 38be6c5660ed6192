//! Words written and awaited by a stream.
//! The forms without `_v2` need an option of the kernel driver that is off unless asked for, and so are refused.
use crate::entry::{Entry, call};
use crate::memory::{Asker, Sort, place};
use crate::result::*;
use crate::stream::Stream;
use crate::types::*;
use crate::work::Work;
use crate::{copy, stream};
use std::ffi::c_uint;
use std::sync::Arc;

/// The word's own address, when it is memory that the device can reach.
fn word(stream: &Arc<Stream>, address: CUdeviceptr, size: usize) -> Result<usize> {
    let address = address as usize;
    if address % size != 0 {
        return Err(CUDA_ERROR_INVALID_VALUE);
    }
    let context = &*copy::acting(stream);
    let place = place(address, size, Asker { context, as_device: true, any_device: false })?;
    // Managed memory may have moved by the time that the word is written.
    if place.sort == Some(Sort::Managed) { Err(CUDA_ERROR_INVALID_VALUE) } else { Ok(place.bytes) }
}

fn write32(stream: &Arc<Stream>, address: CUdeviceptr, value: u64, flags: c_uint) -> Result<Work> {
    let address = word(stream, address, 4)?;
    if flags == 0 { Ok(Work::Write32 { address, value: value as u32 }) } else { Err(CUDA_ERROR_INVALID_VALUE) }
}

fn write64(stream: &Arc<Stream>, address: CUdeviceptr, value: u64, flags: c_uint) -> Result<Work> {
    let address = word(stream, address, 8)?;
    if flags == 0 { Ok(Work::Write64 { address, value }) } else { Err(CUDA_ERROR_INVALID_VALUE) }
}

fn condition(flags: c_uint) -> Result<c_uint> {
    // The device cannot flush remote writes, so a wait that asks for it is refused.
    if flags & CU_STREAM_WAIT_VALUE_FLUSH != 0 {
        return Err(CUDA_ERROR_NOT_SUPPORTED);
    }
    if flags > CU_STREAM_WAIT_VALUE_NOR { Err(CUDA_ERROR_INVALID_VALUE) } else { Ok(flags) }
}

fn await32(stream: &Arc<Stream>, address: CUdeviceptr, value: u64, flags: c_uint) -> Result<Work> {
    let (address, condition) = (word(stream, address, 4)?, condition(flags)?);
    Ok(Work::Await32 { address, value: value as u32, condition })
}

fn await64(stream: &Arc<Stream>, address: CUdeviceptr, value: u64, flags: c_uint) -> Result<Work> {
    let (address, condition) = (word(stream, address, 8)?, condition(flags)?);
    Ok(Work::Await64 { address, value, condition })
}

type Maker = fn(&Arc<Stream>, CUdeviceptr, u64, c_uint) -> Result<Work>;

fn one(entry: Entry, handle: CUstream, address: CUdeviceptr, value: u64, flags: c_uint, make: Maker) -> CUresult {
    call(entry, || {
        let stream = stream::working(handle)?;
        let work = make(&stream, address, value, flags)?;
        stream.submit(work).map(drop)
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuStreamWriteValue32_v2(stream: CUstream, address: CUdeviceptr, value: u32, flags: c_uint) -> CUresult {
    one(Entry::cuStreamWriteValue32_v2, stream, address, value.into(), flags, write32)
}

#[unsafe(no_mangle)]
extern "C" fn cuStreamWriteValue64_v2(stream: CUstream, address: CUdeviceptr, value: u64, flags: c_uint) -> CUresult {
    one(Entry::cuStreamWriteValue64_v2, stream, address, value, flags, write64)
}

#[unsafe(no_mangle)]
extern "C" fn cuStreamWaitValue32_v2(stream: CUstream, address: CUdeviceptr, value: u32, flags: c_uint) -> CUresult {
    one(Entry::cuStreamWaitValue32_v2, stream, address, value.into(), flags, await32)
}

#[unsafe(no_mangle)]
extern "C" fn cuStreamWaitValue64_v2(stream: CUstream, address: CUdeviceptr, value: u64, flags: c_uint) -> CUresult {
    one(Entry::cuStreamWaitValue64_v2, stream, address, value, flags, await64)
}

fn without_option(entry: Entry) -> CUresult {
    call(entry, || Err(CUDA_ERROR_NOT_SUPPORTED))
}

#[unsafe(no_mangle)]
extern "C" fn cuStreamWriteValue32(_: CUstream, _: CUdeviceptr, _: u32, _: c_uint) -> CUresult {
    without_option(Entry::cuStreamWriteValue32)
}

#[unsafe(no_mangle)]
extern "C" fn cuStreamWriteValue64(_: CUstream, _: CUdeviceptr, _: u64, _: c_uint) -> CUresult {
    without_option(Entry::cuStreamWriteValue64)
}

#[unsafe(no_mangle)]
extern "C" fn cuStreamWaitValue32(_: CUstream, _: CUdeviceptr, _: u32, _: c_uint) -> CUresult {
    without_option(Entry::cuStreamWaitValue32)
}

#[unsafe(no_mangle)]
extern "C" fn cuStreamWaitValue64(_: CUstream, _: CUdeviceptr, _: u64, _: c_uint) -> CUresult {
    without_option(Entry::cuStreamWaitValue64)
}

#[unsafe(no_mangle)]
extern "C" fn cuStreamBatchMemOp(_: CUstream, _: c_uint, _: *mut CUstreamBatchMemOpParams, _: c_uint) -> CUresult {
    without_option(Entry::cuStreamBatchMemOp)
}

fn of_batch(stream: &Arc<Stream>, operation: &CUstreamBatchMemOpParams) -> Result<Work> {
    let CUstreamBatchMemOpParams { address, value, flags, .. } = *operation;
    match operation.operation {
        CU_STREAM_MEM_OP_WRITE_VALUE_32 => write32(stream, address, value, flags),
        CU_STREAM_MEM_OP_WRITE_VALUE_64 => write64(stream, address, value, flags),
        CU_STREAM_MEM_OP_WAIT_VALUE_32 => await32(stream, address, value, flags),
        CU_STREAM_MEM_OP_WAIT_VALUE_64 => await64(stream, address, value, flags),
        CU_STREAM_MEM_OP_BARRIER => Ok(Work::Nothing),
        CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES => Err(CUDA_ERROR_NOT_SUPPORTED),
        _ => Err(CUDA_ERROR_INVALID_VALUE),
    }
}

const MOST_OPERATIONS: c_uint = 255;

/// All operations of a batch are checked before the first is queued.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuStreamBatchMemOp_v2(
    handle: CUstream,
    count: c_uint,
    operations: *mut CUstreamBatchMemOpParams,
    flags: c_uint,
) -> CUresult {
    call(Entry::cuStreamBatchMemOp_v2, || {
        let stream = stream::working(handle)?;
        if count == 0 {
            return Ok(());
        }
        if operations.is_null() || count > MOST_OPERATIONS || flags != 0 {
            return Err(CUDA_ERROR_INVALID_VALUE);
        }
        // SAFETY: not NULL, so valid for reads of `count` operations.
        let operations = unsafe { std::slice::from_raw_parts(operations, count as usize) };
        let works = operations.iter().map(|operation| of_batch(&stream, operation)).collect::<Result<Vec<_>>>()?;
        works.into_iter().try_for_each(|work| stream.submit(work).map(drop))
    })
}
