//! The machine of `tests/model`, driven by libFuzzer: any string of bytes is a sequence of calls.
#![no_main]

#[allow(dead_code, unused_imports, reason = "the test needs more of it")]
#[path = "../../tests/model/machine/mod.rs"]
mod machine;

use libfuzzer_sys::{Corpus, fuzz_target};
use std::sync::Once;

/// Makes the software driver, which `make emulator` leaves in the target directory, the driver of this process.
fn open_driver() {
    static OPENED: Once = Once::new();
    OPENED.call_once(|| {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/emulator/libcuda.so.1\0");
        // SAFETY: the name ends in NUL. The library opens libcuda.so.1 by its soname later, and gets this one.
        let handle = unsafe { libc::dlopen(path.as_ptr().cast(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
        assert!(!handle.is_null(), "{path} is missing: make emulator");
    });
}

fuzz_target!(|bytes: &[u8]| -> Corpus {
    if bytes.len() < machine::HEADER + machine::STEP {
        return Corpus::Reject;
    }
    open_driver();
    if let Err(fault) = machine::run(bytes) {
        panic!("{fault}\n{:?}", machine::Sequence::decode(bytes));
    }
    Corpus::Keep
});
