//! What a string of bytes asks for. Every string asks for something, and zeros ask for the simplest, so that any
//! generator will do, and what it found can be made smaller byte by byte.

use std::fmt;

/// The bytes before the first step, and those of each step.
pub const HEADER: usize = 4;
pub const STEP: usize = 8;

/// A run of the model.
pub struct Sequence {
    /// How many threads there are.
    pub threads: usize,
    /// Whether they run as they like; else each step waits for the one before.
    pub free: bool,
    /// Whether there is a context of the program's own, besides the primary ones.
    pub created_context: bool,
    /// Whether the devices are reset at the end.
    pub reset: bool,
    /// Whether a handle that was given back comes again.
    pub reuse_handles: bool,
    /// How long each copy takes at least, in nanoseconds.
    pub delay: u64,
    /// In the order in which they are done.
    pub steps: Vec<Step>,
}

/// One thing that a thread does.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// Which thread.
    pub thread: usize,
    /// What.
    pub action: Action,
    /// The DMA, where one is needed.
    pub dma: usize,
    /// Everything else.
    pub choices: [u8; 5],
}

/// What a thread can do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// Copies with one of the library's operators.
    Copy,
    /// Waits for one of the thread's requests.
    Wait,
    /// Gives one of them up.
    Cancel,
    /// Looks at the status of one of them.
    Poll,
    /// Looks at it until it is done, without any call.
    Expect,
    /// Waits for all that is on a stream.
    Barrier,
    /// Holds a stream, or takes that back.
    Hold,
    Release,
    /// Leaves a request to another thread, or takes one.
    HandOver,
    TakeOver,
    /// Changes the current context.
    Push,
    Pop,
    /// Makes or destroys a DMA.
    Create,
    Destroy,
    /// Changes the direction of a DMA's copies.
    SetKind,
    /// Copies with an operator of the program's own.
    Operate,
    /// Copies rows or transposes.
    CopyLayout,
    /// Calls that are refused.
    Misuse,
    /// Prints a DMA.
    Describe,
}

/// The action of each number; more numbers for what should come more often.
const ACTIONS: [(Action, usize); 19] = [
    (Action::Copy, 80),
    (Action::Wait, 44),
    (Action::Cancel, 8),
    (Action::Poll, 12),
    (Action::Expect, 8),
    (Action::Barrier, 10),
    (Action::Hold, 12),
    (Action::Release, 6),
    (Action::HandOver, 8),
    (Action::TakeOver, 8),
    (Action::Push, 6),
    (Action::Pop, 6),
    (Action::Create, 3),
    (Action::Destroy, 4),
    (Action::SetKind, 5),
    (Action::Operate, 12),
    (Action::CopyLayout, 10),
    (Action::Misuse, 12),
    (Action::Describe, 2),
];

impl Action {
    fn of(number: u8) -> Action {
        let mut number = usize::from(number);
        for (action, share) in ACTIONS {
            match number.checked_sub(share) {
                None => return action,
                Some(rest) => number = rest,
            }
        }
        unreachable!("the shares are all numbers of a byte")
    }
}

const _: () = {
    let (mut sum, mut index) = (0, 0);
    while index < ACTIONS.len() {
        sum += ACTIONS[index].1;
        index += 1;
    }
    assert!(sum == 256);
};

impl Sequence {
    /// What the bytes ask for.
    pub fn decode(bytes: &[u8]) -> Sequence {
        let head = |index: usize| bytes.get(index).copied().unwrap_or(0);
        let threads = [1, 1, 1, 1, 2, 2, 2, 3, 3, 4, 4, 5, 6, 7, 8, 8][usize::from(head(0) & 15)];
        let flags = head(1);
        let steps = bytes.get(HEADER..).unwrap_or_default();
        Sequence {
            threads,
            free: flags & 1 != 0,
            created_context: flags & 6 == 6,
            reset: flags & 0x38 == 0x38,
            reuse_handles: flags & 0x40 != 0,
            delay: if head(2) & 7 == 7 { u64::from(head(2)) * 100 } else { 0 },
            steps: steps.chunks_exact(STEP).map(|bytes| Step::decode(bytes, threads)).collect(),
        }
    }
}

impl Step {
    fn decode(bytes: &[u8], threads: usize) -> Step {
        Step {
            thread: usize::from(bytes[0]) % threads,
            action: Action::of(bytes[1]),
            dma: bytes[2].into(),
            choices: [bytes[3], bytes[4], bytes[5], bytes[6], bytes[7]],
        }
    }
}

impl fmt::Debug for Sequence {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        writeln!(
            out,
            "{} threads{}{}{}{}, delay {} ns",
            self.threads,
            if self.free { " at once" } else { " in turn" },
            if self.created_context { ", a created context" } else { "" },
            if self.reset { ", a reset at the end" } else { "" },
            if self.reuse_handles { ", handles that come again" } else { "" },
            self.delay
        )?;
        self.steps.iter().enumerate().try_for_each(|(number, step)| {
            let Step { thread, action, dma, choices } = step;
            writeln!(out, "{number:4} thread {thread}: {action:?} dma {dma} {choices:?}")
        })
    }
}
