//! The kernels that the emulator knows: Rust functions under the names by which program text declares them.
//! They reach memory by device address, and fail as a device would where there is none.
mod tiles;

use crate::context::Context;
use crate::memory::{Asker, place};
use crate::result::*;

/// What a kernel is launched with.
pub struct Launch<'a> {
    /// The context it runs in.
    pub context: &'a Context,
    /// Blocks along each side of the grid.
    pub grid: [u32; 3],
    /// Threads along each side of a block.
    pub block: [u32; 3],
    /// The parameters, each widened to eight bytes.
    pub parameters: Vec<u64>,
}

/// What a kernel does. An error is the device's failure.
pub type Body = fn(&Launch) -> Result;

const KERNELS: &[(&str, Body)] = &[
    ("trap", trap),
    ("store_null", store_null),
    ("store_word", store_word),
    ("aml_dma_cuda_copy_1", tiles::copy::<1>),
    ("aml_dma_cuda_copy_2", tiles::copy::<2>),
    ("aml_dma_cuda_copy_4", tiles::copy::<4>),
    ("aml_dma_cuda_copy_8", tiles::copy::<8>),
    ("aml_dma_cuda_copy_16", tiles::copy::<16>),
];

/// The kernel of this name.
pub fn named(name: &str) -> Option<Body> {
    KERNELS.iter().find(|row| row.0 == name).map(|row| row.1)
}

impl Launch<'_> {
    /// Where `len` bytes at a device address lie, or CUDA_ERROR_ILLEGAL_ADDRESS.
    fn bytes(&self, address: u64, len: usize) -> Result<usize> {
        let asker = Asker { context: self.context, as_device: true, any_device: false };
        place(address as usize, len, asker).map(|place| place.bytes).map_err(|_| CUDA_ERROR_ILLEGAL_ADDRESS)
    }

    /// A parameter by its place.
    fn parameter(&self, index: usize) -> Result<u64> {
        self.parameters.get(index).copied().ok_or(CUDA_ERROR_ILLEGAL_ADDRESS)
    }
}

/// `trap()`: executes the trap instruction.
fn trap(_: &Launch) -> Result {
    Err(CUDA_ERROR_LAUNCH_FAILED)
}

/// `store_null()`: writes to address 0.
fn store_null(launch: &Launch) -> Result {
    launch.bytes(0, 4).map(drop)
}

/// `store_word(.u64 address, .u32 value)`: writes a word.
fn store_word(launch: &Launch) -> Result {
    let address = launch.parameter(0)?;
    if address % 4 != 0 {
        return Err(CUDA_ERROR_MISALIGNED_ADDRESS);
    }
    let word = launch.bytes(address, 4)? as *mut u32;
    // SAFETY: the word was found in the tables, and its alignment checked.
    unsafe { word.write(launch.parameter(1)? as u32) };
    Ok(())
}
