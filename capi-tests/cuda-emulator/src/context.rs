//! Contexts, each thread's stack of them, and the primary context of each device.
//! A context that is gone stays known, so that what belonged to it answers CUDA_ERROR_CONTEXT_IS_DESTROYED.
use crate::device::{self, Device, Primary};
use crate::handle::Table;
use crate::result::*;
use crate::stream::{Role, Stream};
use crate::sync::Mutex;
use crate::types::*;
use crate::{control, memory, module};
use std::cell::RefCell;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::*};
use std::sync::{Arc, OnceLock};

/// A context.
pub struct Context {
    /// What the program calls it.
    pub handle: CUcontext,
    /// Number that no other context of the process has; a primary context gets a new one in each life.
    pub id: AtomicU64,
    /// Where it lives.
    pub device: &'static Device,
    /// Whether it is its device's primary context.
    pub primary: bool,
    /// What cuCtxGetFlags answers.
    pub flags: AtomicU32,
    /// Counts the lives of a primary context: each reset or last release ends one.
    pub generation: AtomicU64,
    alive: AtomicBool,
    /// Held while a host function runs: a driver has one thread for all streams, so that they wait for each other.
    pub function_runs: Mutex<()>,
    /// The contexts whose memory this one may reach.
    pub peers: Mutex<Vec<CUcontext>>,
    legacy: OnceLock<Arc<Stream>>,
    per_thread: Mutex<Vec<(i32, Arc<Stream>)>>,
    /// The streams of this life, also those that were destroyed and have work left.
    pub streams: Mutex<Vec<Arc<Stream>>>,
}

static CONTEXTS: Table<Context> = Table::new();
static IDS: AtomicU64 = AtomicU64::new(1);

/// A thread's stack. It has no destructor, because what runs when the process ends comes after those of the thread.
type Stack = RefCell<ManuallyDrop<Vec<Arc<Context>>>>;

/// Gives the stack of a thread that ends back, and keeps that of the first.
struct Farewell;

impl Drop for Farewell {
    fn drop(&mut self) {
        // SAFETY: neither has preconditions.
        if unsafe { libc::gettid() != libc::getpid() } {
            STACK.with(|stack| drop(std::mem::take(&mut **stack.borrow_mut())));
        }
    }
}

thread_local! {
    static STACK: Stack = const { RefCell::new(ManuallyDrop::new(Vec::new())) };
    static FAREWELL: Farewell = const { Farewell };
}

impl Context {
    fn make(device: &'static Device, primary: bool, flags: u32) -> Arc<Self> {
        CONTEXTS.insert(|handle| Self {
            handle,
            id: AtomicU64::new(IDS.fetch_add(1, Relaxed)),
            device,
            primary,
            flags: AtomicU32::new(flags),
            generation: AtomicU64::new(0),
            alive: AtomicBool::new(true),
            function_runs: Mutex::default(),
            peers: Mutex::new(Vec::new()),
            legacy: OnceLock::new(),
            per_thread: Mutex::new(Vec::new()),
            streams: Mutex::new(Vec::new()),
        })
    }

    /// Whether it was not destroyed, or its primary context is active.
    pub fn is_alive(&self) -> bool {
        self.alive.load(Acquire)
    }

    /// The code that work here answers: gone, failed, or none.
    pub fn check(&self) -> Result {
        if !self.is_alive() {
            return Err(CUDA_ERROR_CONTEXT_IS_DESTROYED);
        }
        self.device.check()
    }

    /// Whether what was made in this life of the context is gone with it.
    pub fn is_over(&self, generation: u64) -> bool {
        self.generation.load(Acquire) != generation || !self.is_alive()
    }

    /// As `check`, for an object that was made in this life of the context; in a later life it answers `later`.
    pub fn check_since(&self, generation: u64, later: CUresult) -> Result {
        self.check()?;
        if self.generation.load(Acquire) == generation { Ok(()) } else { Err(later) }
    }

    /// The legacy default stream.
    pub fn legacy(self: &Arc<Self>) -> &Arc<Stream> {
        self.legacy.get_or_init(|| Stream::default_of(self, Role::Legacy))
    }

    /// The legacy default stream, if it was ever used.
    pub fn used_legacy(&self) -> Option<&Arc<Stream>> {
        self.legacy.get()
    }

    /// The calling thread's default stream.
    pub fn per_thread(self: &Arc<Self>) -> Arc<Stream> {
        // SAFETY: gettid has no preconditions.
        let thread = unsafe { libc::gettid() };
        let mut streams = self.per_thread.lock();
        if let Some(row) = streams.iter().find(|row| row.0 == thread) {
            return row.1.clone();
        }
        let made = Stream::default_of(self, Role::PerThread);
        streams.push((thread, made.clone()));
        self.streams.lock().push(made.clone());
        made
    }

    /// Waits until all work of this context is done.
    pub fn synchronize(self: &Arc<Self>) -> Result {
        for stream in self.all_streams() {
            stream.drain();
        }
        self.check()
    }

    fn all_streams(&self) -> Vec<Arc<Stream>> {
        let mut streams = self.streams.lock().clone();
        streams.extend(self.legacy.get().cloned());
        streams
    }

    /// Ends a life: finishes the work, frees the memory; streams and events become answers with a code.
    fn end(self: &Arc<Self>) {
        self.alive.store(false, Release);
        let streams = self.all_streams();
        streams.iter().for_each(|stream| stream.let_go());
        streams.iter().for_each(Stream::drain);
        self.streams.lock().clear();
        self.per_thread.lock().clear();
        self.peers.lock().clear();
        memory::forget_context(self.handle);
        module::forget_context(self.handle);
        self.generation.fetch_add(1, AcqRel);
    }

    fn revive(&self, flags: u32) {
        self.flags.store(flags, Relaxed);
        self.id.store(IDS.fetch_add(1, Relaxed), Relaxed);
        if let Some(legacy) = self.legacy.get() {
            legacy.reopen();
        }
        self.alive.store(true, Release);
    }
}

/// The context of a handle. A made-up handle is CUDA_ERROR_INVALID_CONTEXT.
pub fn get(handle: CUcontext) -> Result<Arc<Context>> {
    CONTEXTS.get(handle).map_err(|_| CUDA_ERROR_INVALID_CONTEXT)
}

/// Both contexts of a peer copy must exist; NULL leaves it to the address to say where the memory is.
pub fn check_peers(dst: CUcontext, src: CUcontext) -> Result {
    let named = [dst, src].into_iter().filter(|&handle| handle != 0);
    named.map(get).try_for_each(|context| context?.check())
}

/// The context on top of the thread's stack, whatever its state.
pub fn top() -> Option<Arc<Context>> {
    STACK.with(|stack| stack.borrow().last().cloned())
}

/// The current context, or CUDA_ERROR_INVALID_CONTEXT.
pub fn current() -> Result<Arc<Context>> {
    top().ok_or(CUDA_ERROR_INVALID_CONTEXT)
}

/// The current context, able to work.
pub fn working() -> Result<Arc<Context>> {
    let context = current()?;
    context.check()?;
    Ok(context)
}

/// Puts a context on top of the thread's stack.
pub fn push(context: Arc<Context>) {
    // Whoever is asked for the first time is told when the thread ends; later it is too late, and the stack stays.
    let _ = FAREWELL.try_with(|_| {});
    STACK.with(|stack| stack.borrow_mut().push(context));
}

/// Takes the top off the thread's stack.
pub fn pop() -> Result<Arc<Context>> {
    STACK.with(|stack| stack.borrow_mut().pop()).ok_or(CUDA_ERROR_INVALID_CONTEXT)
}

/// Exchanges the top of the thread's stack; None takes it off.
pub fn set(context: Option<Arc<Context>>) {
    let _ = pop();
    if let Some(context) = context {
        push(context);
    }
}

/// The current context, able to work; none at all is no error.
pub fn working_if_any() -> Result {
    top().map_or(Ok(()), |context| context.check())
}

fn may_create(device: &Device) -> Result {
    match control::settings().compute_mode.load(Relaxed) {
        CU_COMPUTEMODE_PROHIBITED => Err(CUDA_ERROR_DEVICE_UNAVAILABLE),
        // Another process holds the device.
        CU_COMPUTEMODE_EXCLUSIVE_PROCESS if device.primary.lock().count == 0 => Err(CUDA_ERROR_DEVICE_UNAVAILABLE),
        _ => Ok(()),
    }
}

/// Makes a context and puts it on top of the thread's stack.
pub fn create(device: &'static Device, flags: u32) -> Result<Arc<Context>> {
    may_create(device)?;
    device.check()?;
    let context = Context::make(device, false, flags);
    push(context.clone());
    Ok(context)
}

/// Destroys a created context and, where it is the thread's current one, takes it off the stack.
pub fn destroy(handle: CUcontext) -> Result {
    let context = get(handle)?;
    if context.primary {
        return Err(CUDA_ERROR_INVALID_CONTEXT);
    }
    if !context.is_alive() {
        return Err(CUDA_ERROR_CONTEXT_IS_DESTROYED);
    }
    context.end();
    if top().is_some_and(|top| top.handle == handle) {
        pop()?;
    }
    Ok(())
}

/// Holds a device's primary context, making it active.
pub fn retain_primary(device: &'static Device) -> Result<Arc<Context>> {
    may_create(device)?;
    let mut primary = device.primary.lock();
    let flags = primary.flags;
    if !primary.context.as_ref().is_some_and(|context| context.is_alive()) {
        device.check()?;
    }
    let context = primary.context.get_or_insert_with(|| Context::make(device, true, flags)).clone();
    if !context.is_alive() {
        context.revive(flags);
    }
    primary.count += 1;
    Ok(context)
}

fn end_primary(primary: &Primary) {
    if let Some(context) = &primary.context
        && context.is_alive()
    {
        context.end();
    }
}

/// Lets a primary context go; the last one to do so ends its life.
pub fn release_primary(device: &Device) -> Result {
    let mut primary = device.primary.lock();
    if primary.count == 0 {
        return Err(CUDA_ERROR_INVALID_CONTEXT);
    }
    primary.count -= 1;
    if primary.count == 0 {
        end_primary(&primary);
    }
    Ok(())
}

/// Ends a primary context's life, whoever holds it.
pub fn reset_primary(device: &Device) {
    end_primary(&device.primary.lock());
}

/// Whether a primary context is active, and its flags.
pub fn primary_state(device: &Device) -> (bool, u32) {
    let primary = device.primary.lock();
    (primary.context.as_ref().is_some_and(|context| context.is_alive()), primary.flags)
}

/// Number of contexts that are alive.
pub fn live() -> usize {
    CONTEXTS.select(Context::is_alive).len()
}

/// Whether `context` may reach memory of `owner`: its own device's, or a peer's it has access to.
pub fn reaches(context: &Context, owner: &Context) -> bool {
    context.device.ordinal == owner.device.ordinal || context.peers.lock().contains(&owner.handle)
}

/// Lets the current context reach another's memory.
pub fn enable_peer(peer: &Context) -> Result {
    let context = working()?;
    peer.check()?;
    if !device::peers(context.device, peer.device) {
        return Err(if context.device.ordinal == peer.device.ordinal {
            CUDA_ERROR_INVALID_DEVICE
        } else {
            CUDA_ERROR_PEER_ACCESS_UNSUPPORTED
        });
    }
    let mut peers = context.peers.lock();
    if peers.contains(&peer.handle) {
        return Err(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
    }
    peers.push(peer.handle);
    Ok(())
}

/// Takes that back.
pub fn disable_peer(peer: &Context) -> Result {
    let context = working()?;
    let mut peers = context.peers.lock();
    let place = peers.iter().position(|&handle| handle == peer.handle).ok_or(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED)?;
    peers.remove(place);
    Ok(())
}
