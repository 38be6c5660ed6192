//! Gives the shared library its soname, and keeps it mapped: threads that used it run its code when they end.
fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let major = std::env::var("CARGO_PKG_VERSION_MAJOR").expect("cargo sets the version");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libaml_dma_cuda.so.{major}");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
