#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# libevent as others build it, made from the distribution's static archive: bound inside itself
# (-Bsymbolic) and hidden inside a program.  What cannot be seen must be named, not guessed.
set -eu

skip() {
	echo "$1"
	exit 77
}

here=$top_builddir/tests/adapters
libraries=$top_builddir/adapters/.libs
archive=$($CC -print-file-name=libevent.a)
[ -f "$archive" ] || skip "there is no libevent.a"
command -v objcopy >/dev/null || skip "objcopy is not installed"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Its objects are no position independent code: stderr is the only data they take from outside.
mkdir "$work/objects" "$work/lib"
(
	cd "$work/objects"
	ar x "$archive"
	for object in *.o; do
		objcopy --redefine-sym stderr=stderr_here "$object"
	done
	cat >stderr_here.c <<-END
	#include <stdio.h>
	__attribute__((visibility("hidden"))) FILE *stderr_here;
	__attribute__((constructor)) static void init(void) { stderr_here = stderr; }
	END
	$CC -fPIC -c stderr_here.c
)
soname=$(ldd "$here/libevent_every_kind" | sed -n 's/.*\(libevent-[^ ]*\) => .*/\1/p')
$CC -shared -Wl,-Bsymbolic -Wl,-soname,"$soname" "$work"/objects/*.o -pthread \
	-o "$work/lib/$soname" 2>/dev/null || skip "libevent.a does not make a shared library here"

record() {
	rm -rf "$work/trace"
	env DIAL9_TRACE_DIR="$work/trace" \
		LD_LIBRARY_PATH="$work/lib:$libraries:$top_builddir/core/.libs" \
		LD_PRELOAD="$libraries/libdial9-preload.so" "$@" --out="$work/counters"
	[ ! -e "$work/trace" ] || "$top_builddir/core/dial9" recover "$work/trace" >/dev/null
	pid=$(sed -n 's/^pid //p' "$work/counters")
}

record "$here/libevent_every_kind"
"$here/compare_counts" "$work"/trace/*-"$pid" "$work/counters" --partial \
	--has poll=partial --has wake=public --has park=on

# Its lines are formatted inside it: those that the program's own log callback gets are told.
DIAL9_LOG_BRIDGE=debug record "$here/libevent_logs" >"$work/said" 2>/dev/null
"$top_builddir/core/dial9" events -e LogEvent "$work/trace" >"$work/lines"
[ "$(grep -c '^!' "$work/said")" -eq 4 ]
[ "$(grep -c '"library":"libevent","level":"warning"' "$work/lines")" -eq 4 ]

# Inside a program: nothing is touched, nothing is recorded.
$CC -o "$work/hidden" -Wl,--exclude-libs,ALL "$top_srcdir/tests/adapters/libevent_hidden.c" \
	"$archive" -pthread 2>/dev/null || skip "libevent.a cannot be linked here"
record "$work/hidden"
! test -e "$work/trace"
