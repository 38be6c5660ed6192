//! The machine that does what a string of bytes asks for, on several threads, and holds every answer of the library
//! against a simple model: a stream is a queue, a copy is an assignment, and whoever was told that a copy is done can
//! see its bytes.

mod copies;
mod dense;
mod driver;
mod holds;
mod line;
mod memory;
mod misuse;
mod operators;
mod requests;
mod step;
mod watchdog;
mod worker;
mod world;

use driver::{driver, emulator, must};
use holds::Waits;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::Ordering;
pub use step::{HEADER, STEP, Sequence};
use worker::{CALLS, Kept, Worker, ensure};
use world::{CREATED, MADE, Outcome, SlotSort, World};

/// The most threads of a run.
const THREADS: usize = 8;

/// What stays from run to run.
#[derive(Default)]
struct Base {
    /// The primary contexts of two devices, which the program holds.
    primary: Option<[usize; 2]>,
    kept: Vec<Kept>,
    /// How often the library holds them.
    references: [i32; 2],
    /// Whether a run failed, so that it cannot be told any more what there should be.
    is_broken: bool,
}

static BASE: Mutex<Option<Base>> = Mutex::new(None);

/// Calls of the library that were made in all runs.
pub fn calls() -> u64 {
    CALLS.load(Ordering::Relaxed)
}

/// Does what the bytes ask for; the text of an error says what was not as it has to be.
pub fn run(bytes: &[u8]) -> Result<(), String> {
    let mut base = BASE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let base = base.get_or_insert_with(|| {
        // SAFETY: no other thread of this process looks at the environment now.
        unsafe { std::env::set_var("AML_DMA_CUDA_COPY_THREADS", "3") };
        Base::default()
    });
    let _watched = watchdog::watch(bytes);
    caught(|| base.run(&Sequence::decode(bytes)))
}

/// A panic, too, is an outcome.
fn caught(work: impl FnOnce() -> Outcome) -> Outcome {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|payload| {
        let text = payload.downcast_ref::<String>().cloned();
        let text = text.or_else(|| payload.downcast_ref::<&str>().map(|text| text.to_string()));
        Err(format!("panic: {}", text.unwrap_or_default()))
    })
}

impl Base {
    fn run(&mut self, sequence: &Sequence) -> Outcome {
        let primary = *self.primary.get_or_insert_with(|| [retain(0), retain(1)]);
        self.kept.resize_with(THREADS, Kept::default);
        world::set(sequence);
        // SAFETY: no pointers.
        let stale = emulator().map(|emulator| unsafe { (emulator.cuemu_stale_uses)() });
        let world = World::new(primary, sequence);
        std::thread::scope(|scope| {
            for (number, kept) in self.kept.iter_mut().enumerate().take(sequence.threads) {
                let world = &world;
                let thread = std::thread::Builder::new().name(format!("model-{number}"));
                thread.spawn_scoped(scope, move || serve(world, kept, sequence, number)).expect("a thread starts");
            }
        });
        if !world.has_failed() {
            caught(|| self.close(&world)).unwrap_or_else(|text| world.fail(format!("at the end: {text}")));
        }
        world.holds.release(Waits::ForAll);
        let fault = world.fault.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).take();
        if let Some(fault) = fault {
            self.kept.clear(); // copies may still be under way
            self.is_broken = true;
            return Err(fault);
        }
        for kept in &mut self.kept {
            kept.buffers.free(&world.contexts, |place| place == CREATED);
        }
        world.end();
        if sequence.reset {
            self.reset(primary);
        }
        self.count(sequence, stale)
    }

    /// When all threads have ended: waits for what nobody took over, destroys the DMAs, looks at what was lent.
    fn close(&mut self, world: &World) -> Outcome {
        let mut worker = Worker::new(world, &mut self.kept[0], THREADS);
        while !world.handed_over.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).is_empty() {
            worker.take_over(0, 0)?;
        }
        for slot in 0..world.slots.len() {
            worker.barrier(slot, 0)?;
        }
        for slot in 0..MADE {
            worker.destroy(slot, 0)?;
            let gone = matches!(worker.slot(slot).sort, SlotSort::Made(None));
            ensure!(gone, "a DMA has requests left");
        }
        for slot in &world.slots {
            let outstanding = slot.read().map_or(0, |slot| slot.outstanding.load(Ordering::Acquire));
            ensure!(outstanding == 0, "{outstanding} requests are left");
        }
        worker.end()?;
        for kept in &mut self.kept {
            let mut worker = Worker::new(world, kept, THREADS);
            for index in 0..worker.kept.buffers.all.len() {
                let buffer = &mut worker.kept.buffers.all[index];
                if buffer.used.take().is_some() | buffer.lent.take().is_some() {
                    worker.check(index)?;
                }
            }
            worker.end()?;
        }
        Ok(())
    }

    /// Resets both devices, as a program may at any time.
    fn reset(&mut self, primary: [usize; 2]) {
        for kept in &mut self.kept {
            kept.buffers.free(&primary, |_| true);
            for (place, stream) in kept.services.drain() {
                // SAFETY: its work is done, and nobody uses it any more.
                driver::within(primary[place], || must(unsafe { (driver().cuStreamDestroy_v2)(stream) }));
            }
        }
        for device in 0..2 {
            // SAFETY: no pointers.
            unsafe {
                must((driver().cuDevicePrimaryCtxReset_v2)(device));
                assert_eq!(retain(device), primary[device as usize]); // it lives again
                must((driver().cuDevicePrimaryCtxRelease_v2)(device));
            }
        }
    }

    /// What exists when everything was given back.
    fn count(&mut self, sequence: &Sequence, stale: Option<u64>) -> Outcome {
        let Some(emulator) = emulator().filter(|_| !self.is_broken) else { return Ok(()) };
        let buffers = |sort| {
            self.kept.iter().flat_map(|kept| &kept.buffers.all).filter(|buffer| buffer.place.sort == sort).count()
        };
        let services: usize = self.kept.iter().map(|kept| kept.services.len()).sum();
        // SAFETY: no pointers.
        unsafe {
            let equal = |name: &str, found: usize, wanted: usize| {
                ensure!(found == wanted, "there are {found} {name}, not {wanted}");
                Ok(())
            };
            equal("device allocations", (emulator.cuemu_live_device_allocations)(), buffers(memory::Sort::Device))?;
            equal("host allocations", (emulator.cuemu_live_host_allocations)(), buffers(memory::Sort::Pinned))?;
            equal("managed allocations", (emulator.cuemu_live_managed_allocations)(), buffers(memory::Sort::Managed))?;
            equal("contexts", (emulator.cuemu_live_contexts)(), 2)?;
            let at_most = |name: &str, found: usize, most: usize| {
                ensure!(found <= most, "there are {found} {name}, more than {most}");
                Ok(())
            };
            let kept = |most: usize| if sequence.reset { 0 } else { most };
            at_most("streams", (emulator.cuemu_live_streams)(), services + kept(STREAMS))?;
            at_most("events", (emulator.cuemu_live_events)(), kept(EVENTS))?;
            at_most("registrations", (emulator.cuemu_live_registrations)(), kept(REGISTRATIONS))?;
            at_most("modules", (emulator.cuemu_live_modules)(), kept(MODULES))?;
            for device in 0..2 {
                // The program's own, and at most one that the library keeps once it has it.
                let found = (emulator.cuemu_primary_count)(device) - 1;
                let before = std::mem::replace(&mut self.references[device as usize], found);
                ensure!(found == before || (before, found) == (0, 1), "device {device} has {found} references more");
            }
            let now = Some((emulator.cuemu_stale_uses)());
            ensure!(stale == now, "handles of what is gone were used: {stale:?} to {now:?} times");
        }
        Ok(())
    }
}

/// The library remembers so many streams of programs, each with one of its own.
const STREAMS: usize = 300;
/// As many as there are requests at a time.
const EVENTS: usize = 4096;
/// The slabs of requests, and the buffers for staging.
const REGISTRATIONS: usize = 16;
/// A kernel for each size of words in each context.
const MODULES: usize = 10;

fn retain(device: i32) -> usize {
    let mut context = 0;
    // SAFETY: `context` is valid for a write.
    must(unsafe { (driver().cuDevicePrimaryCtxRetain)(&mut context, device) });
    context
}

/// What one thread does.
fn serve(world: &World, kept: &mut Kept, sequence: &Sequence, number: usize) {
    let mut worker = Worker::new(world, kept, number);
    let steps = sequence.steps.iter().enumerate().filter(|(_, step)| step.thread == number);
    for (index, step) in steps {
        if world.has_failed() || !sequence.free && !world.await_turn(index, number) {
            break;
        }
        if let Err(text) = caught(|| worker.run(step)) {
            world.fail(format!("step {index}, {step:?}: {text}"));
        }
        if !sequence.free {
            world.end_turn(sequence.steps.get(index + 1).map(|step| step.thread));
        }
    }
    if !world.has_failed() {
        let number = worker.tag >> 32;
        if let Err(text) = caught(|| worker.end()) {
            world.fail(format!("at the end of thread {number}: {text}"));
        }
    } else {
        world.holds.release(Waits::ForAll);
        worker.give_up();
    }
}
