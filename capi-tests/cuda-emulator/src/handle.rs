//! Handles that the program holds, and the objects they stand for.
//! A handle looks like a pointer and is never dereferenced; a destroyed one is refused instead of crashing.
use crate::control::settings;
use crate::result::*;
use crate::sync::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// All objects of one sort.
pub struct Table<T> {
    rows: Mutex<BTreeMap<usize, Arc<T>>>,
    last_freed: AtomicUsize,
}

// Far from anything a program maps, and spaced as allocations are.
static NEXT: AtomicUsize = AtomicUsize::new(0x0c0d_a000_0000);

impl<T> Table<T> {
    /// No objects yet.
    pub const fn new() -> Self {
        Self { rows: Mutex::new(BTreeMap::new()), last_freed: AtomicUsize::new(0) }
    }

    /// Makes an object that knows its handle.
    pub fn insert(&self, make: impl FnOnce(usize) -> T) -> Arc<T> {
        let freed = if settings().reuse_handles.load(Relaxed) { self.last_freed.swap(0, Relaxed) } else { 0 };
        let handle = if freed != 0 { freed } else { NEXT.fetch_add(0x100, Relaxed) };
        let object = Arc::new(make(handle));
        self.rows.lock().insert(handle, object.clone());
        object
    }

    /// The object of a handle, or CUDA_ERROR_INVALID_HANDLE.
    pub fn get(&self, handle: usize) -> Result<Arc<T>> {
        self.rows.lock().get(&handle).cloned().ok_or(CUDA_ERROR_INVALID_HANDLE)
    }

    /// Forgets the handle.
    pub fn remove(&self, handle: usize) -> Result<Arc<T>> {
        let object = self.rows.lock().remove(&handle).ok_or(CUDA_ERROR_INVALID_HANDLE)?;
        self.last_freed.store(handle, Relaxed);
        Ok(object)
    }

    /// Every object for which `wanted` holds.
    pub fn select(&self, wanted: impl Fn(&T) -> bool) -> Vec<Arc<T>> {
        self.rows.lock().values().filter(|object| wanted(object)).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_destroyed_handle_is_refused() {
        let table = Table::new();
        let first = table.insert(|handle| handle);
        assert_eq!(*table.get(*first).unwrap(), *first);
        table.remove(*first).unwrap();
        assert_eq!(table.get(*first).unwrap_err(), CUDA_ERROR_INVALID_HANDLE);
        assert_eq!(table.remove(*first).unwrap_err(), CUDA_ERROR_INVALID_HANDLE);
    }
}
