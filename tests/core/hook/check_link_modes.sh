#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A program is reached by a preloaded adapter however it was linked.
set -eu

: "${top_srcdir:?}" "${top_builddir:?}" "${CC:?}"
libs=$top_builddir/tests/core/hook/.libs
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# check WHAT FLAGS...: 4 * 10 + 1, and 1100 more with both hooks.
check() {
	what=$1
	shift
	$CC -I"$top_srcdir/tests" -O1 -o "$dir/program" "$@" \
		"$top_srcdir/tests/core/hook/fake_program.c" -L"$libs" -lfakeloop -Wl,-rpath,"$libs"
	plain=$("$dir/program")
	hooked=$(LD_PRELOAD=$libs/libgotadapter.so "$dir/program")
	if [ "$plain, $hooked" != "41 41 41 41, 1141 1141 1141 1141" ]; then
		printf '%s\n' "$what: plain '$plain', hooked '$hooked'"
		exit 1
	fi
}

check "position independent" -fPIE -pie
check "bound when called" -fPIE -pie -Wl,-z,lazy
check "bound at start, read-only" -fPIE -pie -Wl,-z,now -Wl,-z,relro
check "without PLT" -fPIE -pie -fno-plt
check "fixed address" -fno-pie -no-pie
check "fixed address, bound at start" -fno-pie -no-pie -Wl,-z,now
check "never read-only" -fPIE -pie -Wl,-z,norelro
check "old hash table" -fPIE -pie -Wl,--hash-style=sysv
