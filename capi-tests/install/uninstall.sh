# `make uninstall` takes back all that the two installs put there, and nothing that was there before.
. "$TOP/capi-tests/install/support.sh"
cd "$TOP"
other=$PREFIX_DIR/lib64/pkgconfig/other.pc
echo "Name: other" >"$other"
make --no-print-directory uninstall PREFIX="$PREFIX_DIR" LIBDIR=lib64
left=$(find "$PREFIX_DIR" -type f -o -type l)
[ "$left" = "$other" ] || fail "left behind: $left"
left=$(find "$PREFIX_DIR" -name '*aml*' -o -name 'Aml*')
[ -z "$left" ] || fail "left behind: $left"
# DESTDIR goes before everything, and an absolute LIBDIR and INCLUDEDIR count as they are.
make --no-print-directory uninstall DESTDIR="$WORK/nowhere" PREFIX=/usr
[ ! -e "$WORK/nowhere" ] || fail "uninstall makes nothing"
