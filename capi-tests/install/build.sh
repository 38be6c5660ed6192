# The build on a bare machine: Rust, a C compiler with its binutils, and make, in directories with blanks, with the
# sources left as they are, and with a CUDA toolkit in the way whose stub must not be linked.
. "$TOP/capi-tests/install/support.sh"
rm -rf "$WORK"
mkdir -p "$WORK/bin" "$WORK/a source"
(cd "$TOP" && tar -cf - --exclude=./target --exclude=./.git .) | tar -xf - -C "$WORK/a source"
chmod -R a-w "$WORK/a source"
list() { (cd "$WORK/a source" && find . -type f -exec cksum {} + && find . -type d) | sort; }
list >"$WORK/before"

for tool in cargo rustc cc gcc as ld ar objcopy make sh sed awk tr cat cp mv ln rm mkdir rmdir chmod \
	mktemp dirname basename realpath find sort cmp uname install grep id env; do
	path=$(command -v "$tool" || true)
	[ -z "$path" ] || ln -s "$path" "$WORK/bin/$tool"
done
# A toolkit's libcuda.so is a stub that is only there to be linked with.
mkdir -p "$WORK/toolkit/lib64/stubs" "$WORK/toolkit/include"
"$CC" -shared -fPIC -Wl,-soname,libcuda.so.1 -o "$WORK/toolkit/lib64/libcuda.so" "$HERE/programs/stub.c"
cp "$WORK/toolkit/lib64/libcuda.so" "$WORK/toolkit/lib64/stubs/"
echo '#define CUDA_VERSION 13000' >"$WORK/toolkit/include/cuda.h"

cd "$WORK/a source"
build() {
	env PATH="$WORK/bin" CARGO_TARGET_DIR="$TARGET" CUDA_PATH="$WORK/toolkit" CUDA_HOME="$WORK/toolkit" \
		CUDA_LIBRARY_PATH="$WORK/toolkit" LIBRARY_PATH="$WORK/toolkit/lib64" \
		make "$@" PREFIX="$PREFIX_DIR" LIBDIR=lib64 >"$WORK/log" 2>&1 || { cat "$WORK/log"; fail "make $*"; }
}
build
[ -e "$TARGET/release/libaml_dma_cuda.so" ] || fail "make leaves the library"
[ -e "$TARGET/release/libaml_dma_cuda.a" ] || fail "make leaves the archive"
build -j4 install install-core
build -j4 install install-core
# Two at once, as packagers' scripts do.
build -j4 install & first=$!
(build -j4 install) || fail "a second install at the same time"
wait $first || fail "the first of two installs"
list >"$WORK/after"
same "building leaves the sources as they were" "$WORK/before" "$WORK/after"
# What follows must find nothing of what it was built from.
chmod -R u+w "$WORK/a source"
mv "$TARGET/release" "$WORK/built"
rm -rf "$WORK/a source" "$WORK/toolkit" "$WORK/bin" "$TARGET"
