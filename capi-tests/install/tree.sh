# What is installed: the files and links, the properties of the libraries, no trace of the place where it was built.
. "$TOP/capi-tests/install/support.sh"
cd "$PREFIX_DIR"
version=$(sed -n 's/^Version: //p' lib64/pkgconfig/aml-dma-cuda.pc)
[ "$version" = "$(sed -n 's/^version = "\(.*\)"/\1/p' "$TOP/Cargo.toml")" ] || fail "the version is Cargo's"
{
	for name in aml_dma_cuda aml_core; do
		echo "./lib64/lib$name.a"
		echo "./lib64/lib$name.so -> lib$name.so.${version%%.*}"
		echo "./lib64/lib$name.so.${version%%.*} -> lib$name.so.$version"
		echo "./lib64/lib$name.so.$version"
	done
	for package in AmlDmaCuda AmlCore; do
		echo "./lib64/cmake/$package/${package}Config.cmake"
		echo "./lib64/cmake/$package/${package}ConfigVersion.cmake"
	done
	echo ./lib64/pkgconfig/aml-core.pc
	echo ./lib64/pkgconfig/aml-dma-cuda.pc
	(cd "$TOP/include" && find . -name '*.h' | sed 's|^\./|./include/aml-dma-cuda/|')
	(cd "$TOP/aml-core/include" && find . -name '*.h' | sed 's|^\./|./include/aml-core/|')
} | sort >"$WORK/wanted"
find . -type f -print -o -type l -printf '%p -> %l\n' | sort >"$WORK/found"
same "these files are installed" "$WORK/wanted" "$WORK/found"

for name in aml_dma_cuda aml_core; do
	dynamic=$(readelf -dW "lib64/lib$name.so")
	echo "$dynamic" | grep -qF "Library soname: [lib$name.so.${version%%.*}]" || fail "$name has its soname: $dynamic"
	echo "$dynamic" | grep -q 'FLAGS_1.*NODELETE' || fail "$name stays loaded: $dynamic"
	needed=$(echo "$dynamic" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | sort | tr '\n' ' ')
	case $needed in
	*cuda* | *aml*) fail "$name needs $needed" ;;
	*libc.so*) ;;
	*) fail "$name needs $needed" ;;
	esac
	! echo "$dynamic" | grep -qE 'RPATH|RUNPATH|TEXTREL' || fail "$name has neither a search path nor text relocations"
done

# The place where it was built is nobody's business; the prefix is named once a file, as a prefix.
for file in lib64/pkgconfig/*.pc lib64/cmake/*/*.cmake; do
	! grep -qF -e "$WORK/target" -e "$WORK/a source" "$file" || fail "$file names the build: $(cat "$file")"
	! grep -q '@[A-Z]*@' "$file" || fail "$file has a gap: $(cat "$file")"
done
[ "$(variable includedir aml-dma-cuda)" = "$PREFIX_DIR/include/aml-dma-cuda" ] || fail "headers in a directory of their own"
[ -e "$(variable archive aml-dma-cuda)" ] || fail "pkg-config knows the archive"
