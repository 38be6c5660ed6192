# A program that knows nothing but `pkg-config aml-dma-cuda`: shared and static, alone and beside aml-core, in C and C++.
. "$TOP/capi-tests/install/support.sh"
out=$WORK/consumer
mkdir -p "$out"
export LD_LIBRARY_PATH="$PREFIX_DIR/lib64:$DRIVER"
program=$HERE/programs/consumer.c

with_flags "$(pkg-config --cflags --libs aml-dma-cuda)" "$CC" -Wall -Werror -o "$out/shared" "$program"
prints_ok consumer "$out/shared"
readelf -dW "$out/shared" | grep -qF '[libaml_dma_cuda.so.0]' || fail "a program needs the library by its soname"
# Taken away, it is missed: so the program did run with what was installed.
! LD_LIBRARY_PATH=$DRIVER "$out/shared" >/dev/null 2>&1 || fail "there is another libaml_dma_cuda.so.0 somewhere"

archive=$(variable archive aml-dma-cuda)
libs=$(pkg-config --static --libs aml-dma-cuda | sed 's/-laml_dma_cuda//')
with_flags "$(pkg-config --cflags aml-dma-cuda)" "$CC" -Wall -Werror -c -o "$out/consumer.o" "$program"
with_flags "$libs" "$CC" -o "$out/static" "$out/consumer.o" "$archive"
! readelf -dW "$out/static" | grep -q 'NEEDED.*aml' || fail "the archive is inside"
LD_LIBRARY_PATH=$DRIVER prints_ok consumer "$out/static"

with_flags "$(pkg-config --cflags --libs aml-dma-cuda aml-core)" "$CC" -Wall -Werror -o "$out/both" "$program"
prints_ok consumer "$out/both"
with_flags "$(pkg-config --cflags --libs aml-dma-cuda aml-core)" "$CXX" -x c++ -Wall -Werror -o "$out/cxx" "$program"
prints_ok consumer "$out/cxx"

# Both archives in one program, also beside a driver that it links itself: no name is defined twice.
core=${archive%/*}/libaml_core.a
with_flags "$(pkg-config --cflags aml-dma-cuda aml-core)" "$CC" -c -DWITH_CORE -o "$out/core.o" "$program"
for order in "$core|$archive" "$archive|$core"; do
	with_flags "$libs" "$CC" -o "$out/archives" "$out/core.o" "${order%|*}" "${order#*|}" -L"$DRIVER" -lcuda
	LD_LIBRARY_PATH=$DRIVER prints_ok consumer "$out/archives"
done

# In a place of its own, as a package is built.
stage=$WORK/moved
rm -rf "$stage"
cp -R "$PREFIX_DIR" "$stage"
with_flags "$(PKG_CONFIG_PATH=$stage/lib64/pkgconfig pkg-config --define-prefix --cflags --libs aml-dma-cuda)" \
	"$CC" -o "$out/moved" "$program"
readelf -dW "$out/moved" >/dev/null
LD_LIBRARY_PATH=$stage/lib64:$DRIVER prints_ok consumer "$out/moved"
rm -rf "$stage"
