//! Buffers of all sorts of memory, what they have to contain, and which kinds of copies take them.

use super::driver::{driver, move_bytes, must, within};
use super::line::Line;
use std::ffi::c_int;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;

/// Sorts of memory, with the names of the table of kinds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sort {
    Pageable,
    Pinned,
    Device,
    Managed,
}

impl Sort {
    /// Whether it is the host's alone.
    pub fn is_host(self) -> bool {
        matches!(self, Sort::Pageable | Sort::Pinned)
    }
}

/// Where a buffer lies: what sort of memory, and of which of the model's contexts, where that makes a difference.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    pub sort: Sort,
    pub context: usize,
}

/// The sizes of buffers. Small ones hold the usual copies; large ones those that are staged when they are pageable.
const SMALL: usize = 4160;
const LARGE: usize = (768 << 10) + 64;
/// How many there are of each: small ones, large ones.
const COUNT: [usize; 2] = [3, 2];

/// A buffer of one thread.
pub struct Buffer {
    pub place: Place,
    pub large: bool,
    pub address: usize,
    pub size: usize,
    /// What it contains when all that was queued is done.
    pub content: Vec<u8>,
    /// What was queued with it and may not be done.
    pub used: Option<Used>,
    /// The request that it was given away with.
    pub lent: Option<Lent>,
    /// Keeps pageable memory.
    memory: Vec<u8>,
}

/// Copies that use a buffer: places in the order of one stream, as far as one thread knows it.
pub struct Used {
    pub line: Arc<Line>,
    /// The last that uses it, and the last that writes to it.
    pub last: u64,
    pub last_write: u64,
}

/// A buffer whose copy another thread waits for.
pub struct Lent {
    pub returned: Arc<AtomicBool>,
    pub line: u64,
    pub position: u64,
}

impl Buffer {
    fn new(place: Place, large: bool, context: usize) -> Buffer {
        let size = if large { LARGE } else { SMALL };
        let mut memory = Vec::new();
        let mut address = 0;
        // SAFETY: `address` is valid for a write.
        let allocate = || unsafe {
            match place.sort {
                Sort::Device => must((driver().cuMemAlloc_v2)(&mut address, size)),
                Sort::Managed => must((driver().cuMemAllocManaged)(&mut address, size, 1)),
                Sort::Pinned => must((driver().cuMemHostAlloc)(&mut address, size, 1)),
                Sort::Pageable => {
                    memory = vec![0; size];
                    address = memory.as_ptr() as usize;
                }
            }
        };
        within(context, allocate);
        Buffer { place, large, address, size, content: Vec::new(), used: None, lent: None, memory }
    }

    /// Whether the host reaches it.
    pub fn is_of_host(&self) -> bool {
        self.place.sort != Sort::Device
    }

    /// What is there now, of memory that the host reaches.
    ///
    /// # Safety
    /// The buffer lives, and no copy writes to it.
    pub unsafe fn bytes(&self) -> &[u8] {
        // SAFETY: it has so many bytes; the caller vouches for the rest.
        unsafe { std::slice::from_raw_parts(self.address as *const u8, self.size) }
    }

    /// Sets all of it to bytes that tell `tag` and the place. Nothing uses it.
    pub fn fill(&mut self, tag: u64, service: Service) {
        self.content.clear();
        let mut state = tag.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        while self.content.len() < self.size {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let word = (state ^ (state >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            self.content.extend_from_slice(&word.to_le_bytes());
        }
        self.content.truncate(self.size);
        self.store(service);
    }

    /// Puts the content there. Nothing uses the buffer.
    fn store(&mut self, service: Service) {
        if self.is_of_host() {
            // SAFETY: it has so many bytes, and nothing uses it.
            unsafe {
                std::ptr::copy_nonoverlapping(self.content.as_ptr(), self.address as *mut u8, self.size);
            }
        } else {
            service.move_bytes(self.address, self.content.as_ptr() as usize, self.size);
        }
    }

    /// The first byte that is not what it has to be. Nothing writes to the buffer.
    pub fn difference(&self, service: Service) -> Option<String> {
        difference(self.place.sort, self.address, &self.content, service)
    }

    fn free(mut self, context: usize) {
        // SAFETY: every copy that used it is done.
        within(context, || unsafe {
            match self.place.sort {
                Sort::Device | Sort::Managed => must((driver().cuMemFree_v2)(self.address)),
                Sort::Pinned => must((driver().cuMemFreeHost)(self.address)),
                Sort::Pageable => self.memory.clear(),
            }
        });
    }
}

/// The first byte at `address` that is not as in `content`.
pub fn difference(sort: Sort, address: usize, content: &[u8], service: Service) -> Option<String> {
    let mut copy;
    let found = if sort == Sort::Device {
        copy = vec![0u8; content.len()];
        service.move_bytes(copy.as_mut_ptr() as usize, address, content.len());
        &copy[..]
    } else {
        // SAFETY: the memory lives, has so many bytes, and nothing writes to it.
        unsafe { std::slice::from_raw_parts(address as *const u8, content.len()) }
    };
    if found == content {
        return None;
    }
    let first = found.iter().zip(content).position(|(found, wanted)| found != wanted)?;
    let last = found.iter().zip(content).rposition(|(found, wanted)| found != wanted)?;
    Some(format!("bytes {first} to {last} of {} are not what they have to be", content.len()))
}

/// A stream for the model's own copies, and its context.
#[derive(Clone, Copy)]
pub struct Service {
    pub context: usize,
    pub stream: usize,
}

impl Service {
    fn move_bytes(self, dst: usize, src: usize, size: usize) {
        move_bytes(self.context, self.stream, dst, src, size);
    }
}

/// The buffers of a thread; they come with their first use.
#[derive(Default)]
pub struct Buffers {
    pub all: Vec<Buffer>,
}

impl Buffers {
    /// The numbers of the buffers in a place, which are made if need be in the context that is given.
    pub fn in_place(&mut self, place: Place, large: bool, context: usize) -> Vec<usize> {
        let mut found: Vec<_> = (0..self.all.len())
            .filter(|&index| self.all[index].place == place && self.all[index].large == large)
            .collect();
        while found.len() < COUNT[usize::from(large)] {
            found.push(self.all.len());
            self.all.push(Buffer::new(place, large, context));
        }
        found
    }

    /// Frees what depends on the contexts for which `goes` holds.
    pub fn free(&mut self, contexts: &[usize], goes: impl Fn(usize) -> bool) {
        let (gone, stays) = std::mem::take(&mut self.all).into_iter().partition(|buffer| goes(buffer.place.context));
        self.all = stays;
        let gone: Vec<Buffer> = gone;
        gone.into_iter().for_each(|buffer| {
            let context = contexts[buffer.place.context];
            buffer.free(context);
        });
    }
}

/// What `cudaMemcpyAsync` answered on an H200, by kind and sorts: the rows of the table that the C suite has, too.
pub struct Kinds(Vec<(c_int, Sort, Sort, bool)>);

/// The kind for which the destination and the source lie on devices.
pub const DEVICE_TO_DEVICE: c_int = 3;

impl Kinds {
    /// The table.
    pub fn table() -> &'static Kinds {
        static TABLE: OnceLock<Kinds> = OnceLock::new();
        TABLE.get_or_init(|| {
            let text = include_str!("../../../capi-tests/copy/kinds-h200.csv");
            let sort = |name: &str| match name {
                "pageable" => Sort::Pageable,
                "pinned" => Sort::Pinned,
                "device" => Sort::Device,
                "managed" => Sort::Managed,
                _ => panic!("{name} is no sort of memory"),
            };
            let row = |line: &str| {
                let fields: Vec<_> = line.split(',').collect();
                let kinds = ["HostToHost", "HostToDevice", "DeviceToHost", "Peer(0;0)", "Default"];
                let kind = kinds.iter().position(|&kind| kind == fields[0])?; // the library copies by peers
                Some((kind as c_int, sort(fields[2]), sort(fields[1]), fields[3] == "0"))
            };
            Kinds(text.lines().skip(1).filter_map(row).collect())
        })
    }

    /// The pairs of destination and source that a kind takes, or those that it refuses.
    pub fn pairs(&self, kind: c_int, taken: bool) -> Vec<(Sort, Sort)> {
        self.0.iter().filter(|row| row.0 == kind && row.3 == taken).map(|row| (row.1, row.2)).collect()
    }
}
