#!/bin/sh
# Builds the benchmark and its companions into target/bench, and runs the benchmark: on the GPU where there is one, else
# on the software driver, where only the data and not the times mean anything. Arguments go to the benchmark.
# With BENCH_BUILD_ONLY=1 nothing is run.
set -eu
cd "$(dirname "$0")/.."
target=${TARGET:-${CARGO_TARGET_DIR:-target}}
out=$target/bench
cc=${CC:-cc}
flags="-std=gnu11 -D_GNU_SOURCE -O2 -g -Wall -Wextra -pthread -Icapi-tests/cuda-emulator/include -Iaml-core/include"
shared="benches/gpu.c benches/runtime.c benches/library.c benches/layout.c"
mkdir -p "$out"
build() { # NAME SOURCE...
	name=$1
	shift
	# shellcheck disable=SC2086
	$cc $flags "$@" $shared -o "$out/$name" -ldl
}
build benchmark benches/main.c benches/rows.c benches/work.c benches/way.c benches/memory.c benches/team.c benches/table.c
build endurance benches/endurance.c
build transpose benches/transpose.c
build peer benches/peer.c
build instructions benches/instructions.c
[ -z "${BENCH_BUILD_ONLY:-}" ] || exit 0

library=$target/release/libaml_dma_cuda.so
[ -e "$library" ] || { echo "$library is missing: build the library first" >&2; exit 1; }
status=0
"$out/benchmark" --library "library=$library" "$@" || status=$?
if [ $status = 77 ] && [ -e "$target/emulator/libcuda.so.1" ]; then
	echo "no GPU: on the software driver, where the times say nothing about CUDA" >&2
	status=0
	LD_LIBRARY_PATH=$target/emulator "$out/benchmark" --library "library=$library" --quick "$@" || status=$?
fi
exit $status
