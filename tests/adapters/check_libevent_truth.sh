#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A libevent that counts for itself, where it calls callbacks and backends: the trace has as many polls and
# parks, and tells of as many dispatches that did not wait.
set -u

: "${top_srcdir:=$(cd "$(dirname "$0")/../.." && pwd)}" "${top_builddir:?is a built tree}"
. "$top_srcdir/tests/adapters/other_libevent.sh"

unpack libevent "$work/plain" || skip "$no_sources"
cat >"$work/counters.h" <<'END'
#include <stdio.h>
#include <stdlib.h>
static unsigned long d9_callbacks, d9_waits, d9_zero;
#define D9_COUNT(counter) __atomic_fetch_add(&counter, 1, __ATOMIC_RELAXED)
#define D9_DISPATCH(timeout)                                     \
	((timeout) && !(timeout)->tv_sec && !(timeout)->tv_usec ? \
		 D9_COUNT(d9_zero) :                              \
		 D9_COUNT(d9_waits))
static __attribute__((destructor)) void d9_tell(void)
{
	const char *path = getenv("D9_TRUTH");
	FILE *out = path ? fopen(path, "w") : NULL;

	if (!out)
		return;
	fprintf(out, "callbacks %lu waits %lu zero %lu\n", d9_callbacks, d9_waits, d9_zero);
	fclose(out);
}
END
# The places where a loop calls something; finalizers that event_base_free() runs are none.
cp "$work/plain/event.c" "$work/event.c"
sed -i -e "1i #include \"$work/counters.h\"" \
	-e 's/^[ \t]*(\*ev->ev_callback)(ev->ev_fd, ev->ev_res, ev->ev_arg);/D9_COUNT(d9_callbacks);&/' \
	-e 's/^[ \t]*(evcb_callback)(evcb_fd, evcb_res, evcb_arg);/D9_COUNT(d9_callbacks);&/' \
	-e 's/^[ \t]*evcb_callback(ev->ev_fd, res, ev->ev_arg);/D9_COUNT(d9_callbacks);&/' \
	-e 's/^[ \t]*evcb_selfcb(evcb, evcb->evcb_arg);/D9_COUNT(d9_callbacks);&/' \
	-e 's/^[ \t]*evcb_evfinalize(ev, ev->ev_arg);/D9_COUNT(d9_callbacks);&/' \
	-e 's/^[ \t]*evcb_cbfinalize(evcb, evcb->evcb_arg);/D9_COUNT(d9_callbacks);&/' \
	-e 's/^[ \t]*res = evsel->dispatch(base, tv_p);/D9_DISPATCH(tv_p);&/' \
	"$work/event.c"
[ "$(grep -c '^D9_' "$work/event.c")" = 7 ] || {
	echo "libevent's event.c reads otherwise now: mend the sed"
	exit 99
}
mv "$work/event.c" "$work/plain/event.c"
"$top_srcdir/tests/support/build_libevent.sh" "$work/plain" "$work/usr" >"$work/log" || {
	cat "$work/log"
	exit 99
}
compile_programs "$work/usr"
export D9_TRUTH="$work/truth"

# held VARIABLES... PROGRAM ARGUMENTS...: against both counts.
held() {
	scenario=$*
	rm -f "$D9_TRUTH"
	run "$work/usr" env "$@" >"$work/said" 2>&1 || {
		cat "$work/said"
		fail "its status"
	}
	compare "$work/counters" --truth "$D9_TRUTH"
}

held "$work/every_kind"
held "$work/every_kind" --threads
held "$work/every_kind" --threads --debug
held "$work/every_kind" --reinit
held EVENT_NOEPOLL=1 "$work/every_kind" --threads
held EVENT_NOEPOLL=1 EVENT_NOPOLL=1 "$work/every_kind" --threads
held EVENT_EPOLL_USE_CHANGELIST=1 "$work/every_kind" --reinit
held "$work/cases" tasks
held "$work/cases" nested
held "$work/cases" longjmp
held "$work/cases" compat
held "$work/cases" periodic

echo "$passed traces equal to libevent's own counters, $failed failures"
[ $failed -eq 0 ]
