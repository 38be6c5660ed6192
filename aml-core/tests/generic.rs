//! The generic calls on DMAs, against one that writes down what it is asked and answers what it is told.

use aml_abi::*;
use aml_core::*;
use libc::{FILE, c_char, c_int, c_void};
use std::ptr::{null, null_mut};

/// What the recording DMA was asked, and what it answers.
#[derive(Default)]
struct Record {
    calls: Vec<&'static str>,
    create: c_int,
    wait: c_int,
    arguments: Option<[usize; 5]>,
}

/// # Safety
/// `dma` is a `Record`.
unsafe fn note<'a>(dma: *const aml_dma_data, call: &'static str) -> &'a mut Record {
    // SAFETY: the caller's promise; each test has its own, and one thread.
    let record = unsafe { &mut *dma.cast_mut().cast::<Record>() };
    record.calls.push(call);
    record
}

unsafe extern "C-unwind" fn create_request(
    dma: *mut aml_dma_data,
    req: *mut *mut aml_dma_request,
    dest: *mut aml_layout,
    src: *mut aml_layout,
    op: aml_dma_operator,
    op_arg: *mut c_void,
) -> c_int {
    // SAFETY: the state is a `Record`; `req` is NULL or valid.
    unsafe {
        let record = note(dma, "create");
        let op = op.map_or(0, |op| op as usize);
        record.arguments = Some([req as usize, dest as usize, src as usize, op, op_arg as usize]);
        if record.create == 0 && !req.is_null() {
            *req = 0x99 as *mut aml_dma_request;
        }
        record.create
    }
}

unsafe extern "C" fn wait_request(dma: *mut aml_dma_data, req: *mut *mut aml_dma_request) -> c_int {
    // SAFETY: the state is a `Record`; `req` holds what create stored.
    unsafe {
        assert_eq!(*req, 0x99 as *mut aml_dma_request);
        *req = null_mut();
        note(dma, "wait").wait
    }
}

unsafe extern "C" fn destroy_request(dma: *mut aml_dma_data, req: *mut *mut aml_dma_request) -> c_int {
    // SAFETY: the state is a `Record`; `req` holds what create stored.
    unsafe {
        assert_eq!(*req, 0x99 as *mut aml_dma_request);
        *req = null_mut();
        note(dma, "destroy");
    }
    AML_SUCCESS
}

unsafe extern "C" fn barrier(dma: *mut aml_dma_data) -> c_int {
    // SAFETY: the state is a `Record`.
    unsafe { note(dma, "barrier") };
    -AML_EBUSY
}

unsafe extern "C" fn fprintf(dma: *const aml_dma_data, _stream: *mut FILE, prefix: *const c_char) -> c_int {
    // SAFETY: the state is a `Record`.
    unsafe { note(dma, "fprintf") };
    assert!(!prefix.is_null());
    AML_SUCCESS
}

const FULL: aml_dma_ops = aml_dma_ops {
    create_request: Some(create_request),
    destroy_request: Some(destroy_request),
    wait_request: Some(wait_request),
    barrier: Some(barrier),
    fprintf: Some(fprintf),
};
const EMPTY: aml_dma_ops =
    aml_dma_ops { create_request: None, destroy_request: None, wait_request: None, barrier: None, fprintf: None };

/// Runs `test` with a DMA that has these operations, and returns what that was asked.
fn with_dma(mut ops: aml_dma_ops, mut record: Record, test: impl FnOnce(*mut aml_dma)) -> Record {
    let mut dma = aml_dma { ops: &mut ops, data: (&raw mut record).cast() };
    test(&mut dma);
    record
}

const DEST: *mut aml_layout = 0x10 as *mut aml_layout;
const SRC: *mut aml_layout = 0x20 as *mut aml_layout;

unsafe extern "C-unwind" fn operator(_: *mut aml_layout, _: *const aml_layout, _: *mut c_void) -> c_int {
    unreachable!("the recording DMA calls no operator")
}

#[test]
#[cfg_attr(miri, ignore = "a function has many addresses there")]
fn a_copy_is_a_request_and_a_wait() {
    let record = with_dma(FULL, Record::default(), |dma| {
        // SAFETY: the recording DMA dereferences nothing.
        let error = unsafe { aml_dma_copy_custom(dma, DEST, SRC, Some(operator), 0x30 as *mut c_void) };
        assert_eq!(error, AML_SUCCESS);
    });
    assert_eq!(record.calls, ["create", "wait"]);
    let [_, dest, src, op, arg] = record.arguments.unwrap();
    assert_eq!([dest, src, arg], [0x10, 0x20, 0x30]);
    assert_eq!(op, operator as *const () as usize);
}

#[test]
fn a_copy_that_cannot_start_is_not_waited_for() {
    let record = with_dma(FULL, Record { create: -AML_EPERM, ..Record::default() }, |dma| {
        // SAFETY: the recording DMA dereferences nothing.
        assert_eq!(unsafe { aml_dma_copy_custom(dma, DEST, SRC, None, null_mut()) }, -AML_EPERM);
    });
    assert_eq!(record.calls, ["create"]);
}

#[test]
fn a_copy_that_fails_in_the_wait_says_so() {
    let record = with_dma(FULL, Record { wait: -AML_FAILURE, ..Record::default() }, |dma| {
        // SAFETY: the recording DMA dereferences nothing.
        assert_eq!(unsafe { aml_dma_copy_custom(dma, DEST, SRC, None, null_mut()) }, -AML_FAILURE);
    });
    assert_eq!(record.calls, ["create", "wait"]);
}

#[test]
#[cfg_attr(miri, ignore = "needs a FILE")]
fn the_other_calls_reach_their_operation() {
    let record = with_dma(FULL, Record::default(), |dma| {
        let mut req = null_mut();
        // SAFETY: the recording DMA dereferences nothing but the request.
        unsafe {
            assert_eq!(aml_dma_async_copy_custom(dma, &mut req, DEST, SRC, None, null_mut()), AML_SUCCESS);
            assert_eq!(aml_dma_cancel(dma, &mut req), AML_SUCCESS);
            assert!(req.is_null());
            assert_eq!(aml_dma_async_copy_custom(dma, null_mut(), DEST, SRC, None, null_mut()), AML_SUCCESS);
            assert_eq!(aml_dma_barrier(dma), -AML_EBUSY);
            let stream = libc::tmpfile();
            assert!(!stream.is_null());
            assert_eq!(aml_dma_fprintf(stream, null(), dma), AML_SUCCESS);
            libc::fclose(stream);
        }
    });
    assert_eq!(record.calls, ["create", "destroy", "create", "barrier", "fprintf"]);
}

#[test]
fn missing_pointers_are_refused_before_the_operation() {
    let record = with_dma(FULL, Record::default(), |dma| {
        let mut req = 0x99 as *mut aml_dma_request;
        let mut no_ops = aml_dma { ops: null_mut(), data: null_mut() };
        // SAFETY: NULL is refused.
        unsafe {
            for missing in [null_mut(), &raw mut no_ops] {
                assert_eq!(aml_dma_copy_custom(missing, DEST, SRC, None, null_mut()), -AML_EINVAL);
                assert_eq!(aml_dma_async_copy_custom(missing, &mut req, DEST, SRC, None, null_mut()), -AML_EINVAL);
                assert_eq!(aml_dma_wait(missing, &mut req), -AML_EINVAL);
                assert_eq!(aml_dma_cancel(missing, &mut req), -AML_EINVAL);
                assert_eq!(aml_dma_barrier(missing), -AML_EINVAL);
            }
            for (dest, src) in [(null_mut(), SRC), (DEST, null_mut()), (null_mut(), null_mut())] {
                assert_eq!(aml_dma_copy_custom(dma, dest, src, None, null_mut()), -AML_EINVAL);
                assert_eq!(aml_dma_async_copy_custom(dma, &mut req, dest, src, None, null_mut()), -AML_EINVAL);
            }
            assert_eq!(aml_dma_wait(dma, null_mut()), -AML_EINVAL);
            assert_eq!(aml_dma_cancel(dma, null_mut()), -AML_EINVAL);
            assert_eq!(aml_dma_fprintf(null_mut(), null(), dma), -AML_EINVAL);
        }
        assert_eq!(req, 0x99 as *mut aml_dma_request);
    });
    assert_eq!(record.calls, [] as [&str; 0]);
}

#[test]
#[cfg_attr(miri, ignore = "needs a FILE")]
fn a_dma_that_lacks_an_operation_is_told_so() {
    with_dma(EMPTY, Record::default(), |dma| {
        let mut req = 0x99 as *mut aml_dma_request;
        // SAFETY: there is no operation.
        unsafe {
            assert_eq!(aml_dma_copy_custom(dma, DEST, SRC, None, null_mut()), -AML_ENOTSUP);
            assert_eq!(aml_dma_async_copy_custom(dma, &mut req, DEST, SRC, None, null_mut()), -AML_ENOTSUP);
            assert_eq!(aml_dma_wait(dma, &mut req), -AML_ENOTSUP);
            assert_eq!(aml_dma_cancel(dma, &mut req), -AML_ENOTSUP);
            assert_eq!(aml_dma_barrier(dma), -AML_ENOTSUP);
            let stream = libc::tmpfile();
            assert_eq!(aml_dma_fprintf(stream, c"x".as_ptr(), dma), -AML_ENOTSUP);
            libc::fclose(stream);
        }
        assert_eq!(req, 0x99 as *mut aml_dma_request);
    });
}
