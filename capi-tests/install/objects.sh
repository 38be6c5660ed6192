# The exported objects are C globals in every way, in every sort of executable.
. "$TOP/capi-tests/install/support.sh"
export LD_LIBRARY_PATH="$PREFIX_DIR/lib64:$DRIVER"
archive=$(variable archive aml-dma-cuda)
n=0
for compiler in "$CC" clang; do
	command -v "$compiler" >/dev/null || continue
	for mode in "-fPIE -pie" "-fno-pie -no-pie" "-fPIE -pie -O2 -flto" "-fno-pie -no-pie -O2 -flto"; do
		case $compiler$mode in
		clang*flto*) command -v ld.lld >/dev/null && mode="$mode -fuse-ld=lld" || continue ;;
		esac
		n=$((n + 1))
		for linked in shared static; do
			if [ $linked = shared ]; then
				flags="-DSHARED $(pkg-config --cflags --libs aml-dma-cuda) -ldl"
			else
				flags="$(pkg-config --cflags aml-dma-cuda) '$archive' -ldl -lpthread -lm"
			fi
			with_flags "$mode -Wall -Werror -o '$WORK/objects' '$HERE/programs/objects.c' $flags" "$compiler"
			case $linked$mode in
			shared-fno*) readelf -rW "$WORK/objects" | grep -q 'R_.*_COPY.*aml_dma_cuda_ops' || fail "a program that is not position independent holds copies" ;;
			esac
			prints_ok objects "$WORK/objects"
		done
	done
done
[ $n -ge 4 ] || fail "four modes at least"
