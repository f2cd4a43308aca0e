#!/bin/sh
# Installs the C and C++ interface: headers, both libraries, files for pkg-config and CMake, manual pages (section 3).
#
# Usage: install.sh [--prefix DIR] [--libdir DIR] [--destdir DIR] [--from DIR]
#
# --prefix   where programs will find it; /usr/local if not given
# --libdir   the folder of libraries below the prefix; lib if not given, on Debian lib/x86_64-linux-gnu and the like
# --destdir  is put before that for the files only, to make packages
# --from     where libhourglass.so and libhourglass.a are; without it they are built in release
set -eu
here=$(cd "$(dirname "$0")" && pwd)
prefix=/usr/local libdir=lib destdir="" from=""

while [ $# -gt 0 ]; do
    case $1 in
    --prefix | --libdir | --destdir | --from)
        [ $# -gt 1 ] || { echo "install.sh: $1 needs a folder" >&2; exit 2; }
        case $1 in
        --prefix) prefix=$2 ;;
        --libdir) libdir=$2 ;;
        --destdir) destdir=$2 ;;
        --from) from=$2 ;;
        esac
        shift 2
        ;;
    --help | -h)
        # The lines above.
        sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"
        exit 0
        ;;
    *)
        echo "install.sh: unknown word $1; it takes --prefix DIR, --libdir DIR, --destdir DIR, --from DIR, --help" >&2
        exit 2
        ;;
    esac
done
case $prefix in
/*) ;;
*) echo "install.sh: the prefix $prefix is not absolute: begin it with /" >&2; exit 2 ;;
esac
case /$libdir/ in
*//* | */../* | */./*) echo "install.sh: the libdir $libdir is not a folder below the prefix: give one such as lib64" >&2; exit 2 ;;
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
lib=$to/$libdir
install -d "$to/include" "$lib/pkgconfig" "$lib/cmake/hourglass"
install -m 644 "$here"/include/hourglass.h "$here"/include/hourglass.hpp \
    "$here"/include/hourglass_thesis.hpp "$to/include"
install -m 644 "$from/libhourglass.a" "$lib"
install -m 755 "$from/libhourglass.so" "$lib/libhourglass.so.$version"
# What no program needs: names of functions within, and the compiler's own code beside the machine's, which is
# more than half of the archive.
if command -v strip >/dev/null && command -v objcopy >/dev/null; then
    strip --strip-unneeded "$lib/libhourglass.so.$version"
    objcopy --strip-debug --remove-section=.llvmbc --remove-section=.llvmcmd "$lib/libhourglass.a"
fi
ln -sf "libhourglass.so.$version" "$lib/libhourglass.so.$abi"
ln -sf "libhourglass.so.$abi" "$lib/libhourglass.so"

fill() {
    # From lib/cmake/hourglass up to the prefix.
    up=../../$(printf %s "$libdir" | sed 's|[^/][^/]*|..|g')
    sed -e "s|@prefix@|$prefix|g" -e "s|@libdir@|$libdir|g" -e "s|@up@|$up|g" -e "s|@version@|$version|g" -e "s|@abi@|$abi|g" "$here/package/$1" >"$2"
    chmod 644 "$2"
}
fill hourglass.pc.in "$lib/pkgconfig/hourglass.pc"
fill hourglass-config.cmake.in "$lib/cmake/hourglass/hourglass-config.cmake"
fill hourglass-config-version.cmake.in "$lib/cmake/hourglass/hourglass-config-version.cmake"

man=$to/share/man/man3
install -d "$man"
awk -v folder="$man" -v version="$version" -f "$here/package/manual.awk" "$here/include/hourglass.h"
chmod 644 "$man"/hourglass*.3 "$man"/hg_*.3

echo "installed to $to; as root, run ldconfig if the loader is to find it there"
