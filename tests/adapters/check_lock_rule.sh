#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Under libevent's base lock no function of libevent may be called.  This test builds the adapter with
# such a call in its dispatch wrapper and sees the program hang: so a slip would be noticed, and the
# adapter as it is, built the same way, does not make one.
set -eu

skip() {
	echo "$1"
	exit 77
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/sound" "$work/broken"
sed 's|^\tresult = base->original->dispatch(|\t(void)d9__real.event_base_get_num_events(event_base, D9__EVENT_COUNT_ACTIVE);\n&|' \
	"$top_srcdir/adapters/libevent/dispatch.c" >"$work/dispatch.c"
! cmp -s "$top_srcdir/adapters/libevent/dispatch.c" "$work/dispatch.c" || {
	echo "the dispatch wrapper reads otherwise now: mend the sed above"
	exit 1
}

# compile FOLDER SOURCE...
compile() {
	cd "$work/$1"
	shift
	$CC -std=gnu11 -O0 -fPIC -fexceptions -fvisibility=hidden -pthread -c -DHAVE_CONFIG_H -DPIC \
		-I"$top_srcdir/adapters/libevent" -I"$top_srcdir/adapters" -I"$top_builddir" \
		-I"$top_builddir/core/include" -I"$top_srcdir/core/include" \
		-I"$top_srcdir/adapters/include" -I"$top_srcdir/core" "$@"
}

# The adapter in a library of its own, bound to this tree's core; only one object differs.
(compile sound "$top_srcdir"/adapters/libevent/*.c)
cp "$work"/sound/*.o "$work/broken/"
(compile broken "$work/dispatch.c")
for kind in sound broken; do
	$CC -shared -pthread -o "$work/$kind/adapter.so" "$work/$kind"/*.o \
		-Wl,-z,now -Wl,-z,nodelete -Wl,-Bsymbolic -L"$top_builddir/core/.libs" -ldial9
done

# status KIND: of a program with threads enabled, whose events run on the attached loop.
status() {
	status=0
	LD_LIBRARY_PATH=$top_builddir/core/.libs DIAL9_TRACE_DIR=$work/trace \
		timeout -s KILL 10 "$top_builddir/tests/adapters/lock_rule" "$work/$1/adapter.so" ||
		status=$?
	echo $status
}

sound=$(status sound)
[ "$sound" = 0 ] || {
	echo "the adapter as it is: status $sound"
	exit 1
}
broken=$(status broken)
[ "$broken" = 137 ] || {
	echo "a call of libevent under its lock was not noticed: status $broken"
	exit 1
}
