//! The header as C sees it against the Rust mirrors: every size, offset, constant and name, read back by libclang.
//! Once with the header alone, once over aml-core's `<aml.h>`, and over AML's own where that is installed.

use aml_dma_cuda::abi;
use std::collections::{BTreeMap, BTreeSet};
use std::mem::offset_of;
use std::path::Path;
use std::process::Command;

/// What the Rust side says, in the form that `read` gives of the C side: `type` and `type::field`, in bytes.
macro_rules! mirrors {
    ($($type:ident { $($field:ident),* $(,)? })*) => {{
        let mut layout = BTreeMap::new();
        $(
            layout.insert(stringify!($type).to_owned(), size_of::<abi::$type>());
            $(layout.insert(
                concat!(stringify!($type), "::", stringify!($field)).to_owned(),
                offset_of!(abi::$type, $field),
            );)*
        )*
        layout
    }};
}

macro_rules! constants {
    ($($name:ident)*) => { BTreeMap::from([$((stringify!($name).to_owned(), i64::from(abi::$name)),)*]) };
}

/// What C sees of a header.
struct Header {
    layout: BTreeMap<String, usize>,
    constants: BTreeMap<String, i64>,
    names: BTreeSet<String>,
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// An AML of the machine's, in a directory that every compiler searches, is what "alone" means there.
fn alone() -> bool {
    !["/usr/include/aml.h", "/usr/local/include/aml.h"].iter().any(|path| Path::new(path).exists())
}

/// Reads `<aml/dma/cuda.h>` with `arguments` for clang. The text that bindgen writes is searched for the assertions it
/// makes; compiling it instead would only compare it with itself.
fn read(arguments: &[String]) -> Header {
    let text = bindgen::Builder::default()
        .header_contents("header.c", "#include <aml/dma/cuda.h>\n")
        .clang_arg(format!("-I{}", root().join("include").display()))
        .clang_args(arguments)
        .allowlist_item("(aml|AML)_.*|cudaMemcpyKind")
        .generate()
        .expect("clang reads the header")
        .to_string();
    let mut header = Header { layout: BTreeMap::new(), constants: BTreeMap::new(), names: BTreeSet::new() };
    for (start, prefix) in [("[\"Size of ", ""), ("[\"Offset of field: ", "")] {
        for part in text.split(start).skip(1) {
            let (name, rest) = part.split_once('"').expect("a name is quoted");
            let number = rest.split("usize").next().and_then(|rest| rest.rsplit(['-', ' ']).next());
            let number = number.expect("a size is subtracted").parse().expect("it is a number");
            header.layout.insert(format!("{prefix}{name}"), number);
        }
    }
    for part in text.split("pub const ").skip(1) {
        let (name, rest) = part.split_once(':').expect("a constant has a type");
        let value =
            rest.split_once('=').and_then(|(_, value)| value.split(';').next()).map(|value| value.trim().parse());
        if let Some(Ok(value)) = value {
            header.constants.insert(name.trim().trim_start_matches("cudaMemcpyKind_").to_owned(), value);
        }
    }
    for start in ["pub fn ", "pub static mut "] {
        for part in text.split(start).skip(1) {
            let name = part.split([' ', ':', '(']).next().expect("split gives at least one part");
            header.names.insert(name.to_owned());
        }
    }
    header
}

fn compare(arguments: &[String]) {
    let header = read(arguments);
    let expected = mirrors! {
        aml_dma { ops, data }
        aml_dma_ops { create_request, destroy_request, wait_request, barrier, fprintf }
        aml_layout { ops, data }
        aml_layout_ops {
            deref, deref_native, rawptr, order, dims, dims_native, ndims, element_size, reshape, slice, slice_native,
            fprintf, duplicate, destroy,
        }
        aml_dma_cuda_request { status, lock }
        aml_dma_cuda_data { stream, kind }
        aml_dma_cuda_op_arg { data, op_arg }
    };
    let types: BTreeSet<_> = expected.keys().map(|name| name.split("::").next().unwrap_or(name).to_owned()).collect();
    // By itself the header must not declare anything that has no mirror.
    let everything = arguments.is_empty() && alone();
    let found: BTreeMap<_, _> = header
        .layout
        .iter()
        .filter(|(name, _)| {
            types.contains(name.split("::").next().unwrap_or(name)) || everything && name.starts_with("aml_")
        })
        .map(|(name, number)| (name.clone(), *number))
        .collect();
    assert_eq!(found, expected, "sizes and offsets, C on the left, with {arguments:?}");
    assert_eq!(header.layout.get("pthread_mutex_t"), Some(&size_of::<libc::pthread_mutex_t>()));

    let mut expected = constants! {
        AML_SUCCESS AML_FAILURE AML_ENOMEM AML_EINVAL AML_EDOM AML_ENOTSUP AML_EBUSY AML_EPERM AML_ERROR_MAX
        AML_LAYOUT_ORDER_COLUMN_MAJOR AML_LAYOUT_ORDER_ROW_MAJOR AML_LAYOUT_ORDER_FORTRAN AML_LAYOUT_ORDER_C
        AML_DMA_CUDA_REQUEST_STATUS_NONE AML_DMA_CUDA_REQUEST_STATUS_PENDING AML_DMA_CUDA_REQUEST_STATUS_DONE
    };
    for (kind, name) in ["HostToHost", "HostToDevice", "DeviceToHost", "DeviceToDevice", "Default"].iter().enumerate() {
        expected.insert(format!("cudaMemcpy{name}"), kind as i64);
    }
    let found: BTreeMap<_, _> =
        header.constants.into_iter().filter(|(name, _)| everything || expected.contains_key(name)).collect();
    assert_eq!(found, expected, "constants, C on the left, with {arguments:?}");

    let own: BTreeSet<_> = header.names.into_iter().filter(|name| name.starts_with("aml_dma_cuda")).collect();
    let symbols = std::fs::read_to_string(root().join("symbols.txt")).expect("the list of symbols is there");
    let mut exported: BTreeSet<_> = symbols.lines().map(str::to_owned).collect();
    assert!(exported.remove("aml_dma_cuda_data"), "the data of the static DMA is exported, and declared nowhere");
    assert_eq!(own, exported, "names, the header's on the left");
}

#[test]
fn the_header_alone_agrees_with_the_mirrors() {
    compare(&[]);
}

#[test]
fn the_header_over_aml_core_agrees_with_the_mirrors() {
    compare(&[format!("-I{}", root().join("aml-core/include").display())]);
}

#[test]
fn the_header_over_installed_aml_agrees_with_the_mirrors() {
    let flags = Command::new("pkg-config").args(["--cflags", "aml"]).output();
    let Some(flags) = flags.ok().filter(|output| output.status.success()) else {
        eprintln!("skipped: pkg-config knows no aml");
        return;
    };
    let flags = String::from_utf8(flags.stdout).expect("flags are text");
    compare(&flags.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
}
