//! Plans carried out on arrays of bytes, against a model that copies element by element.

use super::*;
use proptest::prelude::*;

/// What the driver allows on the devices seen so far.
const MAX_PITCH: usize = 0x7fff_ffff;

fn axis(length: usize, dst: isize, src: isize) -> Axis {
    Axis { length, dst, src }
}

fn plan(element_size: usize, axes: &[Axis]) -> Plan {
    Plan::new(&Grid::new(element_size, axes).unwrap(), MAX_PITCH).unwrap()
}

fn shape(plan: &Plan) -> (usize, [usize; 3]) {
    (plan.calls(), [plan.extent.width, plan.extent.height, plan.extent.depth])
}

#[test]
fn dense_blocks_are_one_flat_call() {
    assert_eq!(shape(&plan(8, &[axis(10, 8, 8)])), (1, [80, 1, 1]));
    assert_eq!(shape(&plan(8, &[axis(3, 320, 320), axis(4, 80, 80), axis(10, 8, 8)])), (1, [960, 1, 1]));
    assert_eq!(shape(&plan(8, &[axis(1, 7, 7)])), (1, [8, 1, 1]));
    assert_eq!(shape(&plan(8, &[])), (1, [8, 1, 1]));
}

#[test]
fn a_tile_is_one_rectangle() {
    let tile = plan(8, &[axis(4096, 8, 8), axis(4096, 4096 * 8, 16384 * 8)]);
    assert_eq!(shape(&tile), (1, [32768, 4096, 1]));
    assert_eq!(tile.extent.src.row, 131072);
    assert_eq!(tile.extent.dst.row, 32768);
}

#[test]
fn a_block_of_a_cube_is_one_box() {
    let cube = plan(8, &[axis(256, 8, 8), axis(256, 2048, 8192), axis(256, 2048 * 256, 8192 * 1024)]);
    assert_eq!(shape(&cube), (1, [2048, 256, 256]));
    assert_eq!(cube.extent.src, Pitch { row: 8192, rows: 1024 });
    assert_eq!(cube.extent.dst, Pitch { row: 2048, rows: 256 });
}

#[test]
fn strided_elements_are_rows_of_one_element() {
    assert_eq!(shape(&plan(4, &[axis(100, 4, 12)])), (1, [4, 100, 1]));
}

#[test]
fn a_transpose_takes_a_call_for_each_step_of_the_shorter_side() {
    assert_eq!(shape(&plan(8, &[axis(30, 8, 800), axis(100, 240, 8)])), (30, [8, 100, 1]));
    assert_eq!(shape(&plan(8, &[axis(100, 8, 240), axis(30, 800, 8)])), (30, [8, 100, 1]));
}

#[test]
fn more_than_three_axes_loop_over_those_with_the_fewest_steps() {
    let four = [axis(5, 1, 1), axis(3, 10, 20), axis(7, 100, 400), axis(2, 1000, 8000), axis(4, 10_000, 160_000)];
    assert_eq!(shape(&plan(1, &four)), (6, [5, 7, 4]));
}

#[test]
fn planes_that_are_no_whole_number_of_rows_apart_are_calls_of_their_own() {
    assert_eq!(shape(&plan(1, &[axis(2, 1, 1), axis(5, 4, 4), axis(3, 21, 22)])), (3, [2, 5, 1]));
}

#[test]
fn a_pitch_beyond_the_limit_is_not_used() {
    let grid = Grid::new(1, &[axis(8, 1, 1), axis(4, 100, 16), axis(3, 400, 100)]).unwrap();
    assert_eq!(shape(&Plan::new(&grid, 100).unwrap()), (3, [8, 4, 1]));
    assert_eq!(shape(&Plan::new(&grid, 99).unwrap()), (12, [8, 1, 1]));
    let far = plan(8, &[axis(2, 1 << 31, 8), axis(3, 1 << 33, 16)]);
    assert_eq!(shape(&far), (6, [8, 1, 1]));
}

#[test]
fn destinations_that_might_overlap_are_refused() {
    for axes in [[axis(2, 8, 8), axis(2, 8, 16)], [axis(3, 8, 8), axis(2, 16, 24)], [axis(2, 0, 8), axis(2, 8, 16)]] {
        assert_eq!(Grid::new(8, &axes).unwrap_err(), Error::NotSupported);
    }
    assert_eq!(Grid::new(8, &[axis(2, 7, 8)]).unwrap_err(), Error::NotSupported);
    assert!(Grid::new(8, &[axis(2, 8, 0), axis(2, 16, 0)]).is_ok());
}

#[test]
fn both_sides_backwards_is_forwards() {
    let backwards = plan(8, &[axis(10, -8, -8)]);
    assert_eq!(shape(&backwards), (1, [80, 1, 1]));
    let mut starts = Vec::new();
    backwards
        .each::<Error>(|call| {
            starts.push((call.dst, call.src));
            Ok(())
        })
        .unwrap();
    assert_eq!(starts, [(-72, -72)]);
}

#[test]
fn a_refused_call_ends_the_copy() {
    let many = plan(8, &[axis(30, 8, 800), axis(100, 240, 8)]);
    let mut calls = 0;
    let outcome = many.each(|_| {
        calls += 1;
        if calls == 3 { Err(Error::Invalid) } else { Ok(()) }
    });
    assert_eq!((outcome, calls), (Err(Error::Invalid), 3));
}

/// Steps of AML's dense layouts: the element, then each pitch times the one before, each times its stride.
fn dense(element_size: usize, dims: &[usize], strides: &[usize], gaps: &[usize], reversed: bool) -> Vec<isize> {
    let mut steps = vec![0; dims.len()];
    let mut block = element_size;
    for index in 0..dims.len() {
        let dimension = if reversed { dims.len() - 1 - index } else { index };
        steps[dimension] = (block * strides[dimension]) as isize;
        block *= (dims[dimension] - 1) * strides[dimension] + 1 + gaps[dimension];
    }
    steps
}

/// The bytes from the lowest to the end of the highest element, and where the origin lies among them.
pub(crate) fn room(element_size: usize, dims: &[usize], steps: &[isize]) -> (usize, isize) {
    let ways = || dims.iter().zip(steps).map(|(&length, &step)| (length as isize - 1) * step);
    let below: isize = ways().filter(|way| *way < 0).sum();
    let above: isize = ways().filter(|way| *way > 0).sum();
    ((above - below) as usize + element_size, -below)
}

/// Copies element by element.
pub(crate) fn model(element_size: usize, axes: &[Axis], dst: (&mut [u8], isize), src: (&[u8], isize)) {
    let Some((axis, inner)) = axes.split_first() else {
        let (to, from) = (dst.1 as usize, src.1 as usize);
        return dst.0[to..to + element_size].copy_from_slice(&src.0[from..from + element_size]);
    };
    for step in 0..axis.length as isize {
        model(element_size, inner, (dst.0, dst.1 + step * axis.dst), (src.0, src.1 + step * axis.src));
    }
}

/// Does what the driver does, and refuses what it refuses.
fn carry_out(call: Call, max_pitch: usize, dst: (&mut [u8], isize), src: (&[u8], isize)) {
    let Extent { width, height, depth, dst: to, src: from } = call.extent;
    for pitch in [to, from] {
        assert!(height == 1 && depth == 1 || (width..=max_pitch).contains(&pitch.row), "{call:?}");
        assert!(pitch.rows >= height, "{call:?}");
    }
    for (plane, row) in (0..depth).flat_map(|plane| (0..height).map(move |row| (plane, row))) {
        let at = |origin: isize, start: isize, pitch: Pitch| {
            (origin + start) as usize + pitch.row * (row + plane * pitch.rows)
        };
        let (to, from) = (at(dst.1, call.dst, to), at(src.1, call.src, from));
        dst.0[to..to + width].copy_from_slice(&src.0[from..from + width]);
    }
}

fn check(element_size: usize, dims: &[usize], dst: &[isize], src: &[isize], max_pitch: usize) {
    let axes: Vec<_> = (0..dims.len()).map(|i| axis(dims[i], dst[i], src[i])).collect();
    let (dst_room, dst_origin) = room(element_size, dims, dst);
    let (src_room, src_origin) = room(element_size, dims, src);
    let source: Vec<u8> = (0..src_room).map(|byte| (byte % 251) as u8).collect();
    let (mut expected, mut found) = (vec![255; dst_room], vec![255; dst_room]);
    model(element_size, &axes, (&mut expected, dst_origin), (&source, src_origin));
    let plan = Plan::new(&Grid::new(element_size, &axes).unwrap(), max_pitch).unwrap();
    let mut calls = 0;
    plan.each::<Error>(|call| {
        calls += 1;
        carry_out(call, max_pitch, (&mut found, dst_origin), (&source, src_origin));
        Ok(())
    })
    .unwrap();
    assert_eq!(calls, plan.calls());
    let moved = plan.extent.width * plan.extent.height * plan.extent.depth;
    assert_eq!(calls * moved, element_size * dims.iter().product::<usize>());
    assert!(expected == found, "{plan:?}");
}

/// Random dimensions with strides and gaps for both sides.
#[derive(Clone, Debug)]
pub(crate) struct Pair {
    pub element_size: usize,
    pub dims: Vec<usize>,
    pub strides: [Vec<usize>; 2],
    pub gaps: [Vec<usize>; 2],
    pub reversed: [bool; 2],
}

pub(crate) fn pairs() -> impl Strategy<Value = Pair> {
    use prop::collection::vec;
    let longest = |rank| [20usize, 12, 6, 4, 3, 3][rank - 1];
    (1..=6usize, prop::sample::select(&[1usize, 2, 3, 4, 8, 12, 16][..])).prop_flat_map(move |(rank, element_size)| {
        let strides = || prop_oneof![3 => Just(vec![1; rank]), 1 => vec(1..=2usize, rank)];
        let gaps = || prop_oneof![Just(vec![0; rank]), vec(0..=2usize, rank)];
        (vec(1..=longest(rank), rank), [strides(), strides()], [gaps(), gaps()], any::<[bool; 2]>())
            .prop_map(move |(dims, strides, gaps, reversed)| Pair { element_size, dims, strides, gaps, reversed })
    })
}

impl Pair {
    pub fn steps(&self, side: usize) -> Vec<isize> {
        dense(self.element_size, &self.dims, &self.strides[side], &self.gaps[side], self.reversed[side])
    }
}

pub(crate) fn config() -> ProptestConfig {
    // Miri runs these too, and has no file to remember failures in.
    let cases = if cfg!(miri) { 8 } else { 1024 };
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn dense_layouts_of_any_pitch_stride_and_order_are_copied_exactly(
        pair in pairs(),
        max_pitch in prop_oneof![Just(MAX_PITCH), 1..200usize],
    ) {
        check(pair.element_size, &pair.dims, &pair.steps(0), &pair.steps(1), max_pitch);
    }

    #[test]
    fn sources_that_go_backwards_stand_still_or_overlap_are_copied_exactly(
        pair in pairs(),
        factors in prop::collection::vec(-3..=3isize, 6),
        backwards in any::<[bool; 6]>(),
    ) {
        let src: Vec<_> = (0..pair.dims.len()).map(|i| factors[i] * pair.element_size as isize).collect();
        let dst = pair.steps(0).iter().zip(backwards).map(|(&step, back)| if back { -step } else { step }).collect::<Vec<_>>();
        check(pair.element_size, &pair.dims, &dst, &src, MAX_PITCH);
    }
}
