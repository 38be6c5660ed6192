//! Dense layouts by their properties: random ones, every element looked at, against a model of the formula.

mod support;

use aml_abi::{AML_EINVAL, AML_SUCCESS};
use aml_core::*;
use proptest::prelude::*;
use support::{Dense, Layout, dense, every, holds, slice_of, sliced};

#[test]
fn every_element_lies_where_the_formula_says() {
    holds(dense(), |model| {
        let layout = model.create();
        assert_eq!(layout.dims(), model.dims.clone());
        for coords in every(&model.dims, model.row()) {
            let native: Vec<usize> = match model.row() {
                true => coords.iter().rev().copied().collect(),
                false => coords.clone(),
            };
            // SAFETY: one coordinate a dimension.
            let (plain, safe, by_native) = unsafe {
                (
                    aml_layout_deref(layout.0, coords.as_ptr()) as usize,
                    aml_layout_deref_safe(layout.0, coords.as_ptr()) as usize,
                    aml_layout_deref_native(layout.0, native.as_ptr()) as usize,
                )
            };
            assert_eq!([plain, safe, by_native], [model.at(&coords); 3]);
        }
    });
}

#[test]
fn a_layout_tells_what_it_was_made_of() {
    holds(dense(), |model| {
        let layout = model.create();
        let turn = |numbers: &[usize]| -> Vec<usize> {
            if model.row() { numbers.iter().rev().copied().collect() } else { numbers.to_vec() }
        };
        let n = model.dims.len();
        let mut native = vec![0; n];
        // SAFETY: room for all dimensions.
        unsafe {
            assert_eq!(aml_layout_dims_native(layout.0, native.as_mut_ptr()), AML_SUCCESS);
            assert_eq!(aml_layout_order(layout.0), model.order);
            assert_eq!(aml_layout_ndims(layout.0), n);
            assert_eq!(aml_layout_element_size(layout.0), model.element);
            assert_eq!(aml_layout_rawptr(layout.0) as usize, model.base);
        }
        assert_eq!(&native, &turn(&model.dims));
        let (dense, pitch) = (layout.dense(), turn(&model.pitch));
        let mut cpitch = vec![model.element];
        for i in 0..n {
            cpitch.push(cpitch[i] * pitch[i]);
        }
        // SAFETY: the struct says how long its arrays are.
        unsafe {
            assert_eq!((dense.ptr as usize, dense.ndims), (model.base, n));
            assert_eq!(std::slice::from_raw_parts(dense.dims, n), &turn(&model.dims)[..]);
            assert_eq!(std::slice::from_raw_parts(dense.stride, n), &turn(&model.stride)[..]);
            assert_eq!(std::slice::from_raw_parts(dense.cpitch, n + 1), &cpitch[..]);
        }
    });
}

#[test]
fn coordinates_outside_have_no_safe_address() {
    holds((dense(), any::<prop::sample::Index>(), 0usize..3), |(model, axis, by)| {
        let layout = model.create();
        let mut coords: Vec<usize> = model.dims.iter().map(|dim| dim - 1).collect();
        coords[axis.index(model.dims.len())] += 1 + by;
        // SAFETY: one coordinate a dimension.
        assert!(unsafe { aml_layout_deref_safe(layout.0, coords.as_ptr()) }.is_null());
    });
}

#[test]
fn no_stride_means_one_and_no_pitch_means_the_dimensions() {
    holds(dense(), |model| {
        let plain = Dense { stride: vec![1; model.dims.len()], pitch: model.dims.clone(), ..model };
        // SAFETY: as many numbers as dimensions.
        let layout = Layout::made(|out| unsafe {
            aml_layout_dense_create(
                out,
                plain.base as *mut _,
                plain.order,
                plain.element,
                plain.dims.len(),
                plain.dims.as_ptr(),
                std::ptr::null(),
                std::ptr::null(),
            )
        })
        .unwrap();
        let packed: Vec<usize> = (0..plain.elements()).map(|i| plain.base + i * plain.element).collect();
        assert_eq!(layout.addresses(), packed);
        assert_eq!(plain.create().addresses(), layout.addresses());
    });
}

#[test]
fn a_slice_holds_the_elements_it_names() {
    holds(sliced(), |(model, (offsets, dims, strides))| {
        let slice = model.create().slice(&offsets, &dims, &strides).unwrap(); // the whole is gone after this line
        assert_eq!(slice.dims(), dims.clone());
        for coords in every(&dims, true) {
            let whole: Vec<usize> = (0..dims.len()).map(|i| offsets[i] + coords[i] * strides[i]).collect();
            assert_eq!(slice.at(&coords), model.at(&whole));
        }
    });
}

#[test]
fn native_slices_are_slices_with_everything_reversed() {
    holds(sliced(), |(model, (offsets, dims, strides))| {
        let layout = model.create();
        let turn = |numbers: &[usize]| -> Vec<usize> {
            if model.row() { numbers.iter().rev().copied().collect() } else { numbers.to_vec() }
        };
        let (o, d, s) = (turn(&offsets), turn(&dims), turn(&strides));
        // SAFETY: as many numbers as dimensions.
        let native =
            Layout::made(|out| unsafe { aml_layout_slice_native(layout.0, out, o.as_ptr(), d.as_ptr(), s.as_ptr()) })
                .unwrap();
        let slice = layout.slice(&offsets, &dims, &strides).unwrap();
        assert_eq!(native.addresses(), slice.addresses());
        assert_eq!(native.dims(), slice.dims());
    });
}

#[test]
fn a_slice_without_offsets_and_strides_starts_at_zero_and_takes_neighbours() {
    holds(dense(), |model| {
        let layout = model.create();
        let zeros = vec![0; model.dims.len()];
        let ones = vec![1; model.dims.len()];
        // SAFETY: as many numbers as dimensions.
        let slice = Layout::made(|out| unsafe {
            aml_layout_slice(layout.0, out, std::ptr::null(), model.dims.as_ptr(), std::ptr::null())
        })
        .unwrap();
        assert_eq!(slice.addresses(), layout.slice(&zeros, &model.dims, &ones).unwrap().addresses());
        assert_eq!(slice.addresses(), layout.addresses());
    });
}

#[test]
fn slices_of_slices_agree() {
    holds(
        dense()
            .prop_flat_map(|m| {
                let d = m.dims.clone();
                (Just(m), slice_of(d))
            })
            .prop_flat_map(|(m, first)| {
                let d = first.1.clone();
                (Just(m), Just(first), slice_of(d))
            }),
        |(model, (o1, d1, s1), (o2, d2, s2))| {
            let layout = model.create();
            let twice = layout.slice(&o1, &d1, &s1).unwrap().slice(&o2, &d2, &s2).unwrap();
            let offsets: Vec<usize> = (0..o1.len()).map(|i| o1[i] + o2[i] * s1[i]).collect();
            let strides: Vec<usize> = (0..o1.len()).map(|i| s1[i] * s2[i]).collect();
            let once = layout.slice(&offsets, &d2, &strides).unwrap();
            assert_eq!(twice.addresses(), once.addresses());
        },
    );
}

#[test]
fn a_slice_that_leaves_the_layout_is_refused() {
    holds((sliced(), any::<prop::sample::Index>()), |((model, (offsets, mut dims, strides)), axis)| {
        let i = axis.index(dims.len());
        dims[i] = (model.dims[i] - offsets[i]).div_ceil(strides[i]) + 1;
        assert_eq!(model.create().slice(&offsets, &dims, &strides).err(), Some(-AML_EINVAL));
    });
}

#[test]
fn duplicates_agree() {
    holds((dense(), 1usize..1 << 40), |(model, elsewhere)| {
        let layout = model.create();
        let duplicate = |ptr: usize| {
            // SAFETY: nobody dereferences the address.
            Layout::made(|out| unsafe { aml_layout_duplicate(layout.0, out, ptr as *mut _) }).unwrap()
        };
        let (same, other) = (duplicate(0), duplicate(elsewhere));
        let addresses = layout.addresses();
        drop(layout);
        assert_eq!(same.addresses(), addresses);
        let moved = Dense { base: elsewhere, ..model };
        assert_eq!(other.addresses(), moved.create().addresses());
        assert_eq!(other.dims(), moved.dims);
    });
}

#[test]
fn a_reshape_keeps_the_sequence_of_elements_or_is_refused() {
    holds(reshaped(), |(model, dims)| {
        let layout = model.create();
        let addresses = layout.addresses();
        match layout.reshape(&dims) {
            Ok(reshaped) => {
                assert_eq!(reshaped.dims(), dims);
                assert_eq!(reshaped.addresses(), addresses);
                // SAFETY: both live.
                assert_eq!(unsafe { aml_layout_order(reshaped.0) }, model.order);
            }
            Err(error) => {
                assert_eq!(error, -AML_EINVAL);
                assert!(!regular(&addresses, &dims, model.row()), "{:?} could be {:?}", model, dims);
            }
        }
    });
}

#[test]
fn a_reshape_to_another_number_of_elements_is_refused() {
    holds((dense(), 1usize..4), |(model, more)| {
        let n = model.elements();
        assert_eq!(model.create().reshape(&[n + more]).err(), Some(-AML_EINVAL));
        assert_eq!(model.create().reshape(&[n, 1 + more]).err(), Some(-AML_EINVAL));
        assert_eq!(model.create().reshape(&[n, 0]).err(), Some(-AML_EINVAL));
    });
}

/// Whether the `k`th address is that of the `k`th element of some dense layout with these dimensions.
fn regular(addresses: &[usize], dims: &[usize], row: bool) -> bool {
    let all = every(dims, row);
    let of = |coords: &[usize]| addresses[all.iter().position(|known| known == coords).unwrap()];
    let step: Vec<usize> = (0..dims.len())
        .map(|i| {
            let mut unit = vec![0; dims.len()];
            unit[i] = 1;
            if dims[i] > 1 { of(&unit).wrapping_sub(addresses[0]) } else { 0 }
        })
        .collect();
    all.iter().zip(addresses).all(|(coords, &address)| {
        let way = coords.iter().zip(&step).map(|(coord, step)| coord.wrapping_mul(*step));
        way.fold(addresses[0], usize::wrapping_add) == address
    })
}

/// A layout, and dimensions with as many elements: one factor after another goes to a random dimension.
fn reshaped() -> impl Strategy<Value = (Dense, Vec<usize>)> {
    let packed = (dense(), any::<bool>()).prop_map(|(model, packed)| match packed {
        true => Dense { stride: vec![1; model.dims.len()], pitch: model.dims.clone(), ..model },
        false => model,
    });
    (packed, 1..=5usize).prop_flat_map(|(model, ndims)| {
        let factors: Vec<usize> =
            model.dims.iter().flat_map(|&dim| if dim == 4 { vec![2, 2] } else { vec![dim] }).collect();
        let places = prop::collection::vec(0..ndims, factors.len());
        (Just(model), places).prop_map(move |(model, places)| {
            let mut dims = vec![1; ndims];
            for (place, factor) in places.iter().zip(&factors) {
                dims[*place] *= factor;
            }
            (model, dims)
        })
    })
}

#[test]
fn packed_layouts_take_every_shape() {
    for order in [0, 1] {
        let model =
            Dense { base: 4096, order, element: 8, dims: vec![4, 6, 5], stride: vec![1; 3], pitch: vec![4, 6, 5] };
        let shapes: [&[usize]; 8] =
            [&[120], &[5, 6, 4], &[2, 2, 2, 3, 5], &[1, 120, 1], &[8, 15], &[3, 40], &[4, 1, 6, 1, 5], &[60, 2]];
        for dims in shapes {
            assert_eq!(model.create().reshape(dims).unwrap().addresses(), model.create().addresses(), "{dims:?}");
        }
    }
}

#[test]
fn without_elements_any_shape_without_elements_will_do() {
    let model = Dense { base: 4096, order: 1, element: 8, dims: vec![3, 0], stride: vec![1; 2], pitch: vec![3, 2] };
    assert_eq!(model.create().reshape(&[0]).unwrap().dims(), [0]);
    assert_eq!(model.create().reshape(&[usize::MAX, 2, 0]).unwrap().dims(), [usize::MAX, 2, 0]);
    assert_eq!(model.create().reshape(&[1]).err(), Some(-AML_EINVAL));
    assert_eq!(model.create().slice(&[3, 0], &[0, 0], &[1, 1]).unwrap().dims(), [0, 0]);
    assert_eq!(model.create().slice(&[4, 0], &[0, 0], &[1, 1]).err(), Some(-AML_EINVAL));
}
