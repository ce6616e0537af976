# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2154
# Sourced by tests that record a program and ship what it leaves, after store.sh: the preload library, and ./timer to record.

# shellcheck disable=SC2034 # used where this is sourced
preload=$(cd "$top_builddir" && pwd)/adapters/.libs/libdial9-preload.so

# ./timer TIMES [STATUS]: a timer of libevent, 1 ms apart, then that exit status; TIMES 0: until a signal, or for 5 minutes.
cat >timer.c <<'END'
#include <event2/event.h>
#include <stdlib.h>
#include <unistd.h>

static struct event *timer;
static long left;

static void on_timer(evutil_socket_t fd, short what, void *base)
{
	struct timeval next = { 0, 1000 };

	(void)fd;
	(void)what;
	if (left && !--left)
		event_base_loopbreak(base);
	else
		event_add(timer, &next);
}

int main(int argc, char **argv)
{
	struct event_base *base = event_base_new();

	left = argc > 1 ? atol(argv[1]) : 0;
	alarm(300);
	timer = evtimer_new(base, on_timer, base);
	on_timer(-1, 0, base);
	event_base_dispatch(base);
	return argc > 2 ? atoi(argv[2]) : 0;
}
END
${CC:-cc} -o timer timer.c -levent 2>errors || { echo "no libevent to build with: $(head -n 1 errors)"; exit 77; }

# await COMMAND...: until it succeeds.
await() {
	tries=0
	until "$@"; do
		tries=$((tries + 1))
		[ $tries -lt 1200 ] || fail "waited for a minute: $*"
		sleep 0.05
	done
}

# has_sealed DIR: a segment is sealed below it.
has_sealed() {
	[ -n "$(find "$1" -name 'trace.*.bin.zst' 2>/dev/null)" ]
}

# has_active DIR: a recorder writes there.
has_active() {
	[ -n "$(find "$1" -name 'trace.*.active' 2>/dev/null)" ]
}

# segments DIR: how many are sealed.
segments() {
	find "$1" -name 'trace.*.bin.zst' | wc -l | tr -d ' '
}
