#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The programs that count for themselves, with libevs other than the installed one, made from the
# source in $D9_TEST_SOURCES: what has moved is found, what is another libev is refused with the
# reason, and a plugin with a libev of its own runs as it does alone.
set -u
library=libev
# shellcheck source=tests/adapters/counted.sh
. "$top_srcdir/tests/adapters/counted.sh"

for tarball in "${D9_TEST_SOURCES:-/nonexistent}"/libev_*.orig.tar.*; do
	[ -f "$tarball" ] ||
		skip "no sources: run tests/support/fetch_sources.sh DIR and set D9_TEST_SOURCES=DIR"
	mkdir "$work/plain" && tar -xf "$tarball" -C "$work/plain" --strip-components=1 || exit 99
done
every_kind=$here/libev_every_kind
found=$LD_LIBRARY_PATH

# build NAME FLAG...: from a copy of the source, which was changed unless it is called plain or by flags.
build() {
	name=$1
	shift
	scenario=$name
	[ $# -gt 0 ] || [ "$name" = plain ] || ! diff -rq "$work/plain" "$work/$name" >/dev/null ||
		fail "the source reads otherwise now: mend the sed"
	mkdir "$work/$name/lib"
	$CC -shared -fPIC -O1 -w -DEV_STANDALONE=1 "$@" -Wl,-soname,libev.so.4 \
		-o "$work/$name/lib/libev.so.4" "$work/$name/ev.c" -lm || exit 99
	export LD_LIBRARY_PATH="$work/$name/lib:$found"
	# What the program logs alone; libevs differ in that.
	[ "$name" = range ] || "$every_kind" --out="$work/alone" || fail "it does not run alone"
}

copy() {
	cp -R "$work/plain" "$work/$1"
	rm -rf "${work:?}/$1/lib"
}

full="--wakes --has poll=full --has park=on --has spawn=on --has lateness=on"

build plain
record "built again" "LD_PRELOAD=$preload" "$full --has wake=full" "$every_kind"
same_log

copy front
sed -i 's/^VARx(ev_tstamp, now_floor)/VARx(long, d9_front0)\nVARx(long, d9_front1)\nVARx(void *, d9_front2)\n&/' \
	"$work/front/ev_vars.h"
build front
record "members in front" "LD_PRELOAD=$preload" "$full --has wake=full" "$every_kind"
same_log

copy moved
sed -i -e '/^VARx(int, pendingpri)/d' -e 's/^VARx(int, loop_count)\|^VAR (invoke_cb/VARx(int, pendingpri)\n&/' \
	"$work/moved/ev_vars.h"
build moved
record "the priority elsewhere" "LD_PRELOAD=$preload" "$full --has wake=full" "$every_kind"
same_log

copy bound
build bound -Wl,-Bsymbolic
record "its own calls bound inside" "LD_PRELOAD=$preload" "$full --has wake=public" "$every_kind"
same_log

# refused "REASON" PROGRAM...: in one poll for all that is pending.
refused() {
	reason=$1
	shift
	rm -rf "$work/trace"
	env LD_PRELOAD="$preload" DIAL9_TRACE_DIR="$work/trace" "$@" >/dev/null || fail "status $?"
	"$top_builddir/core/dial9" info "$work/trace" >"$work/info"
	if ! grep -q "poll=batch" "$work/info" || ! grep -q "$reason" "$work/info"; then
		grep -A3 libev "$work/info"
		fail "the trace does not tell of: $reason"
	fi
	passed=$((passed + 1))
}

copy order
sed -i 's/^          ANPENDING \*p = pendings \[pendingpri\] + --pendingcnt \[pendingpri\];/\
          ANPENDING *p = pendings [pendingpri] + pendingcnt [pendingpri] - 1;\
          if (pendingcnt [pendingpri] > 1)\
            {\
              ANPENDING last = p[0]; p[0] = p[-1]; p[-1] = last;\
              p[0].w->pending++; p[-1].w->pending--;\
            }\
          --pendingcnt [pendingpri];/' "$work/order/ev.c"
build order
refused "differential test" "$every_kind" --out="$work/counters"
same_log

copy range
build range -DEV_MINPRI=-1 -DEV_MAXPRI=1
refused "priority range" "$top_builddir/adapters/dial9-selftest-libev"

# A plugin that has a visible libev in it, with other watchers, other priorities and other members.
LD_LIBRARY_PATH=$found
scenario="a plugin with a libev of its own"
tests=$top_srcdir/tests/adapters
$CC -shared -fPIC -O1 -w -pthread -DEV_STANDALONE=1 -DEV_MINPRI=-5 -DEV_MAXPRI=5 -Dmain=every_kind_main \
	'-DEV_COMMON=void *data; long d9_more[5];' -I"$top_builddir" -I"$work/plain" -o "$work/plugin.so" \
	"$work/plain/ev.c" "$tests/libev_every_kind.c" "$tests/libev_kinds_core.c" \
	"$tests/libev_kinds_extra.c" "$tests/counters.c" -lm -ldl || exit 99
"$here/loader" "$work/plugin.so" --out="$work/alone" || fail "it does not run alone"
env LD_PRELOAD="$preload" DIAL9_TRACE_DIR="$work/trace" "$here/loader" "$work/plugin.so" \
	--out="$work/counters" || fail "status $?"
same_log

finish
