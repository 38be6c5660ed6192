//! The multiplexer over DMAs that count: turns by weight, requests that stand for several copies, failures.

use aml_abi::*;
use aml_core::*;
use libc::{c_int, c_void};
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering::SeqCst};

/// A DMA that moves nothing. A request is the number of the DMA plus 1.
#[derive(Default)]
struct Counting {
    number: usize,
    created: AtomicUsize,
    without_handle: AtomicUsize,
    waited: AtomicUsize,
    cancelled: AtomicUsize,
    barriers: AtomicUsize,
    operators: AtomicUsize,
    create_answers: AtomicI32,
    wait_answers: AtomicI32,
}

/// # Safety
/// `dma` is a `Counting`.
unsafe fn counting<'a>(dma: *const aml_dma_data) -> &'a Counting {
    // SAFETY: the caller's promise.
    unsafe { &*dma.cast() }
}

unsafe extern "C-unwind" fn create_request(
    dma: *mut aml_dma_data,
    req: *mut *mut aml_dma_request,
    dest: *mut aml_layout,
    src: *mut aml_layout,
    op: aml_dma_operator,
    op_arg: *mut c_void,
) -> c_int {
    // SAFETY: the state is a `Counting`; `req` is NULL or valid, the operator takes what the test passes.
    unsafe {
        let this = counting(dma);
        let answer = this.create_answers.load(SeqCst);
        if answer != 0 {
            return answer;
        }
        this.created.fetch_add(1, SeqCst);
        if let Some(op) = op {
            assert_eq!(op(dest, src, op_arg), AML_SUCCESS);
        }
        match req.as_mut() {
            Some(req) => *req = (this.number + 1) as *mut aml_dma_request,
            None => drop(this.without_handle.fetch_add(1, SeqCst)),
        }
        AML_SUCCESS
    }
}

/// # Safety
/// `dma` is a `Counting`, `req` holds a request of it.
unsafe fn end(dma: *mut aml_dma_data, req: *mut *mut aml_dma_request) -> &'static Counting {
    // SAFETY: the caller's promise.
    unsafe {
        let this = counting(dma);
        assert_eq!(*req as usize, this.number + 1, "a request went to another dma");
        *req = null_mut();
        this
    }
}

unsafe extern "C" fn wait_request(dma: *mut aml_dma_data, req: *mut *mut aml_dma_request) -> c_int {
    // SAFETY: as `end`.
    let this = unsafe { end(dma, req) };
    this.waited.fetch_add(1, SeqCst);
    this.wait_answers.load(SeqCst)
}

unsafe extern "C" fn destroy_request(dma: *mut aml_dma_data, req: *mut *mut aml_dma_request) -> c_int {
    // SAFETY: as `end`.
    unsafe { end(dma, req) }.cancelled.fetch_add(1, SeqCst);
    AML_SUCCESS
}

unsafe extern "C" fn barrier(dma: *mut aml_dma_data) -> c_int {
    // SAFETY: the state is a `Counting`.
    let this = unsafe { counting(dma) };
    this.barriers.fetch_add(1, SeqCst);
    this.wait_answers.load(SeqCst)
}

static mut OPS: aml_dma_ops = aml_dma_ops {
    create_request: Some(create_request),
    destroy_request: Some(destroy_request),
    wait_request: Some(wait_request),
    barrier: Some(barrier),
    fprintf: None,
};

/// Three counting DMAs behind a multiplexer.
struct Fixture {
    dmas: Vec<aml_dma>,
    multiplexer: *mut aml_dma,
}

// SAFETY: the DMAs count with atomics, and the multiplexer is made for threads.
unsafe impl Sync for Fixture {}

const DEST: *mut aml_layout = 0x10 as *mut aml_layout;
const SRC: *mut aml_layout = 0x20 as *mut aml_layout;

impl Fixture {
    fn new(weights: &[usize]) -> Fixture {
        let counting = |number| Box::into_raw(Box::new(Counting { number, ..Counting::default() }));
        let dmas: Vec<aml_dma> =
            (0..weights.len()).map(|i| aml_dma { ops: &raw mut OPS, data: counting(i).cast() }).collect();
        let mut pointers: Vec<*const aml_dma> = dmas.iter().map(|dma| dma as *const _).collect();
        let mut multiplexer = null_mut();
        // SAFETY: as many DMAs as weights.
        let error = unsafe {
            aml_dma_multiplex_create(&mut multiplexer, weights.len(), pointers.as_mut_ptr(), weights.as_ptr())
        };
        assert_eq!(error, AML_SUCCESS);
        Fixture { dmas, multiplexer }
    }

    fn dma(&self, i: usize) -> &Counting {
        // SAFETY: made in `new`.
        unsafe { counting(self.dmas[i].data) }
    }

    fn counts(&self, of: fn(&Counting) -> &AtomicUsize) -> Vec<usize> {
        (0..self.dmas.len()).map(|i| of(self.dma(i)).load(SeqCst)).collect()
    }

    fn start(&self, op: aml_dma_operator, arg: *mut c_void) -> Result<*mut aml_dma_request, c_int> {
        let untouched = 0x77 as *mut aml_dma_request;
        let mut req = untouched;
        // SAFETY: the operators of these tests take what is passed.
        match unsafe { aml_dma_async_copy_custom(self.multiplexer, &mut req, DEST, SRC, op, arg) } {
            AML_SUCCESS => Ok(req),
            error => {
                assert_eq!(req, untouched);
                Err(error)
            }
        }
    }

    fn wait(&self, mut req: *mut aml_dma_request) -> c_int {
        // SAFETY: a request of this multiplexer.
        let error = unsafe { aml_dma_wait(self.multiplexer, &mut req) };
        assert!(req.is_null());
        error
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        // SAFETY: made in `new`.
        unsafe {
            assert_eq!(aml_dma_multiplex_destroy(&mut self.multiplexer), AML_SUCCESS);
            assert!(self.multiplexer.is_null());
            for dma in &self.dmas {
                drop(Box::from_raw(dma.data.cast::<Counting>()));
            }
        }
    }
}

/// The DMA of each copy that a request stands for, and its request.
fn copies(req: *mut aml_dma_request) -> Vec<usize> {
    // SAFETY: a request of a multiplexer, whose struct is public.
    unsafe {
        let request = &*req.cast::<aml_dma_multiplex_request>();
        (0..request.count).map(|i| *request.reqs.add(i) as usize - 1).collect()
    }
}

#[test]
fn requests_go_round_by_weight() {
    let fixture = Fixture::new(&[1, 2, 3]);
    let mut turns = vec![];
    for _ in 0..12 {
        let req = fixture.start(Some(aml_dma_multiplex_copy_single), null_mut()).unwrap();
        turns.extend(copies(req));
        assert_eq!(fixture.wait(req), AML_SUCCESS);
    }
    assert_eq!(turns, [0, 1, 1, 2, 2, 2, 0, 1, 1, 2, 2, 2]);
    assert_eq!(fixture.counts(|dma| &dma.waited), [2, 4, 6]);
}

#[test]
fn a_dma_without_weight_gets_nothing() {
    let fixture = Fixture::new(&[0, 2, 0, 1]);
    for _ in 0..6 {
        fixture.wait(fixture.start(None, null_mut()).unwrap());
    }
    assert_eq!(fixture.counts(|dma| &dma.created), [0, 4, 0, 2]);
}

#[test]
fn threads_share_the_turns_without_losing_one() {
    let fixture = Fixture::new(&[1, 2, 3]);
    let rounds = if cfg!(miri) { 6 } else { 600 };
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..rounds {
                    assert_eq!(fixture.wait(fixture.start(None, null_mut()).unwrap()), AML_SUCCESS);
                }
            });
        }
    });
    let shares = [1, 2, 3].map(|weight| 8 * rounds / 6 * weight);
    assert_eq!(fixture.counts(|dma| &dma.created), shares);
    assert_eq!(fixture.counts(|dma| &dma.waited), shares);
}

/// Marks that the operator of a DMA ran: the argument is the counter.
unsafe extern "C-unwind" fn mark(dest: *mut aml_layout, src: *const aml_layout, arg: *mut c_void) -> c_int {
    assert_eq!((dest, src), (DEST, SRC.cast_const()));
    // SAFETY: the test passes a counter.
    unsafe { (*arg.cast::<AtomicUsize>()).fetch_add(1, SeqCst) };
    AML_SUCCESS
}

#[test]
fn each_dma_has_its_own_operator_and_argument() {
    let fixture = Fixture::new(&[1, 1, 1]);
    let mut ops: [aml_dma_operator; 3] = [Some(mark), None, Some(mark)];
    let mut op_args: [*mut c_void; 3] = [0, 1, 2].map(|i| (&raw const fixture.dma(i).operators).cast_mut().cast());
    let mut args = aml_dma_multiplex_request_args { ops: ops.as_mut_ptr(), op_args: op_args.as_mut_ptr() };
    for _ in 0..6 {
        fixture.wait(fixture.start(Some(aml_dma_multiplex_copy_single), (&raw mut args).cast()).unwrap());
    }
    assert_eq!(fixture.counts(|dma| &dma.operators), [2, 0, 2]);
}

/// An operator of the program's own: as many copies as its argument says, then the error after it.
unsafe extern "C-unwind" fn several(dest: *mut aml_layout, src: *const aml_layout, arg: *mut c_void) -> c_int {
    // SAFETY: a multiplexer passes its struct; the test put two numbers behind `args`.
    unsafe {
        let copy = arg.cast::<aml_dma_multiplex_copy_args>();
        let [count, error] = *(*copy).args.cast::<[c_int; 2]>();
        // These two numbers are no operators: each copy is told that there are none.
        let mut plain = aml_dma_multiplex_copy_args { args: null_mut(), ..copy.read() };
        for _ in 0..count {
            let answer = aml_dma_multiplex_copy_single(dest, src, (&raw mut plain).cast());
            if answer != AML_SUCCESS {
                return answer;
            }
        }
        error
    }
}

#[test]
fn one_request_stands_for_all_copies_of_its_operator() {
    let fixture = Fixture::new(&[1, 2, 3]);
    let mut arg: [c_int; 2] = [100, 0];
    let req = fixture.start(Some(several), (&raw mut arg).cast()).unwrap();
    assert_eq!(copies(req).len(), 100);
    assert_eq!(copies(req)[..6], [0, 1, 1, 2, 2, 2]);
    assert_eq!(fixture.wait(req), AML_SUCCESS);
    assert_eq!(fixture.counts(|dma| &dma.waited).iter().sum::<usize>(), 100);
    // Also none at all.
    arg[0] = 0;
    let req = fixture.start(Some(several), (&raw mut arg).cast()).unwrap();
    assert_eq!(fixture.wait(req), AML_SUCCESS);
}

#[test]
fn when_an_operator_fails_its_copies_are_given_up() {
    let fixture = Fixture::new(&[1, 2, 3]);
    let mut arg: [c_int; 2] = [5, -AML_EDOM];
    assert_eq!(fixture.start(Some(several), (&raw mut arg).cast()).err(), Some(-AML_EDOM));
    assert_eq!(fixture.counts(|dma| &dma.created), [1, 2, 2]);
    assert_eq!(fixture.counts(|dma| &dma.cancelled), [1, 2, 2]);
    assert_eq!(fixture.counts(|dma| &dma.waited), [0, 0, 0]);
}

#[test]
fn when_a_dma_fails_its_error_comes_back_and_the_others_are_given_up() {
    let fixture = Fixture::new(&[1, 1, 1]);
    fixture.dma(2).create_answers.store(-AML_EBUSY, SeqCst);
    let mut arg: [c_int; 2] = [3, 0];
    assert_eq!(fixture.start(Some(several), (&raw mut arg).cast()).err(), Some(-AML_EBUSY));
    assert_eq!(fixture.counts(|dma| &dma.cancelled), [1, 1, 0]);
}

#[test]
fn a_wait_ends_all_copies_and_returns_the_first_error() {
    let fixture = Fixture::new(&[1, 1, 1]);
    fixture.dma(1).wait_answers.store(-AML_FAILURE, SeqCst);
    fixture.dma(2).wait_answers.store(-AML_EPERM, SeqCst);
    let mut arg: [c_int; 2] = [3, 0];
    let req = fixture.start(Some(several), (&raw mut arg).cast()).unwrap();
    assert_eq!(fixture.wait(req), -AML_FAILURE);
    assert_eq!(fixture.counts(|dma| &dma.waited), [1, 1, 1]);
    // SAFETY: a valid multiplexer.
    assert_eq!(unsafe { aml_dma_barrier(fixture.multiplexer) }, -AML_FAILURE);
    assert_eq!(fixture.counts(|dma| &dma.barriers), [1, 1, 1]);
}

#[test]
fn cancelling_gives_every_copy_up() {
    let fixture = Fixture::new(&[1, 1, 1]);
    let mut arg: [c_int; 2] = [6, 0];
    let mut req = fixture.start(Some(several), (&raw mut arg).cast()).unwrap();
    // SAFETY: a request of this multiplexer.
    assert_eq!(unsafe { aml_dma_cancel(fixture.multiplexer, &mut req) }, AML_SUCCESS);
    assert!(req.is_null());
    assert_eq!(fixture.counts(|dma| &dma.cancelled), [2, 2, 2]);
}

#[test]
fn without_a_handle_the_dmas_get_none_either() {
    let fixture = Fixture::new(&[1, 1, 1]);
    for _ in 0..3 {
        // SAFETY: a valid multiplexer whose DMAs dereference nothing.
        let error = unsafe { aml_dma_async_copy_custom(fixture.multiplexer, null_mut(), DEST, SRC, None, null_mut()) };
        assert_eq!(error, AML_SUCCESS);
    }
    assert_eq!(fixture.counts(|dma| &dma.without_handle), [1, 1, 1]);
    // SAFETY: a valid multiplexer.
    assert_eq!(unsafe { aml_dma_barrier(fixture.multiplexer) }, AML_SUCCESS);
    assert_eq!(fixture.counts(|dma| &dma.barriers), [1, 1, 1]);
}

#[test]
fn bad_input_is_refused() {
    let fixture = Fixture::new(&[1, 1]);
    let untouched = 0x77 as *mut aml_dma;
    let mut made = untouched;
    let mut good: [*const aml_dma; 2] = [&fixture.dmas[0], &fixture.dmas[1]];
    let mut hole = [good[0], null()];
    // SAFETY: NULL is refused; otherwise the lengths agree.
    unsafe {
        let create = aml_dma_multiplex_create;
        let (dmas, weights, zeros) = (good.as_mut_ptr(), [1usize, 1], [0usize, 0]);
        assert_eq!(create(null_mut(), 2, dmas, weights.as_ptr()), -AML_EINVAL);
        assert_eq!(create(&mut made, 0, dmas, weights.as_ptr()), -AML_EINVAL);
        assert_eq!(create(&mut made, 2, null_mut(), weights.as_ptr()), -AML_EINVAL);
        assert_eq!(create(&mut made, 2, dmas, null()), -AML_EINVAL);
        assert_eq!(create(&mut made, 2, hole.as_mut_ptr(), weights.as_ptr()), -AML_EINVAL);
        assert_eq!(create(&mut made, 2, dmas, zeros.as_ptr()), -AML_EINVAL);
        assert_eq!(made, untouched);
        assert_eq!(aml_dma_multiplex_destroy(null_mut()), -AML_EINVAL);
        assert_eq!(aml_dma_multiplex_destroy(&mut null_mut()), AML_SUCCESS);
        assert_eq!(aml_dma_multiplex_copy_single(DEST, SRC, null_mut()), -AML_EINVAL);
        let mut req = null_mut();
        assert_eq!(aml_dma_wait(fixture.multiplexer, &mut req), -AML_EINVAL);
        assert_eq!(aml_dma_cancel(fixture.multiplexer, &mut req), -AML_EINVAL);
    }
    assert_eq!(fixture.counts(|dma| &dma.created), [0, 0]);
}
