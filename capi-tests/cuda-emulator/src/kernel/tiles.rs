//! `aml_dma_cuda_copy_1` to `_16`: copies words along up to eight axes, a tile of two of them for each block of threads.
//! The same parameters and the same division into tiles as the text has; blocks that are not launched move nothing.
use super::Launch;
use crate::result::*;

/// Words of a tile along x, and along y.
const TILE: u64 = 32;
/// The threads that the text is written for.
const BLOCK: [u32; 3] = [32, 8, 1];
/// Axes that are counted by blocks.
const OTHERS: usize = 6;

/// An axis: its length, and the distances of its words in both sides.
#[derive(Clone, Copy)]
struct Axis {
    length: u64,
    dst: u64,
    src: u64,
}

impl Axis {
    fn read(launch: &Launch, index: usize) -> Result<Axis> {
        let at = |offset| launch.parameter(5 + 3 * index + offset);
        Ok(Axis { length: at(0)?, dst: at(1)?, src: at(2)? })
    }
}

/// One side of a copy: its first address, and where the emulator has the bytes from the lowest to the highest word.
struct Side {
    first: u64,
    lowest: u64,
    bytes: usize,
}

impl Side {
    fn find(launch: &Launch, word: u64, first: u64, axes: &[Axis], distance: fn(&Axis) -> u64) -> Result<Side> {
        let ways = || axes.iter().map(|axis| (distance(axis) as i64).wrapping_mul(axis.length as i64 - 1));
        let lowest = first.wrapping_add_signed(ways().filter(|way| *way < 0).sum());
        let highest = first.wrapping_add_signed(ways().filter(|way| *way > 0).sum());
        if axes.iter().any(|axis| distance(axis) % word != 0) || first % word != 0 {
            return Err(CUDA_ERROR_MISALIGNED_ADDRESS);
        }
        let bytes = launch.bytes(lowest, (highest - lowest + word) as usize)?;
        Ok(Side { first, lowest, bytes })
    }

    fn word(&self, distance: u64) -> usize {
        self.bytes + (self.first.wrapping_add(distance).wrapping_sub(self.lowest)) as usize
    }
}

/// Copies words of `WORD` bytes.
pub fn copy<const WORD: usize>(launch: &Launch) -> Result {
    let mut axes = [Axis { length: 1, dst: 0, src: 0 }; 2 + OTHERS];
    for (index, axis) in axes.iter_mut().enumerate() {
        *axis = Axis::read(launch, index)?;
    }
    let (x_tiles, y_tiles) = (launch.parameter(3)?, launch.parameter(4)?);
    // A division by zero, and threads that would not fit the tile.
    if axes.iter().any(|axis| axis.length == 0) || x_tiles == 0 || y_tiles == 0 || launch.block != BLOCK {
        return Err(CUDA_ERROR_LAUNCH_FAILED);
    }
    let word = WORD as u64;
    let dst = Side::find(launch, word, launch.parameter(0)?, &axes, |axis| axis.dst)?;
    let src = Side::find(launch, word, launch.parameter(1)?, &axes, |axis| axis.src)?;
    for block in 0..u64::from(launch.grid[0]) {
        let (x0, y0, mut rest) = (block % x_tiles * TILE, block / x_tiles % y_tiles * TILE, block / x_tiles / y_tiles);
        let (mut to, mut from) = (0u64, 0u64);
        for axis in &axes[2..] {
            let step = rest % axis.length;
            rest /= axis.length;
            to = to.wrapping_add(step.wrapping_mul(axis.dst));
            from = from.wrapping_add(step.wrapping_mul(axis.src));
        }
        for y in y0..(y0 + TILE).min(axes[1].length) {
            for x in x0..(x0 + TILE).min(axes[0].length) {
                let at = |distance: fn(&Axis) -> u64, base: u64| {
                    let way = x.wrapping_mul(distance(&axes[0])).wrapping_add(y.wrapping_mul(distance(&axes[1])));
                    base.wrapping_add(way)
                };
                let (to, from) = (dst.word(at(|axis| axis.dst, to)), src.word(at(|axis| axis.src, from)));
                // SAFETY: both sides were found from their lowest to their highest word.
                unsafe { std::ptr::copy(from as *const u8, to as *mut u8, WORD) };
            }
        }
    }
    Ok(())
}
