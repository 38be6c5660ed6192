//! What the threads of a run share: contexts, streams, DMAs, held streams, requests that change hands.

use super::driver::{NON_BLOCKING, driver, emulator, make_stream, must, within};
use super::holds::Holds;
use super::line::{Line, PER_THREAD};
use super::memory::Place;
use super::step::Sequence;
use aml_dma_cuda::abi::*;
use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, RwLock};

/// The result of a step: what was not as it has to be.
pub type Outcome<T = ()> = Result<T, String>;

/// The places of the contexts: the primary ones of two devices, and one that the program made on the first.
pub const SECOND_DEVICE: usize = 1;
pub const CREATED: usize = 2;

/// The device of the context in that place.
pub fn device_of(context: usize) -> i32 {
    (context == SECOND_DEVICE).into()
}

/// A DMA, as far as all threads share it.
pub struct Slot {
    pub sort: SlotSort,
    /// Requests that were made on it and not waited for.
    pub outstanding: AtomicUsize,
    /// The direction, of those DMAs where it is not each thread's own.
    pub kind: AtomicI32,
}

/// Whose a DMA is.
pub enum SlotSort {
    /// The library made it, if it is there.
    Made(Option<Made>),
    /// The library's static one.
    Static,
    /// The program's own, around one of CUDA's own streams.
    Special(usize),
    /// The program's own, around a stream of its own.
    Own(Arc<Line>),
}

/// A DMA that the library made.
pub struct Made {
    pub dma: *mut aml_dma,
    pub line: Arc<Line>,
}

// SAFETY: the library says that any thread may use a DMA.
unsafe impl Send for Made {}
// SAFETY: as above.
unsafe impl Sync for Made {}

impl Made {
    /// Its public data.
    pub fn data(&self) -> *mut aml_dma_cuda_data {
        // SAFETY: the DMA lives while this value is reached.
        unsafe { (*self.dma).data.cast() }
    }
}

/// A request that a thread left to others.
pub struct HandedOver {
    pub request: usize,
    /// See `Line::group`.
    pub group: u64,
    pub slot: usize,
    /// The copy's destination, what it has to contain then, and how its owner learns that it may be used again.
    pub arrival: Option<(Place, usize, Vec<u8>)>,
    pub returned: Arc<AtomicBool>,
}

/// How many of the slots are for DMAs that the library makes.
pub const MADE: usize = 5;

/// What threads share.
pub struct World {
    pub contexts: Vec<usize>,
    pub slots: Vec<RwLock<Slot>>,
    /// The legacy stream of each context.
    pub legacy: Vec<Arc<Line>>,
    pub holds: Arc<Holds>,
    pub handed_over: Mutex<Vec<HandedOver>>,
    /// What was not as it has to be: the first one counts.
    pub fault: Mutex<Option<String>>,
    failed: AtomicBool,
    turn: Mutex<usize>,
    /// One for each thread, so that only the one whose turn it is wakes.
    next: Vec<Condvar>,
}

impl World {
    /// The streams of a run, in the primary contexts and perhaps one of its own.
    pub fn new(primary: [usize; 2], sequence: &Sequence) -> World {
        let mut contexts = primary.to_vec();
        if sequence.created_context {
            contexts.push(create_context());
        }
        let own = |place: usize, flags: u32| {
            let context = (place, contexts[place]);
            SlotSort::Own(Line::new(context, make_stream(context.1, flags), flags != NON_BLOCKING))
        };
        let mut sorts: Vec<_> = (0..MADE).map(|_| SlotSort::Made(None)).collect();
        sorts.push(SlotSort::Static);
        sorts.extend([0, 1, PER_THREAD].map(SlotSort::Special));
        sorts.extend([own(0, NON_BLOCKING), own(0, 0), own(SECOND_DEVICE, NON_BLOCKING)]);
        if sequence.created_context {
            sorts.extend([own(CREATED, NON_BLOCKING), own(CREATED, 0)]);
        }
        let slot = |sort| RwLock::new(Slot { sort, outstanding: AtomicUsize::new(0), kind: AtomicI32::new(DEFAULT) });
        World {
            slots: sorts.into_iter().map(slot).collect(),
            legacy: contexts.iter().enumerate().map(|(place, &context)| Line::new((place, context), 0, true)).collect(),
            contexts,
            holds: Arc::default(),
            handed_over: Mutex::default(),
            fault: Mutex::default(),
            failed: AtomicBool::new(false),
            turn: Mutex::new(0),
            next: (0..sequence.threads).map(|_| Condvar::new()).collect(),
        }
    }

    /// Whether something went wrong.
    pub fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Acquire)
    }

    /// Says what went wrong. Everybody stops.
    pub fn fail(&self, fault: String) {
        self.fault.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).get_or_insert(fault);
        self.failed.store(true, Ordering::Release);
        drop(self.turn.lock().unwrap_or_else(|poisoned| poisoned.into_inner()));
        self.next.iter().for_each(Condvar::notify_one);
    }

    /// Waits for the turn of a step of a thread's. False when it will not come.
    pub fn await_turn(&self, step: usize, thread: usize) -> bool {
        let mut turn = self.turn.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        while *turn != step && !self.has_failed() {
            turn = self.next[thread].wait(turn).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
        !self.has_failed()
    }

    /// Gives the turn to the next step, if there is one, of this thread.
    pub fn end_turn(&self, thread: Option<usize>) {
        *self.turn.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) += 1;
        if let Some(thread) = thread {
            self.next[thread].notify_one();
        }
    }

    /// Destroys the program's own streams and its context. No work is left.
    pub fn end(self) {
        for slot in self.slots {
            let slot = slot.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
            if let SlotSort::Own(line) = slot.sort {
                // SAFETY: its work is done, and nothing uses it any more.
                within(line.context, || must(unsafe { (driver().cuStreamDestroy_v2)(line.handle) }));
            }
        }
        if let Some(&context) = self.contexts.get(CREATED) {
            // SAFETY: nothing of it is used any more.
            must(unsafe { (driver().cuCtxDestroy_v2)(context) });
        }
    }
}

/// `cudaMemcpyDefault`
pub const DEFAULT: c_int = 4;

/// Makes a context on the first device, which is not current afterwards.
fn create_context() -> usize {
    let (mut context, mut popped) = (0, 0);
    // SAFETY: both are valid for a write.
    unsafe {
        must((driver().cuCtxCreate_v2)(&mut context, 0, 0));
        must((driver().cuCtxPopCurrent_v2)(&mut popped));
    }
    context
}

/// Sets the software driver as the sequence wants it, and the static DMA as it is in a new process.
pub fn set(sequence: &Sequence) {
    // SAFETY: no other thread uses the library now.
    unsafe { aml_dma_cuda::statics::aml_dma_cuda_data.kind = DEFAULT };
    if let Some(emulator) = emulator() {
        // SAFETY: no pointers.
        unsafe {
            (emulator.cuemu_set_delay)(sequence.delay);
            (emulator.cuemu_set_reuse_handles)(sequence.reuse_handles.into());
        }
    }
}
