//! The element-by-element copy: random layouts over real memory, dimensions permuted, against a plain loop.

mod support;

use aml_abi::{AML_EINVAL, AML_SUCCESS};
use aml_core::aml_copy_layout_transform_generic as transform;
use proptest::prelude::*;
use std::ptr;
use support::{Dense, dense, every, holds};

/// A layout, its sequence of dimensions for the destination, and whether that is in the other order.
fn transposed() -> impl Strategy<Value = (Dense, Vec<usize>, bool)> {
    dense().prop_flat_map(|model| {
        let sequence: Vec<usize> = (0..model.dims.len()).collect();
        (Just(model), Just(sequence).prop_shuffle(), any::<bool>())
    })
}

#[test]
fn dimension_i_of_the_destination_is_dimension_target_i_of_the_source() {
    holds(transposed(), |(mut from, targets, turn)| {
        let dims: Vec<usize> = targets.iter().map(|&target| from.dims[target]).collect();
        let order = if turn { 1 - from.order } else { from.order };
        let mut to = Dense { base: 1, order, stride: vec![1; dims.len()], pitch: dims.clone(), dims, ..from.clone() };
        let last = |model: &Dense| model.at(&model.dims.iter().map(|dim| dim - 1).collect::<Vec<_>>()) - model.base;
        let source: Vec<u8> = (0..last(&from) + from.element).map(|i| (i * 37 + i / 251) as u8).collect();
        let mut destination = vec![0u8; last(&to) + to.element];
        (from.base, to.base) = (source.as_ptr() as usize, destination.as_mut_ptr() as usize);

        let (source_layout, destination_layout) = (from.create(), to.create());
        // SAFETY: both layouts lie within their buffers.
        let error = unsafe { transform(destination_layout.0, source_layout.0, targets.as_ptr()) };
        assert_eq!(error, AML_SUCCESS);
        for coords in every(&to.dims, true) {
            let mut there = vec![0; targets.len()];
            for (coord, &target) in coords.iter().zip(&targets) {
                there[target] = *coord;
            }
            let (into, out_of) = (to.at(&coords) - to.base, from.at(&there) - from.base);
            assert_eq!(destination[into..into + to.element], source[out_of..out_of + from.element]);
        }
    });
}

#[test]
fn without_a_sequence_the_dimensions_stay() {
    let source: Vec<u16> = (0..12).collect();
    let mut destination = vec![0u16; 12];
    let packed =
        |base, order| Dense { base, order, element: 2, dims: vec![3, 4], stride: vec![1; 2], pitch: vec![3, 4] };
    let (from, to) =
        (packed(source.as_ptr() as usize, 1).create(), packed(destination.as_mut_ptr() as usize, 0).create());
    // SAFETY: both layouts are their buffers.
    assert_eq!(unsafe { transform(to.0, from.0, ptr::null()) }, AML_SUCCESS);
    // The same array in the other order is a transpose of the memory.
    assert_eq!(destination, [0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11]);
}

#[test]
fn what_does_not_fit_is_refused_and_nothing_is_copied() {
    let source = [7u8; 24];
    let mut destination = [0u8; 24];
    let packed = |base, element, dims: &[usize]| Dense {
        base,
        order: 1,
        element,
        dims: dims.to_vec(),
        stride: vec![1; dims.len()],
        pitch: dims.to_vec(),
    };
    let from = packed(source.as_ptr() as usize, 2, &[3, 4]).create();
    let base = destination.as_mut_ptr() as usize;
    let refused = |to: Dense, targets: &[usize]| {
        let to = to.create();
        // SAFETY: both layouts lie within their buffers.
        assert_eq!(unsafe { transform(to.0, from.0, targets.as_ptr()) }, -AML_EINVAL);
    };
    refused(packed(base, 2, &[3, 4]), &[1, 0]); // dimensions in the other sequence
    refused(packed(base, 1, &[3, 4]), &[0, 1]); // other elements
    refused(packed(base, 2, &[12]), &[0, 1]); // fewer dimensions
    refused(packed(base, 2, &[3, 2, 2]), &[0, 1, 2]); // more dimensions
    refused(packed(base, 2, &[3, 3]), &[0, 0]); // no permutation
    refused(packed(base, 2, &[3, 4]), &[0, 2]); // no dimension
    let to = packed(base, 2, &[3, 4]).create();
    // SAFETY: NULL is refused.
    unsafe {
        assert_eq!(transform(ptr::null_mut(), from.0, ptr::null()), -AML_EINVAL);
        assert_eq!(transform(to.0, ptr::null(), ptr::null()), -AML_EINVAL);
    }
    assert_eq!(destination, [0; 24]);
}
