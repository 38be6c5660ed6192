//! Modules and kernels.
