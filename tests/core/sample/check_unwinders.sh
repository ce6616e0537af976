#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Stacks by our tables are those that libunwind sees, address for address, now and then and at every instruction, in
# code of each compiler that is there, at each level of optimisation, with and without frame pointers, in C and in
# C++ with exceptions.
set -eu

program=$top_builddir/tests/core/sample/compare_unwinders
[ -x "$program" ] || {
	echo "libunwind is not installed (Debian: libunwind-dev)"
	exit 77
}
case $SANITIZER in
*thread*)
	echo "ThreadSanitizer runs handlers later, with a context that is out of date by then"
	exit 77
	;;
esac
sources=$top_srcdir/tests/core/sample
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# build SOURCE COMPILER FLAG...: skips compilers that are not there.
build() {
	source=$1 compiler=$2
	shift 2
	command -v "$compiler" >/dev/null || return 0
	n=$((n + 1))
	"$compiler" "$@" -fPIC -shared -o "$dir/$n.so" "$sources/$source"
}

n=0
for level in -O0 -O1 -O2 -O3; do
	for frame in -fomit-frame-pointer -fno-omit-frame-pointer; do
		for compiler in gcc clang; do
			build work.c $compiler $level $frame
		done
	done
done
for level in -O0 -O2; do
	for compiler in g++ clang++; do
		build work_cxx.cc $compiler $level
	done
done
echo "$n modules"
"$program" time "${D9_SAMPLES:-20000}" "$dir"/*.so
for module in "$dir"/*.so; do
	LD_BIND_NOW=1 "$program" step "${D9_STEPS:-10000}" "$module"
done
