//! Copies between random layouts through the whole library, on the software driver: what arrives is what copying each
//! element gives, and no other byte of the destination changes.

mod software_driver;

use aml_core::*;
use aml_dma_cuda::abi::*;
use aml_dma_cuda::capi::*;
use cuda_driver::{Context, Device, HostMemory, Stream, copy, device};
use libc::c_void;
use proptest::prelude::*;
use std::ptr;

/// Bytes before and after a destination that have to stay as they are.
const MARGIN: usize = 40;

/// One side of a copy, a slice of a dense layout; everything in the user's order.
#[derive(Clone, Debug)]
struct Side {
    row_major: bool,
    offsets: Vec<usize>,
    steps: Vec<usize>,
    strides: Vec<usize>,
    gaps: Vec<usize>,
}

#[derive(Clone, Debug)]
struct Pair {
    element_size: usize,
    dims: Vec<usize>,
    dst: Side,
    src: Side,
}

/// The sorts of memory that a side can lie in.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Sort {
    Pageable,
    Pinned,
    Device,
}

struct Owned(*mut aml_layout);

impl Drop for Owned {
    fn drop(&mut self) {
        // SAFETY: made below, and ours alone.
        unsafe { aml_layout_destroy(&mut self.0) };
    }
}

impl Side {
    /// The dimensions of the layout below the slice.
    fn whole(&self, dims: &[usize]) -> Vec<usize> {
        (0..dims.len()).map(|i| self.offsets[i] + (dims[i] - 1) * self.steps[i] + 1).collect()
    }

    fn pitches(&self, dims: &[usize]) -> Vec<usize> {
        let whole = self.whole(dims);
        (0..dims.len()).map(|i| (whole[i] - 1) * self.strides[i] + 1 + self.gaps[i]).collect()
    }

    fn bytes(&self, element_size: usize, dims: &[usize]) -> usize {
        element_size * self.pitches(dims).iter().product::<usize>()
    }

    fn layout(&self, element_size: usize, dims: &[usize], memory: usize) -> Owned {
        let order = if self.row_major { AML_LAYOUT_ORDER_ROW_MAJOR } else { AML_LAYOUT_ORDER_COLUMN_MAJOR };
        let (whole_dims, pitches) = (self.whole(dims), self.pitches(dims));
        let (mut whole, mut slice) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: each array has one number a dimension; the memory is not looked at.
        unsafe {
            let created = aml_layout_dense_create(
                &mut whole,
                memory as *mut c_void,
                order,
                element_size,
                dims.len(),
                whole_dims.as_ptr(),
                self.strides.as_ptr(),
                pitches.as_ptr(),
            );
            assert_eq!(created, AML_SUCCESS);
            let whole = Owned(whole);
            let (offsets, steps) = (self.offsets.as_ptr(), self.steps.as_ptr());
            assert_eq!(aml_layout_slice(whole.0, &mut slice, offsets, dims.as_ptr(), steps), AML_SUCCESS);
        }
        Owned(slice)
    }
}

/// Calls `visit` with the coordinates of every element.
fn each_element(dims: &[usize], mut visit: impl FnMut(&[usize])) {
    for number in 0..dims.iter().product::<usize>() {
        let mut rest = number;
        let coords: Vec<_> = dims.iter().map(|&dim| (rest % dim, rest /= dim).0).collect();
        visit(&coords);
    }
}

/// Memory of one sort that holds `bytes`.
struct Memory {
    sort: Sort,
    pageable: Vec<u8>,
    pinned: Option<HostMemory>,
    device: u64,
    size: usize,
}

impl Memory {
    fn new(sort: Sort, bytes: &[u8]) -> Memory {
        let size = bytes.len();
        let mut memory = Memory { sort, pageable: bytes.to_vec(), pinned: None, device: 0, size };
        match sort {
            Sort::Pageable => {}
            Sort::Pinned => memory.pinned = Some(HostMemory::allocate(size).unwrap()),
            Sort::Device => memory.device = device::allocate(size).unwrap(),
        }
        move_bytes(memory.address(), bytes.as_ptr() as usize, size);
        memory
    }

    fn address(&self) -> usize {
        match (self.sort, &self.pinned) {
            (Sort::Device, _) => self.device as usize,
            (_, Some(pinned)) => pinned.pointer() as usize,
            _ => self.pageable.as_ptr() as usize,
        }
    }

    fn read(&self) -> Vec<u8> {
        let mut bytes = vec![0u8; self.size];
        move_bytes(bytes.as_mut_ptr() as usize, self.address(), self.size);
        bytes
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if let Some(pinned) = self.pinned.take() {
            pinned.free().unwrap();
        }
        if self.device != 0 {
            // SAFETY: every copy was waited for.
            unsafe { device::free(self.device) }.unwrap();
        }
    }
}

fn move_bytes(dst: usize, src: usize, size: usize) {
    // SAFETY: both sides have so many bytes.
    unsafe { copy::unified(dst as *mut c_void, src as *const c_void, size, Stream::LEGACY) }.unwrap();
    Stream::LEGACY.synchronize().unwrap();
}

/// The kinds that take memory of these sorts.
fn kinds(dst: Sort, src: Sort) -> Vec<i32> {
    let (to_device, from_device) = (dst != Sort::Pageable, src != Sort::Pageable);
    let taken = [true, to_device, from_device, to_device && from_device, true];
    (0..5).filter(|&kind| taken[kind as usize]).collect()
}

fn context() -> Context {
    software_driver::open();
    cuda_driver::ready().unwrap();
    cuda_driver::primary_context(Device::get(0).unwrap()).unwrap()
}

fn check(pair: &Pair, (dst_sort, src_sort): (Sort, Sort), kind: prop::sample::Index, shift: usize) {
    let context = context();
    let _current = context.enter().unwrap();
    let Pair { element_size, dims, dst, src } = pair;
    let (element_size, kinds) = (*element_size, kinds(dst_sort, src_sort));
    let source: Vec<u8> = (0..src.bytes(element_size, dims) + shift).map(|byte| (byte % 251) as u8).collect();
    let mut expected = vec![0xee; dst.bytes(element_size, dims) + 2 * MARGIN];
    let (to, from) = (Memory::new(dst_sort, &expected), Memory::new(src_sort, &source));

    let model_dst = dst.layout(element_size, dims, expected.as_mut_ptr() as usize + MARGIN);
    let model_src = src.layout(element_size, dims, source.as_ptr() as usize + shift);
    // SAFETY: the layouts lie over these buffers, and the coordinates within the layouts.
    each_element(dims, |coords| unsafe {
        let (dst, src) =
            (aml_layout_deref(model_dst.0, coords.as_ptr()), aml_layout_deref(model_src.0, coords.as_ptr()));
        ptr::copy_nonoverlapping(src.cast::<u8>(), dst.cast::<u8>(), element_size);
    });

    let dst = dst.layout(element_size, dims, to.address() + MARGIN);
    let src = src.layout(element_size, dims, from.address() + shift);
    let (mut dma, mut request) = (ptr::null_mut(), ptr::null_mut());
    // SAFETY: dma, layouts and memory live until the request was waited for.
    unsafe {
        assert_eq!(aml_dma_cuda_create(&mut dma, kinds[kind.index(kinds.len())]), AML_SUCCESS);
        let data = (*dma).data;
        let operator: aml_dma_operator = Some(aml_dma_cuda_copy_layout);
        let created = aml_dma_cuda_request_create(data, &mut request, dst.0, src.0, operator, ptr::null_mut());
        assert_eq!(created, AML_SUCCESS);
        assert_eq!(aml_dma_cuda_request_wait(data, &mut request), AML_SUCCESS);
        assert_eq!(aml_dma_cuda_destroy(&mut dma), AML_SUCCESS);
    }
    assert!(to.read() == expected, "the destination differs");
    assert!(from.read() == source, "the source changed");
}

fn sides(rank: usize) -> impl Strategy<Value = Side> {
    use prop::collection::vec;
    let plain = (any::<bool>(), Just((vec![0; rank], vec![1; rank], vec![1; rank], vec![0; rank])));
    let odd = (vec(0..3usize, rank), vec(1..=3usize, rank), vec(1..=2usize, rank), vec(0..3usize, rank));
    let gaps = (Just(vec![0; rank]), Just(vec![1; rank]), Just(vec![1; rank]), vec(0..3usize, rank));
    prop_oneof![plain, (any::<bool>(), gaps), (any::<bool>(), odd)]
        .prop_map(|(row_major, (offsets, steps, strides, gaps))| Side { row_major, offsets, steps, strides, gaps })
}

fn pairs() -> impl Strategy<Value = Pair> {
    let longest = |rank| [100usize, 40, 9, 5, 3, 3][rank - 1];
    (1..=6usize, prop::sample::select(&[1usize, 2, 3, 4, 8, 12, 16, 24][..])).prop_flat_map(
        move |(rank, element_size)| {
            (prop::collection::vec(1..=longest(rank), rank), sides(rank), sides(rank)).prop_filter_map(
                "too large to be quick",
                move |(dims, dst, src)| {
                    let small = dst.bytes(element_size, &dims).max(src.bytes(element_size, &dims)) <= 1 << 19;
                    small.then_some(Pair { element_size, dims, dst, src })
                },
            )
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1024, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_element_arrives_and_nothing_else_changes(
        pair in pairs(),
        sorts in prop::sample::select(&[
            (Sort::Pageable, Sort::Pageable), (Sort::Device, Sort::Pageable), (Sort::Device, Sort::Pinned),
            (Sort::Pageable, Sort::Device), (Sort::Pinned, Sort::Device), (Sort::Device, Sort::Device),
        ][..]),
        kind in any::<prop::sample::Index>(),
        shift in 0..17usize,
    ) {
        check(&pair, sorts, kind, shift);
    }
}
