# Loaded and unloaded a thousand times, each time by a thread that ends thereafter; from C and from Python.
. "$TOP/capi-tests/install/support.sh"
export LD_LIBRARY_PATH="$DRIVER"
library=$PREFIX_DIR/lib64/libaml_dma_cuda.so.0
with_flags "$(pkg-config --cflags aml-dma-cuda)" "$CC" -D_GNU_SOURCE -o "$WORK/dlopen_rounds" "$HERE/programs/dlopen_rounds.c" -ldl -lpthread
prints_ok dlopen_rounds "$WORK/dlopen_rounds" "$library"
if command -v python3 >/dev/null; then
	prints_ok rounds python3 "$HERE/programs/rounds.py" "$library"
else
	echo "no Python: that part is left out"
fi
