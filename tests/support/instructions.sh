# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# Sourced by the tests that count instructions under valgrind, which are exact where a clock cannot tell.  Sets
# $target, the compiler to whose limits they are held, and $scratch.  Who makes something cheaper lowers the
# limits; who needs more raises them and says why in the commit.

skip() {
	echo "$1"
	exit 77
}

# For $target none are known.
no_limits() {
	skip "limits are known for gcc 12 and 14 on x86-64 only"
}

command -v valgrind >/dev/null || skip "valgrind is not installed (Debian: valgrind)"
# shellcheck disable=SC2034 # used where this is sourced
target=$(echo '__x86_64__ __GNUC__ __clang__ __LP64__' | $CC -E -P -x c - | tail -n 1)
cflags=$(sed -n 's/^S\["CFLAGS"\]="\(.*\)"$/\1/p' "$top_builddir/config.status")
[ "$cflags" = "-g -O2" ] || skip "limits are known for -g -O2 only, not $cflags"

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# collected: what callgrind counted, from its output $scratch/log.
collected() {
	sed -n 's/.*Collected : \([0-9][0-9]*\).*/\1/p' "$scratch/log"
}
