//! A lock that nobody sleeps on: whoever finds it taken leaves what there is to do to the thread that has it.

use crate::thread;
use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU8, Ordering};

/// Whose thread has a duty.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Holder {
    /// One of the program's.
    Program = 1,
    /// One of this library's, of which a program need not know.
    Library = 2,
}

const FREE: u8 = 0;

/// A value that one thread at a time works on.
#[derive(Default)]
pub struct Duty<T> {
    holder: AtomicU8,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached through `Taken` alone, of which there is one at a time.
unsafe impl<T: Send> Sync for Duty<T> {}

impl<T> Duty<T> {
    /// Takes the duty for `who`, unless another thread has it: then says who that is.
    #[inline]
    pub fn take(&self, who: Holder) -> Result<Taken<'_, T>, Holder> {
        let mut holder = self.holder.load(Ordering::Acquire); // threads that only look share the cache line
        if holder == FREE {
            let taken = self.holder.compare_exchange(FREE, who as u8, Ordering::SeqCst, Ordering::Acquire);
            match taken {
                Ok(_) => return Ok(Taken(self)),
                Err(other) => holder = other,
            }
        }
        Err(if holder == Holder::Library as u8 { Holder::Library } else { Holder::Program })
    }

    /// Takes the duty, once the thread that has it is done.
    pub fn take_in_turn(&self) -> Taken<'_, T> {
        let mut turn = 0;
        loop {
            match self.take(Holder::Program) {
                Ok(taken) => return taken,
                Err(_) => thread::give_way(turn),
            }
            turn = turn.wrapping_add(1);
        }
    }

    /// Whether a thread has the duty.
    #[inline]
    pub fn is_taken(&self) -> bool {
        self.holder.load(Ordering::Acquire) != FREE
    }
}

/// The duty, as long as this lives.
pub struct Taken<'a, T>(&'a Duty<T>);

impl<T> Deref for Taken<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: this thread has the duty.
        unsafe { &*self.0.value.get() }
    }
}

impl<T> DerefMut for Taken<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this thread has the duty, and borrows it once.
        unsafe { &mut *self.0.value.get() }
    }
}

impl<T> Drop for Taken<'_, T> {
    fn drop(&mut self) {
        self.0.holder.store(FREE, Ordering::SeqCst);
    }
}

/// A value in cache lines of its own, since threads that change it would slow down those that look at its neighbours.
#[derive(Default)]
#[repr(align(128))]
pub struct Apart<T>(pub T);

impl<T> Deref for Apart<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicI32;

    #[test]
    fn one_thread_at_a_time_has_the_duty() {
        let duty = Duty::<usize>::default();
        for who in [Holder::Program, Holder::Library] {
            let taken = duty.take(who).expect("it is free");
            assert!(duty.is_taken());
            assert_eq!(duty.take(Holder::Program).err(), Some(who));
            assert!(duty.is_taken(), "a thread that did not get it gave it up");
            drop(taken);
            assert!(!duty.is_taken());
        }
    }

    /// Else a thread of real-time priority would keep the one that has it from its core.
    #[test]
    #[cfg_attr(miri, ignore = "there are no priorities")]
    fn a_thread_that_waits_for_it_sleeps_now_and_then() {
        let duty = Duty::<usize>::default();
        let waiter = AtomicI32::new(0);
        let sleeps = || {
            let status = std::fs::read_to_string(format!("/proc/self/task/{}/status", waiter.load(Ordering::Relaxed)));
            let line = status
                .ok()?
                .lines()
                .find_map(|line| Some(line.strip_prefix("voluntary_ctxt_switches:")?.trim().parse()));
            line?.ok()
        };
        let slept = std::thread::scope(|scope| {
            let taken = duty.take(Holder::Program).expect("it is free");
            scope.spawn(|| {
                // SAFETY: no pointers.
                waiter.store(unsafe { libc::gettid() }, Ordering::Relaxed);
                drop(duty.take_in_turn());
            });
            let mut slept = false;
            for _ in 0..30_000 {
                std::thread::sleep(std::time::Duration::from_millis(1));
                slept = slept || sleeps().is_some_and(|count: u64| count > 5);
                if slept {
                    break;
                }
            }
            drop(taken);
            slept
        });
        assert!(slept, "it spins");
    }

    #[test]
    fn nothing_is_lost_where_many_take_it() {
        let duty = Duty::<usize>::default();
        let rounds = if cfg!(miri) { 100 } else { 10_000 };
        std::thread::scope(|scope| {
            let member = || {
                let mut other = 0;
                for _ in 0..rounds {
                    match duty.take(Holder::Program) {
                        Ok(mut count) => *count += 1,
                        Err(_) => other += 1,
                    }
                }
                for _ in 0..other {
                    *duty.take_in_turn() += 1;
                }
            };
            (0..4).map(|_| scope.spawn(member)).for_each(drop);
        });
        assert_eq!(*duty.take_in_turn(), 4 * rounds);
    }
}
