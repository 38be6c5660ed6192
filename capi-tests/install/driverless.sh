# No driver, one that is not a library, one without any name, and the stub of a toolkit: a code each time, not a word.
. "$TOP/capi-tests/install/support.sh"
drivers=$WORK/drivers
mkdir -p "$drivers/none" "$drivers/text" "$drivers/empty" "$drivers/stub"
echo "not a library" >"$drivers/text/libcuda.so.1"
echo "int nothing;" | "$CC" -shared -fPIC -Wl,-soname,libcuda.so.1 -x c -o "$drivers/empty/libcuda.so.1" -
"$CC" -shared -fPIC -Wl,-soname,libcuda.so.1 -o "$drivers/stub/libcuda.so.1" "$HERE/programs/stub.c"
with_flags "$(pkg-config --cflags --libs aml-dma-cuda)" "$CC" -o "$WORK/driverless" "$HERE/programs/driverless.c" -lpthread
unset AML_DMA_CUDA_LOG || true
for driver in text empty stub; do
	LD_LIBRARY_PATH=$PREFIX_DIR/lib64:$drivers/$driver prints_ok driverless "$WORK/driverless"
done
# With devices hidden, the software driver answers that there is none.
CUDA_VISIBLE_DEVICES= on_driver prints_ok driverless "$WORK/driverless"
if ldconfig -p 2>/dev/null | grep -q libcuda.so.1; then
	echo "this machine has a driver: running without one is left out"
else
	LD_LIBRARY_PATH=$PREFIX_DIR/lib64 prints_ok driverless "$WORK/driverless"
	# Asked to, it says which call failed, and with what.
	said=$(LD_LIBRARY_PATH=$PREFIX_DIR/lib64:$drivers/stub AML_DMA_CUDA_LOG=1 "$WORK/driverless" 2>&1 >/dev/null | head -n 1)
	case $said in
	*cu*34* | *cu*STUB_LIBRARY*) ;;
	*) fail "one line says which call failed with which error: $said" ;;
	esac
fi
