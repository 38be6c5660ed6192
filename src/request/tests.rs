//! One thread has a request while another marks it: what Miri and ThreadSanitizer are to see, natively only counted.

use super::*;
use cuda_driver::Context;
use std::sync::mpsc::channel;
use std::thread::{scope, yield_now};

/// So often threads meet.
pub const ROUNDS: usize = if cfg!(miri) { 20 } else { 1_000 };

/// What is known of the legacy stream of a context that never was: no driver is needed to make requests on it.
pub fn nowhere() -> Arc<StreamState> {
    // SAFETY: a handle and a number.
    let context: Context = unsafe { std::mem::zeroed() };
    Arc::new(StreamState::new(Stream::NULL, context, false))
}

#[test]
fn a_request_begins_pending_and_is_its_makers() {
    let state = nowhere();
    for _ in 0..2 {
        let request = Pool::request(state.clone(), 8).unwrap();
        assert!(!request.is_done() && !request.is_handed() && !request.is_refused() && !request.mark().is_alone());
        assert_eq!(request.event(), None);
        assert!(request.was_made_by(8, 1) && request.was_made_by(1, 0) && !request.was_made_by(1, 1));
        assert!(Arc::ptr_eq(request.stream_state(), &state));
        // The next one gets this slot, and is to know of nothing.
        request.mark().set_alone(true);
        request.refuse();
        request.set_done();
        assert!(request.is_done() && request.is_refused() && request.is_handed());
        state.pool.recycle(request, true);
        assert_eq!(Arc::strong_count(&state), 1);
    }
}

#[test]
fn a_request_goes_out_to_the_program_and_comes_back() {
    let state = nowhere();
    let pointer = Pool::request(state.clone(), 8).unwrap().into_raw();
    // SAFETY: the status word of a request that was just given out.
    let status = unsafe { AtomicI32::from_ptr(&raw mut (*pointer.cast::<aml_dma_cuda_request>()).status) };
    assert_eq!(status.load(Ordering::Relaxed), PENDING);
    // SAFETY: it came from `into_raw`.
    let request = unsafe { Request::from_raw(NonNull::new(pointer).unwrap()) };
    // SAFETY: the argument is a status word.
    unsafe { done(request.mark().argument()) };
    assert_eq!(status.load(Ordering::Relaxed), DONE);
    state.pool.recycle(request, true);
}

/// Both threads are at it at once, and the one that gives up does not wait for the other.
#[test]
fn a_request_may_be_given_up_while_another_thread_marks_it() {
    let state = nowhere();
    let (marks, marked) = channel::<Mark>();
    scope(|scope| {
        scope.spawn(move || {
            for mark in marked {
                let list = MarkList::default();
                mark.set_alone(true);
                list.push(mark);
                let taken = list.take().next().unwrap();
                assert!(taken == mark && taken.is_alone() && taken.event().is_none());
                taken.hand();
                taken.set_done();
            }
        });
        for round in 0..ROUNDS {
            let mut request = Pool::request(state.clone(), round).unwrap();
            marks.send(request.mark()).unwrap();
            assert!(request.was_made_by(round, 1) && !request.is_refused());
            while round % 2 == 0 && !request.is_handed() {
                yield_now();
            }
            let state = request.take_stream_state();
            // With a state left, it is `recycle` that takes it.
            let settled = round % 3 == 0 && request.is_done();
            state.pool.recycle(request, settled);
        }
        drop(marks);
    });
    assert_eq!(Arc::strong_count(&state), 1);
}

#[test]
fn a_refusal_is_seen_by_the_owner() {
    let state = nowhere();
    scope(|scope| {
        for _ in 0..ROUNDS / 4 {
            let request = Pool::request(state.clone(), 8).unwrap();
            let mark = request.mark();
            let marker = scope.spawn(move || mark.refuse());
            while !request.is_refused() {
                assert!(!request.is_done() && request.event().is_none());
                yield_now();
            }
            assert!(request.is_handed());
            marker.join().unwrap();
            state.pool.recycle(request, true);
        }
    });
}

/// The event is written without a lock, and is read by a thread that learns of it from the slot alone.
#[cfg(miri)] // records on the driver that stands in
#[test]
fn an_event_is_seen_once_it_is_recorded() {
    let state = nowhere();
    for _ in 0..ROUNDS {
        let request = Pool::request(state.clone(), 8).unwrap();
        let mark = request.mark();
        scope(|scope| {
            scope.spawn(move || mark.record(Stream::NULL).unwrap());
            while request.event().is_none() {
                yield_now();
            }
        });
        assert_eq!(request.event(), mark.event());
        assert!(request.event().unwrap().is_done().unwrap());
        state.pool.recycle(request, true);
        assert!(Pool::request(state.clone(), 8).unwrap().event().is_none(), "that of the request before");
    }
}
