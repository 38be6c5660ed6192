# Where an installation may be: below the current directory, where PREFIX is relative, behind links, and for all users,
# whatever the umask of the one who installs.
. "$TOP/capi-tests/install/support.sh"
place=$(cd "$(mktemp -d)" && pwd -P)
trap 'rm -rf "$place"' EXIT
mkdir -p "$place/built/release" "$place/built/dist"
cp "$WORK"/built/*.so "$place/built/release/"
cp "$PREFIX_DIR"/lib64/*.a "$place/built/dist/"
cp -R "$TOP/Makefile" "$TOP/Cargo.toml" "$TOP/scripts" "$TOP/cmake" "$TOP/include" "$TOP/aml-core" "$TOP"/*.pc.in "$place/"
cd "$place"
# What was built before is taken as it is.
into() { make --no-print-directory -o all -o core CARGO_TARGET_DIR="$place/built" "$@"; }
package() { echo "$1/cmake/AmlDmaCuda/AmlDmaCudaConfig.cmake"; }

into install install-core PREFIX=a/place
[ -e a/place/lib/libaml_dma_cuda.so ] || fail "a relative PREFIX is below the current directory: $(find . -name '*.so')"
[ -e a/place/include/aml-core/aml.h ] || fail "so are the headers: $(find . -name aml.h)"
export PKG_CONFIG_PATH="$place/a/place/lib/pkgconfig"
[ "$(variable libdir aml-core)" = "$place/a/place/lib" ] || fail "pkg-config knows the whole path: $(variable libdir aml-core)"
into uninstall PREFIX=a/place
left=$(find a -type f -o -type l)
[ -z "$left" ] || fail "left behind: $left"

into install PREFIX=./b/../c/ LIBDIR=lib/here INCLUDEDIR="$place/d"
[ -e "$(package c/lib/here)" ] || fail "a relative LIBDIR is below PREFIX: $(find . -name '*Config.cmake')"
[ -e d/aml-dma-cuda/aml/dma/cuda.h ] || fail "an absolute INCLUDEDIR counts as it is"
grep -qx "prefix=$place/c" c/lib/here/pkgconfig/aml-dma-cuda.pc || fail "the prefix is written in the shortest way"

mkdir -p "$place/far/away/from/here" "$place/linked"
ln -s "$place/far/away/from/here" "$place/linked/lib"
into install PREFIX="$place/linked"
cmake -S "$HERE/programs" -B "$place/program" -DAmlDmaCuda_DIR="$place/linked/lib/cmake/AmlDmaCuda" >"$place/log" 2>&1 ||
	{ cat "$place/log"; fail "CMake finds what lies behind a link"; }

(umask 077 && into install install-core PREFIX="$place/private")
closed=$(find "$place/private" ! -type l ! -perm -044)
[ -z "$closed" ] || fail "others cannot read $closed"
closed=$(find "$place/private" -type d ! -perm -055)
[ -z "$closed" ] || fail "others cannot enter $closed"
