# A program that knows nothing but find_package(AmlDmaCuda), shared and static, and from a tree that was moved.
. "$TOP/capi-tests/install/support.sh"
export LD_LIBRARY_PATH="$DRIVER"
run() {
	rm -rf "$WORK/cmake"
	cmake -S "$HERE/programs" -B "$WORK/cmake" -DAmlDmaCuda_DIR="$1/lib64/cmake/AmlDmaCuda" >"$WORK/cmake.log" 2>&1 || { cat "$WORK/cmake.log"; fail "configure"; }
	cmake --build "$WORK/cmake" >>"$WORK/cmake.log" 2>&1 || { cat "$WORK/cmake.log"; fail "build"; }
	prints_ok consumer "$WORK/cmake/consumer_shared"
	prints_ok consumer "$WORK/cmake/consumer_static"
	readelf -dW "$WORK/cmake/consumer_shared" | grep -qF '[libaml_dma_cuda.so.0]' || fail "the shared one is linked by its soname"
	! readelf -dW "$WORK/cmake/consumer_static" | grep -q 'NEEDED.*aml_dma' || fail "the static one has it inside"
}
run "$PREFIX_DIR"
cp -R "$PREFIX_DIR" "$WORK/elsewhere"
mv "$PREFIX_DIR" "$WORK/hidden"
trap 'mv "$WORK/hidden" "$PREFIX_DIR"; rm -rf "$WORK/elsewhere"' EXIT
run "$WORK/elsewhere"
