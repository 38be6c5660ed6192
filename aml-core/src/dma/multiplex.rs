//! A DMA that spreads its requests over several others, in turn and by weight.
//! Its own structs are public, so a program's operator can take part; what belongs to whom, the header says.

use super::{aml_dma_async_copy_custom, aml_dma_barrier, aml_dma_cancel, aml_dma_fprintf, aml_dma_wait};
use crate::text::write_line;
use aml_abi::{
    AML_EINVAL, AML_ENOMEM, AML_SUCCESS, aml_dma, aml_dma_data, aml_dma_operator, aml_dma_ops, aml_dma_request,
    aml_layout, assert_layout,
};
use libc::{FILE, c_char, c_int, c_void};
use std::sync::{Mutex, PoisonError};
use std::{ptr, slice};

/// State of a multiplexer.
#[repr(C)]
pub struct aml_dma_multiplex_data {
    /// Number of DMAs.
    pub count: usize,
    /// The DMA whose turn it is.
    pub index: usize,
    /// Copies that it got in this turn.
    pub round: usize,
    /// The DMAs.
    pub dmas: *mut *mut aml_dma,
    /// Copies that each DMA gets in its turn.
    pub weights: *mut usize,
}

/// A request of a multiplexer: the copies that it stands for.
#[repr(C)]
pub struct aml_dma_multiplex_request {
    /// Number of copies.
    pub count: usize,
    /// The request of each.
    pub reqs: *mut *mut aml_dma_request,
    /// The DMA of each.
    pub dmas: *mut *mut aml_dma,
}

/// Argument of a request.
#[repr(C)]
pub struct aml_dma_multiplex_request_args {
    /// For each DMA, the operator that copies with it.
    pub ops: *mut aml_dma_operator,
    /// For each DMA, the argument of that operator.
    pub op_args: *mut *mut c_void,
}

/// What a multiplexer passes to an operator.
#[repr(C)]
pub struct aml_dma_multiplex_copy_args {
    /// The multiplexer.
    pub m_data: *mut aml_dma_multiplex_data,
    /// The request, or NULL where the program asked for none.
    pub m_req: *mut *mut aml_dma_multiplex_request,
    /// Argument of the request.
    pub args: *mut aml_dma_multiplex_request_args,
}

assert_layout!(aml_dma_multiplex_data, 40, { count: 0, index: 8, round: 16, dmas: 24, weights: 32 });
assert_layout!(aml_dma_multiplex_request, 24, { count: 0, reqs: 8, dmas: 16 });
assert_layout!(aml_dma_multiplex_request_args, 16, { ops: 0, op_args: 8 });
assert_layout!(aml_dma_multiplex_copy_args, 24, { m_data: 0, m_req: 8, args: 16 });

/// Operations of a multiplexer.
#[unsafe(no_mangle)]
pub static mut aml_dma_multiplex_ops: aml_dma_ops = aml_dma_ops {
    create_request: Some(create_request),
    destroy_request: Some(destroy_request),
    wait_request: Some(wait_request),
    barrier: Some(barrier),
    fprintf: Some(fprintf),
};

/// Held while a turn is taken, by all multiplexers: the public struct has no room for a lock of its own.
static TURNS: Mutex<()> = Mutex::new(());

/// Memory of the C allocator for `count` values, all zero.
fn allocate<T>(count: usize) -> Result<*mut T, c_int> {
    // SAFETY: a plain allocation; calloc refuses a product that overflows.
    let memory = unsafe { libc::calloc(count, size_of::<T>()) }.cast::<T>();
    if memory.is_null() { Err(-AML_ENOMEM) } else { Ok(memory) }
}

/// A multiplexer and its state, in one block.
#[repr(C)]
struct Multiplexer {
    dma: aml_dma,
    data: aml_dma_multiplex_data,
}

/// Makes a multiplexer.
///
/// # Safety
/// `dma` is NULL or valid for a write, `dmas` NULL or `num` pointers that are NULL or valid DMAs for as long as the
/// multiplexer lives, `weights` NULL or `num` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aml_dma_multiplex_create(
    dma: *mut *mut aml_dma,
    num: usize,
    dmas: *mut *const aml_dma,
    weights: *const usize,
) -> c_int {
    if dma.is_null() || num == 0 || dmas.is_null() || weights.is_null() {
        return -AML_EINVAL;
    }
    // SAFETY: the caller's promise.
    let (dmas, weights) = unsafe { (slice::from_raw_parts(dmas, num), slice::from_raw_parts(weights, num)) };
    if dmas.iter().any(|dma| dma.is_null()) || weights.iter().all(|&weight| weight == 0) {
        return -AML_EINVAL;
    }
    // SAFETY: `dmas` and `weights` are equally long.
    match unsafe { multiplexer(dmas, weights) } {
        Ok(made) => {
            // SAFETY: the caller's promise.
            unsafe { dma.write(&raw mut (*made).dma) };
            AML_SUCCESS
        }
        Err(error) => error,
    }
}

/// # Safety
/// `dmas` and `weights` are equally long.
unsafe fn multiplexer(dmas: &[*const aml_dma], weights: &[usize]) -> Result<*mut Multiplexer, c_int> {
    let made = allocate::<Multiplexer>(1)?;
    // SAFETY: fresh memory, zeroed, ours alone; the arrays are as long as what is copied into them.
    unsafe {
        let data = &mut (*made).data;
        let arrays = allocate::<*mut aml_dma>(dmas.len())
            .inspect(|&array| data.dmas = array)
            .and_then(|_| allocate(weights.len()))
            .inspect(|&array| data.weights = array);
        if let Err(error) = arrays {
            discard(made);
            return Err(error);
        }
        data.count = dmas.len();
        ptr::copy_nonoverlapping(dmas.as_ptr().cast(), data.dmas, dmas.len());
        ptr::copy_nonoverlapping(weights.as_ptr(), data.weights, weights.len());
        let state: *mut aml_dma_multiplex_data = data;
        (*made).dma = aml_dma { ops: &raw mut aml_dma_multiplex_ops, data: state.cast() };
    }
    Ok(made)
}

/// # Safety
/// `made` came from [`multiplexer`] and is no longer used.
unsafe fn discard(made: *mut Multiplexer) {
    // SAFETY: the caller's promise; free takes NULL.
    unsafe {
        libc::free((*made).data.dmas.cast());
        libc::free((*made).data.weights.cast());
        libc::free(made.cast());
    }
}

/// Frees a multiplexer.
///
/// # Safety
/// `dma` is NULL or valid for reads and writes; what it holds is NULL or a multiplexer that nobody else uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aml_dma_multiplex_destroy(dma: *mut *mut aml_dma) -> c_int {
    // SAFETY: the caller's promise.
    let Some(dma) = (unsafe { dma.as_mut() }) else {
        return -AML_EINVAL;
    };
    if !dma.is_null() {
        // SAFETY: the DMA is the first thing in its block.
        unsafe { discard(dma.cast()) };
        *dma = ptr::null_mut();
    }
    AML_SUCCESS
}

/// Takes a turn: the number and the DMA of it, or `None` where the weights allow none.
///
/// # Safety
/// `data` is NULL or a valid multiplexer's state.
unsafe fn turn(data: *mut aml_dma_multiplex_data) -> Option<(usize, *mut aml_dma)> {
    let _held = TURNS.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: the caller's promise; only the thread that holds the lock looks at it.
    let data = unsafe { data.as_mut() }?;
    if data.dmas.is_null() || data.weights.is_null() {
        return None;
    }
    // SAFETY: the struct says how long its arrays are.
    let (dmas, weights) =
        unsafe { (slice::from_raw_parts(data.dmas, data.count), slice::from_raw_parts(data.weights, data.count)) };
    // One step more than there are DMAs: the first may have had its turn.
    for _ in 0..=data.count {
        let index = data.index;
        if data.round < *weights.get(index)? {
            data.round += 1;
            return Some((index, dmas[index]));
        }
        data.index = (index + 1) % data.count;
        data.round = 0;
    }
    None
}

/// Makes one copy with the DMA whose turn it is.
///
/// # Safety
/// `arg` is NULL or the argument that a multiplexer passed to its operator; `dst` and `src` are what the operator of
/// the DMA takes.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn aml_dma_multiplex_copy_single(
    dst: *mut aml_layout,
    src: *const aml_layout,
    arg: *mut c_void,
) -> c_int {
    // SAFETY: the caller's promise.
    let Some(copy) = (unsafe { arg.cast::<aml_dma_multiplex_copy_args>().as_ref() }) else {
        return -AML_EINVAL;
    };
    if dst.is_null() || src.is_null() {
        return -AML_EINVAL;
    }
    // SAFETY: the caller's promise.
    let place = match unsafe { copy.m_req.as_mut() } {
        // Room first, so that no copy is under way that nobody can wait for.
        // SAFETY: the caller's promise.
        Some(m_req) => match unsafe { make_room(m_req) } {
            Ok(place) => place,
            Err(error) => return error,
        },
        None => ptr::null_mut(),
    };
    // SAFETY: the caller's promise.
    let Some((index, dma)) = (unsafe { turn(copy.m_data) }) else {
        return -AML_EINVAL;
    };
    // SAFETY: the caller's promise: as many entries as there are DMAs.
    let (op, op_arg) = unsafe { arguments(copy.args, index) };
    let mut req = ptr::null_mut();
    let wanted: *mut *mut aml_dma_request = if place.is_null() { ptr::null_mut() } else { &mut req };
    // SAFETY: the caller's promise.
    let error = unsafe { aml_dma_async_copy_custom(dma, wanted, dst, src.cast_mut(), op, op_arg) };
    if error == 0 && !place.is_null() {
        // SAFETY: there is room for one more.
        unsafe {
            *(*place).reqs.add((*place).count) = req;
            *(*place).dmas.add((*place).count) = dma;
            (*place).count += 1;
        }
    }
    error
}

/// The operator and its argument for a DMA; none where the program named none.
///
/// # Safety
/// `args` is NULL or valid, its arrays NULL or longer than `index`.
unsafe fn arguments(args: *const aml_dma_multiplex_request_args, index: usize) -> (aml_dma_operator, *mut c_void) {
    // SAFETY: the caller's promise.
    let Some(args) = (unsafe { args.as_ref() }) else {
        return (None, ptr::null_mut());
    };
    // SAFETY: the caller's promise.
    unsafe {
        let op = if args.ops.is_null() { None } else { *args.ops.add(index) };
        (op, if args.op_args.is_null() { ptr::null_mut() } else { *args.op_args.add(index) })
    }
}

/// Room for one more copy in a request, which is made where there is none.
///
/// # Safety
/// `req` is NULL or a request made here.
unsafe fn make_room(req: &mut *mut aml_dma_multiplex_request) -> Result<*mut aml_dma_multiplex_request, c_int> {
    if req.is_null() {
        *req = allocate(1)?;
    }
    // SAFETY: the caller's promise.
    let request = unsafe { &mut **req };
    let count = request.count + 1;
    // A power of two is a full array, or none: it doubles.
    if request.count == 0 || request.count.is_power_of_two() {
        let room = count.next_power_of_two();
        // SAFETY: each array came from here, or is NULL.
        unsafe {
            grow(&mut request.reqs, room)?;
            grow(&mut request.dmas, room)?;
        }
    }
    Ok(*req)
}

/// # Safety
/// `array` is NULL or came from the C allocator.
unsafe fn grow<T>(array: &mut *mut T, room: usize) -> Result<(), c_int> {
    let bytes = room.checked_mul(size_of::<T>()).ok_or(-AML_ENOMEM)?;
    // SAFETY: the caller's promise.
    let grown = unsafe { libc::realloc((*array).cast(), bytes) };
    if grown.is_null() {
        return Err(-AML_ENOMEM);
    }
    *array = grown.cast();
    Ok(())
}

/// A request that is being made. Dropped, also by an exception, it gives up all copies that it has.
struct Pending(*mut aml_dma_multiplex_request);

impl Drop for Pending {
    fn drop(&mut self) {
        if !self.0.is_null() {
            // SAFETY: the request is ours alone.
            unsafe { finish(self.0, aml_dma_cancel) };
        }
    }
}

/// Ends every copy of a request with `end`, frees the request, and returns the first error.
///
/// # Safety
/// `request` was made here and is no longer used by anybody else.
unsafe fn finish(
    request: *mut aml_dma_multiplex_request,
    end: unsafe extern "C" fn(*mut aml_dma, *mut *mut aml_dma_request) -> c_int,
) -> c_int {
    let mut first = AML_SUCCESS;
    // SAFETY: the caller's promise; each request goes to its own DMA.
    unsafe {
        let whole = &mut *request;
        for i in 0..whole.count {
            let error = end(*whole.dmas.add(i), whole.reqs.add(i));
            if first == AML_SUCCESS {
                first = error;
            }
        }
        libc::free(whole.reqs.cast());
        libc::free(whole.dmas.cast());
        libc::free(request.cast());
    }
    first
}

/// # Safety
/// `dma` is NULL or a multiplexer's state, `req` NULL or valid for a write; the rest is what `op` takes.
unsafe extern "C-unwind" fn create_request(
    dma: *mut aml_dma_data,
    req: *mut *mut aml_dma_request,
    dest: *mut aml_layout,
    src: *mut aml_layout,
    op: aml_dma_operator,
    op_arg: *mut c_void,
) -> c_int {
    if dma.is_null() || dest.is_null() || src.is_null() {
        return -AML_EINVAL;
    }
    let mut pending = Pending(ptr::null_mut());
    if !req.is_null() {
        match allocate(1) {
            Ok(request) => pending.0 = request,
            Err(error) => return error,
        }
    }
    let m_req = if req.is_null() { ptr::null_mut() } else { &raw mut pending.0 };
    let mut copy = aml_dma_multiplex_copy_args { m_data: dma.cast(), m_req, args: op_arg.cast() };
    let op = op.unwrap_or(aml_dma_multiplex_copy_single);
    // SAFETY: the caller's promise.
    let error = unsafe { op(dest, src, (&raw mut copy).cast()) };
    if error == AML_SUCCESS && !req.is_null() {
        // SAFETY: the caller's promise.
        unsafe { req.write(pending.0.cast()) };
        pending.0 = ptr::null_mut();
    }
    error
}

/// # Safety
/// `req` is NULL or the address of NULL or of a request made here.
unsafe fn end_request(
    dma: *mut aml_dma_data,
    req: *mut *mut aml_dma_request,
    end: unsafe extern "C" fn(*mut aml_dma, *mut *mut aml_dma_request) -> c_int,
) -> c_int {
    // SAFETY: the caller's promise.
    let Some(req) = (unsafe { req.as_mut() }) else {
        return -AML_EINVAL;
    };
    if dma.is_null() || req.is_null() {
        return -AML_EINVAL;
    }
    // SAFETY: the caller's promise.
    let error = unsafe { finish(req.cast(), end) };
    *req = ptr::null_mut();
    error
}

/// # Safety
/// As [`end_request`].
unsafe extern "C" fn wait_request(dma: *mut aml_dma_data, req: *mut *mut aml_dma_request) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { end_request(dma, req, aml_dma_wait) }
}

/// # Safety
/// As [`end_request`].
unsafe extern "C" fn destroy_request(dma: *mut aml_dma_data, req: *mut *mut aml_dma_request) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { end_request(dma, req, aml_dma_cancel) }
}

/// Calls `each` with every DMA and returns the first error.
///
/// # Safety
/// `dma` is NULL or a multiplexer's state.
unsafe fn for_each(dma: *const aml_dma_data, mut each: impl FnMut(*mut aml_dma) -> c_int) -> c_int {
    let data = dma.cast::<aml_dma_multiplex_data>();
    if data.is_null() {
        return -AML_EINVAL;
    }
    // SAFETY: the two fields never change, so nobody writes them meanwhile.
    let dmas = unsafe { slice::from_raw_parts((*data).dmas, (*data).count) };
    dmas.iter().fold(AML_SUCCESS, |first, &dma| {
        let error = each(dma);
        if first == AML_SUCCESS { error } else { first }
    })
}

/// # Safety
/// `dma` is NULL or a multiplexer's state.
unsafe extern "C" fn barrier(dma: *mut aml_dma_data) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { for_each(dma, |dma| aml_dma_barrier(dma)) }
}

/// # Safety
/// `dma` is NULL or a multiplexer's state, `stream` an open stream, `prefix` NULL or a C string.
unsafe extern "C" fn fprintf(dma: *const aml_dma_data, stream: *mut FILE, prefix: *const c_char) -> c_int {
    let data = dma.cast::<aml_dma_multiplex_data>();
    if data.is_null() {
        return -AML_EINVAL;
    }
    // SAFETY: the caller's promise; the struct says how long its arrays are.
    unsafe {
        let weights = slice::from_raw_parts((*data).weights, (*data).count);
        match write_line(stream, prefix, format_args!("dma-multiplex: weights {weights:?}")) {
            AML_SUCCESS => for_each(dma, |dma| aml_dma_fprintf(stream, prefix, dma)),
            error => error,
        }
    }
}
