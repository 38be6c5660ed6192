//! Events.
use super::{needed, put};
use crate::entry::{Entry, call};
use crate::result::*;
use crate::types::*;
use crate::{context, event, stream};
use std::ffi::c_uint;

#[unsafe(no_mangle)]
unsafe extern "C" fn cuEventCreate(place: *mut CUevent, flags: c_uint) -> CUresult {
    call(Entry::cuEventCreate, || {
        let context = context::working()?;
        needed(place)?;
        let known = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;
        let interprocess_with_timing = flags & CU_EVENT_INTERPROCESS != 0 && flags & CU_EVENT_DISABLE_TIMING == 0;
        if flags & !known != 0 || interprocess_with_timing {
            return Err(CUDA_ERROR_INVALID_VALUE);
        }
        // SAFETY: not NULL, so valid for writes.
        unsafe { put(place, event::create(&context, flags).handle) }
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuEventDestroy_v2(handle: CUevent) -> CUresult {
    call(Entry::cuEventDestroy_v2, || event::destroy(handle))
}

#[unsafe(no_mangle)]
extern "C" fn cuEventRecord(handle: CUevent, stream: CUstream) -> CUresult {
    call(Entry::cuEventRecord, || event::working(handle)?.record(&stream::working(stream)?))
}

#[unsafe(no_mangle)]
extern "C" fn cuEventRecordWithFlags(handle: CUevent, stream: CUstream, flags: c_uint) -> CUresult {
    call(Entry::cuEventRecordWithFlags, || {
        match flags {
            0 => {}
            // A node of a graph, outside of any capture.
            CU_EVENT_RECORD_EXTERNAL => return Err(CUDA_ERROR_ILLEGAL_STATE),
            _ => return Err(CUDA_ERROR_INVALID_VALUE),
        }
        event::working(handle)?.record(&stream::working(stream)?)
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuEventQuery(handle: CUevent) -> CUresult {
    call(Entry::cuEventQuery, || event::working(handle)?.query())
}

#[unsafe(no_mangle)]
extern "C" fn cuEventSynchronize(handle: CUevent) -> CUresult {
    call(Entry::cuEventSynchronize, || event::working(handle)?.synchronize())
}

unsafe fn elapsed(entry: Entry, place: *mut f32, start: CUevent, end: CUevent) -> CUresult {
    call(entry, || {
        let milliseconds = event::working(end)?.milliseconds_since(&*event::working(start)?)?;
        // SAFETY: NULL or valid for writes.
        unsafe { put(place, milliseconds) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuEventElapsedTime(place: *mut f32, start: CUevent, end: CUevent) -> CUresult {
    // SAFETY: as the program promised.
    unsafe { elapsed(Entry::cuEventElapsedTime, place, start, end) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuEventElapsedTime_v2(place: *mut f32, start: CUevent, end: CUevent) -> CUresult {
    // SAFETY: as the program promised.
    unsafe { elapsed(Entry::cuEventElapsedTime_v2, place, start, end) }
}
