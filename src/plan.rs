//! Which calls of the driver copy one grid of elements into another: as few as pitches and heights allow.
//! Arithmetic on distances alone; nothing here touches memory or the driver.
#![forbid(unsafe_code)]

use crate::error::{Error, Result};
use crate::few::Few;

#[cfg(test)]
pub(crate) mod tests;

/// One dimension of a copy: so many steps, and how far apart they are on both sides, in bytes.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Axis {
    /// The number of elements.
    pub length: usize,
    /// From one to the next in the destination.
    pub dst: isize,
    /// From one to the next in the source.
    pub src: isize,
}

/// What is copied, in its simplest form: runs of bytes without gaps on either side, along as few axes as possible.
/// The destination's distances are positive, and each steps past all that the axes before it reach.
#[derive(Clone, Debug)]
pub struct Grid {
    /// The bytes of a run.
    pub run: usize,
    /// The axes, the shortest step of the destination first.
    pub axes: Few<Axis>,
    /// Where the first run lies in the destination, from the element whose coordinates are all 0.
    pub dst: isize,
    /// The same in the source.
    pub src: isize,
}

/// One call of the driver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Call {
    /// Where it begins in the destination, from the element whose coordinates are all 0.
    pub dst: isize,
    /// The same in the source.
    pub src: isize,
    /// What it moves.
    pub extent: Extent,
}

/// What one call moves: planes of rows of bytes. One plane is a rectangle, one row a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Extent {
    /// Bytes of a row.
    pub width: usize,
    /// Rows of a plane.
    pub height: usize,
    /// Planes.
    pub depth: usize,
    /// How the destination lies.
    pub dst: Pitch,
    /// How the source lies.
    pub src: Pitch,
}

/// How rows and planes lie on one side, as the driver's structs say it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pitch {
    /// Bytes from row to row.
    pub row: usize,
    /// Rows from plane to plane.
    pub rows: usize,
}

/// The calls that make up a copy: one extent, moved once for each combination of steps along the axes left over.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What each call moves.
    pub extent: Extent,
    dst: isize,
    src: isize,
    left: Few<Axis>,
}

impl Grid {
    /// Simplifies a copy of elements of `element_size` bytes along `axes`, of which none is empty.
    ///
    /// `NotSupported` when two elements of the destination might share a byte.
    pub fn new(element_size: usize, axes: &[Axis]) -> Result<Grid> {
        let mut grid = Grid { run: element_size, axes: Few::new(), dst: 0, src: 0 };
        let mut kept = Few::new();
        for &axis in axes.iter().filter(|axis| axis.length > 1) {
            kept.push(grid.forwards(axis))?;
        }
        kept.sort_unstable_by_key(|axis: &Axis| axis.dst);
        let mut reach = element_size;
        for &axis in kept.iter() {
            if axis.dst.unsigned_abs() < reach {
                return Err(Error::NotSupported);
            }
            reach = (axis.length - 1)
                .checked_mul(axis.dst.unsigned_abs())
                .and_then(|way| way.checked_add(reach))
                .ok_or(Error::Invalid)?;
            grid.append(axis)?;
        }
        Ok(grid)
    }

    /// The same axis, walked so that the destination's address grows.
    fn forwards(&mut self, axis: Axis) -> Axis {
        if axis.dst >= 0 {
            return axis;
        }
        let last = (axis.length - 1) as isize;
        self.dst = self.dst.wrapping_add(axis.dst.wrapping_mul(last));
        self.src = self.src.wrapping_add(axis.src.wrapping_mul(last));
        Axis { length: axis.length, dst: axis.dst.wrapping_neg(), src: axis.src.wrapping_neg() }
    }

    /// Adds an axis whose step is longer than those before, as part of the run or of the last axis where it goes on
    /// where they end.
    fn append(&mut self, axis: Axis) -> Result<()> {
        let goes_on = |dst: isize, src: isize, length: usize| {
            let length = length as isize;
            axis.dst == dst.wrapping_mul(length) && axis.src == src.wrapping_mul(length)
        };
        match self.axes.last_mut() {
            None if goes_on(1, 1, self.run) => self.run *= axis.length,
            Some(last) if goes_on(last.dst, last.src, last.length) => last.length *= axis.length,
            _ => self.axes.push(axis)?,
        }
        Ok(())
    }
}

/// Whether rows of `run` bytes at these distances can be one call.
fn is_row(run: usize, axis: &Axis, max_pitch: usize) -> bool {
    let fits = |distance: isize| distance > 0 && (run..=max_pitch).contains(&distance.unsigned_abs());
    fits(axis.dst) && fits(axis.src)
}

/// Whether planes of these rows can be one call: the driver counts the distance of planes in whole rows.
fn is_plane(row: &Axis, axis: &Axis) -> bool {
    let fits = |distance: isize, pitch: isize| {
        distance > 0 && distance % pitch == 0 && (distance / pitch).unsigned_abs() >= row.length
    };
    fits(axis.dst, row.dst) && fits(axis.src, row.src)
}

impl Plan {
    /// The fewest calls that copy `grid`, with no two rows more than `max_pitch` bytes apart.
    pub fn new(grid: &Grid, max_pitch: usize) -> Result<Plan> {
        let axes = &grid.axes;
        let mut best = (1, None, None);
        for (index, row) in axes.iter().enumerate().filter(|(_, axis)| is_row(grid.run, axis, max_pitch)) {
            if row.length > best.0 {
                best = (row.length, Some(index), None);
            }
            for (other, plane) in axes.iter().enumerate().filter(|(other, axis)| *other != index && is_plane(row, axis))
            {
                // The rows are those of the elements copied, of which there are fewer than bytes.
                let rows = row.length * plane.length;
                if rows > best.0 {
                    best = (rows, Some(index), Some(other));
                }
            }
        }
        let (_, row, plane) = best;
        let mut left = Few::new();
        for (_, &axis) in axes.iter().enumerate().filter(|(index, _)| Some(*index) != row && Some(*index) != plane) {
            left.push(axis)?;
        }
        let row = row.map(|index| axes[index]);
        let plane = plane.map(|index| axes[index]);
        let height = row.map_or(1, |row| row.length);
        let side = |distance: fn(&Axis) -> isize| {
            let pitch = row.map_or(grid.run, |row| distance(&row).unsigned_abs());
            Pitch { row: pitch, rows: plane.map_or(height, |plane| distance(&plane).unsigned_abs() / pitch) }
        };
        let extent = Extent {
            width: grid.run,
            height,
            depth: plane.map_or(1, |plane| plane.length),
            dst: side(|axis| axis.dst),
            src: side(|axis| axis.src),
        };
        Ok(Plan { extent, dst: grid.dst, src: grid.src, left })
    }

    /// The number of calls.
    pub fn calls(&self) -> usize {
        self.left.iter().map(|axis| axis.length).product()
    }

    /// Hands each call to `issue`, until one fails.
    pub fn each<E: From<Error>>(
        &self,
        mut issue: impl FnMut(Call) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let mut steps = Few::<usize>::zeros(self.left.len())?;
        let mut call = Call { dst: self.dst, src: self.src, extent: self.extent };
        'calls: loop {
            issue(call)?;
            // One step along the first axis that has one left; those before start again.
            for (axis, step) in self.left.iter().zip(steps.iter_mut()) {
                if *step + 1 < axis.length {
                    *step += 1;
                    call.dst = call.dst.wrapping_add(axis.dst);
                    call.src = call.src.wrapping_add(axis.src);
                    continue 'calls;
                }
                call.dst = call.dst.wrapping_sub(axis.dst.wrapping_mul(*step as isize));
                call.src = call.src.wrapping_sub(axis.src.wrapping_mul(*step as isize));
                *step = 0;
            }
            return Ok(());
        }
    }
}
