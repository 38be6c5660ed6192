//! Threads that make, mark and wait for requests at once, on the driver that stands in under Miri.

use super::*;
use crate::request::Pool;
use cuda_driver::{Stream, copy};
use std::thread::{scope, yield_now};

const ROUNDS: usize = 12;
const SIZE: usize = 32;

/// What is known of a stream of the library's own.
fn stream() -> Arc<StreamState> {
    let context = Context::current().unwrap().expect("it is everywhere");
    let mut state = StreamState::new(Stream::new_non_blocking().unwrap(), context, true);
    state.pool = Arc::new(Pool::new(context));
    Arc::new(state)
}

/// A copy of each size that is marked in another way.
fn sizes() -> impl Iterator<Item = Option<Queued>> {
    let of = |size| Queued { size, on_device: false, finished: false, host: std::ptr::null() };
    [Some(of(SMALL)), None, Some(of(SMALL)), Some(of(SHORT)), Some(of(SMALL)), Some(of(SHORT + 1))].into_iter().cycle()
}

/// A request for a copy that is to be looked at.
struct Copy {
    request: Request,
    dst: Vec<u8>, // no boxes, which would claim what they point to whenever they are moved
    src: Vec<u8>,
}

impl Copy {
    /// Queues one, and marks it as if it were of another size.
    fn new(state: &Arc<StreamState>, byte: u8, queued: Option<Queued>) -> Copy {
        let (mut dst, src) = (vec![0; SIZE], vec![byte; SIZE]);
        let request = Pool::request(state.clone(), 8).unwrap();
        // SAFETY: both are kept until the request is DONE.
        unsafe {
            copy::host_to_device(dst.as_mut_ptr().cast(), src.as_ptr().cast(), SIZE, state.stream).unwrap();
        }
        mark(&request, queued).unwrap();
        Copy { request, dst, src }
    }

    fn wait(self) {
        wait(self.request).unwrap();
        assert_eq!(self.dst, self.src);
    }
}

fn is_idle(state: &Arc<StreamState>) -> bool {
    state.outstanding.load(Ordering::Relaxed) == 0 && !state.marking.is_busy()
}

fn threads_wait_for_what_they_made(state: &Arc<StreamState>) {
    scope(|scope| {
        for thread in 1..=3 {
            scope.spawn(move || {
                let mut sizes = sizes().skip(thread);
                for round in 0..ROUNDS {
                    let made: Vec<_> = sizes.by_ref().take(1 + round % 3).collect();
                    let copies: Vec<_> = made.into_iter().map(|size| Copy::new(state, thread as u8, size)).collect();
                    copies.into_iter().for_each(Copy::wait);
                }
            });
        }
    });
    assert!(is_idle(state));
}

#[test]
fn threads_that_share_a_stream_get_what_they_wait_for() {
    threads_wait_for_what_they_made(&stream());
}

#[test]
fn so_they_do_where_the_driver_calls_instead_of_writing() {
    let state = stream();
    state.pool.device_writes.store(false, Ordering::Relaxed);
    threads_wait_for_what_they_made(&state);
}

#[test]
fn requests_that_nobody_waits_for_turn_by_themselves() {
    let state = stream();
    scope(|scope| {
        for thread in 1..=2 {
            let state = &state;
            scope.spawn(move || {
                for _ in 0..3 {
                    let copies: Vec<_> = sizes().take(6).map(|size| Copy::new(state, thread, size)).collect();
                    while !copies.iter().all(|copy| copy.request.is_done()) {
                        yield_now();
                    }
                    assert!(copies.iter().all(|copy| copy.dst == copy.src));
                    copies.into_iter().for_each(Copy::wait);
                }
            });
        }
    });
    assert!(is_idle(&state));
}

#[test]
fn a_barrier_leaves_no_request_of_the_caller_pending() {
    let state = stream();
    scope(|scope| {
        for thread in 1..=3 {
            let state = &state;
            scope.spawn(move || {
                for _ in 0..ROUNDS / 3 {
                    let copies: Vec<_> = sizes().take(4).map(|size| Copy::new(state, thread, size)).collect();
                    settle(state, state.context).unwrap();
                    assert!(copies.iter().all(|copy| copy.request.is_done() && copy.dst == copy.src));
                    copies.into_iter().for_each(Copy::wait);
                }
            });
        }
    });
    assert!(is_idle(&state));
}
