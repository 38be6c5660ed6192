//! The driver's result codes, their names and their texts.
//! Every code that the emulator itself answers, or that a test may ask it to answer, is here.
use std::ffi::CStr;

/// What every entry point returns.
pub type CUresult = i32;

/// What the inside of an entry point returns: a value, or the code that says why not.
pub type Result<T = ()> = std::result::Result<T, CUresult>;

macro_rules! codes {
    ($($name:ident = $value:literal, $text:literal;)*) => {
        $(#[allow(dead_code, reason = "the table is complete, the emulator answers a part of it")]
        pub const $name: CUresult = $value;)*

        const TABLE: &[(CUresult, &CStr, &CStr)] = &[$(($value, as_cstr(concat!(stringify!($name), "\0")), $text),)*];
    };
}

const fn as_cstr(text: &str) -> &CStr {
    match CStr::from_bytes_with_nul(text.as_bytes()) {
        Ok(text) => text,
        Err(_) => panic!("a name with a zero inside"),
    }
}

codes! {
    CUDA_SUCCESS = 0, c"no error";
    CUDA_ERROR_INVALID_VALUE = 1, c"invalid argument";
    CUDA_ERROR_OUT_OF_MEMORY = 2, c"out of memory";
    CUDA_ERROR_NOT_INITIALIZED = 3, c"initialization error";
    CUDA_ERROR_DEINITIALIZED = 4, c"driver shutting down";
    CUDA_ERROR_STUB_LIBRARY = 34, c"CUDA driver is a stub library";
    CUDA_ERROR_DEVICE_UNAVAILABLE = 46, c"CUDA-capable device(s) is/are busy or unavailable";
    CUDA_ERROR_NO_DEVICE = 100, c"no CUDA-capable device is detected";
    CUDA_ERROR_INVALID_DEVICE = 101, c"invalid device ordinal";
    CUDA_ERROR_INVALID_IMAGE = 200, c"device kernel image is invalid";
    CUDA_ERROR_INVALID_CONTEXT = 201, c"invalid device context";
    CUDA_ERROR_NO_BINARY_FOR_GPU = 209, c"no kernel image is available for execution on the device";
    CUDA_ERROR_PEER_ACCESS_UNSUPPORTED = 217, c"peer access is not supported between these two devices";
    CUDA_ERROR_INVALID_PTX = 218, c"a PTX JIT compilation failed";
    CUDA_ERROR_OPERATING_SYSTEM = 304, c"OS call failed or operation not supported on this OS";
    CUDA_ERROR_INVALID_HANDLE = 400, c"invalid resource handle";
    CUDA_ERROR_ILLEGAL_STATE = 401, c"the operation cannot be performed in the present state";
    CUDA_ERROR_NOT_FOUND = 500, c"named symbol not found";
    CUDA_ERROR_NOT_READY = 600, c"device not ready";
    CUDA_ERROR_ILLEGAL_ADDRESS = 700, c"an illegal memory access was encountered";
    CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES = 701, c"too many resources requested for launch";
    CUDA_ERROR_LAUNCH_TIMEOUT = 702, c"the launch timed out and was terminated";
    CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED = 704, c"peer access is already enabled";
    CUDA_ERROR_PEER_ACCESS_NOT_ENABLED = 705, c"peer access has not been enabled";
    CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE = 708, c"cannot set while device is active in this process";
    CUDA_ERROR_CONTEXT_IS_DESTROYED = 709, c"context is destroyed";
    CUDA_ERROR_ASSERT = 710, c"device-side assert triggered";
    CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED = 712, c"part or all of the requested memory range is already mapped";
    CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED = 713, c"pointer does not correspond to a registered memory region";
    CUDA_ERROR_HARDWARE_STACK_ERROR = 714, c"hardware stack error";
    CUDA_ERROR_ILLEGAL_INSTRUCTION = 715, c"an illegal instruction was encountered";
    CUDA_ERROR_MISALIGNED_ADDRESS = 716, c"misaligned address";
    CUDA_ERROR_LAUNCH_FAILED = 719, c"unspecified launch failure";
    CUDA_ERROR_NOT_PERMITTED = 800, c"operation not permitted";
    CUDA_ERROR_NOT_SUPPORTED = 801, c"operation not supported";
    CUDA_ERROR_SYSTEM_NOT_READY = 802, c"system not yet initialized";
    CUDA_ERROR_SYSTEM_DRIVER_MISMATCH = 803, c"system has unsupported display driver / cuda driver combination";
    CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED = 900, c"operation not permitted when stream is capturing";
    CUDA_ERROR_STREAM_CAPTURE_INVALIDATED = 901, c"operation failed due to a previous error during capture";
    CUDA_ERROR_UNKNOWN = 999, c"unknown error";
}

/// The name of a code as the header spells it, or None for a number that is no code.
pub fn name(code: CUresult) -> Option<&'static CStr> {
    TABLE.iter().find(|row| row.0 == code).map(|row| row.1)
}

/// The text of a code.
pub fn text(code: CUresult) -> Option<&'static CStr> {
    TABLE.iter().find(|row| row.0 == code).map(|row| row.2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_texts_belong_together() {
        assert_eq!(name(CUDA_ERROR_LAUNCH_FAILED), Some(c"CUDA_ERROR_LAUNCH_FAILED"));
        assert_eq!(text(CUDA_SUCCESS), Some(c"no error"));
        assert_eq!(name(12345), None);
    }
}
