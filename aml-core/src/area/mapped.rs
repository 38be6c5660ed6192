//! The program's own memory that is mapped: where it lies on the device, and on the host.
//! Room is kept before the driver is asked, so that memory which is registered never lacks its entry here.

use std::collections::TryReserveError;
use std::sync::{Mutex, MutexGuard, PoisonError};

struct Mapped {
    /// Addresses on the device and on the host, sorted.
    entries: Vec<(usize, usize)>,
    /// Entries that there is room for beyond these, for as many [`Room`]s.
    kept: usize,
}

static MAPPED: Mutex<Mapped> = Mutex::new(Mapped { entries: Vec::new(), kept: 0 });

fn mapped() -> MutexGuard<'static, Mapped> {
    MAPPED.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Mapped {
    fn remove(&mut self, device: usize) -> Option<usize> {
        let place = self.entries.binary_search_by_key(&device, |entry| entry.0).ok()?;
        Some(self.entries.remove(place).1)
    }
}

/// Room for one entry, which nobody else takes.
pub(super) struct Room(());

impl Room {
    pub fn keep() -> Result<Room, TryReserveError> {
        let mut mapped = mapped();
        let kept = mapped.kept + 1;
        mapped.entries.try_reserve(kept)?;
        mapped.kept = kept;
        Ok(Room(()))
    }

    /// Notes memory at address `device` of the device and `host` of the host.
    pub fn fill(self, device: usize, host: usize) {
        let mut mapped = mapped();
        match mapped.entries.binary_search_by_key(&device, |entry| entry.0) {
            // What was there went with its context, without our hearing of it.
            Ok(place) => mapped.entries[place].1 = host,
            Err(place) => mapped.entries.insert(place, (device, host)),
        }
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        mapped().kept -= 1;
    }
}

/// Takes out the entry for `device`: the address on the host, and the room to put it back.
pub(super) fn take(device: usize) -> Option<(usize, Room)> {
    let mut mapped = mapped();
    let host = mapped.remove(device)?;
    mapped.kept += 1;
    Some((host, Room(())))
}

/// Forgets what is at `device`, if anything is.
pub(super) fn forget(device: usize) {
    mapped().remove(device);
}
