//! Gives the shared library its name for the loader, and keeps it loaded once it is.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libaml_core.so.0");
    // Threads that used the driver through this library may outlive a dlclose.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
