#!/bin/sh
# usage: archive.sh TARGET NAME SYMBOLS
# Makes TARGET/dist/libNAME.a out of the archive that cargo built: one object that defines the names in SYMBOLS and
# nothing else. Cargo's own would hand Rust's standard library and the trampolines named cu* to every program.
set -eu
target=$1 name=$2 symbols=$3
raw=$target/release/lib$name.a
work=$(mktemp -d "$target/archive.XXXXXX")
trap 'rm -rf "$work"' EXIT
${CC:-cc} -r -nostdlib -Wl,--gc-sections $(sed 's/^/-Wl,-u,/' "$symbols") "$raw" -o "$work/$name.o"
# Rust's standard library carries bitcode that the ar of another LLVM stumbles over.
${OBJCOPY:-objcopy} --strip-unneeded --remove-section=.llvmbc --remove-section=.llvmcmd \
	--keep-global-symbols="$symbols" "$work/$name.o"
(cd "$work" && ${AR:-ar} crs "lib$name.a" "$name.o")
chmod 644 "$work/lib$name.a"
mkdir -p "$target/dist"
cp "$work/lib$name.a" "$work/copy.a"
# Renamed into place, so that nobody sees half a file; a link would write through to cargo's.
mv -f "$work/copy.a" "$raw"
mv -f "$work/lib$name.a" "$target/dist/lib$name.a"
