//! The frame around every entry point: may it be called now, was it told to fail, who called it.
//! Also the table of all entry points, with the CUDA version that brought each.
use crate::result::*;
use crate::{control, life, log};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

macro_rules! entries {
    ($($name:ident $since:literal)*) => {
        /// An entry point of the driver, under the name by which it is exported.
        #[allow(non_camel_case_types, reason = "C names stay C names")]
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(usize)]
        pub enum Entry { $($name,)* }

        /// Name of each entry point and the driver version since which it exists.
        pub const TABLE: &[(&str, i32)] = &[$((stringify!($name), $since),)*];

        const ALL: &[Entry] = &[$(Entry::$name,)*];
    };
}

entries! {
    cuInit 2000
    cuDriverGetVersion 2020
    cuGetErrorName 6000
    cuGetErrorString 6000
    cuGetProcAddress 11030
    cuGetProcAddress_v2 12000
    cuDeviceGet 2000
    cuDeviceGetCount 2000
    cuDeviceGetName 2000
    cuDeviceGetUuid 9020
    cuDeviceGetUuid_v2 11040
    cuDeviceGetAttribute 2000
    cuDeviceTotalMem_v2 3020
    cuDeviceCanAccessPeer 4000
    cuDeviceGetPCIBusId 4010
    cuDevicePrimaryCtxRetain 7000
    cuDevicePrimaryCtxRelease 7000
    cuDevicePrimaryCtxRelease_v2 11000
    cuDevicePrimaryCtxReset 7000
    cuDevicePrimaryCtxReset_v2 11000
    cuDevicePrimaryCtxGetState 7000
    cuDevicePrimaryCtxSetFlags 7000
    cuDevicePrimaryCtxSetFlags_v2 11000
    cuCtxCreate_v2 3020
    cuCtxCreate_v3 11040
    cuCtxCreate_v4 12050
    cuCtxDestroy_v2 4000
    cuCtxPushCurrent_v2 4000
    cuCtxPopCurrent_v2 4000
    cuCtxSetCurrent 4000
    cuCtxGetCurrent 4000
    cuCtxGetDevice 2000
    cuCtxGetFlags 7000
    cuCtxGetApiVersion 3020
    cuCtxGetId 12000
    cuCtxSynchronize 2000
    cuCtxGetStreamPriorityRange 5050
    cuCtxEnablePeerAccess 4000
    cuCtxDisablePeerAccess 4000
    cuStreamCreate 2000
    cuStreamCreateWithPriority 5050
    cuStreamDestroy_v2 4000
    cuStreamQuery 2000
    cuStreamSynchronize 2000
    cuStreamGetFlags 5050
    cuStreamGetCtx 9020
    cuStreamGetDevice 12080
    cuStreamGetId 12000
    cuStreamGetPriority 5050
    cuStreamIsCapturing 10000
    cuStreamWaitEvent 3020
    cuStreamWriteValue32 8000
    cuStreamWriteValue32_v2 11070
    cuStreamWriteValue64 9000
    cuStreamWriteValue64_v2 11070
    cuStreamWaitValue32 8000
    cuStreamWaitValue32_v2 11070
    cuStreamWaitValue64 9000
    cuStreamWaitValue64_v2 11070
    cuStreamBatchMemOp 8000
    cuStreamBatchMemOp_v2 11070
    cuEventCreate 2000
    cuEventDestroy_v2 4000
    cuEventRecord 2000
    cuEventRecordWithFlags 11010
    cuEventQuery 2000
    cuEventSynchronize 2000
    cuEventElapsedTime 2000
    cuEventElapsedTime_v2 12080
    cuLaunchHostFunc 10000
    cuMemAlloc_v2 3020
    cuMemAllocPitch_v2 3020
    cuMemAllocManaged 6000
    cuMemFree_v2 3020
    cuMemHostAlloc 2020
    cuMemAllocHost_v2 3020
    cuMemFreeHost 2000
    cuMemHostRegister_v2 6050
    cuMemHostUnregister 4000
    cuMemHostGetDevicePointer_v2 3020
    cuMemHostGetFlags 2030
    cuMemGetAddressRange_v2 3020
    cuMemGetInfo_v2 3020
    cuPointerGetAttribute 4000
    cuPointerGetAttributes 7000
    cuMemcpy 4000
    cuMemcpyAsync 4000
    cuMemcpyHtoD_v2 3020
    cuMemcpyDtoH_v2 3020
    cuMemcpyDtoD_v2 3020
    cuMemcpyHtoDAsync_v2 3020
    cuMemcpyDtoHAsync_v2 3020
    cuMemcpyDtoDAsync_v2 3020
    cuMemcpyPeer 4000
    cuMemcpyPeerAsync 4000
    cuMemcpy2D_v2 3020
    cuMemcpy2DUnaligned_v2 3020
    cuMemcpy2DAsync_v2 3020
    cuMemcpy3D_v2 3020
    cuMemcpy3DAsync_v2 3020
    cuMemcpy3DPeer 4000
    cuMemcpy3DPeerAsync 4000
    cuMemsetD8_v2 3020
    cuMemsetD8Async 3020
    cuMemsetD32_v2 3020
    cuMemsetD32Async 3020
    cuModuleLoadData 2000
    cuModuleUnload 2000
    cuModuleGetFunction 2000
    cuLaunchKernel 4000
}

impl Entry {
    /// The entry point of this name.
    pub fn named(name: &str) -> Option<Self> {
        TABLE.iter().position(|row| row.0 == name).map(|index| ALL[index])
    }

    /// The name by which it is exported.
    pub fn name(self) -> &'static str {
        TABLE[self as usize].0
    }

    /// Whether it answers in every state of the driver, also inside a host function.
    fn answers_always(self) -> bool {
        use Entry::*;
        matches!(self, cuDriverGetVersion | cuGetErrorName | cuGetErrorString | cuGetProcAddress | cuGetProcAddress_v2)
    }

    /// Whether it answers inside a host function although it is not permitted there, as seen on an H200.
    fn answers_in_host_functions(self) -> bool {
        use Entry::*;
        matches!(
            self,
            cuInit
                | cuStreamQuery
                | cuStreamGetFlags
                | cuEventRecord
                | cuEventQuery
                | cuLaunchHostFunc
                | cuStreamWriteValue32_v2
                | cuEventDestroy_v2
                | cuStreamDestroy_v2
        )
    }
}

thread_local! {
    static IN_HOST_FUNCTION: Cell<bool> = const { Cell::new(false) };
}

/// Runs a host function of the program: while it runs, this thread may not call the driver.
pub fn as_host_function(body: impl FnOnce()) {
    IN_HOST_FUNCTION.set(true);
    body();
    IN_HOST_FUNCTION.set(false);
}

fn permitted(entry: Entry) -> Result {
    if control::settings().stub {
        return Err(CUDA_ERROR_STUB_LIBRARY);
    }
    // dlsym finds what an older driver would lack, so it answers as a caller does that found nothing.
    if TABLE[entry as usize].1 > control::settings().driver_version {
        return Err(CUDA_ERROR_NOT_FOUND);
    }
    control::count_call(entry)?;
    if entry.answers_always() {
        return Ok(());
    }
    if !entry.answers_in_host_functions() && IN_HOST_FUNCTION.try_with(Cell::get).unwrap_or(false) {
        return Err(CUDA_ERROR_NOT_PERMITTED);
    }
    if entry == Entry::cuInit { Ok(()) } else { life::ready() }
}

/// What a child answers whose parent had initialised the driver. No lock is touched: the parent may have held any.
fn in_forked_child(entry: Entry) -> CUresult {
    // A GPU's driver answers these from what it remembers.
    if matches!(entry, Entry::cuStreamQuery | Entry::cuEventQuery) { CUDA_SUCCESS } else { CUDA_ERROR_NOT_INITIALIZED }
}

/// Every entry point is this call with a body: the body runs when the call is permitted, and its result becomes a code.
pub fn call(entry: Entry, body: impl FnOnce() -> Result) -> CUresult {
    if life::forked() && !entry.answers_always() {
        return in_forked_child(entry);
    }
    let run = || catch_unwind(AssertUnwindSafe(body)).unwrap_or(Err(CUDA_ERROR_UNKNOWN));
    if life::forked() {
        return run().err().unwrap_or(CUDA_SUCCESS);
    }
    let code = permitted(entry).and_then(|()| run()).err().unwrap_or(CUDA_SUCCESS);
    log::record(entry, code);
    code
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_leads_to_its_entry() {
        for row in TABLE {
            assert_eq!(Entry::named(row.0).map(Entry::name), Some(row.0));
        }
        assert_eq!(Entry::named("cuNothing"), None);
    }
}
