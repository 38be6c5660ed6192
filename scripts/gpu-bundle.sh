#!/bin/sh
# Puts all that is to run on a machine with a GPU into one directory that can be carried there: the libraries, the C
# suite, the examples, the endurance program, the benchmark, and run.sh, which runs them. Nothing is built over there.
# The libraries and the software driver (to link with) are built before; TARGET says where.
set -eu
cd "$(dirname "$0")/.."
target=${TARGET:-${CARGO_TARGET_DIR:-target}}
mkdir -p "$target"
target=$(cd "$target" && pwd)
bundle=$target/gpu-bundle
cc=${CC:-cc} cxx=${CXX:-c++}
limit_mib=60

for needed in release/libaml_dma_cuda.so release/libaml_core.so emulator/libcuda.so.1; do
	[ -e "$target/$needed" ] || { echo "$target/$needed is missing: make all core emulator" >&2; exit 1; }
done
sh scripts/tools.sh cmake c++
rm -rf "$bundle"
mkdir -p "$bundle/lib" "$bundle/bin" "$bundle/examples"

soname() { readelf -d "$1" | sed -n 's/.*(SONAME).*\[\(.*\)\].*/\1/p'; }
for library in libaml_dma_cuda libaml_core; do
	file=$target/release/$library.so
	strip --strip-debug -o "$bundle/lib/$(soname "$file")" "$file"
done

# The C suite installs itself, with the list of what to run.
log=$target/gpu-bundle.log
if ! {
	cmake -S capi-tests -B "$target/gpu-bundle-tests" -DCMAKE_BUILD_TYPE=Release -Dbuilt="$target/release" \
		-DCUDA_DRIVER_LIBRARY="$target/emulator/libcuda.so.1" &&
		cmake --build "$target/gpu-bundle-tests" --parallel 2 &&
		cmake --install "$target/gpu-bundle-tests" --prefix "$bundle" --strip
} >"$log" 2>&1; then
	tail -n 30 "$log" >&2
	exit 1
fi

TARGET=$target BENCH_BUILD_ONLY=1 sh scripts/bench.sh
cp "$target/bench/benchmark" "$target/bench/endurance" "$target/bench/transpose" "$target/bench/peer" "$bundle/bin/"

# As a user would build them, but for where the libraries are.
for source in examples/*.c examples/*.cpp; do
	name=$(basename "${source%.*}")
	compiler="$cc -std=gnu11"
	[ "${source##*.}" = c ] || compiler="$cxx -std=c++17"
	# shellcheck disable=SC2086
	$compiler -O2 -Wall -Wextra -pthread -fopenmp -Iinclude -Iaml-core/include -Icapi-tests/cuda-emulator/include "$source" \
		-o "$bundle/examples/$name" -Wl,-rpath,'$ORIGIN/../lib' "$target/release/libaml_dma_cuda.so" \
		"$target/release/libaml_core.so" "$target/emulator/libcuda.so.1" -ldl
done
strip "$bundle"/bin/* "$bundle"/examples/*

install -m 755 benches/bundle/run.sh "$bundle/run.sh"
git rev-parse --short HEAD >"$bundle/REVISION" 2>/dev/null || echo unknown >"$bundle/REVISION"
[ -z "$(git status --porcelain --untracked-files=no 2>/dev/null)" ] || echo "with changes" >>"$bundle/REVISION"
size=$(du -sm "$bundle" | cut -f1)
echo "$bundle: $size MiB, $(wc -l <"$bundle/capi-tests/run-list.txt") tests"
[ "$size" -le $limit_mib ] || { echo "larger than $limit_mib MiB" >&2; exit 1; }
