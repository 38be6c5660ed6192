//! Where the elements of a layout lie when they lie at regular distances: found by asking for a few of them.
//! A layout that answers otherwise at a corner, or in the middle, is refused.

use crate::error::{Error, Result};
use crate::few::Few;
use crate::layout::{Access, Layout, bytes};
use libc::c_void;
use std::ptr;

/// Up to so many dimensions, every corner is asked for; beyond, the ends of each dimension and the far corner.
const CORNERS: usize = 6;

/// A layout whose elements lie at regular distances. Its dimensions are filled in first, then its distances: in place,
/// since a decision takes less time than moving these lists about.
pub struct Lattice<'a> {
    layout: Layout<'a>,
    access: Access,
    /// The size of an element in bytes.
    pub element_size: usize,
    /// The dimensions in the order that the layout is asked in.
    dims: Few<usize>,
    /// From one element to the next in each of them; 0 where there is no next.
    steps: Few<isize>,
    /// The element whose coordinates are all 0.
    pub origin: *mut c_void,
    /// The lowest address of any element.
    pub lowest: usize,
    /// The last byte of the highest element.
    pub last: usize,
}

impl<'a> Lattice<'a> {
    /// A layout of which nothing is known yet.
    #[inline]
    pub fn new(layout: Layout<'a>) -> Result<Lattice<'a>> {
        Ok(Lattice {
            layout,
            access: layout.access()?,
            element_size: layout.element_size()?,
            dims: Few::new(),
            steps: Few::new(),
            origin: ptr::null_mut(),
            lowest: 0,
            last: 0,
        })
    }

    /// Asks for the dimensions.
    #[inline]
    pub fn measure(&mut self) -> Result<()> {
        let ndims = self.layout.ndims()?;
        self.dims.lengthen(ndims)?;
        self.steps.lengthen(ndims)?;
        self.layout.dims(self.access, &mut self.dims)
    }

    /// The number of dimensions.
    pub fn ndims(&self) -> usize {
        self.dims.len()
    }

    /// The length of the user's dimension `index`, and the distance between its elements.
    #[inline]
    pub fn dimension(&self, index: usize) -> (usize, isize) {
        let index = if self.access.reversed { self.dims.len() - 1 - index } else { index };
        (self.dims[index], self.steps[index])
    }

    /// Whether the user finds the same dimensions of the same elements in both.
    #[inline]
    pub fn matches(&self, other: &Lattice) -> bool {
        if self.element_size != other.element_size || self.ndims() != other.ndims() {
            return false;
        }
        if self.access.reversed == other.access.reversed {
            return *self.dims == *other.dims;
        }
        (0..self.ndims()).all(|index| self.dimension(index).0 == other.dimension(index).0)
    }

    /// The bytes of all elements.
    pub fn bytes(&self) -> Result<usize> {
        bytes(self.element_size, &self.dims)
    }

    /// Finds the distances, where there is at least one element. `NotSupported` when they are not regular.
    #[inline]
    pub fn probe(&mut self) -> Result<()> {
        let mut coords = Few::<usize>::zeros(self.dims.len())?;
        let coords = &mut coords[..];
        self.origin = self.layout.element(self.access, coords);
        if self.origin.is_null() {
            return Err(Error::Invalid);
        }
        let origin = self.origin as isize;
        let (layout, access) = (self.layout, self.access);
        for (index, (step, &length)) in self.steps.iter_mut().zip(self.dims.iter()).enumerate() {
            if length > 1 {
                coords[index] = 1;
                let next = layout.element(access, coords) as isize;
                coords[index] = 0;
                *step = next.wrapping_sub(origin);
            }
        }
        if self.is_regular(coords) { Ok(()) } else { Err(Error::NotSupported) }
    }

    /// Whether the elements at the corners and in the middle lie where the steps say.
    #[inline]
    fn is_regular(&self, coords: &mut [usize]) -> bool {
        let dims = &self.dims[..];
        if dims.len() <= CORNERS {
            // One bit a dimension. Those of one element have but one end, and those of two were seen to their end.
            let (mut one, mut two) = (0usize, 0usize);
            for (index, &length) in dims.iter().enumerate() {
                one |= usize::from(length == 1) << index;
                two |= usize::from(length <= 2) << index;
            }
            for corner in 1..1usize << dims.len() {
                let seen = corner & one != 0 || corner & (corner - 1) == 0 && corner & two != 0;
                if !seen && !self.lies_at(coords, |index, last| last * (corner >> index & 1)) {
                    return false;
                }
            }
        } else {
            let end = |end| move |index: usize, last: usize| if index == end { last } else { 0 };
            if !(0..dims.len()).all(|index| self.lies_at(coords, end(index))) || !self.lies_at(coords, |_, last| last) {
                return false;
            }
        }
        let corners_are_all = dims.iter().all(|&length| length <= 2);
        corners_are_all || self.lies_at(coords, |_, last| last.div_ceil(2))
    }

    /// Whether the element lies where the steps say whose coordinates `coord` tells from a dimension and its end.
    #[inline]
    fn lies_at(&self, coords: &mut [usize], coord: impl Fn(usize, usize) -> usize) -> bool {
        let (dims, steps) = (&self.dims[..coords.len()], &self.steps[..coords.len()]);
        let mut expected = self.origin as isize;
        for index in 0..coords.len() {
            let coord = coord(index, dims[index] - 1);
            coords[index] = coord;
            expected = expected.wrapping_add(steps[index].wrapping_mul(coord as isize));
        }
        self.layout.element(self.access, coords) as isize == expected
    }

    /// Finds the lowest and the last byte, after `probe`; `Invalid` when they are not in the address space.
    pub fn bound(&mut self) -> Result<()> {
        let (mut below, mut above) = (Some(0usize), self.element_size.checked_sub(1));
        for (&step, &length) in self.steps.iter().zip(self.dims.iter()) {
            let way = step.unsigned_abs().checked_mul(length - 1);
            let side = if step < 0 { &mut below } else { &mut above };
            *side = side.zip(way).and_then(|(side, way)| side.checked_add(way));
        }
        let origin = self.origin as usize;
        self.lowest = below.and_then(|below| origin.checked_sub(below)).ok_or(Error::Invalid)?;
        self.last = above.and_then(|above| origin.checked_add(above)).ok_or(Error::Invalid)?;
        Ok(())
    }

    /// Whether both are blocks without gaps that are asked in the same order, the fastest dimension first.
    #[inline]
    pub fn are_one_block(&self, other: &Lattice) -> bool {
        let mut distance = self.element_size as isize;
        let steps = self.steps.iter().zip(other.steps.iter());
        self.access.reversed == other.access.reversed
            && self.dims.iter().zip(steps).all(|(&length, (&own, &others))| {
                let follows = length == 1 || own == distance && others == distance;
                distance = distance.wrapping_mul(length as isize);
                follows
            })
    }

    /// The address at a distance from the origin.
    pub fn at(&self, distance: isize) -> *mut c_void {
        self.origin.wrapping_byte_offset(distance)
    }
}
