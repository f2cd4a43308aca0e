#!/usr/bin/env bash
# Installs the C and C++ interface: headers, both libraries, files for pkg-config and CMake.
#
#   ./install.sh [--prefix DIR] [--destdir DIR] [--from DIR]
#
# --prefix   where programs will find it; /usr/local if not given
# --destdir  is put before that for the files only, to make packages
# --from     where libhourglass.so and libhourglass.a are; without it they are built in release
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
prefix=/usr/local destdir="" from=""

while [ $# -gt 0 ]; do
    case $1 in
    --prefix | --destdir | --from)
        [ $# -gt 1 ] || { echo "install.sh: $1 needs a folder" >&2; exit 2; }
        case $1 in
        --prefix) prefix=$2 ;;
        --destdir) destdir=$2 ;;
        --from) from=$2 ;;
        esac
        shift 2
        ;;
    *)
        echo "install.sh: unknown word $1; it takes --prefix DIR, --destdir DIR, --from DIR" >&2
        exit 2
        ;;
    esac
done
case $prefix in
/*) ;;
*) echo "install.sh: the prefix $prefix is not absolute: begin it with /" >&2; exit 2 ;;
esac

if [ -z "$from" ]; then
    # Cargo takes it from where it is called.
    target=$(realpath -m "${CARGO_TARGET_DIR:-$here/../../target}")
    (cd "$here" && CARGO_TARGET_DIR=$target cargo build --release --package hourglass-capi)
    from=$target/release
fi
for library in libhourglass.so libhourglass.a; do
    [ -e "$from/$library" ] || { echo "install.sh: $from/$library is not there: build it, or leave --from out" >&2; exit 2; }
done

# Cargo tells versions of the workspace only to its own; the library knows its interface by its name.
version=$(sed -n 's/^version = "\(.*\)"/\1/p' "$here/Cargo.toml" "$here/../../Cargo.toml" 2>/dev/null | head -n 1)
abi=$(sed -n 's/^#define HG_ABI_VERSION \([0-9]*\)$/\1/p' "$here/include/hourglass.h")

to=$destdir$prefix
install -d "$to/include" "$to/lib/pkgconfig" "$to/lib/cmake/hourglass"
install -m 644 "$here"/include/hourglass.h "$here"/include/hourglass.hpp \
    "$here"/include/hourglass_thesis.hpp "$to/include"
install -m 644 "$from/libhourglass.a" "$to/lib"
install -m 755 "$from/libhourglass.so" "$to/lib/libhourglass.so.$version"
# What no program needs: names of functions within, and the compiler's own code beside the machine's, which is
# more than half of the archive.
if command -v strip >/dev/null && command -v objcopy >/dev/null; then
    strip --strip-unneeded "$to/lib/libhourglass.so.$version"
    objcopy --strip-debug --remove-section=.llvmbc --remove-section=.llvmcmd "$to/lib/libhourglass.a"
fi
ln -sf "libhourglass.so.$version" "$to/lib/libhourglass.so.$abi"
ln -sf "libhourglass.so.$abi" "$to/lib/libhourglass.so"

fill() {
    sed -e "s|@prefix@|$prefix|g" -e "s|@version@|$version|g" -e "s|@abi@|$abi|g" "$here/package/$1" >"$2"
    chmod 644 "$2"
}
fill hourglass.pc.in "$to/lib/pkgconfig/hourglass.pc"
fill hourglass-config.cmake.in "$to/lib/cmake/hourglass/hourglass-config.cmake"
fill hourglass-config-version.cmake.in "$to/lib/cmake/hourglass/hourglass-config-version.cmake"

echo "installed to $to; as root, run ldconfig if the loader is to find it there"
