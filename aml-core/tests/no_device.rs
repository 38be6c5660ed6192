//! Without a CUDA device: no backend, and each call of the CUDA area says so. A process of its own, since the driver
//! looks at the environment once. Holds without a driver, too.

use aml_abi::{AML_EINVAL, AML_FAILURE, AML_SUCCESS, aml_area};
use aml_core::*;
use std::ptr::{self, null_mut};
use std::sync::atomic::Ordering::Relaxed;

#[test]
fn every_call_answers_with_a_code() {
    // SAFETY: the only thread that looks at the environment.
    unsafe { std::env::set_var("CUDA_VISIBLE_DEVICES", "") };
    for _ in 0..3 {
        assert_eq!(aml_support_backends(AML_BACKEND_CUDA), 0);
        let untouched = ptr::dangling_mut::<aml_area>();
        let mut area = untouched;
        // SAFETY: `area` is valid for a write, the static areas are valid.
        unsafe {
            assert_eq!(aml_area_cuda_create(&mut area, 0, 0), -AML_FAILURE);
            assert_eq!(aml_area_cuda_create(&mut area, -1, 0), -AML_FAILURE);
            assert_eq!(aml_area_cuda_create(&mut area, -1, 99), -AML_EINVAL);
            assert_eq!(area, untouched);
            for area in [&raw const aml_area_cuda, &raw const aml_area_cuda_unified] {
                aml_errno.store(0, Relaxed);
                assert!(aml_area_mmap(area, 4096, null_mut()).is_null());
                assert_eq!(aml_errno.load(Relaxed), AML_FAILURE);
                assert_eq!(aml_area_munmap(area, ptr::dangling_mut(), 4096), -AML_FAILURE);
                assert_eq!(aml_area_munmap(area, null_mut(), 4096), AML_SUCCESS);
            }
        }
    }
}
