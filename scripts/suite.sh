#!/bin/sh
# usage: suite.sh TARGET SOURCE BUILD [CMAKE ARGUMENT]...
# Builds a directory of C tests or examples below TARGET and runs them on the software driver.
set -eu
target=$(realpath "$1") source=$2 build=$target/$3
shift 3
jobs=$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
cmake -S "$source" -B "$build" -DCMAKE_BUILD_TYPE=RelWithDebInfo "$@" >"$build.log" 2>&1 || { cat "$build.log"; exit 1; }
cmake --build "$build" --parallel "$jobs" >"$build.log" 2>&1 || { grep -v '^\[' "$build.log"; exit 1; }
LD_LIBRARY_PATH=$target/emulator${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} \
	ctest --test-dir "$build" --parallel "$jobs" --output-on-failure --no-tests=error
