//! What stands for a context's id on drivers before CUDA 12, which do not tell it: a page registered in the context.
//! A registration goes with its context, and CUDA numbers each anew, so its number is that of the context's life.

use crate::context::Entered;
use crate::error::{Result, probe};
use crate::ffi::*;
use cust::sys::CUcontext;
use libc::{c_ulonglong, c_void};
use once_cell::sync::Lazy;
use std::collections::HashMap;
use std::ptr;
use std::sync::Mutex;

const PAGE: usize = 4096;

/// The number of the life that the context is in, which has to be alive; 0 where the driver does not number memory.
pub fn id_of_life(handle: CUcontext) -> Result<c_ulonglong> {
    let Some(page) = page_of(handle) else { return Ok(0) };
    if let Ok(number) = number_of(page) {
        return Ok(number);
    }
    // SAFETY: the context is alive.
    let _current = unsafe { Entered::into(handle) }?;
    // SAFETY: the page is mapped for good. Another thread may have been faster, and then this is refused.
    let registered = probe("cuMemHostRegister", unsafe { cuMemHostRegister_v2(page, PAGE, 0) });
    let number = number_of(page);
    number.or(registered.map(|()| 0))
}

/// CUDA's number of the registration of `page`; an error where there is none.
fn number_of(page: *mut c_void) -> Result<c_ulonglong> {
    const CU_POINTER_ATTRIBUTE_BUFFER_ID: u32 = 7;
    let mut number: c_ulonglong = 0;
    // SAFETY: the attribute is 64 bits wide; the driver only looks the address up.
    probe("cuPointerGetAttribute", unsafe {
        cuPointerGetAttribute((&raw mut number).cast(), CU_POINTER_ATTRIBUTE_BUFFER_ID, page as u64)
    })?;
    Ok(number)
}

/// The page of a handle; none where memory has run out. There are as many as there are handles, and they stay.
fn page_of(handle: CUcontext) -> Option<*mut c_void> {
    static PAGES: Lazy<Mutex<HashMap<usize, usize>>> = Lazy::new(Mutex::default);
    let mut pages = PAGES.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if let Some(&page) = pages.get(&(handle as usize)) {
        return Some(page as *mut c_void);
    }
    let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a fresh mapping; nothing else is touched.
    let page = unsafe { libc::mmap(ptr::null_mut(), PAGE, access, flags, -1, 0) };
    if page == libc::MAP_FAILED {
        return None;
    }
    pages.insert(handle as usize, page as usize);
    Some(page)
}
