# Which versions a program may ask find_package() for: an older one of the same major number, and ranges around ours.
. "$TOP/capi-tests/install/support.sh"
asked() {
	found=$1
	shift
	for wanted in "$@"; do
		cmake -S "$HERE/programs/versions" -B "$WORK/versions" -DAmlDmaCuda_DIR="$PREFIX_DIR/lib64/cmake/AmlDmaCuda" \
			-DVERSION="$wanted" -DFOUND="$found" >"$WORK/versions.log" 2>&1 ||
			{ cat "$WORK/versions.log"; fail "$wanted: $found"; }
	done
}
version=$(sed -n 's/^Version: //p' "$PREFIX_DIR/lib64/pkgconfig/aml-dma-cuda.pc")
next=${version%.*}.$((${version##*.} + 1)) major=${version%%.*}
asked 1 "" "$version" "$version;EXACT" "$major" "$major.0"
asked 0 "$next" "$((major + 1))" "$next;EXACT"
asked 1 "$version...$version" "$version...<$next" "$major.0...$next" "$major.0...$((major + 2))" "$major.0...<$((major + 1))"
asked 0 "$major.0...0.0.5" "$major.0...<$version" "$next...$((major + 1))"
