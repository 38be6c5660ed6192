//! Lists of requests, by one thread and by many.

use super::*;
use crate::request::tests::{ROUNDS, nowhere};
use crate::request::{Pool, Request};
use std::sync::atomic::AtomicUsize;
use std::thread::{scope, yield_now};

/// Requests on one stream.
fn requests(count: usize) -> Vec<Request> {
    let state = nowhere();
    (0..count).map(|data| Pool::request(state.clone(), data).unwrap()).collect()
}

fn give_back(requests: Vec<Request>) {
    for request in requests {
        let state = request.stream_state().clone();
        state.pool.recycle(request, true);
    }
}

#[test]
fn all_that_is_in_a_list_is_taken_the_last_one_first() {
    let requests = requests(3);
    let list = MarkList::default();
    assert!(list.is_empty() && list.take().next().is_none());
    requests.iter().for_each(|request| list.push(request.mark()));
    assert!(!list.is_empty());
    assert!(list.take().eq(requests.iter().rev().map(Request::mark)));
    assert!(list.is_empty());
    give_back(requests);
}

/// Whoever has its request done gives it back at once, so its slot is the next request's while others are still taken.
#[test]
fn nothing_is_lost_where_many_push_and_one_takes() {
    const PUSHERS: usize = 3;
    let list = MarkList::default();
    let state = nowhere();
    let pushed = AtomicUsize::new(0);
    let pushing = AtomicUsize::new(PUSHERS);
    let taken = scope(|scope| {
        for _ in 0..PUSHERS {
            scope.spawn(|| {
                for round in 0..ROUNDS / 2 {
                    let pair = [0, 1].map(|_| Pool::request(state.clone(), round).unwrap());
                    pair.iter().for_each(|request| list.push(request.mark()));
                    pushed.fetch_add(pair.len(), Ordering::Relaxed);
                    for request in pair {
                        while !request.is_done() {
                            yield_now();
                        }
                        state.pool.recycle(request, true);
                    }
                }
                pushing.fetch_sub(1, Ordering::Release);
            });
        }
        let mut taken = 0;
        while pushing.load(Ordering::Acquire) > 0 {
            for mark in list.take() {
                mark.hand();
                mark.set_done();
                taken += 1;
            }
            yield_now();
        }
        taken
    });
    assert!(list.is_empty());
    assert_eq!(taken, pushed.into_inner());
}

#[test]
fn a_queue_keeps_its_order() {
    let requests = requests(5);
    let marks: Vec<_> = requests.iter().map(Request::mark).collect();
    let mut queue = MarkQueue::default();
    for _ in 0..2 {
        assert!(queue.pop().is_none() && queue.len() == 0);
        marks[..3].iter().for_each(|&mark| queue.push(mark));
        assert!(queue.pop() == Some(marks[0]) && queue.len() == 2);
        marks[3..].iter().for_each(|&mark| queue.push(mark));
        assert_eq!(queue.len(), 4);
        assert!(std::iter::from_fn(|| queue.pop()).eq(marks[1..].iter().copied()));
    }
    give_back(requests);
}

#[test]
fn what_a_list_gives_may_go_on_into_a_queue() {
    let requests = requests(4);
    let (list, mut queue) = (MarkList::default(), MarkQueue::default());
    requests.iter().for_each(|request| list.push(request.mark()));
    list.take().take(3).for_each(|mark| queue.push(mark));
    assert!(std::iter::from_fn(|| queue.pop()).eq(requests.iter().rev().take(3).map(Request::mark)));
    give_back(requests);
}
