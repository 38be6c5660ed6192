//! All memory that the driver knows, by address: device, pinned, registered and managed.
//! Everything else is pageable.
mod mappings;

use crate::context::working;
use crate::context::{self, Context};
use crate::result::*;
use crate::sync::Mutex;
use crate::types::*;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

const PAGE: usize = 4096;

/// What a block of memory is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sort {
    /// On a device, out of the host's reach.
    Device,
    /// Allocated by the driver for host and devices.
    Pinned,
    /// The program's own, made known to the driver.
    Registered,
    /// Moves between host and devices.
    Managed,
}

/// A block of memory.
pub struct Block {
    /// Its first address.
    pub start: usize,
    /// Its size in bytes.
    pub len: usize,
    /// What it is.
    pub sort: Sort,
    /// The context in which it was made.
    pub context: Arc<Context>,
    /// What cuMemHostGetFlags answers.
    pub flags: u32,
    /// Number that no other block of the process has.
    pub id: u64,
}

static BLOCKS: Mutex<BTreeMap<usize, Arc<Block>>> = Mutex::new(BTreeMap::new());
static IDS: AtomicU64 = AtomicU64::new(1);

impl Block {
    fn end(&self) -> usize {
        self.start + self.len
    }

    /// Where the emulator finds the byte at `address`.
    pub fn bytes(&self, address: usize) -> usize {
        if self.sort == Sort::Device { self.context.device.heap.bytes(address) } else { address }
    }

    /// Gives the memory back where it is the driver's. All work that may use it must be done.
    fn give_back(&self) {
        match self.sort {
            Sort::Device => self.context.device.heap.free(self.start),
            // SAFETY: this block was mapped by `map` with this size, and is no longer in the table.
            Sort::Pinned | Sort::Managed => unsafe {
                libc::munmap(self.start as *mut _, self.len.next_multiple_of(PAGE));
            },
            Sort::Registered => {}
        }
    }
}

fn insert(start: usize, len: usize, sort: Sort, context: &Arc<Context>, flags: u32) {
    let block = Block { start, len, sort, context: context.clone(), flags, id: IDS.fetch_add(1, Relaxed) };
    BLOCKS.lock().insert(start, Arc::new(block));
}

fn map(len: usize) -> Result<usize> {
    let len = len.checked_next_multiple_of(PAGE).ok_or(CUDA_ERROR_OUT_OF_MEMORY)?;
    let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping, at an address of the system's choice.
    let address = unsafe { libc::mmap(std::ptr::null_mut(), len, access, flags, -1, 0) };
    if address == libc::MAP_FAILED { Err(CUDA_ERROR_OUT_OF_MEMORY) } else { Ok(address as usize) }
}

/// Allocates on the current context's device.
pub fn allocate_device(len: usize) -> Result<usize> {
    let context = working()?;
    if len == 0 {
        return Err(CUDA_ERROR_INVALID_VALUE);
    }
    let start = context.device.heap.allocate(len)?;
    insert(start, len, Sort::Device, &context, 0);
    Ok(start)
}

/// Allocates memory of the host that devices can reach.
pub fn allocate_host(len: usize, sort: Sort, flags: u32) -> Result<usize> {
    let context = working()?;
    if len == 0 {
        return Err(CUDA_ERROR_INVALID_VALUE);
    }
    let start = map(len)?;
    insert(start, len, sort, &context, flags);
    Ok(start)
}

/// Makes the program's own memory known.
pub fn register(start: usize, len: usize, flags: u32) -> Result {
    let context = working()?;
    if start == 0 || len == 0 || start.checked_add(len).is_none() {
        return Err(CUDA_ERROR_INVALID_VALUE);
    }
    let writable = flags & CU_MEMHOSTREGISTER_READ_ONLY == 0;
    if !mappings::hold(start, len, writable) {
        return Err(CUDA_ERROR_INVALID_VALUE);
    }
    let block = Block { start, len, sort: Sort::Registered, context, flags, id: IDS.fetch_add(1, Relaxed) };
    let mut blocks = BLOCKS.lock();
    // The nearest block before the end: any that overlaps, or none does.
    match blocks.range(..start + len).next_back().filter(|(_, block)| block.end() > start) {
        None => blocks.insert(start, Arc::new(block)),
        Some((_, other)) if other.sort == Sort::Registered => return Err(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED),
        Some(_) => return Err(CUDA_ERROR_INVALID_VALUE),
    };
    Ok(())
}

/// The block that an address lies in.
pub fn find(address: usize) -> Option<Arc<Block>> {
    let blocks = BLOCKS.lock();
    let (_, block) = blocks.range(..=address).next_back()?;
    (address < block.end()).then(|| block.clone())
}

/// Frees the block that starts here and is of one of these sorts, when all work of its device is done.
pub fn free(start: usize, sorts: &[Sort], otherwise: CUresult) -> Result {
    let found = BLOCKS.lock().get(&start).cloned();
    let block = found.filter(|block| sorts.contains(&block.sort)).ok_or(otherwise)?;
    // Work that failed or a context that went away does not keep memory from being freed.
    let _ = block.context.synchronize();
    if BLOCKS.lock().remove(&start).is_none() {
        return Err(otherwise);
    }
    block.give_back();
    Ok(())
}

/// Frees what a context that goes away had; all its work must be done.
pub fn forget_context(handle: CUcontext) {
    let mut gone = Vec::new();
    BLOCKS.lock().retain(|_, block| {
        let stays = block.context.handle != handle;
        if !stays {
            gone.push(block.clone());
        }
        stays
    });
    gone.iter().for_each(|block| block.give_back());
}

/// Number of blocks of a sort.
pub fn live(sort: Sort) -> usize {
    BLOCKS.lock().values().filter(|block| block.sort == sort).count()
}

/// A place that a copy may use.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Where the emulator finds the bytes.
    pub bytes: usize,
    /// None is pageable.
    pub sort: Option<Sort>,
}

/// Who asks for a place, and as what.
#[derive(Clone, Copy)]
pub struct Asker<'a> {
    /// The context on whose behalf the copy is done.
    pub context: &'a Context,
    /// Whether the address was given as a device pointer: pageable memory is refused then.
    pub as_device: bool,
    /// Whether any device's memory will do, as in copies by unified address.
    pub any_device: bool,
}

/// Checks that `len` bytes at `address` may take part in a copy.
pub fn place(address: usize, len: usize, asker: Asker<'_>) -> Result<Place> {
    let Some(block) = find(address) else {
        // Freed device memory, too, is taken for the program's own, and touching it faults.
        if asker.as_device || address == 0 {
            return Err(CUDA_ERROR_INVALID_VALUE);
        }
        return Ok(Place { bytes: address, sort: None });
    };
    if len > block.end() - address {
        return Err(CUDA_ERROR_INVALID_VALUE);
    }
    let foreign = block.sort == Sort::Device && !context::reaches(asker.context, &block.context);
    if foreign && !asker.any_device {
        return Err(CUDA_ERROR_INVALID_VALUE);
    }
    Ok(Place { bytes: block.bytes(address), sort: Some(block.sort) })
}
