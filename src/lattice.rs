//! Where the elements of a layout lie when they lie at regular distances: found by asking for a few of them.
//! A layout that answers otherwise at a corner, or in the middle, is refused.

use crate::error::{Error, Result};
use crate::few::Few;
use crate::layout::{Access, Layout, bytes};
use libc::c_void;

/// Up to so many dimensions, every corner is asked for; beyond, the ends of each dimension and the far corner.
const CORNERS: usize = 6;

/// The dimensions of a layout.
pub struct Shape<'a> {
    layout: Layout<'a>,
    access: Access,
    /// The size of an element in bytes.
    pub element_size: usize,
    /// The dimensions in the user's order.
    pub dims: Few<usize>,
}

/// A layout whose elements lie at regular distances.
pub struct Lattice {
    /// The element whose coordinates are all 0.
    pub origin: *mut c_void,
    /// From one element to the next in each dimension, in the user's order; 0 where there is no next.
    pub steps: Few<isize>,
    /// The lowest address of any element.
    pub lowest: usize,
    /// The last byte of the highest element.
    pub last: usize,
}

impl<'a> Shape<'a> {
    /// The dimensions of `layout`.
    pub fn of(layout: Layout<'a>) -> Result<Shape<'a>> {
        let access = layout.access()?;
        let mut dims = layout.dims(access)?;
        if access.reversed {
            dims.reverse();
        }
        Ok(Shape { layout, access, element_size: layout.element_size()?, dims })
    }

    /// The bytes of all elements.
    pub fn bytes(&self) -> Result<usize> {
        bytes(self.element_size, &self.dims)
    }

    /// Where the elements lie, of which there is at least one. `NotSupported` when not at regular distances.
    pub fn lattice(&self) -> Result<Lattice> {
        let dims = &self.dims;
        let place = |dimension: usize| if self.access.reversed { dims.len() - 1 - dimension } else { dimension };
        let mut coords = Few::zeros(dims.len())?;
        let origin = self.layout.element(self.access, &coords);
        if origin.is_null() {
            return Err(Error::Invalid);
        }
        let mut steps = Few::zeros(dims.len())?;
        let mut long = Few::new();
        for dimension in (0..dims.len()).filter(|&dimension| dims[dimension] > 1) {
            long.push(dimension)?;
            coords[place(dimension)] = 1;
            let next = self.layout.element(self.access, &coords);
            coords[place(dimension)] = 0;
            steps[dimension] = (next as isize).wrapping_sub(origin as isize);
        }
        let mut lattice = Lattice { origin, steps, lowest: origin as usize, last: origin as usize };
        let mut is_regular = |coord: &dyn Fn(usize) -> usize| {
            let mut expected = origin as isize;
            for (index, &dimension) in long.iter().enumerate() {
                let coord = coord(index);
                coords[place(dimension)] = coord;
                expected = expected.wrapping_add(lattice.steps[dimension].wrapping_mul(coord as isize));
            }
            self.layout.element(self.access, &coords) as isize == expected
        };
        let last = |index: usize| dims[long[index]] - 1;
        let mut regular = is_regular(&|index| last(index).div_ceil(2));
        if long.len() <= CORNERS {
            for corner in 1..1usize << long.len() {
                regular &= is_regular(&|index| last(index) * (corner >> index & 1));
            }
        } else {
            for end in 0..long.len() {
                regular &= is_regular(&|index| if index == end { last(index) } else { 0 });
            }
            regular &= is_regular(&last);
        }
        if !regular {
            return Err(Error::NotSupported);
        }
        lattice.bound(self)?;
        Ok(lattice)
    }
}

impl Lattice {
    /// Finds the lowest and the last byte; `Invalid` when they are not in the address space.
    fn bound(&mut self, shape: &Shape) -> Result<()> {
        let (mut below, mut above) = (Some(0usize), shape.element_size.checked_sub(1));
        for (&step, &length) in self.steps.iter().zip(shape.dims.iter()) {
            let way = step.unsigned_abs().checked_mul(length - 1);
            let side = if step < 0 { &mut below } else { &mut above };
            *side = side.zip(way).and_then(|(side, way)| side.checked_add(way));
        }
        let origin = self.origin as usize;
        self.lowest = below.and_then(|below| origin.checked_sub(below)).ok_or(Error::Invalid)?;
        self.last = above.and_then(|above| origin.checked_add(above)).ok_or(Error::Invalid)?;
        Ok(())
    }

    /// The address at a distance from the origin.
    pub fn at(&self, distance: isize) -> *mut c_void {
        self.origin.wrapping_byte_offset(distance)
    }
}
