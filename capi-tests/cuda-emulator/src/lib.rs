//! A software CUDA driver: `libcuda.so.1` for machines without a GPU, faithful enough to catch real mistakes.
//! What it answers was compared with a real driver by the programs in `capi-tests/driver`.
//!
//! - `api`: the exported functions, one file a topic: check, look up, call the core
//! - `entry`, `control`, `log`, `life`: the frame around each of them
//! - `device`, `context`, `stream`, `event`: what the program holds
//! - `work`, `copy`, `region`, `module`, `kernel`: what streams do
//! - `memory`, `heap`: what is copied
//! - `handle`, `sync`, `types`, `result`: what the rest is made of
mod api;
mod context;
mod control;
mod copy;
mod device;
mod entry;
mod event;
mod handle;
mod heap;
mod kernel;
mod life;
mod log;
mod memory;
mod module;
mod region;
mod result;
mod stream;
mod sync;
#[cfg(test)]
mod tests;
mod types;
mod work;
