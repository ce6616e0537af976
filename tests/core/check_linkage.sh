#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# How each library is linked, as readelf sees it: its soname, what it brings into a process, and
# that what hooks point into is bound at once and never unloaded.
set -eu

command -v readelf >/dev/null || {
	echo "readelf is not installed (Debian: binutils)"
	exit 77
}

fail() {
	printf '%s: %s\n' "$lib" "$1"
	exit 1
}

tags() {
	readelf -dW "$lib"
}

# check LIBRARY SONAME NEEDED...: patterns of what may be needed, besides libc and a sanitizer's.
check() {
	lib=$1 soname=$2
	shift 2
	[ -e "$lib" ] || return 0
	found=$((found + 1))
	tags | grep -qF "soname: [$soname]" || fail "its soname is not $soname"
	for needed in $(tags | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'); do
		allowed=no
		# libdl and libpthread are libraries beside libc before glibc 2.34.
		for pattern in libc.so.6 libdl.so.2 libpthread.so.0 libm.so.6 'ld-linux*' 'libgcc_s.so.*' "$@"; do
			# A pattern is meant.
			# shellcheck disable=SC2254
			case $needed in $pattern) allowed=yes ;; esac
		done
		case $SANITIZER,$needed in no,*) ;; *,lib*san.so.* | *,libclang_rt.*) allowed=yes ;; esac
		[ $allowed = yes ] || fail "needs $needed"
	done
	! tags | grep -q TEXTREL || fail "has text relocations"
	readelf -lW "$lib" | grep GNU_STACK | grep -q ' RW ' || fail "wants an executable stack"
}

# check_hooked LIBRARY SONAME NEEDED...: what runs in the recorded program.
check_hooked() {
	check "$@"
	[ -e "$1" ] || return 0
	tags | grep FLAGS_1 | grep -q 'NOW.*NODELETE' || fail "is not linked -z now -z nodelete"
}

core=$top_builddir/core/.libs adapters=$top_builddir/adapters/.libs found=0
check_hooked "$core/libdial9.so" libdial9.so.0 'libzstd.so.*' 'libunwind*.so.*'
check "$core/libdial9-reader.so" libdial9-reader.so.0 'libzstd.so.*' 'libz.so.*'
for loop in libevent libev glib; do
	check_hooked "$adapters/libdial9-$loop.so" "libdial9-$loop.so.0" libdial9.so.0
done
check_hooked "$adapters/libdial9-memory.so" libdial9-memory.so.0 libdial9.so.0
check_hooked "$adapters/libdial9-preload.so" libdial9-preload.so libdial9.so.0 \
	'libdial9-*.so.0'
# An installation that has moved as a whole still records.
[ ! -e "$lib" ] || tags | grep 'RUNPATH\|RPATH' | grep -qF "\$ORIGIN/.." ||
	fail "does not look for its libraries beside itself"
# TLS and HTTP are in the child that has the keys, and nowhere else: the program starts without them.
for lib in "$top_builddir/core/dial9" "$core"/*.so "$adapters"/*.so; do
	[ ! -e "$lib" ] || ! tags | grep -q 'NEEDED.*\(libcurl\|libssl\)' || fail "needs libcurl or libssl"
	[ ! -e "$lib" ] || ! nm "$lib" 2>/dev/null | grep -q 'd9__\(sigv4\|session\|credentials\)_' || fail "has code of dial9-store"
done
[ $found -ge 2 ] || {
	echo "shared libraries were not built"
	exit 77
}
