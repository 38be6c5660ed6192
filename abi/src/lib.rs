//! The structs and constants of AML 0.2.1 that a DMA touches, laid out exactly as C lays them out.
//! Both libraries of this workspace speak through these types, and the header is generated from them.
#![allow(non_camel_case_types)] // C names stay C names.

mod area;
mod dma;
mod error;
mod layout;

pub use area::*;
pub use dma::*;
pub use error::*;
pub use layout::*;

/// Asserts, while compiling, the size of a struct and the offset of each of its fields.
#[macro_export]
macro_rules! assert_layout {
    ($type:ty, $size:expr, { $($field:ident: $offset:expr),* $(,)? }) => {
        const _: () = assert!(size_of::<$type>() == $size);
        $(const _: () = assert!(std::mem::offset_of!($type, $field) == $offset);)*
    };
}
