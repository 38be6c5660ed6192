//! What the library remembers of a stream: its context, its requests that wait to be marked, and the side stream that
//! marks them. Nothing of it hides in the program's structs, so it is found again by the stream's handle.

mod cache;

use crate::abi::cudaStream_t;
use crate::context::context_of;
use crate::duty::Apart;
use crate::error::{Error, Result};
use crate::marking::Marking;
use crate::request::Pool;
use cache::Cached;
use cuda_driver::{Context, Stream};
use once_cell::sync::{Lazy, OnceCell};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// A stream that requests were made on.
pub struct StreamState {
    /// The stream.
    pub stream: Stream,
    /// The context that it belongs to.
    pub context: Context,
    /// Where its requests come from.
    pub pool: Arc<Pool>,
    /// Requests that are not marked yet.
    pub marking: Marking,
    /// Requests that were made and not yet waited for.
    pub outstanding: Apart<AtomicUsize>,
    /// Whether the last copy to the host whose memory was asked about went to pageable memory.
    pub to_pageable: AtomicBool,
    /// Whether this library made the stream, and destroys it.
    owned: bool,
    closed: AtomicBool,
    side: OnceCell<Stream>,
}

impl StreamState {
    /// What is known of a stream of `context`; `owned` where this library made it.
    pub fn new(stream: Stream, context: Context, owned: bool) -> StreamState {
        StreamState {
            stream,
            context,
            pool: pool_of(context),
            marking: Marking::default(),
            outstanding: Apart::default(),
            to_pageable: AtomicBool::new(false),
            owned,
            closed: AtomicBool::new(false),
            side: OnceCell::new(),
        }
    }

    /// The stream that writes status words, so that the copies need not stop for it. The context is current.
    pub fn side(&self) -> Result<Stream> {
        if let Some(&side) = self.side.get() {
            return Ok(side);
        }
        let side = Stream::new_non_blocking()?; // no lock is held here
        match self.side.set(side) {
            Ok(()) => Ok(side),
            Err(_) => {
                side.destroy()?; // another thread was faster
                Ok(*self.side.wait())
            }
        }
    }

    /// The side stream, where there is one already.
    pub fn existing_side(&self) -> Option<Stream> {
        self.side.get().copied()
    }
}

impl StreamState {
    /// Destroys what the library made, where its context still lives. A stream with work left goes when that is done.
    pub fn close(&self) -> Result<()> {
        if self.closed.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        cuda_driver::ready()?;
        self.marking.await_idle(); // the last requests may be DONE, but not out of the hands of the thread that marked them
        let entered = self.context.enter();
        if entered.is_err() && !self.context.lives() {
            return Ok(entered.map(drop)?); // it took the streams along
        }
        // One call that was refused must not cost the streams: they can be destroyed from anywhere.
        let side = self.existing_side().map_or(Ok(()), Stream::destroy);
        let own = if self.owned { self.stream.destroy() } else { Ok(()) };
        Ok(side.and(own).and(entered.map(drop))?)
    }

    /// Whether this library made the stream: then it stays as long as its requests do, and waits for no other.
    pub fn is_owned(&self) -> bool {
        self.owned
    }

    /// Whether the stream itself can be used from any thread, and is sure not to be gone.
    pub fn is_there(&self) -> bool {
        (self.owned || self.stream == Stream::NULL) && !self.is_closed() && self.context.lives()
    }

    /// Whether the streams are gone.
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }
}

impl Drop for StreamState {
    fn drop(&mut self) {
        let _ = self.close(); // nobody is left to be told
    }
}

/// The DMAs that this library made, by the address of their data; and what is known of other streams.
#[derive(Default)]
struct Registry {
    own: HashMap<usize, Arc<StreamState>>,
    others: HashMap<(Stream, Context), Arc<StreamState>>,
    pools: Vec<Arc<Pool>>,
}

static REGISTRY: Lazy<Mutex<Registry>> = Lazy::new(Mutex::default);
/// Changes when a DMA goes, so that no thread finds it in its cache.
static GENERATION: AtomicU64 = AtomicU64::new(0);
/// So many streams of programs are remembered before the idle ones are forgotten.
const REMEMBERED: usize = 256;

fn registry() -> MutexGuard<'static, Registry> {
    REGISTRY.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// The pool of `context`. Pools of contexts that have gone are forgotten on the way.
fn pool_of(context: Context) -> Arc<Pool> {
    let known = registry().pools.iter().find(|pool| pool.context == context).cloned();
    known.unwrap_or_else(|| {
        let pools: Vec<_> = registry().pools.clone();
        let gone: Vec<_> = pools.iter().map(|pool| pool.context).filter(|context| !context.lives()).collect();
        let mut registry = registry();
        let (forgotten, kept) = registry.pools.drain(..).partition(|pool| gone.contains(&pool.context));
        registry.pools = kept;
        let pool = match registry.pools.iter().find(|pool| pool.context == context) {
            Some(pool) => pool.clone(),
            None => {
                let pool = Arc::new(Pool::new(context));
                registry.pools.push(pool.clone());
                pool
            }
        };
        drop(registry);
        drop::<Vec<_>>(forgotten); // outside of the lock: it calls the driver
        pool
    })
}

/// The stream of a DMA. The legacy stream has two handles, but there is one of it.
///
/// # Safety
/// As for `Stream::from_raw`.
pub unsafe fn of_handle(handle: cudaStream_t) -> Stream {
    // SAFETY: the caller vouches for the stream.
    let stream = unsafe { Stream::from_raw(handle) };
    if stream == Stream::LEGACY { Stream::NULL } else { stream }
}

/// What is known of the stream of the DMA whose data lies at `data`.
///
/// # Safety
/// `stream` comes from `of_handle`, is the DMA's, and lives; unless this library made it, when it may be gone with its context.
pub unsafe fn state_of(data: usize, stream: Stream) -> Result<Arc<StreamState>> {
    let generation = GENERATION.load(Ordering::Acquire);
    let cached = |context: Option<Context>| {
        cache::look(|entry| {
            let same = entry.generation == generation && entry.stream == stream && entry.context == context;
            (same && (context.is_some() || entry.data == data)).then(|| entry.state.clone())
        })
    };
    if let Some(state) = cached(None) {
        return Ok(state);
    }
    let own = registry().own.get(&data).filter(|state| state.stream == stream).cloned();
    let (state, context) = match own {
        Some(state) => (state, None),
        None => {
            // SAFETY: the stream is not ours, so the caller vouches for it.
            let context = unsafe { context_of(stream) }?;
            match cached(Some(context)) {
                Some(state) => return Ok(state),
                None => (state_of_other(stream, context)?, Some(context)),
            }
        }
    };
    drop(cache::keep(Cached { generation, data, stream, context, state: state.clone() }));
    Ok(state)
}

fn state_of_other(stream: Stream, context: Context) -> Result<Arc<StreamState>> {
    if let Some(known) = registry().others.get(&(stream, context)).cloned() {
        return Ok(known);
    }
    let new = Arc::new(StreamState::new(stream, context, false));
    let (state, forgotten) = {
        let mut registry = registry();
        registry.others.try_reserve(1)?; // first: what is forgotten must not go under the lock
        let forgotten = if registry.others.len() < REMEMBERED { Vec::new() } else { registry.forget_idle()? };
        (registry.others.entry((stream, context)).or_insert_with(|| new.clone()).clone(), forgotten)
    };
    drop((new, forgotten)); // outside of the lock: it calls the driver
    Ok(state)
}

impl Registry {
    /// Takes out what nobody else refers to.
    fn forget_idle(&mut self) -> Result<Vec<Arc<StreamState>>> {
        let mut idle = Vec::new();
        idle.try_reserve(self.others.len())?;
        self.others.retain(|_, state| {
            let is_idle = Arc::strong_count(state) == 1;
            if is_idle {
                idle.push(state.clone());
            }
            !is_idle
        });
        Ok(idle)
    }
}

/// Makes a stream in `context`, which is current, for the DMA whose data will lie at `data`.
pub fn adopt(data: usize, stream: Stream, context: Context) -> Result<()> {
    let state = Arc::new(StreamState::new(stream, context, true));
    let mut registry = registry(); // on failure this goes first, and then the state with its stream
    registry.own.try_reserve(1)?;
    registry.own.insert(data, state);
    Ok(())
}

/// Forgets the DMA whose data lies at `data`, and gives what was known of its stream.
pub fn release(data: usize) -> Result<Arc<StreamState>> {
    let state = registry().own.remove(&data).ok_or(Error::Invalid)?;
    GENERATION.fetch_add(1, Ordering::AcqRel);
    drop(cache::take());
    Ok(state)
}
