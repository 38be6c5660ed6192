//! The arithmetic of dense layouts, on slices and without pointers: where elements lie, what a slice and a reshape
//! become. Everything is in native order, the fastest dimension first.
#![forbid(unsafe_code)]

/// A dense array: `cpitch` has one more entry than the others, and starts with the size of an element.
#[derive(Clone, Copy)]
pub(crate) struct Shape<'a> {
    pub dims: &'a [usize],
    pub stride: &'a [usize],
    pub cpitch: &'a [usize],
}

/// A dense array that is being described.
pub(crate) struct Draft<'a> {
    pub dims: &'a mut [usize],
    pub stride: &'a mut [usize],
    pub cpitch: &'a mut [usize],
}

/// One number a dimension as the caller wrote them, which row major does the other way round.
#[derive(Clone, Copy)]
pub(crate) struct Axes<'a> {
    numbers: &'a [usize],
    reversed: bool,
}

impl<'a> Axes<'a> {
    pub fn new(numbers: &'a [usize], reversed: bool) -> Self {
        Self { numbers, reversed }
    }

    /// The number of native dimension `i`.
    pub fn get(self, i: usize) -> usize {
        self.numbers[if self.reversed { self.numbers.len() - 1 - i } else { i }]
    }
}

/// Whether `taken` elements from `offset` on, `stride` apart, exist in a dimension of `dim`.
pub(crate) fn inside(dim: usize, offset: usize, taken: usize, stride: usize) -> bool {
    let Some(steps) = taken.checked_sub(1) else {
        return offset <= dim;
    };
    let last = steps.checked_mul(stride).and_then(|way| way.checked_add(offset));
    last.is_some_and(|last| last < dim)
}

impl Shape<'_> {
    pub fn ndims(self) -> usize {
        self.dims.len()
    }

    /// Bytes between neighbours in dimension `i`.
    pub fn step(self, i: usize) -> usize {
        self.cpitch[i].wrapping_mul(self.stride[i])
    }

    /// Bytes from the first element to that at `coords`; modulo the address space, as in C.
    pub fn distance(self, coords: Axes) -> usize {
        let part = |i| coords.get(i).wrapping_mul(self.step(i));
        (0..self.ndims()).map(part).fold(0, usize::wrapping_add)
    }

    /// Whether the last byte of the last element is within the address space.
    pub fn addressable(self) -> bool {
        let steps = |i: usize| self.dims[i].saturating_sub(1);
        let way = |i: usize| self.cpitch[i].checked_mul(self.stride[i])?.checked_mul(steps(i));
        let last = (0..self.ndims()).try_fold(0, |sum: usize, i| sum.checked_add(way(i)?));
        last.and_then(|last| last.checked_add(self.cpitch[0])).is_some()
    }
}

impl Draft<'_> {
    /// What has been described.
    pub fn shape(&self) -> Shape<'_> {
        Shape { dims: self.dims, stride: self.stride, cpitch: self.cpitch }
    }

    /// Describes an array from the caller's numbers. `None` when it is larger than the address space.
    pub fn create(&mut self, element_size: usize, dims: Axes, stride: Option<Axes>, pitch: Option<Axes>) -> Option<()> {
        self.cpitch[0] = element_size;
        for i in 0..self.dims.len() {
            self.dims[i] = dims.get(i);
            self.stride[i] = stride.map_or(1, |stride| stride.get(i));
            self.cpitch[i + 1] = self.cpitch[i].checked_mul(pitch.unwrap_or(dims).get(i))?;
        }
        self.shape().addressable().then_some(())
    }

    /// Describes the same array as `whole`.
    pub fn copy(&mut self, whole: Shape) {
        self.dims.copy_from_slice(whole.dims);
        self.stride.copy_from_slice(whole.stride);
        self.cpitch.copy_from_slice(whole.cpitch);
    }

    /// Describes a slice of `whole`, and returns the distance of its first element. `None` when it is not inside.
    pub fn slice(&mut self, whole: Shape, offsets: Option<Axes>, dims: Axes, strides: Option<Axes>) -> Option<usize> {
        self.cpitch.copy_from_slice(whole.cpitch);
        for i in 0..whole.ndims() {
            let offset = offsets.map_or(0, |offsets| offsets.get(i));
            let stride = strides.map_or(1, |strides| strides.get(i));
            if !inside(whole.dims[i], offset, dims.get(i), stride) {
                return None;
            }
            self.dims[i] = dims.get(i);
            self.stride[i] = whole.stride[i].checked_mul(stride)?;
        }
        Some(offsets.map_or(0, |offsets| whole.distance(offsets)))
    }

    /// Describes the elements of `whole` in dimensions `dims`. `None` when they are not as many, or do not lie at
    /// regular distances in these dimensions.
    pub fn reshape(&mut self, whole: Shape, dims: Axes) -> Option<()> {
        for i in 0..self.dims.len() {
            self.dims[i] = dims.get(i);
        }
        if count(self.dims)? != count(whole.dims)? {
            return None;
        }
        let empty = whole.dims.contains(&0);
        // Dimensions of one element can be left out: nobody steps along them.
        let mut olds = (0..whole.ndims()).filter(|&i| whole.dims[i] != 1);
        // `left` elements, `step` bytes apart, wait for a new dimension.
        let (mut left, mut step) = (1, whole.step(0));
        for i in 0..self.dims.len() {
            let dim = self.dims[i];
            if !empty && dim != 1 {
                if left == 1 {
                    let old = olds.next()?;
                    (left, step) = (whole.dims[old], whole.step(old));
                }
                // A dimension that ends within an old one goes on where that ends.
                while left % dim != 0 {
                    let old = olds.next()?;
                    if whole.step(old) != step.wrapping_mul(left) {
                        return None;
                    }
                    left *= whole.dims[old];
                }
                left /= dim;
            }
            // The first pitch is given; the others can be the steps themselves.
            self.cpitch[i] = if i == 0 { whole.cpitch[0] } else { step };
            self.stride[i] = if i == 0 { step / whole.cpitch[0] } else { 1 };
            step = step.wrapping_mul(dim);
        }
        self.cpitch[self.dims.len()] = whole.cpitch[whole.ndims()];
        Some(())
    }
}

/// Product of dimensions, `None` when it is more than a `usize` holds.
fn count(dims: &[usize]) -> Option<usize> {
    // A zero makes the product zero, however large the others.
    if dims.contains(&0) {
        return Some(0);
    }
    dims.iter().try_fold(1, |product: usize, &dim| product.checked_mul(dim))
}
