# What the scripts of this directory share. They get TOP (the sources), WORK (a directory of their own, with a blank in
# its name), DRIVER (the directory of the software driver) and CC, CXX from ctest.
set -eu
TARGET=$WORK/target PREFIX_DIR="$WORK/prefix" HERE=$TOP/capi-tests/install
PKG_CONFIG_PATH=$PREFIX_DIR/lib64/pkgconfig
export PKG_CONFIG_PATH
# Whatever the caller's environment says about where things are does not count.
unset DESTDIR PREFIX LIBDIR INCLUDEDIR CARGO_TARGET_DIR MAKEFLAGS MFLAGS MAKELEVEL CPATH LIBRARY_PATH 2>/dev/null || true

fail() {
	echo "not so: $*" >&2
	exit 1
}

# same WHAT FILE FILE: two lists are equal.
same() { diff -u "$2" "$3" >&2 || fail "$1"; }

# on_driver PROGRAM...: runs with the software driver and the installed library, and nothing of the build tree.
on_driver() { LD_LIBRARY_PATH=$PREFIX_DIR/lib64:$DRIVER "$@"; }

# prints PROGRAM...: it has to succeed and to say nothing but one line, `NAME: ok`.
prints_ok() {
	name=$1
	shift
	said=$("$@" 2>&1) || fail "$* ended with $?: $said"
	[ "$said" = "$name: ok" ] || fail "$* said: $said"
}

# variable NAME PACKAGE: a path that pkg-config knows; it puts a backslash before each blank.
variable() { pkg-config --variable="$1" "$2" | sed 's/\\ / /g'; }

# with_flags FLAGS COMMAND...: appends flags as pkg-config quotes them.
with_flags() {
	flags=$1
	shift
	eval "\"\$@\" $flags"
}
