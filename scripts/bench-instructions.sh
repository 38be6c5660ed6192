#!/bin/sh
# Counts the library's own instructions for each piece of work, on the software driver under valgrind's callgrind: what
# lies in libaml_dma_cuda.so, not in the driver or libc. Compares with benches/instructions.bound; status 1 above it.
# With --update writes bounds of a fifth above what was counted. Repeatable on one machine for one build.
set -eu
cd "$(dirname "$0")/.."
target=${TARGET:-${CARGO_TARGET_DIR:-target}}
library=$target/release/libaml_dma_cuda.so
bounds=benches/instructions.bound
for needed in "$library" "$target/emulator/libcuda.so.1"; do
	[ -e "$needed" ] || { echo "$needed is missing: make all emulator" >&2; exit 1; }
done
sh scripts/tools.sh valgrind
BENCH_BUILD_ONLY=1 sh scripts/bench.sh
program=$target/bench/instructions
export LD_LIBRARY_PATH=$target/emulator AML_DMA_CUDA_COPY_THREADS=0
counts=$(mktemp)
trap 'rm -f "$counts"' EXIT

# Prints what was counted in the library's object file, and how often the work was done.
count() { # WORK [warm]
	times=$(valgrind --quiet --tool=callgrind --callgrind-out-file="$counts" --toggle-collect='counted_*' \
		--compress-strings=no --compress-pos=no "$program" "$library" "$@" 2>&1) || { echo "$times" >&2; return 1; }
	awk -v times="$times" '
		/^ob=/ { ours = $0 ~ /libaml_dma_cuda\.so/ }
		/^calls=/ { inclusive = 1; next }
		/^[0-9]/ { if (ours && !inclusive) sum += $2; inclusive = 0 }
		END { print sum + 0, times }
	' "$counts"
}

update=
[ "${1:-}" != --update ] || update=1
status=0 fresh=
printf '%-26s %12s %8s\n' "instructions for each" counted bound
for work in $("$program" "$library"); do
	all=$(count "$work")
	warm=$(count "$work" warm)
	times=${all#* }
	if [ "$times" = 0 ]; then
		printf '%-26s %12s\n' "$work" "-"
		continue
	fi
	each=$(((${all% *} - ${warm% *}) / times))
	[ "$each" -gt 0 ] || { echo "$work: nothing was counted" >&2; exit 1; }
	bound=$(awk -v work="$work" '$1 == work { print $2 }' "$bounds" 2>/dev/null || true)
	fresh="$fresh$work $((each * 6 / 5))
"
	verdict=
	if [ -z "$update" ] && { [ -z "$bound" ] || [ "$each" -gt "$bound" ]; }; then
		verdict=" ABOVE" status=1
	fi
	printf '%-26s %12d %8s%s\n' "$work" "$each" "${bound:-none}" "$verdict"
done
if [ -n "$update" ]; then
	{
		echo "# The most instructions of the library's own that each piece of work may take; see scripts/bench-instructions.sh."
		printf %s "$fresh"
	} >"$bounds"
fi
exit $status
