//! The pieces of work that a stream's thread carries out.
//! Addresses in them are the host's own: for device memory, where the emulator keeps the bytes.
use crate::control::settings;
use crate::entry;
use crate::event::Mark;
use crate::result::*;
use crate::stream::Stream;
use crate::types::*;
use std::ffi::c_void;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::*};
use std::time::Duration;

/// A box of bytes to be copied: rows of `width` bytes, `height` rows a layer, `depth` layers.
#[derive(Clone, Copy, Debug)]
pub struct Region {
    pub dst: usize,
    pub dst_pitch: usize,
    pub dst_layer: usize,
    pub src: usize,
    pub src_pitch: usize,
    pub src_layer: usize,
    pub width: usize,
    pub height: usize,
    pub depth: usize,
}

/// A function that stands for a kernel.
pub type Kernel = Box<dyn FnOnce() -> Result + Send>;

/// A piece of work.
pub enum Work {
    /// Nothing: only its place in the order matters.
    Nothing,
    /// Copies bytes between two blocks, which may overlap.
    Copy {
        dst: usize,
        src: usize,
        len: usize,
    },
    /// Copies bytes that were taken when the work was queued.
    Staged {
        dst: usize,
        bytes: Box<[u8]>,
    },
    /// Copies a box.
    Region(Box<Region>),
    /// Copies a box from packed bytes that were taken when the work was queued.
    StagedRegion(Box<(Region, Box<[u8]>)>),
    /// Fills with a repeated value of 1 or 4 bytes.
    Fill8 {
        dst: usize,
        value: u8,
        len: usize,
    },
    Fill32 {
        dst: usize,
        value: u32,
        count: usize,
    },
    /// Notes the time in an event's mark.
    Record(Arc<Mark>),
    /// Writes a word for the host to see, after all that was done before.
    Write32 {
        address: usize,
        value: u32,
    },
    Write64 {
        address: usize,
        value: u64,
    },
    /// Waits until a word fulfils a condition.
    Await32 {
        address: usize,
        value: u32,
        condition: u32,
    },
    Await64 {
        address: usize,
        value: u64,
        condition: u32,
    },
    /// Calls a function of the program.
    Host {
        function: CUhostFn,
        data: usize,
    },
    /// Runs a kernel.
    Kernel(Kernel),
}

/// The time of a copy of `len` bytes, after a delay and at a rate of bytes a second, where 0 is as fast as can be.
fn duration(len: usize, delay: u64, rate: u64) -> Duration {
    let transfer = if rate == 0 { 0 } else { len as u128 * 1_000_000_000 / u128::from(rate) };
    Duration::from_nanos(delay).saturating_add(Duration::from_nanos(transfer.try_into().unwrap_or(u64::MAX)))
}

/// Takes the time that a copy of `len` bytes is to take.
fn take_time(len: usize) {
    let time = duration(len, settings().delay.load(Relaxed), settings().bytes_per_second.load(Relaxed));
    if !time.is_zero() {
        std::thread::sleep(time);
    }
}

/// Copies `len` bytes, which may overlap.
///
/// # Safety
/// `dst` must be valid for writes and `src` for reads of `len` bytes.
unsafe fn copy(dst: usize, src: usize, len: usize) {
    // SAFETY: the caller's promise.
    unsafe { std::ptr::copy(src as *const u8, dst as *mut u8, len) };
}

impl Region {
    /// Number of bytes copied.
    pub fn bytes(&self) -> usize {
        self.width * self.height * self.depth
    }

    /// Calls `row` with the destination and source address of every row.
    pub fn for_each_row(&self, mut row: impl FnMut(usize, usize)) {
        for z in 0..self.depth {
            for y in 0..self.height {
                let dst = self.dst + z * self.dst_layer + y * self.dst_pitch;
                row(dst, self.src + z * self.src_layer + y * self.src_pitch);
            }
        }
    }

    /// The source's rows, packed, and the same region with the packed bytes as source (to be set when it is done).
    pub fn staged(mut self) -> (Self, Box<[u8]>) {
        let mut bytes = Vec::with_capacity(self.bytes());
        self.for_each_row(|_, src| {
            // SAFETY: whoever made the region has the right to its rows.
            bytes.extend_from_slice(unsafe { std::slice::from_raw_parts(src as *const u8, self.width) });
        });
        (self.src_pitch, self.src_layer) = (self.width, self.width * self.height);
        (self, bytes.into())
    }
}

/// Tells ThreadSanitizer, if it is in the process, that who reads the word at `address` has seen all that was done here.
fn publish(address: usize) {
    type Release = unsafe extern "C" fn(*mut c_void);
    static FUNCTION: OnceLock<Option<Release>> = OnceLock::new();
    let look_up = || {
        // SAFETY: the name ends in a zero; the function, where it exists, has this type.
        unsafe {
            let found = libc::dlsym(libc::RTLD_DEFAULT, c"__tsan_release".as_ptr());
            std::mem::transmute::<*mut c_void, Option<Release>>(found)
        }
    };
    if let Some(release) = FUNCTION.get_or_init(look_up) {
        // SAFETY: any address will do.
        unsafe { release(address as *mut c_void) };
    }
}

/// Whether a word of so many `bits` fulfils a condition; greater means within half the numbers ahead.
fn fulfils(word: u64, value: u64, condition: u32, bits: u32) -> bool {
    let of_word = u64::MAX >> (64 - bits);
    match condition {
        CU_STREAM_WAIT_VALUE_GEQ => word.wrapping_sub(value) >> (bits - 1) & 1 == 0,
        CU_STREAM_WAIT_VALUE_EQ => word == value,
        CU_STREAM_WAIT_VALUE_AND => word & value != 0,
        _ => !(word | value) & of_word != 0,
    }
}

/// Looks again and again, less and less often, until `done` or the stream is let go.
fn poll(stream: &Stream, done: impl Fn() -> bool) {
    let mut pause = 1;
    while !done() && !stream.is_let_go() {
        std::thread::sleep(Duration::from_micros(pause));
        pause = (pause * 2).min(500);
    }
}

impl Work {
    /// Does it. An error is a failure of the device, which the context then answers for ever.
    pub fn carry_out(self, stream: &Stream) -> Result {
        match self {
            Work::Nothing => {}
            Work::Copy { dst, src, len } => {
                take_time(len);
                // SAFETY: both blocks were found in the tables, or are the program's own, which promised them.
                unsafe { copy(dst, src, len) };
            }
            Work::Staged { dst, bytes } => {
                take_time(bytes.len());
                // SAFETY: the destination was found in the tables.
                unsafe { copy(dst, bytes.as_ptr() as usize, bytes.len()) };
            }
            Work::Region(region) => {
                take_time(region.bytes());
                // SAFETY: as for a copy, for every row.
                region.for_each_row(|dst, src| unsafe { copy(dst, src, region.width) });
            }
            Work::StagedRegion(staged) => {
                let (mut region, bytes) = *staged;
                region.src = bytes.as_ptr() as usize;
                take_time(region.bytes());
                // SAFETY: as for a copy, for every row.
                region.for_each_row(|dst, src| unsafe { copy(dst, src, region.width) });
            }
            Work::Fill8 { dst, value, len } => {
                // SAFETY: the destination was found in the tables.
                unsafe { std::ptr::write_bytes(dst as *mut u8, value, len) };
            }
            Work::Fill32 { dst, value, count } => {
                for index in 0..count {
                    // SAFETY: the destination was found in the tables, and its alignment checked.
                    unsafe { (dst as *mut u32).add(index).write(value) };
                }
            }
            Work::Record(mark) => mark.reach(),
            Work::Write32 { address, value } => {
                publish(address);
                // SAFETY: the word was found in the tables, and its alignment checked.
                unsafe { AtomicU32::from_ptr(address as *mut u32) }.store(value, Release);
            }
            Work::Write64 { address, value } => {
                publish(address);
                // SAFETY: the word was found in the tables, and its alignment checked.
                unsafe { AtomicU64::from_ptr(address as *mut u64) }.store(value, Release);
            }
            Work::Await32 { address, value, condition } => {
                // SAFETY: the word was found in the tables, and its alignment checked.
                let word = unsafe { AtomicU32::from_ptr(address as *mut u32) };
                poll(stream, || fulfils(word.load(Acquire).into(), value.into(), condition, 32));
            }
            Work::Await64 { address, value, condition } => {
                // SAFETY: the word was found in the tables, and its alignment checked.
                let word = unsafe { AtomicU64::from_ptr(address as *mut u64) };
                poll(stream, || fulfils(word.load(Acquire), value, condition, 64));
            }
            Work::Host { function, data } => {
                let _one_at_a_time = stream.context.function_runs.lock();
                // SAFETY: the program gave the function and its argument.
                entry::as_host_function(|| unsafe { function(data as *mut c_void) });
            }
            Work::Kernel(kernel) => return kernel(),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_takes_its_delay_and_its_bytes() {
        assert!(duration(usize::MAX, 0, 0).is_zero());
        assert_eq!(duration(1000, 5, 0), Duration::from_nanos(5));
        assert_eq!(duration(3000, 1, 1000), Duration::from_nanos(3_000_000_001));
        assert!(duration(usize::MAX, u64::MAX, 1) > Duration::from_secs(1));
    }

    #[test]
    fn conditions_are_those_of_words_of_their_size() {
        let geq = |word, value, bits| fulfils(word, value, CU_STREAM_WAIT_VALUE_GEQ, bits);
        assert!(geq(5, 5, 32) && geq(6, 5, 32) && !geq(4, 5, 32));
        assert!(geq(4, 0xffff_fff0, 32) && !geq(0x8000_0006, 5, 32));
        assert!(!geq(4, 0xffff_fff0, 64) && geq(0x8000_0006, 5, 64) && geq(1, u64::MAX, 64));
        assert!(fulfils(7, 7, CU_STREAM_WAIT_VALUE_EQ, 32) && !fulfils(7, 6, CU_STREAM_WAIT_VALUE_EQ, 32));
        assert!(fulfils(6, 2, CU_STREAM_WAIT_VALUE_AND, 64) && !fulfils(5, 2, CU_STREAM_WAIT_VALUE_AND, 64));
        let nor = |word, value, bits| fulfils(word, value, CU_STREAM_WAIT_VALUE_NOR, bits);
        assert!(nor(0xffff_ff0e, 0xf0, 32) && !nor(0xffff_ff0f, 0xf0, 32) && nor(0xffff_ff0f, 0xf0, 64));
    }

    #[test]
    fn a_box_is_packed_row_by_row() {
        let bytes: Vec<u8> = (0..64).collect();
        let src = bytes.as_ptr() as usize + 1;
        let region = Region {
            dst: 1000,
            dst_pitch: 10,
            dst_layer: 100,
            src,
            src_pitch: 8,
            src_layer: 32,
            width: 2,
            height: 3,
            depth: 2,
        };
        let (packed, rows) = region.staged();
        assert_eq!(*rows, [1, 2, 9, 10, 17, 18, 33, 34, 41, 42, 49, 50]);
        let mut places = Vec::new();
        Region { src: 0, ..packed }.for_each_row(|dst, src| places.push((dst, src)));
        assert_eq!(places, [(1000, 0), (1010, 2), (1020, 4), (1100, 6), (1110, 8), (1120, 10)]);
    }
}
