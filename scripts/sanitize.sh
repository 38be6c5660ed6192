#!/bin/sh
# usage: sanitize.sh address|thread|memcheck|helgrind
# Runs the C suite on the software driver under AddressSanitizer with LeakSanitizer, ThreadSanitizer, or valgrind's
# memcheck or helgrind. What is not run under which of them, and why, is in capi-tests/sanitize/excluded.txt; what is
# not reported lies beside it. SANITIZE_FLAGS go to ctest, such as -R request.
#
# The sanitizers and helgrind need the libraries, and Rust's own, to be compiled for them: a nightly toolchain and its
# sources. Helgrind gets what was compiled for ThreadSanitizer, with a runtime that tells it what the atomics order.
set -eu
cd "$(dirname "$0")/.."
tool=$1
top=${TARGET:-${CARGO_TARGET_DIR:-target}}
mkdir -p "$top"
top=$(realpath "$top")
place=$top/sanitize-$tool
mkdir -p "$place"
checks=$PWD/capi-tests/sanitize
jobs=$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)

lacks() {
	echo "$tool: $1" >&2
	exit 1
}

# Builds the libraries for a sanitizer of rustc's, with the standard library, into `libraries`.
build() {
	sanitizer=$1
	sysroot=$(rustc +nightly --print sysroot 2>/dev/null) ||
		lacks "needs a nightly toolchain: rustup toolchain install nightly --component rust-src"
	[ -e "$sysroot/lib/rustlib/src/rust/library/Cargo.lock" ] ||
		lacks "needs the sources of the standard library: rustup component add rust-src --toolchain nightly"
	host=$(rustc +nightly -vV | sed -n 's/^host: //p')
	built=$top/sanitize-$sanitizer/$host/release
	short=$(echo "$sanitizer" | cut -c1)san
	runtime=$(ls "$sysroot/lib/rustlib/$host/lib/"librustc*_rt."$short".a 2>/dev/null | head -n 1)
	[ -n "$runtime" ] || lacks "this nightly toolchain has no $short runtime for $host"
	flags="-fsanitize=$sanitizer -fno-omit-frame-pointer -g"
	# Without the optimisations over all crates, which cost time and stack traces.
	env "CFLAGS_$(echo "$host" | tr - _)=$flags" CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 \
		RUSTFLAGS="-Zsanitizer=$sanitizer -Cforce-frame-pointers=yes" \
		cargo +nightly build --quiet --release -Zbuild-std --target "$host" --target-dir "$top/sanitize-$sanitizer" \
		--package aml-dma-cuda --package aml-core --package cuda-emulator
	libraries=$built
	driver=$place/driver
	mkdir -p "$driver"
	cp "$built/libcuda_emulator.so" "$driver/libcuda.so.1"
}

# Its files are written to the terminal's standard error, whatever a test does with its own.
valgrind_with() {
	launcher="valgrind;--tool=$tool;--quiet;--error-exitcode=99;--trace-children=yes;--fair-sched=yes;--num-callers=30"
	launcher="$launcher;--suppressions=$checks/$tool.supp"
	[ $# = 0 ] || launcher="$launcher;$*"
	timeout=3000 watchdog=1500
	export CUEMU_MEMORY=4294967296 # a device's; valgrind has little room for mappings
}

sanitizer='' runtime='' launcher='' timeout=600 watchdog=300
sh scripts/tools.sh cmake ctest c++
case $tool in
address)
	build address
	# Faults that a test makes on purpose are to kill it as they would without.
	export ASAN_OPTIONS="handle_segv=0:handle_sigbus=0:print_suppressions=0"
	export LSAN_OPTIONS="suppressions=$checks/leak.supp:print_suppressions=0"
	;;
thread)
	build thread
	export TSAN_OPTIONS="handle_segv=0:handle_sigbus=0:suppressions=$checks/thread.supp:second_deadlock_stack=1"
	;;
memcheck)
	sh scripts/tools.sh valgrind
	libraries=$top/release driver=$top/emulator
	for needed in "$libraries/libaml_dma_cuda.so" "$driver/libcuda.so.1"; do
		[ -e "$needed" ] || lacks "$needed is missing: make all core emulator"
	done
	valgrind_with "--leak-check=full;--show-leak-kinds=definite;--errors-for-leak-kinds=definite"
	;;
helgrind)
	sh scripts/tools.sh valgrind
	echo '#include <valgrind/helgrind.h>' | ${CC:-cc} -E - >/dev/null 2>&1 ||
		lacks "needs valgrind/helgrind.h, which comes with valgrind"
	build thread
	${CC:-cc} -std=gnu11 -D_GNU_SOURCE -O2 -g -Wall -Wextra -c "$checks/helgrind.c" -o "$place/runtime.o"
	rm -f "$place/runtime.a"
	${AR:-ar} crs "$place/runtime.a" "$place/runtime.o"
	runtime=$place/runtime.a
	valgrind_with
	;;
*) lacks "is none of address, thread, memcheck, helgrind" ;;
esac

log=$place/build.log
if ! {
	cmake -S capi-tests -B "$place/capi-tests" -DCMAKE_BUILD_TYPE=RelWithDebInfo -Dbuilt="$libraries" \
		-DCUDA_DRIVER_LIBRARY="$driver/libcuda.so.1" -DAML_DMA_CUDA_ARCHIVE= -DAML_CORE_ARCHIVE= \
		-DCAPI_TESTS_SANITIZER="$sanitizer" -DCAPI_TESTS_SANITIZER_RUNTIME="$runtime" \
		-DCAPI_TESTS_LAUNCHER="$launcher" -DCAPI_TESTS_TIMEOUT=$timeout &&
		cmake --build "$place/capi-tests" --parallel "$jobs"
} >"$log" 2>&1; then
	grep -v '^\[' "$log" >&2
	exit 1
fi

excluded=$(awk -v tool="$tool" '/^[^#]/ && index("," $1 ",", "," tool ",") { printf "%s%s", bar, $2; bar = "|" }' "$checks/excluded.txt")
export CAPI_TESTS_WATCHDOG=$watchdog
# shellcheck disable=SC2086
ctest --test-dir "$place/capi-tests" --exclude-regex "$excluded" --output-on-failure --no-tests=error ${SANITIZE_FLAGS:-}
