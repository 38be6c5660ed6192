//! A list that keeps a few values in place and allocates only for more.
//! What is asked of a layout fits in place for all but odd programs, and a decision must not cost an allocation.

use crate::error::{Error, Result};
use std::ops::{Deref, DerefMut};

/// So many values are kept in place.
pub const FEW: usize = 8;

/// A list of values.
#[derive(Clone, Debug)]
pub struct Few<T> {
    place: [T; FEW],
    heap: Vec<T>,
    len: usize,
}

impl<T: Copy + Default> Few<T> {
    /// An empty list.
    #[inline]
    pub fn new() -> Few<T> {
        Few { place: [T::default(); FEW], heap: Vec::new(), len: 0 }
    }

    /// `len` default values.
    #[inline]
    pub fn zeros(len: usize) -> Result<Few<T>> {
        let mut list = Few::new();
        list.lengthen(len)?;
        Ok(list)
    }

    /// Makes an empty list one of `len` default values.
    #[inline]
    pub fn lengthen(&mut self, len: usize) -> Result<()> {
        debug_assert!(self.len == 0);
        if len > FEW {
            self.heap.try_reserve_exact(len).map_err(|_| Error::OutOfMemory)?;
            self.heap.resize(len, T::default());
        }
        self.len = len;
        Ok(())
    }

    /// Appends a value.
    pub fn push(&mut self, value: T) -> Result<()> {
        if self.len < FEW {
            self.place[self.len] = value;
        } else {
            let kept = if self.heap.is_empty() { FEW } else { 0 };
            self.heap.try_reserve(kept + 1).map_err(|_| Error::OutOfMemory)?;
            self.heap.extend_from_slice(&self.place[..kept]);
            self.heap.push(value);
        }
        self.len += 1;
        Ok(())
    }
}

impl<T> Deref for Few<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        if self.len > FEW { &self.heap } else { &self.place[..self.len] }
    }
}

impl<T> DerefMut for Few<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        if self.len > FEW { &mut self.heap } else { &mut self.place[..self.len] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pushing_past_the_place_keeps_every_value() {
        let mut list = Few::new();
        for value in 0..3 * FEW {
            list.push(value).unwrap();
            assert!(list.iter().copied().eq(0..=value));
        }
    }

    #[test]
    fn zeros_has_its_length_on_both_sides_of_the_place() {
        for len in [0, 1, FEW, FEW + 1, 100] {
            let mut list = Few::<usize>::zeros(len).unwrap();
            assert_eq!(&*list, vec![0; len]);
            list.fill(7);
            assert_eq!(&*list, vec![7; len]);
        }
    }
}
