#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Programs that use every kind of libev watcher and count for themselves, recorded in every way
# there is: each callback must have as many polls in the trace as the program counted, and the
# program must run as it does alone.
set -u

# Preloading comes before the sanitizer's runtime: no harm, our library defines nothing of libc's.
export ASAN_OPTIONS="${ASAN_OPTIONS-}:verify_asan_link_order=0"
library=libev
# shellcheck source=tests/adapters/counted.sh
. "$top_srcdir/tests/adapters/counted.sh"

every_kind=$here/libev_every_kind
by_preload="LD_PRELOAD=$preload"
full="--wakes --has poll=full --has park=on --has wake=full --has spawn=on --has lateness=on"

"$every_kind" --out="$work/alone" || exit 99
for backend in select poll epoll; do
	record "preloaded, $backend" "$by_preload" "$full" "$every_kind" --backend=$backend
	same_log
	for order in before behind lazy noplt; do
		record "linked $order, $backend" "" "$full" "$here/libev_linked_$order" --attach \
			--backend=$backend
		same_log
	done
done
record "preloaded, bound at once" "$by_preload LD_BIND_NOW=1" "$full" "$every_kind"
record "preloaded and attached" "$by_preload" "$full" "$here/libev_linked_behind" --attach
record "adapter loaded RTLD_LOCAL" "" "$full" "$every_kind" --adapter="$adapter"
for when in before after; do
	record "own callbacks set $when" "" "$full" "$here/libev_linked_before" --attach \
		--callbacks=$when
	record "own callbacks, preloaded, set $when" "$by_preload" "$full" "$every_kind" \
		--callbacks=$when
done
record "libev loaded RTLD_LOCAL" "$by_preload" "$full" "$here/loader" \
	"$here/.libs/every_ev_kind.so"
record "both loaded RTLD_LOCAL" "" "$full" "$here/loader" \
	"$here/.libs/every_ev_kind.so" --adapter="$adapter"

# What goes wrong easily.
cases=$here/libev_cases
for name in longjmp eintr recreated allocator garbage many; do
	record "$name" "$by_preload" "--wakes --has poll=full" "$cases" $name
done
# What libev forgets when the loop ends is no leak of ours.
record "ev_once() on a loop that ends before" "$by_preload ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0" \
	"--wakes --has poll=full" "$cases" once
record "asyncs sent without waiting, and by a handler" "$by_preload" "" "$cases" sent
record "an adapter that is closed again" "" "" "$cases" closed --adapter="$adapter"
record "loops that come and go, adapter loaded late" "" "" "$cases" recreated --adapter="$adapter"
for how in "$by_preload:" ":--adapter=$adapter"; do
	# shellcheck disable=SC2086
	record "loops without end, ${how##*/}" "${how%%:*}" "" "$cases" endless ${how#*:}
	workers=$("$top_builddir/core/dial9" events -e PollStartEvent "$work/trace" |
		sed 's/.*"worker_id":\([0-9]*\).*/\1/' | sort -u)
	[ "$workers" = 0 ] || fail "its polls are on the lanes $workers"
done
record "C++ exceptions, and libev's C++ watchers" "$by_preload" "$full" "$here/libev_throw"
record "sleeps that collect events" "$by_preload" "" "$cases" collect
parks=$(sed -n 's/.* parks \([0-9]*\),.*/\1/p' "$work/out")
[ "$parks" -ge 20 ] || fail "$parks parks in 20 sleeps"
[ ! -x "$here/libev_beside" ] ||
	record "beside a loop of libevent's, and one in the other" "$by_preload" "--has poll=full" \
		"$here/libev_beside"

scenario="an allocator that hides sizes, adapter loaded late"
said=$("$cases" allocator --adapter="$adapter" 2>&1)
case $said in "" | *"d9_ev_loop_attach: want 0, is -95") ;; *) fail "attach said $said" ;; esac

# capability TEXT: the trace in $work/trace has it.
capability() {
	"$top_builddir/core/dial9" info "$work/trace" | grep -q "$1" || {
		"$top_builddir/core/dial9" info "$work/trace" | grep -A3 libev
		fail "the trace does not say $1"
	}
}

# Where something is refused the program runs on as alone, and what is missing is named.
if [ "$SANITIZER" = no ]; then
	scenario="pages refused"
	said=$(D9_PAGES=refused "$here/libev_refused") || fail "the program did not run as alone"
	[ "$said" = "0 wake=off spawn=off" ] || fail "attach said $said"
	scenario="memory refused"
	"$here/libev_refused" memory || fail "status $?"
	scenario="reading memory refused"
	"$every_kind" --out="$work/alone" && rm -rf "$work/trace"
	env "$by_preload" DIAL9_TRACE_DIR="$work/trace" "$here/libev_refused" "$every_kind" \
		--out="$work/counters" || fail "status $?"
	same_log
	capability "poll=batch"
	capability "reading memory is refused"
fi

if [ -x "$here/libevent_emulated" ]; then
	scenario="on libev's emulation of libevent"
	rm -rf "$work/trace"
	said=$(env "$by_preload" DIAL9_TRACE_DIR="$work/trace" "$here/libevent_emulated" 2>&1) || fail "its status"
	[ "$said" = "5 1" ] || fail "it said $said"
	capability "poll=partial"
	capability "emulation of libevent is in use"
fi

scenario="300000 scripts, and memory that is no loop"
said=$("$here/libev_drains") || fail "attach did not refuse, or has touched it"
[ "$said" = 0 ] || fail "$said went otherwise"

finish
