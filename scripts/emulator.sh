#!/bin/sh
# usage: emulator.sh TARGET
# Puts the software driver where a program finds it as libcuda.so.1, and the linker as -lcuda.
set -eu
target=$1
mkdir -p "$target/emulator"
if ! cmp -s "$target/release/libcuda_emulator.so" "$target/emulator/libcuda.so.1"; then
	cp "$target/release/libcuda_emulator.so" "$target/emulator/libcuda.so.1.$$"
	mv -f "$target/emulator/libcuda.so.1.$$" "$target/emulator/libcuda.so.1"
fi
ln -sfn libcuda.so.1 "$target/emulator/libcuda.so"
