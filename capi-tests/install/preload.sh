# A program that was linked with another library of the same names runs with this one when it is preloaded.
. "$TOP/capi-tests/install/support.sh"
out=$WORK/preload
mkdir -p "$out"
"$CC" -shared -fPIC -Wl,-soname,liboriginal.so.0 -o "$out/liboriginal.so.0" "$HERE/programs/original.c"
for mode in "-fPIE -pie" "-fno-pie -no-pie"; do
	with_flags "$mode $(pkg-config --cflags aml-dma-cuda)" "$CC" -o "$out/program" "$HERE/programs/consumer.c" "$out/liboriginal.so.0"
	! LD_LIBRARY_PATH=$out:$DRIVER "$out/program" >/dev/null || fail "the other library fails"
	# LD_PRELOAD knows no way to write a blank, so the library is named by its soname.
	said=$(LD_LIBRARY_PATH=$PREFIX_DIR/lib64:$out:$DRIVER LD_PRELOAD=libaml_dma_cuda.so.0 "$out/program" 2>&1) || fail "preloaded: $said"
	[ "$said" = "consumer: ok" ] || fail "preloaded: $said"
done
