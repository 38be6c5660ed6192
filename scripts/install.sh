#!/bin/sh
# usage: install.sh TARGET library|core|uninstall VERSION
# Installs one of the two libraries, or removes both, below PREFIX, LIBDIR and INCLUDEDIR inside DESTDIR. A relative
# PREFIX is below the current directory, the other two are below PREFIX.
set -eu
umask 022 # what is installed is for everybody
target=$1 what=$2 version=$3
prefix=${PREFIX:-/usr/local}
case $prefix in /*) ;; *) prefix=$(realpath -m -s "$(pwd -P)/$prefix") ;; esac
absolute() { case $1 in /*) printf %s "$1" ;; *) printf %s "$prefix/$1" ;; esac; }
libdir=$(absolute "${LIBDIR:-lib}")
includedir=$(absolute "${INCLUDEDIR:-include}")
root=${DESTDIR:-}

# The headers lie in a directory of their own, so that none of them ever hides or overwrites one of AML's.
describe() {
	case $1 in
	library) name=aml-dma-cuda lib=libaml_dma_cuda package=AmlDmaCuda member=aml_dma_cuda headers=include ;;
	core) name=aml-core lib=libaml_core package=AmlCore member=aml_core headers=aml-core/include ;;
	esac
	own=$includedir/$name
}

# A path inside `prefix` is written in terms of it, as users of pkg-config's --define-prefix expect.
within() { case $1 in "$prefix"/*) printf '${prefix}/%s' "${1#"$prefix"/}" ;; *) printf %s "$1" ;; esac; }

# What sed would take for its own in a replacement is escaped; pkg-config wants blanks escaped, too.
literal() { printf %s "$1" | sed 's/[\\&|]/\\&/g'; }
blank() { printf %s "$1" | sed 's/ /\\ /g'; }

# Renamed into place: a program that runs, or a second install at the same time, never sees half a file.
put() {
	mkdir -p "$(dirname "$3")"
	cp "$2" "$3.$$"
	chmod "$1" "$3.$$"
	mv -f "$3.$$" "$3"
}

fill() {
	mkdir -p "$(dirname "$2")"
	sed -e "s|@PREFIX@|$(literal "$3")|" -e "s|@LIBDIR@|$(literal "$4")|" -e "s|@INCLUDEDIR@|$(literal "$5")|" \
		-e "s|@VERSION@|$version|g" -e "s|@MAJOR@|${version%%.*}|g" -e "s|@PACKAGE@|$package|g" \
		-e "s|@MEMBER@|$member|g" -e "s|@LIB@|$lib|g" "$1" >"$2.$$"
	chmod 644 "$2.$$"
	mv -f "$2.$$" "$2"
}

link() {
	ln -sfn "$1" "$2.$$"
	mv -fT "$2.$$" "$2" 2>/dev/null || { rm -f "$2.$$"; ln -sfn "$1" "$2"; }
}

add() {
	describe "$1"
	put 755 "$target/release/$lib.so" "$root$libdir/$lib.so.$version"
	link "$lib.so.$version" "$root$libdir/$lib.so.${version%%.*}"
	link "$lib.so.${version%%.*}" "$root$libdir/$lib.so"
	put 644 "$target/dist/$lib.a" "$root$libdir/$lib.a"
	(cd "$headers" && find . -name '*.h') | while read -r header; do
		put 644 "$headers/$header" "$root$own/${header#./}"
	done
	template=$name.pc.in
	[ -e "$template" ] || template=aml-core/$name.pc.in
	fill "$template" "$root$libdir/pkgconfig/$name.pc" \
		"$(blank "$prefix")" "$(blank "$(within "$libdir")")" "$(blank "$(within "$own")")"
	# The CMake package finds the headers from where it lies itself, so a staged or moved tree works as it is. Links of
	# this machine say nothing about the one where it will be.
	cmake=$libdir/cmake/$package
	fill cmake/Config.cmake.in "$root$cmake/${package}Config.cmake" "" "" "$(realpath -m -s --relative-to="$cmake" "$own")"
	fill cmake/ConfigVersion.cmake.in "$root$cmake/${package}ConfigVersion.cmake" "" "" ""
}

remove() {
	describe "$1"
	rm -f "$root$libdir/$lib.so" "$root$libdir/$lib.so.${version%%.*}" "$root$libdir/$lib.so.$version" \
		"$root$libdir/$lib.a" "$root$libdir/pkgconfig/$name.pc"
	rm -rf "$root$own" "$root$libdir/cmake/$package"
	for directory in "$libdir/cmake" "$libdir/pkgconfig"; do
		rmdir "$root$directory" 2>/dev/null || true # others' packages keep it
	done
}

case $what in
uninstall)
	remove library
	remove core
	;;
*) add "$what" ;;
esac
