//! Streams that are held, and the promise that nobody waits for one for ever: a thread that is about to wait has the
//! streams in its way released, at once or a moment later.

use super::driver::{emulator, within};
use super::line::Line;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Duration;

/// Which streams a wait depends on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Waits {
    /// Those that take turns with each other: see `Line::group`.
    For(u64),
    /// Any.
    ForAll,
}

impl Waits {
    fn concerns(self, group: u64) -> bool {
        self == Waits::ForAll || self == Waits::For(group)
    }
}

struct Held {
    line: Arc<Line>,
    serial: u64,
}

#[derive(Default)]
struct Table {
    held: Vec<Held>,
    waiting: Vec<Waits>,
    serial: u64,
}

/// The streams that are held now.
#[derive(Default)]
pub struct Holds {
    table: Mutex<Table>,
}

type Errand = (Arc<Holds>, Waits, Duration);

fn releaser() -> &'static Sender<Errand> {
    static RELEASER: OnceLock<Sender<Errand>> = OnceLock::new();
    RELEASER.get_or_init(|| {
        let (sender, errands) = channel::<Errand>();
        std::thread::Builder::new()
            .name("releaser".into())
            .spawn(move || {
                for (holds, waits, delay) in errands {
                    std::thread::sleep(delay);
                    holds.release(waits);
                }
            })
            .expect("a thread starts");
        sender
    })
}

impl Holds {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Holds a stream before its next piece of work, unless somebody waits for it.
    pub fn hold(&self, line: &Arc<Line>) {
        let Some(emulator) = emulator() else { return };
        let mut table = self.table();
        let once = table.held.iter().all(|held| held.line.id != line.id);
        if line.can_be_held() && once && !table.waiting.iter().any(|waits| waits.concerns(line.group)) {
            // SAFETY: the stream lives, in the context that is pushed.
            let code = within(line.context, || unsafe { (emulator.cuemu_hold)(line.handle) });
            assert_eq!(code, 0, "a living stream can be held");
            table.serial += 1;
            let serial = table.serial;
            table.held.push(Held { line: line.clone(), serial });
        }
    }

    /// The hold that this stream is under.
    pub fn serial(&self, line: &Line) -> Option<u64> {
        self.table().held.iter().find(|held| held.line.id == line.id).map(|held| held.serial)
    }

    /// What `look` says, if that hold was not taken back before it was asked.
    pub fn while_held<T>(&self, serial: u64, look: impl FnOnce() -> T) -> Option<T> {
        let table = self.table();
        table.held.iter().any(|held| held.serial == serial).then(look)
    }

    /// Releases the streams of which `waits` speaks.
    pub fn release(&self, waits: Waits) {
        let Some(emulator) = emulator() else { return };
        self.table().held.retain(|held| {
            let stays = !waits.concerns(held.line.group);
            if !stays {
                // SAFETY: a held stream is not destroyed.
                let code = within(held.line.context, || unsafe { (emulator.cuemu_release)(held.line.handle) });
                assert_eq!(code, 0, "a held stream can be released");
            }
            stays
        });
    }

    /// Says that the calling thread is about to wait, and sees to it that it will not for ever.
    pub fn waiting(self: &Arc<Self>, waits: Waits, delay: Duration) -> Waiting<'_> {
        let mut table = self.table();
        table.waiting.push(waits);
        let any = table.held.iter().any(|held| waits.concerns(held.line.group));
        drop(table);
        if any && delay.is_zero() {
            self.release(waits);
        } else if any {
            releaser().send((self.clone(), waits, delay)).expect("the releaser lives as long as the process");
        }
        Waiting { holds: self, waits }
    }
}

/// A thread waits, as long as this value lives.
pub struct Waiting<'a> {
    holds: &'a Holds,
    waits: Waits,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut table = self.holds.table();
        let place = table.waiting.iter().position(|&waits| waits == self.waits).expect("it was said before");
        table.waiting.swap_remove(place);
    }
}
