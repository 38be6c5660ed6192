//! The CUDA driver, opened on first use.
pub use cust::sys;
