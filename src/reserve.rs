//! The allocator of the library: the system's, and a reserve for when that has nothing left.
//!
//! What a call needs much memory for is asked for in ways that can fail, and answered with `-AML_ENOMEM`. The small
//! pieces in which Rust keeps its books cannot fail without ending the process, which is not ours to end: they come
//! from here, when all else is gone, and go back as soon as they are not needed.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::UnsafeCell;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

const SIZE: usize = 4096;
const COUNT: usize = 64;

#[repr(align(128))]
struct Piece(UnsafeCell<[u8; SIZE]>);

struct Reserve {
    pieces: [Piece; COUNT],
    /// A bit for each piece that is in use.
    used: AtomicU64,
}

// SAFETY: a piece belongs to whoever set its bit.
unsafe impl Sync for Reserve {}

static RESERVE: Reserve =
    Reserve { pieces: [const { Piece(UnsafeCell::new([0; SIZE])) }; COUNT], used: AtomicU64::new(0) };

impl Reserve {
    /// A piece, or NULL where none is large enough or left.
    #[cold]
    fn take(&self, layout: Layout) -> *mut u8 {
        if layout.size() > SIZE || layout.align() > align_of::<Piece>() {
            return ptr::null_mut();
        }
        let mut used = self.used.load(Ordering::Relaxed);
        loop {
            let free = used.trailing_ones() as usize;
            if free == COUNT {
                return ptr::null_mut();
            }
            match self.used.compare_exchange_weak(used, used | 1 << free, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return self.pieces[free].0.get().cast(),
                Err(now) => used = now,
            }
        }
    }

    /// The number of the piece at `pointer`, if it is one.
    fn index_of(&self, pointer: *mut u8) -> Option<usize> {
        let distance = (pointer as usize).wrapping_sub(self.pieces.as_ptr() as usize);
        (distance < COUNT * SIZE).then_some(distance / SIZE)
    }

    #[cold]
    fn give_back(&self, index: usize) {
        self.used.fetch_and(!(1 << index), Ordering::Release);
    }
}

struct WithReserve;

#[global_allocator]
static ALLOCATOR: WithReserve = WithReserve;

// SAFETY: memory is the system's, or a piece that nobody else has and that is large enough and aligned.
unsafe impl GlobalAlloc for WithReserve {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller vouches for the layout.
        let memory = unsafe { System.alloc(layout) };
        if memory.is_null() { RESERVE.take(layout) } else { memory }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        match RESERVE.index_of(memory) {
            Some(index) => RESERVE.give_back(index),
            // SAFETY: the memory came from `alloc` with this layout, and from no reserve.
            None => unsafe { System.dealloc(memory, layout) },
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller vouches for the layout.
        let memory = unsafe { System.alloc_zeroed(layout) };
        if !memory.is_null() {
            return memory;
        }
        let piece = RESERVE.take(layout);
        if !piece.is_null() {
            // SAFETY: the piece is as large as the layout says.
            unsafe { piece.write_bytes(0, layout.size()) };
        }
        piece
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if RESERVE.index_of(memory).is_none() {
            // SAFETY: the memory came from the system with this layout.
            let moved = unsafe { System.realloc(memory, layout, size) };
            if !moved.is_null() {
                return moved;
            }
        }
        // SAFETY: the caller vouches for size and alignment; both blocks have the bytes that are copied.
        unsafe {
            let moved = self.alloc(Layout::from_size_align_unchecked(size, layout.align()));
            if !moved.is_null() {
                ptr::copy_nonoverlapping(memory, moved, size.min(layout.size()));
                self.dealloc(memory, layout);
            }
            moved
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A reserve of the test's own.
    fn reserve() -> Reserve {
        Reserve { pieces: [const { Piece(UnsafeCell::new([0; SIZE])) }; COUNT], used: AtomicU64::new(0) }
    }

    #[test]
    fn it_gives_each_piece_once_and_none_that_is_too_small() {
        let reserve = Box::new(reserve());
        let layout = Layout::from_size_align(SIZE, 128).unwrap();
        for _ in 0..2 {
            let pieces: Vec<_> = (0..COUNT).map(|_| reserve.take(layout)).collect();
            for (index, &piece) in pieces.iter().enumerate() {
                assert!(piece as usize % layout.align() == 0 && reserve.index_of(piece) == Some(index));
                // SAFETY: a piece is ours, and this large.
                unsafe { piece.write_bytes(index as u8, SIZE) };
            }
            // SAFETY: it was just written.
            assert!((0..COUNT).all(|index| unsafe { pieces[index].add(SIZE - 1).read() } == index as u8));
            assert!(reserve.take(layout).is_null(), "there are no more");
            (0..COUNT).for_each(|index| reserve.give_back(index));
        }
        for (size, align) in [(SIZE + 1, 1), (1, 256)] {
            assert!(reserve.take(Layout::from_size_align(size, align).unwrap()).is_null());
        }
        assert_eq!(reserve.index_of((&raw const layout).cast_mut().cast()), None);
    }

    #[test]
    fn no_two_threads_have_the_same_piece() {
        let reserve = reserve();
        let layout = Layout::new::<[u64; 8]>();
        let rounds = if cfg!(miri) { 50 } else { 1_000 };
        std::thread::scope(|scope| {
            for thread in 0..3 {
                let reserve = &reserve;
                scope.spawn(move || {
                    for _ in 0..rounds {
                        let piece = reserve.take(layout).cast::<[u64; 8]>();
                        // SAFETY: a piece is this thread's until it is given back.
                        unsafe {
                            piece.write([thread; 8]);
                            std::thread::yield_now();
                            assert_eq!(piece.read(), [thread; 8]);
                        }
                        reserve.give_back(reserve.index_of(piece.cast()).expect("it is one"));
                    }
                });
            }
        });
        assert_eq!(reserve.used.into_inner(), 0);
    }
}
