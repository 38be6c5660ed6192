//! The kernel that copies between two layouts on one device: its text, its copies in each context, and how a copy is
//! laid out for it. One launch takes the place of a driver call for each row.

use crate::error::Result;
use crate::plan::{Axis, Grid};
use crate::stream::StreamState;
use cuda_driver::{Code, Context, Function, Module};
use libc::c_void;
use once_cell::sync::Lazy;
use std::ffi::{CStr, CString};
use std::sync::{Mutex, MutexGuard};

#[cfg(test)]
mod tests;

const TEXT: &str = include_str!("kernel.ptx");

/// What the text does for each of the axes that are counted by blocks; `@` is the name of the axis.
const AXIS: &str = "\
\tld.param.u32 %count, [@_length];
\trem.u32 %step, %rest, %count;
\tdiv.u32 %rest, %rest, %count;
\tcvt.u64.u32 %wide, %step;
\tld.param.u64 %dst_step, [@_dst];
\tmad.lo.u64 %to, %wide, %dst_step, %to;
\tld.param.u64 %src_step, [@_src];
\tmad.lo.u64 %from, %wide, %src_step, %from;";

/// The axes besides x and y.
const OTHERS: usize = 6;
/// Words of a tile along x, and along y.
const TILE: usize = 32;
/// Words that one thread moves.
const WORDS: usize = 4;
/// The axis along which is written must be so long for a tile to be turned, and so must that along which is read:
/// shorter ones stay in the cache anyway.
const TURNED: usize = 16;

/// A copy as the kernel wants it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Job {
    dst: u64,
    src: u64,
    /// The bytes of a word: 1, 2, 4, 8 or 16.
    word: usize,
    turn: bool,
    x: Axis,
    y: Axis,
    others: [Axis; OTHERS],
    /// The tiles, of which each is a block of threads.
    tiles: u32,
}

/// The tiles along an axis.
fn tiles(axis: Axis) -> usize {
    axis.length.div_ceil(TILE)
}

impl Job {
    /// The copy of `grid` with its first runs at `dst` and `src`; none when it has more axes, or is larger, than the
    /// kernel can count.
    pub fn new(grid: &Grid, dst: u64, src: u64) -> Option<Job> {
        let word =
            grid.axes.iter().fold(grid.run as u64 | dst | src | 16, |all, axis| all | (axis.dst | axis.src) as u64);
        let word = 1 << word.trailing_zeros();
        const NONE: Axis = Axis { length: 1, dst: 0, src: 0 };
        let mut axes = [NONE; OTHERS + 2];
        let within = grid.run / word;
        let own = usize::from(within > 1); // a run of several words is an axis, too
        if grid.axes.len() + own > axes.len() {
            return None;
        }
        axes[0] = Axis { length: within, dst: word as isize, src: word as isize };
        axes[own..own + grid.axes.len()].copy_from_slice(&grid.axes);
        // The shortest steps first, on the side where threads are to be neighbours.
        let nearest = |distance: fn(&Axis) -> isize| {
            move |axis: &&Axis| (axis.length == 1 || distance(axis) == 0, distance(axis).unsigned_abs())
        };
        let mut x = *axes.iter().min_by_key(nearest(|axis| axis.src))?;
        let mut y = *axes.iter().min_by_key(nearest(|axis| axis.dst))?;
        let turn = x != y && x.length.min(y.length) >= TURNED;
        if x == y {
            y = *axes.iter().filter(|axis| **axis != x).max_by_key(|axis| axis.length).unwrap_or(&NONE);
        } else if !turn && y.length > x.length {
            std::mem::swap(&mut x, &mut y);
        }
        // What is neither x nor y: the axes differ, except for those that are none.
        let mut others = [NONE; OTHERS];
        let rest = axes.iter().filter(|axis| axis.length > 1 && **axis != x && **axis != y);
        others.iter_mut().zip(rest).for_each(|(place, axis)| *place = *axis);
        let count =
            others.iter().try_fold(tiles(x).checked_mul(tiles(y))?, |count, axis| count.checked_mul(axis.length))?;
        let tiles = i32::try_from(count).ok()? as u32;
        Some(Job { dst, src, word, turn, x, y, others, tiles })
    }

    /// The parameters in the order of the text. Each takes 8 bytes here; of a 32-bit one the driver reads the lower.
    fn parameters(&self) -> [u64; 11 + 3 * OTHERS] {
        let mut values = [0; 11 + 3 * OTHERS];
        let (x, y) = (self.x, self.y);
        values[..5].copy_from_slice(&[self.dst, self.src, self.turn.into(), tiles(x) as u64, tiles(y) as u64]);
        let places = values[5..].chunks_exact_mut(3);
        for (place, axis) in places.zip([x, y].into_iter().chain(self.others)) {
            place.copy_from_slice(&[axis.length as u64, axis.dst as u64, axis.src as u64]);
        }
        values
    }
}

/// The name of the kernel for words of so many bytes.
fn name(word: usize) -> String {
    format!("aml_dma_cuda_copy_{word}")
}

/// The text of that kernel, with a zero behind it; none where memory has run out.
fn text(word: usize) -> Option<String> {
    let mut text = replace(TEXT, "AXIS(a)", &AXIS.replace('@', "a"))?;
    for axis in ["b", "c", "d", "e", "f"] {
        text = replace(&text, &format!("AXIS({axis})"), &AXIS.replace('@', axis))?;
    }
    let (kind, declaration) = match word {
        16 => ("v2.u64".to_owned(), format!(".reg .u64 %low<{WORDS}>, %high<{WORDS}>;")),
        8 => ("u64".to_owned(), format!(".reg .u64 %value<{WORDS}>;")),
        _ => (format!("u{}", 8 * word), format!(".reg .u32 %value<{WORDS}>;")),
    };
    let step = TILE / WORDS;
    for index in 0..WORDS {
        let value = if word == 16 { format!("{{%low{index}, %high{index}}}") } else { format!("%value{index}") };
        text = replace(&text, &format!("VALUE{index}"), &value)?;
        text = replace(&text, &format!("ROWS{index}"), &(index * step * (TILE + 1) * word).to_string())?;
        text = replace(&text, &format!("COLUMNS{index}"), &(index * step * word).to_string())?;
    }
    text = replace(&text, "DECLARE", &declaration)?;
    text = replace(&text, "TILE", &(TILE * (TILE + 1) * word).to_string())?;
    text = replace(&text, "SIZE", &word.to_string())?;
    text = replace(&text, "TYPE", &kind)?;
    text.push('\0'); // `replace` left room for it
    Some(text)
}

/// `text` with each `from` made a `to`, and room for one byte more. The standard library's ends the process where
/// there is no memory for a text of this size.
fn replace(text: &str, from: &str, to: &str) -> Option<String> {
    let mut result = String::new();
    result.try_reserve_exact(text.len() + text.matches(from).count() * to.len() + 1).ok()?;
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(from) {
        result.push_str(before);
        result.push_str(to);
        rest = after;
    }
    result.push_str(rest);
    Some(result)
}

/// The kernel for words of one size in one context; none where it could not be had.
struct Loaded {
    context: Context,
    word: usize,
    function: Option<Function>,
}

static LOADED: Lazy<Mutex<Vec<Loaded>>> = Lazy::new(Mutex::default);

fn loaded() -> MutexGuard<'static, Vec<Loaded>> {
    LOADED.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// The kernel, loaded into `context`, which is current, on first use. No lock is held while the driver works.
fn function(context: Context, word: usize) -> Option<Function> {
    let find = |list: &[Loaded]| {
        list.iter().find(|entry| entry.context == context && entry.word == word).map(|entry| entry.function)
    };
    if let Some(known) = find(&loaded()) {
        return known;
    }
    let text = text(word)?;
    let module = match CStr::from_bytes_with_nul(text.as_bytes()).ok().map(Module::load) {
        Some(Err(error)) if error.code == Code::OUT_OF_MEMORY => return None, // it may be there the next time
        loaded => loaded.and_then(cuda_driver::Result::ok),
    };
    let made = module.and_then(|module| {
        let function = CString::new(name(word)).ok().and_then(|name| module.function(&name).ok());
        if function.is_none() {
            let _ = module.unload();
        }
        Some((module, function?))
    });
    let contexts: Vec<_> = loaded().iter().map(|entry| entry.context).collect();
    let gone: Vec<_> = contexts.into_iter().filter(|context| !context.lives()).collect();
    let mut list = loaded();
    if let Some(known) = find(&list) {
        drop(list);
        let _ = made.map(|(module, _)| module.unload()); // another thread was faster
        return known;
    }
    list.retain(|entry| !gone.contains(&entry.context));
    let function = made.map(|(_, function)| function);
    list.push(Loaded { context, word, function });
    function
}

/// Starts `job` on the stream of `state`, whose context is current. False where the device's driver has no such
/// kernel, and nothing was done.
///
/// # Safety
/// All that the job reads and writes is memory of that context.
pub unsafe fn launch(state: &StreamState, job: &Job) -> Result<bool> {
    let Some(function) = function(state.context, job.word) else {
        return Ok(false);
    };
    let mut values = job.parameters();
    let mut parameters = values.each_mut().map(|value| (&raw mut *value).cast::<c_void>());
    let block = [TILE as u32, (TILE / WORDS) as u32, 1];
    // SAFETY: the parameters are those of the text, and the caller vouches for the memory.
    unsafe { function.launch([job.tiles, 1, 1], block, state.stream, &mut parameters) }?;
    Ok(true)
}
