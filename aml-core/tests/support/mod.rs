//! A model of dense layouts that shares nothing with the library, random ones, and a handle that frees a layout.
#![allow(dead_code)] // each test file uses its own part

use aml_abi::{AML_LAYOUT_ORDER_ROW_MAJOR, AML_SUCCESS, aml_layout, aml_layout_dense};
use aml_core::*;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use std::ptr;

/// A layout of the library, destroyed at the end.
pub struct Layout(pub *mut aml_layout);

impl Drop for Layout {
    fn drop(&mut self) {
        // SAFETY: made by the library, and ours alone.
        unsafe { aml_layout_destroy(&mut self.0) };
        assert!(self.0.is_null());
    }
}

impl Layout {
    /// What a call stores in its output, or its error.
    pub fn made(call: impl FnOnce(*mut *mut aml_layout) -> i32) -> Result<Layout, i32> {
        let untouched = ptr::dangling_mut();
        let mut layout = untouched;
        match call(&mut layout) {
            AML_SUCCESS => Ok(Layout(layout)),
            error => {
                assert_eq!(layout, untouched, "output touched on error {error}");
                Err(error)
            }
        }
    }

    pub fn slice(&self, offsets: &[usize], dims: &[usize], strides: &[usize]) -> Result<Layout, i32> {
        // SAFETY: as many numbers as the layout has dimensions.
        Layout::made(|out| unsafe { aml_layout_slice(self.0, out, offsets.as_ptr(), dims.as_ptr(), strides.as_ptr()) })
    }

    pub fn reshape(&self, dims: &[usize]) -> Result<Layout, i32> {
        // SAFETY: the length goes with the numbers.
        Layout::made(|out| unsafe { aml_layout_reshape(self.0, out, dims.len(), dims.as_ptr()) })
    }

    /// Address of an element, coordinates in user order.
    pub fn at(&self, coords: &[usize]) -> usize {
        // SAFETY: as many numbers as the layout has dimensions.
        unsafe { aml_layout_deref(self.0, coords.as_ptr()) as usize }
    }

    /// Dimensions in user order.
    pub fn dims(&self) -> Vec<usize> {
        // SAFETY: room for all dimensions.
        unsafe {
            let mut dims = vec![usize::MAX; aml_layout_ndims(self.0)];
            assert_eq!(aml_layout_dims(self.0, dims.as_mut_ptr()), AML_SUCCESS);
            dims
        }
    }

    pub fn dense(&self) -> &aml_layout_dense {
        // SAFETY: every layout here is dense.
        unsafe { &*(*self.0).data.cast() }
    }

    /// Addresses of all elements, in the order in which the layout counts them.
    pub fn addresses(&self) -> Vec<usize> {
        // SAFETY: any valid layout.
        let row = unsafe { aml_layout_order(self.0) } == AML_LAYOUT_ORDER_ROW_MAJOR;
        every(&self.dims(), row).iter().map(|coords| self.at(coords)).collect()
    }
}

/// All coordinates below `dims`; the last varies fastest in row major, the first in column major.
pub fn every(dims: &[usize], row: bool) -> Vec<Vec<usize>> {
    let mut all = vec![vec![]];
    let turned = |dims: &[usize]| -> Vec<usize> { dims.iter().rev().copied().collect() };
    let slowest_first = if row { dims.to_vec() } else { turned(dims) };
    for dim in slowest_first {
        all =
            all.iter().flat_map(|head: &Vec<usize>| (0..dim).map(move |i| [head.as_slice(), &[i]].concat())).collect();
    }
    if row { all } else { all.iter().map(|coords| turned(coords)).collect() }
}

/// The arguments of `aml_layout_dense_create`, in user order.
#[derive(Clone, Debug)]
pub struct Dense {
    pub base: usize,
    pub order: i32,
    pub element: usize,
    pub dims: Vec<usize>,
    pub stride: Vec<usize>,
    pub pitch: Vec<usize>,
}

impl Dense {
    pub fn row(&self) -> bool {
        self.order == AML_LAYOUT_ORDER_ROW_MAJOR
    }

    pub fn create(&self) -> Layout {
        // SAFETY: as many numbers as dimensions; nobody dereferences the base.
        Layout::made(|out| unsafe {
            aml_layout_dense_create(
                out,
                self.base as *mut _,
                self.order,
                self.element,
                self.dims.len(),
                self.dims.as_ptr(),
                self.stride.as_ptr(),
                self.pitch.as_ptr(),
            )
        })
        .unwrap()
    }

    /// Where the formula puts an element, coordinates in user order: summed up from the fastest dimension on.
    pub fn at(&self, coords: &[usize]) -> usize {
        let mut fastest_first: Vec<usize> = (0..self.dims.len()).collect();
        if self.row() {
            fastest_first.reverse();
        }
        let (mut address, mut cpitch) = (self.base, self.element);
        for i in fastest_first {
            address += coords[i] * cpitch * self.stride[i];
            cpitch *= self.pitch[i];
        }
        address
    }

    pub fn elements(&self) -> usize {
        self.dims.iter().product()
    }
}

/// Random dense layouts, strides of 0 and pitches smaller than the dimension included.
pub fn dense() -> impl Strategy<Value = Dense> {
    let number = |range| prop::collection::vec(range, 1..=5usize);
    (1usize..1 << 40, 0..=1, 1usize..=17, number(1..=5usize)).prop_flat_map(|(base, order, element, dims)| {
        let n = dims.len();
        let some = |range| prop::collection::vec(range, n);
        (some(0..=3usize), some(1..=9usize)).prop_map(move |(stride, pitch)| Dense {
            base,
            order,
            element,
            dims: dims.clone(),
            stride,
            pitch,
        })
    })
}

/// Offsets, dimensions and strides.
type Slice = (Vec<usize>, Vec<usize>, Vec<usize>);

/// A slice that lies within `dims`.
pub fn slice_of(dims: Vec<usize>) -> impl Strategy<Value = Slice> {
    dims.into_iter()
        .map(|dim| {
            (0..dim, 1..=dim).prop_flat_map(move |(offset, stride)| {
                (Just(offset), 1..=(dim - offset).div_ceil(stride), Just(stride))
            })
        })
        .collect::<Vec<_>>()
        .prop_map(|axes| {
            (
                axes.iter().map(|axis| axis.0).collect(),
                axes.iter().map(|axis| axis.1).collect(),
                axes.iter().map(|axis| axis.2).collect(),
            )
        })
}

/// Random layouts, each with a slice of it.
pub fn sliced() -> impl Strategy<Value = (Dense, Slice)> {
    dense().prop_flat_map(|model| {
        let dims = model.dims.clone();
        (Just(model), slice_of(dims))
    })
}

/// Runs `test` on random values; one that panics is made as small as can be and shown.
pub fn holds<S: Strategy>(values: S, test: impl Fn(S::Value)) {
    let cases = if cfg!(miri) { 1 } else { ProptestConfig::default().cases };
    let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
    let result = TestRunner::new(config).run(&values, |value| {
        test(value);
        Ok(())
    });
    if let Err(failure) = result {
        panic!("{failure}");
    }
}
