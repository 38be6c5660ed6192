# The header in every mode: each compiler, each standard, alone, twice, before and after <aml.h> and <cuda_runtime.h>,
# with and without a toolkit's headers. Those come from TOOLKIT_INCLUDE, a toolkit, or the registry of Python packages.
. "$TOP/capi-tests/install/support.sh"
cd "$WORK"
toolkit=${TOOLKIT_INCLUDE:-}
for place in /usr/local/cuda/include "$TOP/target/cuda-headers/nvidia/cu13/include"; do
	[ -n "$toolkit" ] || [ ! -e "$place/cuda_runtime.h" ] || toolkit=$place
done
if [ -z "$toolkit" ] && python3 -m pip --version >/dev/null 2>&1; then
	mkdir -p wheels cuda-headers
	if python3 -m pip download --quiet --retries 1 --timeout 15 --no-deps --only-binary :all: --dest wheels \
		'nvidia-cuda-runtime==13.0.*' 'nvidia-cuda-crt==13.0.*' >wheels.log 2>&1; then
		for wheel in wheels/*.whl; do
			python3 -m zipfile -e "$wheel" cuda-headers
		done
		toolkit=$WORK/cuda-headers/nvidia/cu13/include
	fi
fi
runs="alone core emulator"
if [ -e "$toolkit/cuda_runtime.h" ]; then
	ln -sfn "$toolkit" "$WORK/toolkit-include" # without blanks
	runs="$runs toolkit"
else
	echo "no CUDA headers to be had: the modes with a toolkit are left out"
fi
warn="-Wall -Wextra -Wpedantic -Werror"
n=0
compile() { # COMPILER ARGUMENT...
	n=$((n + 1))
	"$@" $warn -I"$PREFIX_DIR/include/aml-dma-cuda" -c -o modes.o "$HERE/programs/modes.c" >modes.log 2>&1 ||
		{ head -n 5 modes.log; fail "$*"; }
}
knows() { echo 'int x;' | "$@" -c -o /dev/null - 2>/dev/null; }
core=-I$PREFIX_DIR/include/aml-core
emulator="-isystem$TOP/capi-tests/cuda-emulator/include"
for language in c:c99 c:gnu99 c:c11 c:gnu11 c:c17 c:c2x c:c23 c++:c++11 c++:gnu++14 c++:c++17 c++:c++20 c++:c++2b c++:c++23; do
	for compiler in "$CC" clang; do
		command -v "$compiler" >/dev/null || continue
		set -- "$compiler" -x "${language%%:*}" "-std=${language#*:}"
		knows "$@" || continue
		for run in $runs; do
			case $run in
			alone) compile "$@" ;;
			core)
				for order in AML_NOT AML_BEFORE AML_AFTER; do compile "$@" "$core" -D$order; done
				;;
			emulator) compile "$@" "$emulator"; compile "$@" "$emulator" "$core" ;;
			toolkit)
				# Its own headers are long, so not every standard in between.
				case $language in *c99 | *c2x | *c++11 | *c++17 | *c++2b) ;; *) continue ;; esac
				for order in "" "-DAML_BEFORE -DRUNTIME_AFTER" "-DAML_AFTER -DRUNTIME_BEFORE" "-DAML_BEFORE -DRUNTIME_BEFORE"; do
					compile "$@" -isystem toolkit-include "$core" $order
				done
				compile "$@" -isystem toolkit-include -DRUNTIME_AFTER
				;;
			esac
		done
	done
done
# A compiler that cannot ask for a header goes by what was included before.
compile "$CC" -std=c99 -w -U__has_include "$core" -DAML_BEFORE
[ $n -ge 40 ] || fail "only $n modes"
for compiler in "$CC -x c" "$CXX -x c++"; do
	$compiler $warn -DMAIN -I"$PREFIX_DIR/include/aml-dma-cuda" -o modes "$HERE/programs/modes.c"
	prints_ok modes ./modes
done
if command -v nvcc >/dev/null; then
	nvcc -x cu -I"$PREFIX_DIR/include/aml-dma-cuda" -c -o modes.o "$HERE/programs/modes.c"
	nvcc -x cu "$core" -I"$PREFIX_DIR/include/aml-dma-cuda" -c -o modes.o "$HERE/programs/modes.c"
else
	echo "no nvcc: the .cu unit is left out"
fi
echo "$n modes"
