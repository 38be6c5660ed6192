//! Device memory: addresses that fault when the host touches them, with the bytes in a second mapping.
//! An address leads to its bytes by adding a constant, which only the emulator does.
use crate::result::*;
use crate::sync::Mutex;
use std::collections::BTreeMap;
use std::sync::OnceLock;

const PAGE: usize = 4096;

/// The memory of one device.
pub struct Heap {
    limit: usize,
    window: OnceLock<Window>,
    blocks: Mutex<Blocks>,
}

/// Two mappings of one size: the addresses, never accessible, and the bytes.
struct Window {
    addresses: usize,
    bytes: usize,
    size: usize,
}

#[derive(Default)]
struct Blocks {
    /// Offset and length of each block in use, in whole pages.
    used: BTreeMap<usize, usize>,
    /// Where the next search begins: a freed address is not handed out again soon.
    next: usize,
    total: usize,
}

fn reserve(size: usize) -> Result<usize> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a new mapping, at an address of the system's choice.
    let address = unsafe { libc::mmap(std::ptr::null_mut(), size, libc::PROT_NONE, flags, -1, 0) };
    if address == libc::MAP_FAILED { Err(CUDA_ERROR_OUT_OF_MEMORY) } else { Ok(address as usize) }
}

impl Blocks {
    /// The first gap of `length` at or after `from` and before `end`.
    fn gap(&self, from: usize, end: usize, length: usize) -> Option<usize> {
        let mut start = from;
        if let Some((offset, size)) = self.used.range(..=from).next_back() {
            start = start.max(offset + size);
        }
        for (offset, size) in self.used.range(start..) {
            if offset - start >= length {
                return Some(start);
            }
            start = offset + size;
        }
        (end.checked_sub(start)? >= length).then_some(start)
    }
}

impl Heap {
    /// A heap of this many bytes. Nothing is mapped before the first allocation.
    pub const fn new(limit: usize) -> Self {
        let blocks = Blocks { used: BTreeMap::new(), next: 0, total: 0 };
        Self { limit, window: OnceLock::new(), blocks: Mutex::new(blocks) }
    }

    fn window(&self, blocks: &mut Blocks) -> Result<&Window> {
        if self.window.get().is_none() {
            let size = (self.limit * 2).next_multiple_of(PAGE);
            let window = Window { addresses: reserve(size)?, bytes: reserve(size)?, size };
            blocks.next = 0;
            let _ = self.window.set(window);
        }
        self.window.get().ok_or(CUDA_ERROR_OUT_OF_MEMORY)
    }

    /// Allocates, and answers the device address.
    pub fn allocate(&self, length: usize) -> Result<usize> {
        let length = length.checked_next_multiple_of(PAGE).ok_or(CUDA_ERROR_OUT_OF_MEMORY)?;
        let mut blocks = self.blocks.lock();
        if length > self.limit - blocks.total {
            return Err(CUDA_ERROR_OUT_OF_MEMORY);
        }
        let window = self.window(&mut blocks)?;
        let end = window.size;
        let found = blocks.gap(blocks.next, end, length).or_else(|| blocks.gap(0, end, length));
        let offset = found.ok_or(CUDA_ERROR_OUT_OF_MEMORY)?;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: these pages of our own mapping belong to no block.
        if unsafe { libc::mprotect((window.bytes + offset) as *mut _, length, access) } != 0 {
            return Err(CUDA_ERROR_OUT_OF_MEMORY);
        }
        blocks.used.insert(offset, length);
        blocks.total += length;
        blocks.next = offset + length;
        Ok(window.addresses + offset)
    }

    /// Gives back what `allocate` answered.
    pub fn free(&self, address: usize) {
        let mut blocks = self.blocks.lock();
        let Some(window) = self.window.get() else {
            return;
        };
        let offset = address - window.addresses;
        let Some(length) = blocks.used.remove(&offset) else {
            return;
        };
        blocks.total -= length;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED;
        // SAFETY: the pages belong to the block that was just removed; fresh ones take their place.
        unsafe { libc::mmap((window.bytes + offset) as *mut _, length, libc::PROT_NONE, flags, -1, 0) };
    }

    /// Where the bytes of a device address lie.
    pub fn bytes(&self, address: usize) -> usize {
        self.window.get().map_or(0, |window| address - window.addresses + window.bytes)
    }

    /// Free and total bytes.
    pub fn info(&self) -> (usize, usize) {
        (self.limit - self.blocks.lock().total, self.limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_do_not_overlap_and_a_freed_one_comes_back_late() {
        let heap = Heap::new(16 * PAGE);
        let first = heap.allocate(1).unwrap();
        let second = heap.allocate(PAGE + 1).unwrap();
        assert!(second >= first + PAGE);
        heap.free(first);
        assert!(heap.allocate(1).unwrap() >= second + 2 * PAGE);
        assert_eq!(heap.info(), (13 * PAGE, 16 * PAGE));
        assert_eq!(heap.allocate(14 * PAGE), Err(CUDA_ERROR_OUT_OF_MEMORY));
        assert_ne!(heap.bytes(second), second);
    }

    #[test]
    fn a_full_window_is_searched_from_its_start() {
        let heap = Heap::new(4 * PAGE);
        let mut blocks = Vec::new();
        for _ in 0..40 {
            blocks.push(heap.allocate(2 * PAGE).unwrap());
            if blocks.len() == 2 {
                heap.free(blocks.remove(0));
            }
        }
        assert_eq!(heap.info().0, 2 * PAGE);
    }
}
