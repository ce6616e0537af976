# SPDX-License-Identifier: Apache-2.0
# Sourced by tests that run another libevent than the installed one.  Needs $top_srcdir, $top_builddir.
# shellcheck shell=sh

: "${CC:=cc}"
here=$top_builddir/tests/adapters
tests=$top_srcdir/tests/adapters
libraries=$top_builddir/adapters/.libs
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0 passed=0 scenario=

skip() {
	echo "$1"
	exit 77
}

fail() {
	echo "FAILED: $scenario: $1"
	failed=$((failed + 1))
}

# shellcheck disable=SC2034 # used where this is sourced
no_sources="no sources: run tests/support/fetch_sources.sh DIR and set D9_TEST_SOURCES=DIR"

# unpack PACKAGE DIR [PART]: the source of libevent, or the PART of a package that holds one.
unpack() {
	for tarball in "${D9_TEST_SOURCES:-/nonexistent}/$1"_*.orig.tar.*; do
		[ -f "$tarball" ] || return 1
		mkdir -p "$2"
		if [ $# -gt 2 ]; then
			tar -xf "$tarball" -C "$2" --wildcards --strip-components=$(($(echo "$3" | tr -cd / | wc -c) + 2)) \
				"*/$3/*" || return 1
		else
			tar -xf "$tarball" -C "$2" --strip-components=1 || return 1
		fi
		return 0
	done
}

# compile_programs PREFIX: those that count for themselves, against the libevent there.
compile_programs() {
	upper="$tests/libevent_kinds_extra.c"
	nm -D "$1/lib/libevent.so" | grep -q ' T bufferevent_socket_new$' || upper=-DCORE_ONLY
	for program in every_kind cases facts; do
		sources=$tests/libevent_$program.c
		[ $program != every_kind ] || sources="$sources $tests/libevent_kinds_core.c $upper"
		[ $program$upper != facts-DCORE_ONLY ] || sources="-DCORE_ONLY $sources"
		# The lists are lists of words.
		# shellcheck disable=SC2086
		$CC -O1 -w -pthread -I"$top_builddir" -I"$1/include" -o "$work/$program" $sources \
			"$tests/counters.c" -L"$1/lib" -levent -levent_pthreads -ldl || exit 99
	done
}

# run PREFIX PROGRAM ARGUMENTS...: recorded, with the libevent there; its counters go to $work/counters.
run() {
	prefix=$1
	shift
	rm -rf "$work/trace" "$work"/counters*
	env DIAL9_TRACE_DIR="$work/trace" \
		LD_LIBRARY_PATH="$prefix/lib:$libraries:$top_builddir/core/.libs" \
		LD_PRELOAD="$libraries/libdial9-preload.so" timeout 60 "$@" --out="$work/counters"
	set -- $?
	[ ! -e "$work/trace" ] || "$top_builddir/core/dial9" recover "$work/trace" >/dev/null
	return "$1"
}

# compare COUNTERS OPTIONS...: with the trace of the process that wrote them.
compare() {
	counters=$1
	shift
	pid=$(sed -n 's/^pid //p' "$counters")
	if "$here/compare_counts" "$work"/trace/*-"$pid" "$counters" "$@" >"$work/out"; then
		passed=$((passed + 1))
	else
		cat "$work/out"
		fail "the trace differs from the program's own counters"
	fi
}
