//! Staged copies by the crew, on the driver that stands in under Miri: its device memory is the host's.

use super::*;
use std::thread::scope;

fn state() -> StreamState {
    let context = Context::current().unwrap().expect("it is everywhere");
    StreamState::new(Stream::new_non_blocking().unwrap(), context, false)
}

/// Memory in which no page is like another.
fn pages(size: usize) -> Vec<u8> {
    let mut bytes = vec![7; size];
    for (number, page) in (1u32..).zip(bytes.chunks_mut(4096)) {
        let number = number.to_ne_bytes();
        let length = page.len().min(number.len());
        page[..length].copy_from_slice(&number[..length]);
    }
    bytes
}

/// Copies until the buffers can be had.
fn copied(state: &StreamState, way: Direction, size: usize) {
    let src = pages(size);
    let mut dst = vec![0; size];
    // SAFETY: both are as large as the copy, and are kept until it is done.
    while !unsafe { copy(state, (way, true), dst.as_mut_ptr().cast(), src.as_ptr().cast(), size) }.unwrap() {
        std::thread::yield_now();
    }
    state.stream.synchronize().unwrap();
    assert!(dst == src);
}

#[test]
fn copies_in_line_arrive_whole() {
    for way in [Direction::Up, Direction::Down] {
        copied(&state(), way, THRESHOLD);
        copied(&state(), way, (2 << 20) + 4099);
    }
}

#[test]
fn copies_at_desks_arrive_whole() {
    for way in [Direction::Up, Direction::Down] {
        copied(&state(), way, Arena::size() + 4099);
    }
}

#[test]
fn copies_at_once_do_not_share_the_buffers() {
    scope(|scope| {
        for way in [Direction::Up, Direction::Up, Direction::Down] {
            scope.spawn(move || (0..3).for_each(|_| copied(&state(), way, THRESHOLD + 4099)));
        }
    });
}
