#!/bin/sh
# usage: check.sh
# Everything that can be tested without a GPU. A part that fails does not keep the others from running; the last line
# is the total.
set -u
log=$TARGET/check.log
mkdir -p "$TARGET"
: >"$log"
failed=

part() {
	name=$1
	shift
	echo "== $name"
	{ "$@" 2>&1 || echo "part failed: $name"; } | tee -a "$log"
	! tail -n 1 "$log" | grep -q '^part failed: ' || failed="$failed $name"
}

sh scripts/tools.sh cmake ctest c++ clang libclang pkg-config python3 || exit 1
part lint make --no-print-directory lint
# A program that asks libclang takes TARGET for the machine to compile for.
part cargo-test env -u TARGET ${CARGO:-cargo} test --quiet --workspace --target-dir "$TARGET" --no-fail-fast
part suite make --no-print-directory suite
part examples make --no-print-directory examples

sum() { awk "$1 END { print n + 0 }" "$log"; }
passed=$(sum '/^test result: / { n += $4 } / tests failed out of / { n += $NF - $4 } /\*\*\*(Skipped|Not Run)/ { n-- }')
bad=$(sum '/^test result: / { n += $6 } / tests failed out of / { n += $4 }')
skipped=$(sum '/^test result: / { n += $8 } /\*\*\*(Skipped|Not Run)/ { n++ }')
[ -z "$failed" ] || echo "failed parts:$failed"
echo "$passed passed, $bad failed, $skipped skipped"
[ -z "$failed" ] && [ "$bad" = 0 ]
