#!/bin/sh
# usage: tools.sh TOOL...
# Sees to it that the tools are there which tests need beyond Rust, a C compiler and make: installs what is missing
# where it can (root on a Debian), and otherwise says in one line what that is.
set -eu
has() {
	case $1 in
	libclang) ls /usr/lib/llvm-*/lib/libclang*.so* /usr/lib/*/libclang*.so* /usr/lib64/libclang*.so* 2>/dev/null | grep -q . || [ -n "${LIBCLANG_PATH:-}" ] ;;
	*) command -v "$1" >/dev/null 2>&1 ;;
	esac
}
package() {
	case $1 in
	libclang) echo libclang-dev ;;
	c++) echo g++ ;;
	ctest) echo cmake ;;
	pkg-config) echo pkg-config ;;
	*) echo "$1" ;;
	esac
}
missing() { for tool; do has "$tool" || package "$tool"; done | sort -u | tr '\n' ' '; }

wanted=$(missing "$@")
[ -n "$wanted" ] || exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
	echo "installing: $wanted"
	log=$(mktemp)
	if ! { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $wanted; } >"$log" 2>&1; then
		tail -n 5 "$log" >&2
	fi
	rm -f "$log"
	wanted=$(missing "$@")
	[ -n "$wanted" ] || exit 0
fi
echo "missing, please install: $wanted" >&2
exit 1
