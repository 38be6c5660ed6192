# Names: each library defines exactly the ones in its list, and asks the C library for exactly the ones in undefined.txt.
. "$TOP/capi-tests/install/support.sh"
cd "$PREFIX_DIR/lib64"
sorted() { LC_ALL=C sort -u; }
check() {
	name=$1 list=$2
	sorted <"$list" >"$WORK/list"
	cmp -s "$list" "$WORK/list" || fail "$list is sorted"
	nm -D --defined-only --format=posix "lib$name.so" | awk '{ sub(/@.*/, "", $1); print $1 }' | sorted >"$WORK/exported"
	same "lib$name.so defines these" "$WORK/list" "$WORK/exported"
	nm --extern-only --defined-only --format=posix "lib$name.a" | awk 'NF > 1 { print $1 }' | sorted >"$WORK/exported"
	same "lib$name.a defines these" "$WORK/list" "$WORK/exported"
}
check aml_dma_cuda "$TOP/symbols.txt"
check aml_core "$TOP/aml-core/symbols.txt"

nm -D --undefined-only --format=posix libaml_dma_cuda.so | awk '{ sub(/@.*/, "", $1); print $1 }' | sorted >"$WORK/undefined"
same "libaml_dma_cuda.so needs these; the list is capi-tests/install/undefined.txt, what is needed now $WORK/undefined" \
	"$HERE/undefined.txt" "$WORK/undefined"
# Of its linker the shared library has some names of its own; the archive must not need more than those.
nm --undefined-only --format=posix libaml_dma_cuda.a | awk 'NF > 1 { print $1 }' | sorted >"$WORK/undefined"
printf '%s\n' __dso_handle atexit pthread_atfork | cat - "$HERE/undefined.txt" | sorted >"$WORK/list"
extra=$(LC_ALL=C comm -13 "$WORK/list" "$WORK/undefined")
[ -z "$extra" ] || fail "libaml_dma_cuda.a needs more than the shared library: $extra"
