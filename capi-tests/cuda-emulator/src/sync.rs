//! Mutex and condition variable over pthread's own.
//! Checkers such as ThreadSanitizer and helgrind see these, where they cannot see the futexes of the standard library.
use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};

/// A value behind a pthread mutex. A panic inside leaves it unlocked and usable.
pub struct Mutex<T> {
    lock: UnsafeCell<libc::pthread_mutex_t>,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached only by the thread that holds the lock.
unsafe impl<T: Send> Send for Mutex<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Mutex<T> {}

impl<T> Mutex<T> {
    /// An unlocked mutex around `value`.
    pub const fn new(value: T) -> Self {
        Self { lock: UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER), value: UnsafeCell::new(value) }
    }

    /// Waits for the lock.
    pub fn lock(&self) -> Guard<'_, T> {
        // SAFETY: the mutex is initialised and stays where it is while it is borrowed.
        unsafe { libc::pthread_mutex_lock(self.lock.get()) };
        Guard { mutex: self }
    }
}

impl<T: Default> Default for Mutex<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T> Drop for Mutex<T> {
    fn drop(&mut self) {
        // SAFETY: nobody else holds a reference any more.
        unsafe { libc::pthread_mutex_destroy(self.lock.get()) };
    }
}

/// The right to the value, until it is dropped.
pub struct Guard<'a, T> {
    mutex: &'a Mutex<T>,
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: this guard holds the lock.
        unsafe { &*self.mutex.value.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this guard holds the lock, and is borrowed exclusively.
        unsafe { &mut *self.mutex.value.get() }
    }
}

impl<T> Drop for Guard<'_, T> {
    fn drop(&mut self) {
        // SAFETY: this guard holds the lock.
        unsafe { libc::pthread_mutex_unlock(self.mutex.lock.get()) };
    }
}

/// A pthread condition variable.
pub struct Condvar(UnsafeCell<libc::pthread_cond_t>);

// SAFETY: pthread condition variables are made to be shared.
unsafe impl Send for Condvar {}
// SAFETY: as above.
unsafe impl Sync for Condvar {}

impl Condvar {
    /// A condition that nobody waits for.
    pub const fn new() -> Self {
        Self(UnsafeCell::new(libc::PTHREAD_COND_INITIALIZER))
    }

    /// Gives the lock up, sleeps until woken (perhaps for nothing), takes it again.
    pub fn wait<T>(&self, guard: &mut Guard<'_, T>) {
        // SAFETY: both are initialised, and the guard holds the lock.
        unsafe { libc::pthread_cond_wait(self.0.get(), guard.mutex.lock.get()) };
    }

    /// Wakes one.
    pub fn wake(&self) {
        // SAFETY: the condition is initialised.
        unsafe { libc::pthread_cond_signal(self.0.get()) };
    }

    /// Wakes all.
    pub fn wake_all(&self) {
        // SAFETY: the condition is initialised.
        unsafe { libc::pthread_cond_broadcast(self.0.get()) };
    }
}

impl Drop for Condvar {
    fn drop(&mut self) {
        // SAFETY: nobody else holds a reference any more.
        unsafe { libc::pthread_cond_destroy(self.0.get()) };
    }
}
