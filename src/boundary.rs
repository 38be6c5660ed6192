//! The edge to C: turns a result into a code, and lets no panic out.

use crate::abi::{AML_FAILURE, AML_SUCCESS};
use crate::error::Result;
use libc::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs `call` and gives AML's code for how it ended. A panic is a fault of ours; it becomes `-AML_FAILURE`.
///
/// Nothing that `call` leaves behind can be half done in a way that matters: what is shared is either atomic, or
/// behind a lock whose poisoning is ignored because each section of code under it is complete by itself.
#[inline]
pub fn guard(call: impl FnOnce() -> Result<()>) -> c_int {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(())) => AML_SUCCESS,
        Ok(Err(error)) => error.code(),
        Err(panic) => {
            std::mem::forget(panic); // dropping it might panic again
            -AML_FAILURE
        }
    }
}
