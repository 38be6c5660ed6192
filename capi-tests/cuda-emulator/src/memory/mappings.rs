//! What the process has mapped, as the system tells: only memory that exists can be registered.
//! Memory that may not be written is registered for reading only.
use std::ops::ControlFlow;

/// A mapping: its first address, the one behind its last, and whether it may be read and written.
#[derive(PartialEq, Eq, Debug)]
struct Mapping {
    start: usize,
    end: usize,
    readable: bool,
    writable: bool,
}

/// Reads a line of the system's list, as in `7f00-7f10 rw-p ...`.
fn parse(line: &str) -> Option<Mapping> {
    let (range, rest) = line.split_once(' ')?;
    let (start, end) = range.split_once('-')?;
    let number = |text| usize::from_str_radix(text, 16).ok();
    let access = rest.as_bytes();
    let (readable, writable) = (access.first() == Some(&b'r'), access.get(1) == Some(&b'w'));
    Some(Mapping { start: number(start)?, end: number(end)?, readable, writable })
}

/// Whether mappings in the order of their addresses cover all of a range with this access.
fn cover(mappings: impl Iterator<Item = Mapping>, start: usize, len: usize, writable: bool) -> bool {
    let end = start + len;
    let covered = mappings.filter(|mapping| mapping.end > start).try_fold(start, |covered, mapping| {
        let good = mapping.start <= covered && mapping.readable && (mapping.writable || !writable);
        if good && mapping.end < end { ControlFlow::Continue(mapping.end) } else { ControlFlow::Break(good) }
    });
    covered == ControlFlow::Break(true)
}

/// Whether all of a range is mapped, and may be written or else read. Where the system does not tell, it is believed.
pub fn hold(start: usize, len: usize, writable: bool) -> bool {
    match std::fs::read_to_string("/proc/self/maps") {
        Ok(text) => cover(text.lines().filter_map(parse), start, len, writable),
        Err(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read() {
        let mapping = Mapping { start: 0x1000, end: 0x3000, readable: true, writable: false };
        assert_eq!(parse("1000-3000 r-xp 00000000 fe:01 77 /lib/one"), Some(mapping));
        assert_eq!(parse("nonsense"), None);
    }

    #[test]
    fn a_range_is_covered_by_neighbours_without_a_gap() {
        let text = ["1000-2000 rw-p", "2000-3000 rw-p", "3000-4000 r--p", "5000-6000 rw-p", "6000-7000 ---p"];
        let held = |start, len, writable| cover(text.iter().filter_map(|line| parse(line)), start, len, writable);
        assert!(held(0x1000, 0x1000, true));
        assert!(held(0x1ff0, 0x20, true));
        assert!(held(0x1000, 0x3000, false));
        assert!(!held(0x1000, 0x3000, true));
        assert!(!held(0x3800, 0x2000, false));
        assert!(!held(0x5000, 0x1001, false));
        assert!(!held(0x10, 0x10, false));
        assert!(!held(0x8000, 0x10, false));
    }

    #[test]
    fn the_process_itself_is_asked() {
        let word = 0u64;
        assert!(hold(&raw const word as usize, 8, true));
        assert!(!hold(16, 8, false));
    }
}
