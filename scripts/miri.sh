#!/bin/sh
# usage: miri.sh
# Runs under Miri what calls no foreign function: the unit tests of the library, whose threads meet on a driver that
# stands in there (src/miri/), and the tests of aml-core. Those with threads run again by the stricter and the laxer
# rules of aliasing in MIRI_SEEDS orders of events. MIRI_FLAGS go to the first run alone, such as a part of a test's name.
set -eu
cd "$(dirname "$0")/.."
top=${TARGET:-${CARGO_TARGET_DIR:-target}}
mkdir -p "$top"
top=$(realpath "$top")

lacks() {
	echo "miri: $1" >&2
	exit 1
}

rustc +nightly --version >/dev/null 2>&1 ||
	lacks "needs a nightly toolchain: rustup toolchain install nightly --component miri,rust-src"
cargo +nightly miri --version >/dev/null 2>&1 ||
	lacks "needs Miri: rustup component add miri --toolchain nightly"
[ -e "$(rustc +nightly --print sysroot)/lib/rustlib/src/rust/library/Cargo.lock" ] ||
	lacks "needs the sources of the standard library: rustup component add rust-src --toolchain nightly"

# usage: run flags-of-miri arguments-of-cargo...
run() {
	# Addresses go to the driver as numbers.
	flags="-Zmiri-permissive-provenance $1"
	shift
	MIRIFLAGS="$flags ${MIRIFLAGS:-}" cargo +nightly miri test --quiet --target-dir "$top/miri" "$@"
}

# Threads of the library's own never end, which would be a leak. Where none is started, none is forgiven.
threads="request:: completion:: staging:: duty:: reserve::"
# shellcheck disable=SC2086
run "-Zmiri-ignore-leaks" --package aml-dma-cuda --lib -- ${MIRI_FLAGS:-}
[ -z "${MIRI_FLAGS:-}" ] || exit 0
seed=1
while [ $seed -le "${MIRI_SEEDS:-3}" ]; do
	aliasing=$([ $((seed % 2)) = 0 ] || echo -Zmiri-tree-borrows)
	# shellcheck disable=SC2086
	run "-Zmiri-ignore-leaks -Zmiri-seed=$seed $aliasing" --package aml-dma-cuda --lib -- $threads
	seed=$((seed + 1))
done
run "" --package aml-core --test generic --test layouts --test refusals --test multiplex --test transform
