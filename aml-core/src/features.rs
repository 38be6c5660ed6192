//! Which of AML's backends work here and now.
//! Only CUDA can; the others need libaml.

use cuda_driver::{Device, ready};
use libc::{c_int, c_ulong};

/// NVIDIA GPUs through CUDA.
pub const AML_BACKEND_CUDA: c_ulong = 1 << 2;

/// 1 when all of `backends` work, else 0.
#[unsafe(no_mangle)]
pub extern "C" fn aml_support_backends(backends: c_ulong) -> c_int {
    let others = backends & !AML_BACKEND_CUDA != 0;
    let cuda = backends & AML_BACKEND_CUDA != 0;
    (!others && (!cuda || cuda_answers())).into()
}

/// Whether a driver answers with at least one device. Initialises the driver, and makes no context.
fn cuda_answers() -> bool {
    ready().and_then(|()| Device::count()).is_ok_and(|count| count > 0)
}
