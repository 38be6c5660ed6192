//! A drop-in for the CUDA DMA of AML.
//!
//! A request takes this way: [`capi`] checks the arguments, `request` gets memory for it, `copy` (or the program's own
//! operator) queues the copy on the DMA's stream through the crate `cuda-driver`, `completion` sees to it that the
//! request turns to DONE by itself and can be waited for, `stream` and `context` know where all of that happens.
//! Under `completion` lie `marking`, the requests whose status words are still to be written, `straggler`, the thread
//! that looks after those nobody comes back for, and `patience`, the ways to wait. `staging` moves large copies of
//! pageable memory.
//!
//! A copy between layouts of any pitches, strides and orders goes by `strided`: `lattice` finds out where the elements
//! lie, `plan` which calls of the driver that makes, and `kernel` takes over what would be many calls on one device.

pub mod abi;
mod boundary;
pub mod capi;
mod completion;
mod context;
mod copy;
mod dma;
#[cfg(miri)]
#[path = "miri/driver.rs"]
mod driver;
mod duty;
mod error;
mod few;
mod kernel;
mod lattice;
mod layout;
mod marking;
mod patience;
mod peer;
mod plan;
mod request;
mod reserve;
mod staging;
pub mod statics;
mod straggler;
mod stream;
mod strided;
#[cfg_attr(miri, path = "miri/thread.rs")]
mod thread;
