//! Copies between devices: which contexts stand for a pair of devices, and peer access where the user asked for it.

use crate::error::Result;
use cuda_driver::{Context, Device, primary_context};
use libc::c_void;
use once_cell::sync::{Lazy, OnceCell};
use std::collections::HashSet;
use std::sync::Mutex;

/// The two devices of a copy between devices.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DevicePair {
    /// The ordinal of the device that has the data.
    pub src: i32,
    /// The ordinal of the device that gets it.
    pub dst: i32,
}

impl DevicePair {
    /// The pair that `AML_DMA_CUDA_DEVICE_PAIR` packed into a pointer.
    pub fn unpack(packed: *mut c_void) -> DevicePair {
        let bits = packed as u64;
        DevicePair { src: bits as u32 as i32, dst: (bits >> 32) as u32 as i32 }
    }

    /// The contexts of the source and of the destination, for a copy on a stream of `own`, which is current.
    pub fn contexts(self, own: Context) -> Result<(Context, Context)> {
        let here = own.device()?;
        let src = context_on(own, here, self.src)?;
        let dst = context_on(own, here, self.dst)?;
        if src != dst && access_wanted() {
            give_access(src, dst);
        }
        Ok((src, dst))
    }
}

/// The context that stands for a device: the stream's own on its device, else the primary one.
fn context_on(own: Context, here: Device, ordinal: i32) -> Result<Context> {
    let device = Device::get(ordinal)?;
    if device == here { Ok(own) } else { Ok(primary_context(device)?) }
}

/// Whether `AML_DMA_CUDA_PEER_ACCESS=1` allows the library to change what the contexts of a pair may reach.
fn access_wanted() -> bool {
    static WANTED: OnceCell<bool> = OnceCell::new();
    *WANTED.get_or_init(|| cuda_driver::setting("AML_DMA_CUDA_PEER_ACCESS").is_some_and(|value| value == "1"))
}

/// Lets two contexts reach each other's memory, once. Where that cannot be, the driver copies through the host.
fn give_access(a: Context, b: Context) {
    static GIVEN: Lazy<Mutex<HashSet<(Context, Context)>>> = Lazy::new(Mutex::default);
    for (from, to) in [(a, b), (b, a)] {
        let new = GIVEN.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).insert((from, to));
        if new && let Ok(_current) = from.enter() {
            let _ = Context::enable_access_to(to);
        }
    }
}
