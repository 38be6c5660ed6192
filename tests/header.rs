//! The header is what the Rust sources say: generates it anew and compares it with the one that is checked in.
//! With `HEADER=rewrite` in the environment (`make header`) it is written instead.

use std::fs;
use std::path::Path;

/// AML's own types, for machines without AML.
const AML: [&str; 3] = ["abi/src/error.rs", "abi/src/layout.rs", "abi/src/dma.rs"];
/// Everything else, in the order of the header.
const CUDA: [&str; 3] = ["src/abi.rs", "src/statics.rs", "src/capi.rs"];

/// What cbindgen makes of `sources`. Structs that it would not reach from a function are in `include`, and those that
/// are declared elsewhere in `foreign`.
fn generate(root: &Path, sources: &[&str], include: &[&str], foreign: &[&str]) -> String {
    let mut config = cbindgen::Config::from_file(root.join("cbindgen.toml")).expect("cbindgen.toml is right");
    config.export.include.extend(include.iter().map(|name| name.to_string()));
    config.export.rename.extend(foreign.iter().map(|name| (name.to_string(), format!("struct {name}"))));
    let mut builder = cbindgen::Builder::new().with_config(config);
    for source in sources {
        builder = builder.with_src(root.join(source));
    }
    let mut text = Vec::new();
    builder.generate().expect("cbindgen understands the sources").write(&mut text);
    String::from_utf8(text).expect("the sources are UTF-8").trim_matches('\n').to_owned()
}

fn header(root: &Path) -> String {
    let aml =
        generate(root, &AML, &["aml_layout", "aml_layout_ops", "aml_dma_operator", "aml_dma", "aml_dma_ops"], &[]);
    let cuda = generate(
        root,
        &CUDA,
        &["aml_dma_cuda_request", "aml_dma_cuda_op_arg"],
        &["aml_layout", "aml_dma", "aml_dma_ops"],
    );
    let template = fs::read_to_string(root.join("include/aml/dma/cuda.h.in")).expect("the template is there");
    template.replace("@AML@", &aml).replace("@CUDA@", &cuda)
}

#[test]
fn the_header_is_generated_from_the_sources() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (path, wanted) = (root.join("include/aml/dma/cuda.h"), header(root));
    if std::env::var("HEADER").is_ok_and(|value| value == "rewrite") {
        fs::write(&path, wanted).expect("the header can be written");
        return;
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    if let Some((number, (found, wanted))) = found
        .lines()
        .chain([""])
        .zip(wanted.lines().chain([""]))
        .enumerate()
        .find(|(_, (found, wanted))| found != wanted)
    {
        panic!(
            "include/aml/dma/cuda.h:{}: is not what the sources say; `make header` writes it anew\n-{found}\n+{wanted}",
            number + 1
        );
    }
    assert_eq!(found, wanted, "the header ends elsewhere; `make header` writes it anew");
}
