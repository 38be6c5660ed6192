//! Compiles the trampolines. Hidden, so that no program sees a `cu*` name of ours.
fn main() {
    println!("cargo:rerun-if-changed=loader.c");
    cc::Build::new().file("loader.c").flag("-fvisibility=hidden").warnings(true).compile("cuda_loader");
}
