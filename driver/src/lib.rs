//! The CUDA driver, opened on first use: thin calls that return `Result`, over the types of `cust::sys`.
//! Both libraries of this workspace reach CUDA through this crate alone, and need no driver to link or to load.

mod context;
mod error;
mod event;
mod ffi;
mod memory;
mod module;
mod process;
mod stream;
mod token;

pub use context::{Context, Device, Entered, primary_context, runtime_device};
pub use cust::sys;
pub use error::{Code, Error, Result};
pub use event::Event;
pub use memory::{HostMemory, MemorySort, Registration, allocation_of, copy, device, is_managed, memory_sort};
pub use module::{Function, Module};
pub use process::{FORK, is_forked, logging, ready, setting};
pub use stream::{Stream, WORDS_PER_WRITE};
