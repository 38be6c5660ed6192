# DESTDIR, LIBDIR and INCLUDEDIR: a package's tree, whose files say where they will be and not where they are.
. "$TOP/capi-tests/install/support.sh"
# Without blanks: pkgconf mixes them up in a PKG_CONFIG_SYSROOT_DIR.
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
mkdir -p "$WORK/parts/release" "$WORK/parts/dist"
cp "$WORK"/built/*.so "$WORK/parts/release/"
cp "$PREFIX_DIR"/lib64/*.a "$WORK/parts/dist/"
cd "$TOP"
for part in library core; do
	env DESTDIR="$stage" PREFIX=/opt/aml LIBDIR=/opt/aml/lib/x86_64-linux-gnu INCLUDEDIR=/opt/headers \
		sh scripts/install.sh "$WORK/parts" $part 0.1.0
done
outside=$(cd "$stage" && find . -type f ! -path './opt/aml/lib/x86_64-linux-gnu/*' ! -path './opt/headers/*')
[ -z "$outside" ] || fail "these lie elsewhere: $outside"
! grep -rqF "$stage" "$stage" || fail "a file names the staging directory: $(grep -rlF "$stage" "$stage")"
export PKG_CONFIG_PATH="$stage/opt/aml/lib/x86_64-linux-gnu/pkgconfig"
[ "$(pkg-config --cflags aml-dma-cuda | tr -d ' ')" = -I/opt/headers/aml-dma-cuda ] || fail "the flags name the final place"
[ "$(variable libdir aml-core)" = /opt/aml/lib/x86_64-linux-gnu ] || fail "so does aml-core's"
with_flags "$(PKG_CONFIG_SYSROOT_DIR=$stage pkg-config --cflags --libs aml-dma-cuda)" \
	"$CC" -o "$WORK/staged" "$HERE/programs/consumer.c"
LD_LIBRARY_PATH=$stage/opt/aml/lib/x86_64-linux-gnu:$DRIVER prints_ok consumer "$WORK/staged"
env DESTDIR="$stage" PREFIX=/opt/aml LIBDIR=/opt/aml/lib/x86_64-linux-gnu INCLUDEDIR=/opt/headers \
	sh scripts/install.sh "$WORK/parts" uninstall 0.1.0
left=$(find "$stage" -type f -o -type l)
[ -z "$left" ] || fail "left behind: $left"
