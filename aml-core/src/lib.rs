//! The part of AML that a program with a DMA calls: areas, layouts, the generic calls on DMAs, the multiplexer.
//! For machines without libaml; names, sizes and codes are AML's, so either library serves the same program.
//!
//! Promises, on every exported function:
//! - a NULL pointer that should not be NULL gets `-AML_EINVAL` (or NULL), and nothing is changed or printed;
//! - a table of operations that lacks the one needed gets `-AML_ENOTSUP` (or NULL);
//! - on error, what the caller gave for a result is untouched;
//! - C++ exceptions of an operator pass through, and leave nothing behind.
#![allow(non_camel_case_types)] // C names stay C names.
#![allow(non_upper_case_globals)] // Exported objects, too.

mod area;
mod copy;
mod dma;
mod errors;
mod features;
mod general;
mod layout;
mod text;

pub use area::cuda::*;
pub use area::linux::*;
pub use area::*;
pub use copy::*;
pub use dma::multiplex::*;
pub use dma::*;
pub use errors::*;
pub use features::*;
pub use general::*;
pub use layout::dense::*;
pub use layout::*;
