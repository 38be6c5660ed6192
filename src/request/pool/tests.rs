//! The memory of requests: that no slot is lost, and none is given to two.

use super::*;
use crate::request::Mark;
use crate::request::tests::{ROUNDS, nowhere};
use std::collections::HashSet;
use std::thread::{scope, yield_now};

fn slots(list: &mut List) -> Vec<NonNull<Slot>> {
    let slots = std::iter::from_fn(|| list.pop()).collect();
    assert!(list.len == 0 && list.first.is_null());
    slots
}

#[test]
fn slots_of_a_slab_are_blank_and_lie_apart() {
    let slab = Slab::new(100).unwrap();
    let slots: Vec<_> = slab.slots().collect();
    assert_eq!(slots.len(), 100);
    for (index, slot) in slots.iter().enumerate() {
        assert!(slot.is_aligned() && slot.as_ptr() as usize == slab.first.as_ptr() as usize + 128 * index);
        // SAFETY: a fresh slab is ours, and zeros are a slot.
        let slot = unsafe { &mut *slot.as_ptr() };
        assert!(slot.public.status == 0 && slot.state.is_none() && slot.event.is_none());
        slot.public.status = PENDING; // the whole of each is ours to write
    }
    slab.unmap();
}

#[test]
fn a_list_gives_what_was_pushed_last_and_appended_first() {
    let slab = Slab::new(6).unwrap();
    let all: Vec<_> = slab.slots().collect();
    let (mut list, mut other) = (List::EMPTY, List::EMPTY);
    for _ in 0..2 {
        list.append(all[2]);
        list.append(all[3]);
        list.push(all[1]);
        list.append(all[4]);
        list.push(all[0]);
        list.append(all[5]);
        assert_eq!(list.len, 6);
        list.give(&mut other, 2);
        assert_eq!((list.len, other.len), (4, 2));
        assert_eq!(slots(&mut other), [all[1], all[0]]);
        list.give(&mut other, 9);
        assert_eq!(slots(&mut other), [all[5], all[4], all[3], all[2]]);
        assert!(slots(&mut list).is_empty());
        // What was emptied can be filled from either end.
        list.push(all[0]);
        list.append(all[1]);
        assert_eq!(slots(&mut list), [all[0], all[1]]);
    }
    slab.unmap();
}

/// A pool by itself, of a context that never was.
fn pool() -> Pool {
    Pool::new(nowhere().context)
}

fn slot_of(pool: &Pool) -> NonNull<Slot> {
    pool.take().unwrap_or_else(|| pool.grow().unwrap())
}

#[test]
fn a_slot_that_may_be_written_is_not_used_before_it_was() {
    let pool = pool();
    let given_up: Vec<_> = (0..3).map(|_| Request(slot_of(&pool))).collect();
    let marks = [&given_up[0], &given_up[1], &given_up[2]].map(Request::mark);
    for request in given_up {
        request.status().store(PENDING, Ordering::Relaxed);
        pool.recycle(request, false);
    }
    let used: HashSet<_> = (3..FIRST_SLAB).map(|_| slot_of(&pool)).collect();
    assert!(marks.iter().all(|mark| !used.contains(&mark.0)));
    assert_eq!(pool.store().slabs.len(), 1);
    marks[1].set_done();
    assert_eq!(slot_of(&pool), marks[1].0);
    [marks[2], marks[0]].into_iter().for_each(Mark::set_done);
    let both = [slot_of(&pool), slot_of(&pool)];
    assert!(both.contains(&marks[0].0) && both.contains(&marks[2].0));
    assert_eq!(pool.store().slabs.len(), 1);
}

#[test]
fn slots_of_one_thread_are_used_by_another() {
    let pool = pool();
    let taken: Vec<_> = (0..FIRST_SLAB).map(|_| Request(slot_of(&pool))).collect();
    let distinct: HashSet<_> = taken.iter().map(|request| request.0).collect();
    assert_eq!((distinct.len(), pool.store().slabs.len()), (FIRST_SLAB, 1));
    scope(|scope| _ = scope.spawn(|| taken.into_iter().for_each(|request| pool.recycle(request, true))));
    // The shelf of that thread keeps what fits there.
    let again: HashSet<_> = (2 * LOT..FIRST_SLAB).map(|_| slot_of(&pool)).collect();
    assert!(again.is_subset(&distinct) && again.len() == FIRST_SLAB - 2 * LOT);
    assert_eq!(pool.store().slabs.len(), 1);
}

#[test]
fn more_requests_than_a_slab_has_slots_get_another_slab() {
    let pool = pool();
    let slots: HashSet<_> = (0..FIRST_SLAB + LARGEST_SLAB).map(|_| slot_of(&pool)).collect();
    assert_eq!((slots.len(), pool.store().slabs.len()), (FIRST_SLAB + LARGEST_SLAB, 2));
}

#[test]
fn no_two_threads_have_the_same_slot() {
    let state = nowhere();
    scope(|scope| {
        for thread in 1..=3usize {
            let state = &state;
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    let requests = [0, 1, 2].map(|_| Pool::request(state.clone(), thread).unwrap());
                    yield_now();
                    for request in requests {
                        assert!(request.was_made_by(thread, 1) && !request.is_done());
                        if round % 4 == 0 {
                            request.mark().set_done();
                            state.pool.recycle(request, false);
                        } else {
                            state.pool.recycle(request, true);
                        }
                    }
                }
            });
        }
    });
    assert_eq!(Arc::strong_count(&state), 1);
}
