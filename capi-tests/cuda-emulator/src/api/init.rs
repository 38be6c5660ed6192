//! Initialisation, version, error texts, and entry points by name.
use super::{needed, put};
use crate::control::settings;
use crate::entry::{Entry, TABLE, call};
use crate::result::{self, *};
use crate::{device, life};
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};

#[unsafe(no_mangle)]
unsafe extern "C" fn cuInit(flags: c_uint) -> CUresult {
    call(Entry::cuInit, || if flags == 0 { life::start(device::begin) } else { Err(CUDA_ERROR_INVALID_VALUE) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDriverGetVersion(version: *mut c_int) -> CUresult {
    // SAFETY: NULL or valid for writes.
    call(Entry::cuDriverGetVersion, || unsafe { put(version, settings().driver_version) })
}

/// Gives a text of a code, or NULL and CUDA_ERROR_INVALID_VALUE where the number is no code.
unsafe fn text(entry: Entry, place: *mut *const c_char, text: Option<&'static CStr>) -> CUresult {
    call(entry, || {
        // SAFETY: NULL or valid for writes.
        unsafe { put(place, text.map_or(std::ptr::null(), CStr::as_ptr)) }?;
        text.map(drop).ok_or(CUDA_ERROR_INVALID_VALUE)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuGetErrorName(error: CUresult, name: *mut *const c_char) -> CUresult {
    // SAFETY: NULL or valid for writes.
    unsafe { text(Entry::cuGetErrorName, name, result::name(error)) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuGetErrorString(error: CUresult, string: *mut *const c_char) -> CUresult {
    // SAFETY: NULL or valid for writes.
    unsafe { text(Entry::cuGetErrorString, string, result::text(error)) }
}

const CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM: u64 = 2;
const CU_GET_PROC_ADDRESS_SUCCESS: c_int = 0;
const CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND: c_int = 1;
const CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT: c_int = 2;

/// The newest form of a function that a program written for `version` may use, or whether a newer one would exist.
fn newest(symbol: &str, version: c_int, flags: u64) -> std::result::Result<*mut c_void, c_int> {
    let limit = version.min(settings().driver_version);
    let forms = ["_v4", "_v3", "_v2", ""].map(|suffix| format!("{symbol}{suffix}"));
    let known = |form: &&String| TABLE.iter().any(|row| row.0 == **form);
    let usable = |form: &&String| TABLE.iter().any(|row| row.0 == **form && row.1 <= limit);
    let Some(form) = forms.iter().find(usable) else {
        return Err(match forms.iter().find(known) {
            Some(_) => CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT,
            None => CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND,
        });
    };
    let suffixes: &[&str] =
        if flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM != 0 { &["_ptsz", "_ptds", ""] } else { &[""] };
    suffixes
        .iter()
        .map(|suffix| own_symbol(&format!("{form}{suffix}")))
        .find(|address| !address.is_null())
        .ok_or(CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND)
}

/// The address of a function that this very library exports.
fn own_symbol(name: &str) -> *mut c_void {
    let Ok(name) = CString::new(name) else {
        return std::ptr::null_mut();
    };
    // SAFETY: `info` is valid for writes; the path it gives ends in a zero, and the library is loaded.
    unsafe {
        let mut info: libc::Dl_info = std::mem::zeroed();
        if libc::dladdr(cuInit as *const c_void, &mut info) == 0 {
            return std::ptr::null_mut();
        }
        let library = libc::dlopen(info.dli_fname, libc::RTLD_LAZY | libc::RTLD_NOLOAD);
        if library.is_null() {
            return std::ptr::null_mut();
        }
        let found = libc::dlsym(library, name.as_ptr());
        libc::dlclose(library);
        found
    }
}

unsafe fn proc_address(
    symbol: *const c_char,
    function: *mut *mut c_void,
    version: c_int,
    flags: u64,
    status: *mut c_int,
) -> Result {
    needed(function)?;
    if symbol.is_null() || flags > 2 {
        return Err(CUDA_ERROR_INVALID_VALUE);
    }
    // SAFETY: not NULL, so a text that ends in a zero.
    let symbol = unsafe { CStr::from_ptr(symbol) }.to_str().map_err(|_| CUDA_ERROR_INVALID_VALUE)?;
    let found = newest(symbol, version, flags);
    // SAFETY: NULL or valid for writes.
    unsafe {
        if !status.is_null() {
            put(status, found.err().unwrap_or(CU_GET_PROC_ADDRESS_SUCCESS))?;
        }
        put(function, found.unwrap_or(std::ptr::null_mut()))?;
    }
    found.map(drop).map_err(|_| CUDA_ERROR_NOT_FOUND)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuGetProcAddress(
    symbol: *const c_char,
    function: *mut *mut c_void,
    version: c_int,
    flags: u64,
) -> CUresult {
    // SAFETY: as the program promised.
    call(Entry::cuGetProcAddress, || unsafe { proc_address(symbol, function, version, flags, std::ptr::null_mut()) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuGetProcAddress_v2(
    symbol: *const c_char,
    function: *mut *mut c_void,
    version: c_int,
    flags: u64,
    status: *mut c_int,
) -> CUresult {
    // SAFETY: as the program promised.
    call(Entry::cuGetProcAddress_v2, || unsafe { proc_address(symbol, function, version, flags, status) })
}
