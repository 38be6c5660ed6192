#!/bin/sh
# usage: demo.sh TARGET
# The main job of the library, by the program a user would start from: on the GPU where there is one, else on the
# software driver.
set -eu
target=$1
mkdir -p "$target/demo"
${CC:-cc} -std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra -Iinclude -Iaml-core/include examples/roundtrip.c \
	"$target/dist/libaml_dma_cuda.a" "$target/dist/libaml_core.a" -ldl -lpthread -lm -o "$target/demo/roundtrip"
status=0
"$target/demo/roundtrip" || status=$?
if [ $status = 77 ]; then
	echo "No GPU here: once more on the software driver, where the times say nothing about CUDA."
	status=0
	LD_LIBRARY_PATH=$target/emulator${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} "$target/demo/roundtrip" || status=$?
fi
exit $status
