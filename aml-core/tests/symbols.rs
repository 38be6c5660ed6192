//! What the shared library exports and needs: exactly the names of `symbols.txt`, and no CUDA to load it.

use std::env;
use std::path::PathBuf;
use std::process::Command;

/// The library that cargo built for this test.
fn library() -> PathBuf {
    let path = env::current_exe().unwrap().with_file_name("libaml_core.so");
    assert!(path.exists(), "{} is not there", path.display());
    path
}

/// What a tool prints about the library.
fn asked(tool: &str, options: &[&str]) -> String {
    let output = Command::new(tool).args(options).arg(library()).output().unwrap();
    assert!(output.status.success(), "{tool}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn it_exports_the_listed_names_and_no_others() {
    let names = asked("nm", &["-D", "--defined-only"]);
    let mut exported: Vec<&str> = names.lines().map(|line| line.rsplit(' ').next().unwrap()).collect();
    exported.sort_unstable();
    let listed: Vec<&str> = include_str!("../symbols.txt").lines().collect();
    assert_eq!(exported, listed);
}

#[test]
fn it_needs_no_cuda_and_carries_its_name() {
    let dynamic = asked("readelf", &["-dW"]);
    assert!(dynamic.contains("soname: [libaml_core.so.0]"), "{dynamic}");
    assert!(dynamic.contains("NODELETE"), "{dynamic}");
    let needed: Vec<&str> = dynamic.lines().filter(|line| line.contains("(NEEDED)")).collect();
    assert!(!needed.is_empty() && needed.iter().all(|line| !line.contains("cuda")), "{needed:?}");
    let undefined = asked("nm", &["-D", "--undefined-only"]);
    assert!(undefined.contains("dlopen"), "{undefined}");
    assert!(undefined.lines().all(|line| !line.trim_start().starts_with("U cu")), "{undefined}");
}

#[test]
fn exported_objects_are_reached_as_a_program_would() {
    // A copy relocation moves an object into the program; only an access through the GOT follows.
    let relocations = asked("readelf", &["-rW"]);
    for object in ["aml_layout_row_ops", "aml_dma_multiplex_ops", "aml_area_cuda", "aml_errno"] {
        let through_got =
            relocations.lines().any(|line| line.contains("GLOB_DAT") && line.contains(&format!(" {object} ")));
        assert!(through_got, "{object}: {relocations}");
    }
    for object in ["aml_area_linux_ops", "aml_area_cuda_ops"] {
        let symbolic = relocations.lines().any(|line| line.contains("_64 ") && line.contains(&format!(" {object} ")));
        assert!(symbolic, "{object}: {relocations}");
    }
}
