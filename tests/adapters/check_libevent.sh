#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Programs that use every kind of libevent callback and count for themselves, recorded in every
# way there is: each callback must have as many polls, or spans, in the trace as the program
# counted, and the program must run as it does alone.
set -u

# Preloading comes before the sanitizer's runtime: no harm, our library defines nothing of libc's.
export ASAN_OPTIONS="${ASAN_OPTIONS-}:verify_asan_link_order=0"
library=libevent
# shellcheck source=tests/adapters/counted.sh
. "$top_srcdir/tests/adapters/counted.sh"

every_kind=$here/libevent_every_kind
by_preload="LD_PRELOAD=$preload"
libevent=$(ldd "$every_kind" | sed -n 's/.*libevent-[^ ]* => \([^ ]*\).*/\1/p')
# As CMake builds 2.2, what activates callbacks is hidden: wakes are those of public calls then.
if nm -D "$libevent" | grep -qE ' T (event_callback_activate_nolock_|event_active_nolock)$'; then
	wakes="--wakes --has wake=full" told=wakes
else
	wakes="--has wake=public" told=public
fi
full="$wakes --has poll=full --has park=on --has task=event --has lateness=on"

"$every_kind" --threads --out="$work/alone" || exit 99
record "preloaded, threads" "$by_preload" "$full" "$every_kind" --threads
same_log
"$every_kind" --out="$work/alone" || exit 99
record "preloaded" "$by_preload" "$full" "$every_kind"
same_log

record "preloaded, poll" "$by_preload EVENT_NOEPOLL=1" "$full" "$every_kind" --threads
record "preloaded, select" "$by_preload EVENT_NOEPOLL=1 EVENT_NOPOLL=1" "$full" "$every_kind" \
	--threads
record "preloaded, changelist" "$by_preload EVENT_EPOLL_USE_CHANGELIST=1" "$full" "$every_kind" \
	--threads
record "preloaded, changelist, event_reinit" "$by_preload EVENT_EPOLL_USE_CHANGELIST=1" "$full" \
	"$every_kind" --reinit
record "preloaded, event_reinit" "$by_preload" "$full" "$every_kind" --reinit
record "preloaded, debug mode" "$by_preload" "$full" "$every_kind" --threads --debug
record "preloaded, bound at once" "$by_preload LD_BIND_NOW=1" "$full" "$every_kind"
# A sanitizer's allocator may be locked for ever in the child of a process with threads.
if [ "$SANITIZER" = no ]; then
	record "preloaded, fork" "$by_preload" "$full" "$every_kind" --threads \
		--fork=descriptors,timers,signals,once,bufferevents,http
	record "preloaded, fork, poll" "$by_preload EVENT_NOEPOLL=1" "$full" "$every_kind" \
		--fork=descriptors,timers,signals,once,bufferevents,http
	record daemon "$by_preload" "" "$here/libevent_cases" daemon
fi
record "preloaded and attached" "$by_preload" "$full" "$every_kind" --attach
record "adapter loaded RTLD_LOCAL" "" "$full" "$every_kind" --threads --adapter="$adapter"
for order in before behind between noplt; do
	record "linked $order" "" "$full" "$here/libevent_linked_$order" --threads --attach
done
record "libevent loaded RTLD_LOCAL" "$by_preload" "$full" "$here/loader" \
	"$here/.libs/every_kind.so" --threads
record "both loaded RTLD_LOCAL" "" "$full" "$here/loader" "$here/.libs/every_kind.so" \
	--adapter="$adapter"

record "who woke it and why, how many were ready" "$by_preload" "$wakes" "$here/libevent_facts" $told
record "what a server makes comes of its bind call" "$by_preload" "" "$here/libevent_facts" server

upper=$here/libevent_upper
record "callbacks at the end of something" "$by_preload" "" "$upper" closes
record "bufferevents at the same address" "$by_preload" "" "$upper" again
if [ "$SANITIZER" != address,undefined ]; then
	record "callbacks that leave their stack" "$by_preload" "" "$upper" coroutine
else
	echo "ASan prints a word of its own where stacks are changed: that case is left out"
fi

if [ -x "$here/libevent_tls" ]; then
	"$here/libevent_tls" --out="$work/alone" || exit 99
	record "TLS bufferevents" "$by_preload" "$full" "$here/libevent_tls"
else
	echo "no libevent_openssl with OpenSSL 3 to build with: TLS bufferevents are not tested"
fi

# A base that keeps exact time looked at its clock 5 ms ago: by the coarse clock that may be 1 ms.
if [ "$SANITIZER" = no ]; then
	set=$(timeout 60 "$top_builddir/core/dial9" record --quiet -o "$work/stale" -- "$here/libevent_stale" exact)
	told=$("$top_builddir/core/dial9" events "$work/stale" | grep -c '"event":"StaleTimerEvent"')
	# Where the kernel stops the program at the wrong moment the base is not known yet for what it is.
	[ "$told" -ge $((set - set / 8)) ] || {
		echo "FAILED: of $set timers that were set by a stale clock $told were told"
		failed=$((failed + 1))
	}
fi

# burns_told CASE: how often a loop was told that used CPU time in its wait, and whether it had a CPU.
burns_told()
{
	had=$(timeout 60 "$top_builddir/core/dial9" record --quiet -o "$work/burns-$1" -- "$here/libevent_burns" "$1")
	"$top_builddir/core/dial9" events "$work/burns-$1" | grep '"event":"StuckPollEvent"' | grep -c '"kind":"library"'
	return $((1 - had))
}

if [ "$SANITIZER" = no ]; then
	if told=$(burns_told signal) && [ "$told" -eq 0 ]; then
		echo "FAILED: a handler of signals that computes in the loop's wait is not told"
		failed=$((failed + 1))
	fi
	told=$(burns_told idle) || :
	[ "$told" -eq 0 ] || {
		echo "FAILED: a loop that sleeps was told $told times to use CPU time in its wait"
		failed=$((failed + 1))
	}
fi

cases=$here/libevent_cases
for name in tasks nested longjmp thread_exit closures late periodic lock_debug precise compat \
	two_threads; do
	record "$name" "$by_preload" "" "$cases" $name
done
# A sanitizer keeps what was freed.
[ "$SANITIZER" != no ] || record churn "$by_preload DIAL9_RING_MB=128" "" "$cases" churn
# Minutes, and more than the disk takes in that time: what is kept is looked at, not what is written.
if [ -n "${D9_LONG-}" ]; then
	scenario="ten million events"
	DIAL9_WRITER=null D9_CHURN=10000000 LD_PRELOAD=$preload "$cases" churn || fail "memory grows"
fi
# The size of the base is unknown then; its fields are found all the same (tor is such a program).
record allocator "$by_preload" "--has task=event --has lateness=on" "$cases" allocator
[ "$SANITIZER" != no ] || record unknown_event "$by_preload" "--has task=slot" "$cases" unknown_event
record "late_adapter" "" "" "$cases" late_adapter --adapter="$adapter"
record "late_adapter, RTLD_GLOBAL" "" "" "$cases" late_adapter --adapter="global:$adapter"
record "attached inside a callback" "" "" "$cases" attach_inside --adapter="$adapter"

scenario="errno, with a recorder that fails"
"$cases" errno --adapter=none --out="$work/alone" || exit 99
for failing in "DIAL9_TRACE_DIR=/proc/none" "DIAL9_TRACE_DIR=/proc/none DIAL9_RING=disk"; do
	# shellcheck disable=SC2086
	env $failing "$by_preload" "$cases" errno --adapter=none --out="$work/counters" || fail "its status"
	same_log
done
record "exceptions" "$by_preload" "" "$here/libevent_throw"

# A module with functions of its own needs RTLD_DEEPBIND, which sanitizers refuse.
if [ "$SANITIZER" = no ]; then
	"$here/libevent_host" "$here/.libs/plugin.so" "$here/.libs/foreign.so" || exit 99
	record "plugins" "$by_preload" "" "$here/libevent_host" "$here/.libs/plugin.so" \
		"$here/.libs/foreign.so"
	"$here/libevent_by_handle" "$libevent" "$here/.libs/foreign.so" || exit 99
	record "by handle" "$by_preload" "" "$here/libevent_by_handle" "$libevent" \
		"$here/.libs/foreign.so"
fi

if [ -x "$here/libevent_emulated" ]; then
	scenario="on libev's emulation of libevent"
	said=$(env "$by_preload" DIAL9_TRACE_DIR="$work/emulated" "$here/libevent_emulated" 2>&1) ||
		fail "its status"
	[ "$said" = "5 1" ] || fail "it said $said"
fi

# Where nothing can be recorded the program runs on, and attach says why.
scenario="no libevent in the process"
"$here/libevent_absent" || fail "attach did not say so"
scenario="pages refused"
said=$("$here/libevent_refused") || fail "the program did not run as alone"
[ "$said" = "-EPERM" ] || fail "attach said $said"

finish
