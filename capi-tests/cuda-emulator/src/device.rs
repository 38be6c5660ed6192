//! The devices: their number, order, attributes, primary context and memory.
//! They are made by cuInit and live as long as the process.
use crate::context::Context;
use crate::control::settings;
use crate::heap::Heap;
use crate::result::*;
use crate::sync::Mutex;
use crate::types::*;
use std::ffi::c_int;
use std::sync::atomic::{AtomicI32, Ordering::*};
use std::sync::{Arc, OnceLock};

/// A device.
pub struct Device {
    /// Number under which the program knows it.
    pub ordinal: CUdevice,
    /// Number before CUDA_VISIBLE_DEVICES renumbered.
    pub physical: i32,
    /// Its primary context.
    pub primary: Mutex<Primary>,
    /// Its memory.
    pub heap: Heap,
    /// The failure of a piece of work, 0 before.
    lost: AtomicI32,
}

impl Device {
    /// The code that everything answers here since a piece of work failed, in whatever context.
    pub fn check(&self) -> Result {
        match self.lost.load(Acquire) {
            CUDA_SUCCESS => Ok(()),
            code => Err(code),
        }
    }

    /// The process has lost the device: every context of it answers this code, and none can begin to live. The first counts.
    pub fn fail(&self, code: CUresult) {
        let _ = self.lost.compare_exchange(CUDA_SUCCESS, code, AcqRel, Relaxed);
    }
}

/// A primary context and who holds it.
#[derive(Default)]
pub struct Primary {
    /// Made by the first retain, the same ever after.
    pub context: Option<Arc<Context>>,
    /// Number of retains without release.
    pub count: u32,
    /// Flags for the next time it becomes active.
    pub flags: u32,
}

static DEVICES: OnceLock<Vec<Device>> = OnceLock::new();

/// All devices; none before cuInit.
pub fn all() -> &'static [Device] {
    DEVICES.get().map_or(&[], Vec::as_slice)
}

/// The device of this number, or CUDA_ERROR_INVALID_DEVICE.
pub fn get(ordinal: CUdevice) -> Result<&'static Device> {
    usize::try_from(ordinal).ok().and_then(|index| all().get(index)).ok_or(CUDA_ERROR_INVALID_DEVICE)
}

/// The physical numbers that CUDA_VISIBLE_DEVICES leaves, in its order: it ends at the first that does not exist.
fn visible(list: Option<&str>, count: i32) -> Vec<i32> {
    let Some(list) = list else {
        return (0..count).collect();
    };
    let mut chosen = Vec::new();
    for part in list.split(',') {
        match part.trim().parse::<i32>() {
            Ok(number) if (0..count).contains(&number) && !chosen.contains(&number) => chosen.push(number),
            _ => break,
        }
    }
    chosen
}

/// Makes the devices, or answers CUDA_ERROR_NO_DEVICE.
pub fn begin() -> Result {
    let list = std::env::var("CUDA_VISIBLE_DEVICES").ok();
    let chosen = visible(list.as_deref(), settings().devices.load(Relaxed));
    if chosen.is_empty() {
        return Err(CUDA_ERROR_NO_DEVICE);
    }
    let make = |(ordinal, physical)| Device {
        ordinal: ordinal as CUdevice,
        physical,
        primary: Mutex::default(),
        heap: Heap::new(settings().memory as usize),
        lost: AtomicI32::new(CUDA_SUCCESS),
    };
    DEVICES.get_or_init(|| chosen.into_iter().enumerate().map(make).collect());
    Ok(())
}

/// Whether one device can be given access to the other's memory.
pub fn peers(one: &Device, other: &Device) -> bool {
    one.ordinal != other.ordinal && settings().peer_access.load(Relaxed)
}

/// An attribute by its number in CUdevice_attribute; the values are those of an H200.
pub fn attribute(device: &Device, number: c_int) -> Result<c_int> {
    Ok(match number {
        1..=3 => 1024,
        4 => 64,
        5 => 2147483647,
        6 | 7 => 65535,
        8 => 49152,
        9 => 65536,
        10 => 32,
        11 => 2147483647,
        12 => 65536,
        13 => 1980000,
        14 => 512,
        15 => 1,
        16 => 132,
        17 | 18 => 0,
        19 => 1,
        20 => settings().compute_mode.load(Relaxed),
        30 => 512,
        31 | 32 => 1,
        33 => 0x10 + device.physical,
        34 | 35 => 0,
        36 => 3201000,
        37 => 6144,
        38 => 62914560,
        39 => 2048,
        40 => 3,
        41 => 1,
        50 => 0,
        51 => 32,
        75 => 9,
        76 => 0,
        78..=80 => 1,
        81 => 233472,
        82 => 65536,
        83 => 1,
        84 => 0,
        85 => device.ordinal,
        86 => 0,
        87 => 2,
        88 => 0,
        89..=91 => 1,
        92..=94 => 0,
        95 => 1,
        96 => 0,
        97 => 232448,
        98 => 0,
        99 => 1,
        100 | 101 => 0,
        102 | 103 => 0,
        106 => 32,
        111 => 1024,
        113 => 1,
        115 | 116 => 0,
        120 => 1,
        122 | 123 => 1,
        126 => 4,
        _ if (1..=147).contains(&number) => 0,
        _ => return Err(CUDA_ERROR_INVALID_VALUE),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn visible_devices_are_chosen_in_order_up_to_the_first_unknown() {
        assert_eq!(visible(None, 3), [0, 1, 2]);
        assert_eq!(visible(Some("2,0"), 3), [2, 0]);
        assert_eq!(visible(Some("1,7,0"), 3), [1]);
        assert_eq!(visible(Some(""), 3), []);
        assert_eq!(visible(Some("-1"), 3), []);
        assert_eq!(visible(Some("0,0"), 3), [0]);
    }
}
