//! Jobs carried out tile by tile as the kernel's text does, against a plain copy.

use super::*;

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
fn the_text_is_complete() {
    for word in [1, 2, 4, 8, 16] {
        let text = text(word);
        assert!(text.contains(&format!(".entry aml_dma_cuda_copy_{word}(")));
        let code = text.lines().filter(|line| !line.starts_with("//")).collect::<String>();
        for left in ["AXIS", "SIZE", "TYPE", "DECLARE", "VALUE", "ROWS", "COLUMNS", "TILE"] {
            assert!(!code.contains(left), "{left} in the text for {word}");
        }
    }
}
