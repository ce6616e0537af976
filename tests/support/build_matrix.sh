#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Build in the ways that distributions and users do, with the tests of C and of the program for
# each (the real programs are left out); prints a line for each, and what failed:
#
#	tests/support/build_matrix.sh [--build DIR] [NAME...]
#
# --build DIR   keep the trees there [a temporary folder, removed afterwards]
# NAME          lto-gcc lto-clang O0 O3 Os native hardening user-flags tls-descriptor static
#               only-static no-libevent no-libev no-glib no-adapter clang [all]
#
# Takes minutes for each; not part of CI.  lto-clang needs lld and llvm, hardening dpkg-dev.
set -eu

top=$(cd "$(dirname "$0")/../.." && pwd)
build='' names=''
while [ $# -gt 0 ]; do
	case $1 in
	--build) build=$2 && shift ;;
	-*)
		sed -n '3,13s/^# \{0,1\}//p' "$0"
		exit 2
		;;
	*) names="$names $1" ;;
	esac
	shift
done
all='lto-gcc lto-clang O0 O3 Os native hardening user-flags tls-descriptor static only-static
	no-libevent no-libev no-glib no-adapter clang'
[ -n "$build" ] || {
	build=$(mktemp -d)
	trap 'rm -rf "$build"' EXIT
}
mkdir -p "$build"
build=$(cd "$build" && pwd)
[ -x "$top/configure" ] || autoreconf -fi "$top"

# as NAME ARGUMENT...: configure with them, build, test; 0 if all is well.
as() {
	mkdir -p "$build/$1"
	cd "$build/$1"
	shift
	"$top/configure" -q --enable-werror "$@" &&
		make -j"$(nproc)" && D9_LEAVE_OUT=real make -k -j"$(nproc)" check
}

hardened() {
	DEB_BUILD_MAINT_OPTIONS=hardening=+all dpkg-buildflags --get "$1"
}

# way NAME: the arguments of that way to build.
way() {
	case $1 in
	lto-gcc)
		as "$1" CFLAGS="-O2 -g -flto=auto" CXXFLAGS="-O2 -g -flto=auto" \
			AR=gcc-ar RANLIB=gcc-ranlib NM=gcc-nm
		;;
	lto-clang)
		as "$1" CC=clang CXX=clang++ CFLAGS="-O2 -g -flto" CXXFLAGS="-O2 -g -flto" \
			LDFLAGS=-fuse-ld=lld AR=llvm-ar RANLIB=llvm-ranlib NM=llvm-nm
		;;
	O0 | O3 | Os) as "$1" CFLAGS="-g -$1" CXXFLAGS="-g -$1" ;;
	native) as "$1" CFLAGS="-O3 -march=native" CXXFLAGS="-O3 -march=native" ;;
	hardening)
		as "$1" CPPFLAGS="$(hardened CPPFLAGS)" CFLAGS="$(hardened CFLAGS)" \
			CXXFLAGS="$(hardened CXXFLAGS)" LDFLAGS="$(hardened LDFLAGS)"
		;;
	user-flags) as "$1" CFLAGS=-g CXXFLAGS=-g ;;
	tls-descriptor) as "$1" --with-tls=descriptor ;;
	static) as "$1" --enable-static ;;
	only-static) as "$1" --enable-static --disable-shared ;;
	no-adapter) as "$1" --without-libevent --without-libev --without-glib ;;
	no-libevent | no-libev | no-glib) as "$1" "--without-${1#no-}" ;;
	clang) as "$1" CC=clang CXX=clang++ ;;
	*)
		echo "build_matrix.sh: unknown way '$1'" >&2
		return 2
		;;
	esac
}

failed=0
for name in ${names:-$all}; do
	if way "$name" >"$build/$name.log" 2>&1; then
		result=ok
	else
		result=FAILED failed=1
	fi
	printf '%-15s %-6s %s\n' "$name" $result \
		"$(sed -n 's/^# \(PASS\|SKIP\|FAIL\|ERROR\): */\1 /p' "$build/$name.log" | tr '\n' ' ')"
	[ $result = ok ] || grep -E '^(FAIL|ERROR)|error:|warning:|\*\*\*' "$build/$name.log" |
		head -n 20 || true
done
exit $failed
