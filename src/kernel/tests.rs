//! Jobs carried out tile by tile as the kernel's text does, against a plain copy.

use super::*;
use crate::plan::tests::{Pair, config, model, pairs, room};
use proptest::prelude::*;

fn axis(length: usize, dst: isize, src: isize) -> Axis {
    Axis { length, dst, src }
}

fn job(element_size: usize, axes: &[Axis]) -> Job {
    Job::new(&Grid::new(element_size, axes).unwrap(), 1 << 20, 1 << 21).unwrap()
}

#[test]
fn a_transpose_reads_along_one_axis_and_writes_along_the_other() {
    let job = job(8, &[axis(100, 8, 480), axis(60, 800, 8)]);
    assert_eq!((job.word, job.turn, job.tiles), (8, true, 4 * 2));
    assert_eq!((job.x, job.y), (axis(60, 800, 8), axis(100, 8, 480)));
}

#[test]
fn a_narrow_transpose_goes_along_its_long_axis() {
    let job = job(4, &[axis(3, 4000, 4), axis(1000, 4, 12)]);
    assert_eq!((job.word, job.turn, job.x.length, job.y.length), (4, false, 1000, 3));
}

#[test]
fn words_are_as_large_as_every_distance_allows() {
    assert_eq!(job(12, &[axis(40, 12, 480), axis(40, 480, 12)]).word, 4);
    assert_eq!(job(64, &[axis(2, 64, 256), axis(2, 128, 64)]).word, 16);
    assert_eq!(job(8, &[axis(40, 9, 480), axis(40, 480, 8)]).word, 1);
    let grid = Grid::new(8, &[axis(40, 8, 480), axis(40, 480, 8)]).unwrap();
    assert_eq!(Job::new(&grid, 1 << 20, 2).unwrap().word, 2);
}

#[test]
fn a_run_of_several_words_is_an_axis() {
    let job = job(64, &[axis(2, 64, 256), axis(2, 128, 64)]);
    assert_eq!((job.turn, job.x), (false, axis(4, 16, 16)));
    let steps = [job.y, job.others[0]];
    assert!(steps.contains(&axis(2, 64, 256)) && steps.contains(&axis(2, 128, 64)));
}

#[test]
fn more_axes_or_tiles_than_can_be_counted_are_left_to_the_driver() {
    let many: Vec<_> = (0..9).map(|index| axis(2, 16 << (2 * index), 16 << (2 * (8 - index)))).collect();
    assert_eq!(Job::new(&Grid::new(8, &many).unwrap(), 0, 0), None);
    assert!(Job::new(&Grid::new(8, &many[..8]).unwrap(), 0, 0).is_some());
    let large = Grid::new(1, &[axis(1 << 22, 1, 1 << 22), axis(1 << 22, 1 << 22, 1)]).unwrap();
    assert_eq!(Job::new(&large, 0, 0), None);
}

/// The text as it is for each size, with nothing left to be filled in.
#[test]
#[cfg_attr(miri, ignore = "takes minutes there, and is about text alone")]
fn the_text_is_complete() {
    for word in [1, 2, 4, 8, 16] {
        let text = text(word).unwrap();
        assert!(text.contains(&format!(".entry aml_dma_cuda_copy_{word}(")));
        let code = text.lines().filter(|line| !line.starts_with("//")).collect::<String>();
        for left in ["AXIS", "SIZE", "TYPE", "DECLARE", "VALUE", "ROWS", "COLUMNS", "TILE"] {
            assert!(!code.contains(left), "{left} in the text for {word}");
        }
    }
}

/// What the blocks of a launch do, by the parameters that they get. Both sides begin at address 0.
fn carry_out(job: &Job, dst: &mut [u8], src: &[u8]) {
    let values = job.parameters().map(|value| value as i64);
    let [to, from, _turn, x_tiles, y_tiles] = values[..5] else { unreachable!() };
    let axes: Vec<[i64; 3]> = values[5..].chunks_exact(3).map(|axis| [axis[0], axis[1], axis[2]]).collect();
    for block in 0..i64::from(job.tiles) {
        let mut rest = block / x_tiles / y_tiles;
        let mut at = [to, from];
        for [length, dst, src] in &axes[2..] {
            at[0] += rest % length * dst;
            at[1] += rest % length * src;
            rest /= length;
        }
        assert_eq!(rest, 0, "more tiles than there are");
        let within = |start: i64, length: i64| start * 32..(start * 32 + 32).min(length);
        for x in within(block % x_tiles, axes[0][0]) {
            for y in within(block / x_tiles % y_tiles, axes[1][0]) {
                let place = |side: usize| {
                    let place = at[side] + x * axes[0][1 + side] + y * axes[1][1 + side];
                    assert_eq!(place % job.word as i64, 0, "a word at an odd address");
                    place as usize
                };
                let (to, from) = (place(0), place(1));
                dst[to..to + job.word].copy_from_slice(&src[from..from + job.word]);
            }
        }
    }
}

fn check(pair: &Pair, dst: &[isize], src: &[isize], shift: usize) {
    let axes: Vec<_> = (0..pair.dims.len()).map(|i| axis(pair.dims[i], dst[i], src[i])).collect();
    let (dst_room, dst_origin) = room(pair.element_size, &pair.dims, dst);
    let (src_room, src_origin) = room(pair.element_size, &pair.dims, src);
    let source: Vec<u8> = (0..src_room + shift).map(|byte| (byte % 251) as u8).collect();
    let (mut expected, mut found) = (vec![255; dst_room], vec![255; dst_room]);
    let src_origin = src_origin + shift as isize;
    model(pair.element_size, &axes, (&mut expected, dst_origin), (&source, src_origin));
    let grid = Grid::new(pair.element_size, &axes).unwrap();
    let job = Job::new(&grid, (dst_origin + grid.dst) as u64, (src_origin + grid.src) as u64).unwrap();
    carry_out(&job, &mut found, &source);
    assert!(expected == found, "{job:?}");
}

/// The longest side of a transposed plane.
const LONGEST: usize = if cfg!(miri) { 8 } else { 80 };

proptest! {
    #![proptest_config(config())]

    #[test]
    fn every_block_of_every_job_moves_what_it_should(pair in pairs(), shift in 0..17usize) {
        check(&pair, &pair.steps(0), &pair.steps(1), shift);
    }

    #[test]
    fn sources_that_go_backwards_or_stand_still_are_copied_by_blocks(
        pair in pairs(),
        factors in prop::collection::vec(-3..=3isize, 6),
    ) {
        let src: Vec<_> = (0..pair.dims.len()).map(|i| factors[i] * pair.element_size as isize).collect();
        check(&pair, &pair.steps(0), &src, 0);
    }

    #[test]
    fn transpositions_of_every_shape_are_copied_by_blocks(
        rows in 1..LONGEST, columns in 1..LONGEST, planes in 1..4usize, element_size in 1..20usize,
    ) {
        let dims = vec![rows, columns, planes];
        let e = element_size as isize;
        let (r, c) = (rows as isize, columns as isize);
        let pair = Pair { element_size, dims, strides: Default::default(), gaps: Default::default(), reversed: [false; 2] };
        check(&pair, &[e, e * r, e * r * c], &[e * c, e, e * r * c], 0);
    }
}
