#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Many compilers link with --as-needed: an adapter of which nothing is called is dropped, as the man
# pages say; the call that attaches a loop keeps it, in either order.
set -u

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0 tried=0

# program NAME DECLARATION CALL
program() {
	cat >"$work/$1.c" <<END
#ifdef ATTACH
$2
#endif
int main(void)
{
#ifdef ATTACH
	return $3 == 0;
#else
	return 0;
#endif
}
END
}

# link NAME FLAG LIBRARIES...: whether the program needs the adapter in the end.
link() {
	name=$1 flag=$2
	shift 2
	# shellcheck disable=SC2086 # no flag is no word
	$CC $flag -o "$work/$name" "$work/$name.c" -Wl,--as-needed -L"$top_builddir/adapters/.libs" \
		-L"$top_builddir/core/.libs" -Wl,-rpath-link,"$top_builddir/core/.libs" "$@" || exit 99
	readelf -d "$work/$name" | grep -c "NEEDED.*libdial9-$name"
}

expect() {
	tried=$((tried + 1))
	[ "$2" = "$3" ] || {
		echo "FAILED: $1: $2 instead of $3"
		failed=$((failed + 1))
	}
}

# check NAME LOOP-LIBRARY: where it was built.
check() {
	[ -e "$top_builddir/adapters/.libs/libdial9-$1.so" ] || return 0
	expect "$1 without a call" "$(link "$1" "" "$2" "-ldial9-$1")" 0
	expect "$1 before its loop" "$(link "$1" -DATTACH "-ldial9-$1" "$2")" 1
	expect "$1 behind its loop" "$(link "$1" -DATTACH "$2" "-ldial9-$1")" 1
}

program libevent "int d9_event_base_attach(void *base);" "d9_event_base_attach(0)"
program libev "int d9_ev_loop_attach(void *loop);" "d9_ev_loop_attach(0)"
program glib "int d9_g_main_context_attach(void *context);" "d9_g_main_context_attach(0)"
check libevent -levent
check libev -lev
check glib -lglib-2.0
echo "$tried programs linked, $failed failures"
[ $tried -gt 0 ] || exit 77
[ $failed -eq 0 ]
