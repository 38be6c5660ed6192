#!/bin/bash
# Runs what this directory holds on the GPU of this machine, each part in bounded time, and ends with one table.
#
#   run.sh [--tests] [--examples] [--stress SECONDS] [--bench [ARGUMENT...]] [--sanitizer] [options]
#
# With no part named: tests, examples, 20 s of endurance, benchmark. --sanitizer is the tests under compute-sanitizer.
#   --filter REGEX   only tests and examples whose name matches
#   --exclude REGEX  not those
#   --jobs N         so many tests at a time (4)
#   --timeout N      seconds a test may take (90)
#   --limit N        seconds until no further test is begun (480)
#   --list           names of the tests, with their labels
# Arguments after --bench go to the benchmark, so it comes last. Logs, the outputs of the tests labelled `driver`, and the
# benchmark's figures are left in $OUT, or in a directory that is named. Exit status: 0 when nothing failed.
set -u
here=$(cd "$(dirname "$0")" && pwd)
out=${OUT:-}
[ -n "$out" ] || { out=$(mktemp -d) && echo "logs: $out"; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# Programs of the label driver end by themselves; real contexts take long to make, so let them.
export DRIVER_LIMIT=${DRIVER_LIMIT:-60}
export LD_LIBRARY_PATH=$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}

tests= examples= stress= bench= sanitizer= filter=. exclude='^$' jobs=4 patience=90 limit=480 list=
bench_arguments=()
while [ $# -gt 0 ]; do
	case $1 in
	--tests) tests=1 ;;
	--examples) examples=1 ;;
	--stress) stress=$2; shift ;;
	--sanitizer) sanitizer=1 ;;
	--filter) filter=$2; shift ;;
	--exclude) exclude=$2; shift ;;
	--jobs) jobs=$2; shift ;;
	--timeout) patience=$2; shift ;;
	--limit) limit=$2; shift ;;
	--list) list=1 ;;
	--bench) bench=1; shift; bench_arguments=("$@"); break ;;
	*) sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0" >&2; exit 2 ;;
	esac
	shift
done
if [ -z "$tests$examples$stress$bench$sanitizer" ]; then
	tests=1 examples=1 stress=20 bench=1
fi
selected() { [[ $1 =~ $filter ]] && ! [[ $1 =~ $exclude ]]; }

# Runs a command under a name; leaves its status, time and output in $work.
one() { # NAME SECONDS COMMAND...
	local name=$1 seconds=$2 begin=$EPOCHREALTIME
	shift 2
	timeout --kill-after=10 "$seconds" "$@" >"$work/$name.out" 2>"$work/$name.err" </dev/null
	echo "$? $(awk -v a="$begin" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.1f", b - a }')" >"$work/$name.status"
}

# One line for each test: name;program;arguments;labels
listed=$here/capi-tests/run-list.txt
names=()
run_suite() { # PREFIX COMMAND...
	local prefix=$1 name program arguments labels running=0
	shift
	[ -e "$listed" ] || return
	while IFS=';' read -r name program arguments labels; do
		[[ ,$labels, == *,gpu,* || ,$labels, == *,driver,* ]] && selected "$name" || continue
		[ -x "$program" ] || program=$here/capi-tests/bin/$(basename "$program")
		names+=("$prefix$name")
		[[ ,$labels, != *,driver,* ]] || echo "$prefix$name" >>"$work/driver-list"
		if [ $SECONDS -ge "$limit" ]; then
			echo "not-run 0" >"$work/$prefix$name.status"
			continue
		fi
		if [ $running -ge "$jobs" ]; then
			wait -n
			running=$((running - 1))
		fi
		# shellcheck disable=SC2086
		one "$prefix$name" "$patience" "$@" "$program" $arguments &
		running=$((running + 1))
	done <"$listed"
	wait
}

if [ -n "$list" ]; then
	awk -F';' '{ print $1 " (" $4 ")" }' "$listed"
	exit
fi
{ nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader || echo "no nvidia-smi"; } 2>/dev/null
echo "revision $(tr '\n' ' ' <"$here/REVISION")"

[ -z "$tests" ] || run_suite ""
if [ -n "$sanitizer" ]; then
	tool=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null)
	if [ -n "$tool" ]; then
		patience=$((patience * 4))
		export CAPI_TESTS_WATCHDOG=$patience
		# Errors that CUDA's calls answer are what many tests are about; they check them themselves. A program that calls
		# nothing of CUDA is none of the tool's business, and a kernel that traps is what the tests of error-device are about.
		cat >"$work/sanitize" <<-END
			#!/bin/bash
			[[ \$1 != *error-device && \$1 != *driver-failure ]] || { echo "a kernel that traps" >&2; exit 77; }
			"$tool" --tool memcheck --leak-check no --report-api-errors no --target-processes all --error-exitcode 99 "\$@" | tee "\$0.\$\$"
			status=\${PIPESTATUS[0]}
			! grep -q 'before first instrumented API call' "\$0.\$\$" || { echo "calls nothing of CUDA" >&2; exit 77; }
			exit \$status
		END
		run_suite "sanitizer:" bash "$work/sanitize"
	else
		echo "no compute-sanitizer here"
	fi
fi
if [ -n "$examples" ]; then
	for program in "$here"/examples/*; do
		name=example.$(basename "$program")
		selected "$name" || continue
		names+=("$name")
		one "$name" "$patience" "$program"
	done
fi
if [ -n "$stress" ]; then
	names+=(endurance)
	one endurance $((stress + 180)) "$here/bin/endurance" --seconds "$stress"
	cat "$work/endurance.out" "$work/endurance.err"
fi
if [ -n "$bench" ]; then
	names+=(benchmark)
	timeout --kill-after=10 420 "$here/bin/benchmark" --csv "$out/benchmark.csv" ${bench_arguments[@]+"${bench_arguments[@]}"} \
		2>"$work/benchmark.err" </dev/null | tee "$work/benchmark.out"
	echo "${PIPESTATUS[0]} 0" >"$work/benchmark.status"
	cat "$work/benchmark.err"
	cp "$work/benchmark.out" "$out/benchmark.txt"
fi

# What the driver's tests print is the truth that the software driver is compared with.
if [ -e "$work/driver-list" ]; then
	while read -r name; do
		echo "== $name"
		cat "$work/$name.out"
	done <"$work/driver-list" >"$out/driver-outputs.txt" 2>/dev/null
fi
passed=0 skipped=0 failed=0
for name in ${names[@]+"${names[@]}"}; do
	read -r status time <"$work/$name.status"
	group=${name%%.*}
	case $status in
	0) verdict=passed passed=$((passed + 1)) ;;
	77) verdict=skipped skipped=$((skipped + 1)) ;;
	*) verdict=FAILED failed=$((failed + 1)) ;;
	esac
	echo "$group $verdict" >>"$work/verdicts"
	{
		echo "== $name: $verdict, status $status, $time s"
		cat "$work/$name.out" "$work/$name.err" 2>/dev/null
	} >>"$out/run.log"
	[ $verdict != FAILED ] || echo "$name $status" >>"$work/failures"
	[ $verdict != skipped ] || echo "$name: $(tail -n 2 "$work/$name.err" 2>/dev/null | head -n 1)" >>"$out/skipped.txt"
done
if [ -e "$work/failures" ]; then
	head -n 25 "$work/failures" | while read -r name status; do
		case $status in
		not-run) echo "FAILED $name: not begun, out of time" ;;
		124 | 137) echo "FAILED $name: hangs" ;;
		*) echo "FAILED $name: status $status" ;;
		esac
		cat "$work/$name.out" "$work/$name.err" 2>/dev/null | tail -n 4 | cut -c1-300 | sed 's/^/    /'
	done
	[ "$(wc -l <"$work/failures")" -le 25 ] || echo "... and more, see run.log"
fi
printf '\n%-40s %7s %7s %7s\n' "" passed skipped failed
[ ! -e "$work/verdicts" ] || awk '
	!($1 in seen) { seen[$1] = 1; order[++n] = $1 }
	{ count[$1, $2]++ }
	END { for (i = 1; i <= n; i++) printf "%-40s %7d %7d %7d\n", order[i], count[order[i], "passed"], count[order[i], "skipped"], count[order[i], "FAILED"] }
' "$work/verdicts"
printf '%-40s %7d %7d %7d   in %d s\n' all $passed $skipped $failed $SECONDS
[ $failed = 0 ]
