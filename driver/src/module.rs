//! Kernels given as PTX text.

use crate::error::{Result, check};
use crate::ffi::*;
use crate::stream::Stream;
use cust::sys::{CUfunction, CUmodule};
use libc::c_void;
use std::ffi::CStr;
use std::ptr;

/// A module of the current context; it lives until that context goes.
#[derive(Clone, Copy, Debug)]
pub struct Module(CUmodule);

/// A kernel.
#[derive(Clone, Copy, Debug)]
pub struct Function(CUfunction);

// SAFETY: handles are plain values; the driver may be called with one from any thread.
unsafe impl Send for Function {}
// SAFETY: as above.
unsafe impl Sync for Function {}

impl Module {
    /// Compiles `ptx` and loads it into the current context.
    pub fn load(ptx: &CStr) -> Result<Module> {
        let mut module = ptr::null_mut();
        // SAFETY: `module` is valid for a write, and the text ends in NUL.
        check("cuModuleLoadData", unsafe { cuModuleLoadData(&mut module, ptx.as_ptr().cast()) })?;
        Ok(Module(module))
    }

    /// Unloads the module, whose kernels nobody uses any more.
    pub fn unload(self) -> Result<()> {
        // SAFETY: the module lives.
        check("cuModuleUnload", unsafe { cuModuleUnload(self.0) })
    }

    /// The kernel called `name`.
    pub fn function(self, name: &CStr) -> Result<Function> {
        let mut function = ptr::null_mut();
        // SAFETY: `function` is valid for a write, and the name ends in NUL.
        check("cuModuleGetFunction", unsafe { cuModuleGetFunction(&mut function, self.0, name.as_ptr()) })?;
        Ok(Function(function))
    }
}

impl Function {
    /// Starts the kernel on `stream`.
    ///
    /// # Safety
    /// `parameters` point to values of the types that the kernel declares, and what those point to is valid for what it does.
    pub unsafe fn launch(
        self,
        grid: [u32; 3],
        block: [u32; 3],
        stream: Stream,
        parameters: &mut [*mut c_void],
    ) -> Result<()> {
        // SAFETY: the caller vouches for the parameters.
        check("cuLaunchKernel", unsafe {
            cuLaunchKernel(
                self.0,
                grid[0],
                grid[1],
                grid[2],
                block[0],
                block[1],
                block[2],
                0,
                stream.raw(),
                parameters.as_mut_ptr(),
                ptr::null_mut(),
            )
        })
    }
}
