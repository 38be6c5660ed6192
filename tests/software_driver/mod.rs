//! The software driver, opened before the library looks for a driver: `make emulator` leaves it in the target directory.

use std::ffi::CString;
use std::path::Path;
use std::sync::Once;

/// Makes the software driver the driver of this process.
pub fn open() {
    static OPENED: Once = Once::new();
    OPENED.call_once(|| {
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("it lies in the target directory");
        let path = target.join("emulator/libcuda.so.1");
        let name = CString::new(path.to_str().expect("a path in UTF-8")).expect("a path without NUL");
        // SAFETY: the name ends in NUL. The library opens libcuda.so.1 by its soname later, and gets this one.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
        assert!(!handle.is_null(), "{} is missing: make emulator", path.display());
    });
}
