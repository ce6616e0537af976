#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The live table of callbacks, on a pipe and in a terminal, from segments of each packing and a ring.
# shellcheck source=tests/cli/harness.sh
. "$top_srcdir/tests/cli/harness.sh"

need_preload
cat >prog.c <<'END_C'
#include <event2/event.h>
#include <time.h>
#include <unistd.h>

/* Sleeps, so that it takes long on any machine. */
static void slow_one(evutil_socket_t fd, short what, void *arg)
{
	const struct timespec t = { 0, 2000000 };

	(void)fd;
	(void)what;
	(void)arg;
	nanosleep(&t, NULL);
}

static void quick_one(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
}

int main(void)
{
	static const struct timeval period = { 0, 10000 };
	struct event_base *base = event_base_new();

	alarm(300); /* longer than the test may take */
	event_add(event_new(base, -1, EV_PERSIST, quick_one, NULL), &period);
	event_add(event_new(base, -1, EV_PERSIST, slow_one, NULL), &period);
	return event_base_dispatch(base);
}
END_C
$CC -g -o prog prog.c -levent 2>errors || skip "no libevent to build with: $(head -n 1 errors)"

# start DIR VARIABLE=VALUE: a recorded program, $pid, of which both callbacks can be seen.
start() {
	env "$2" DIAL9_TRACE_DIR="$work/$1" LD_PRELOAD="$top_builddir/adapters/.libs/libdial9-preload.so" \
		./prog &
	pid=$!
	tries=0
	until "$dial9" top --json "$pid" 2>/dev/null >json && grep -q quick_one json && grep -q slow_one json; do
		tries=$((tries + 1))
		[ $tries -lt 200 ] || { echo "never seen" && break; }
		sleep 0.1
	done
}

stop() {
	kill "$pid"
	wait "$pid" 2>/dev/null
	# Its ring would stay.
	"$dial9" recover "${how#*=}" >/dev/null 2>&1
}

# Figures as N; what is left is the order and the shape.
shape() {
	sed -e 's/([0-9]*)/(PID)/' -e 's/[0-9][0-9.]*\( [mun]*s\)*/N/g' -e 's/  */ /g' -e 's/N calls a second, loops N %/FIGURES/'
}

for how in DIAL9_COMPRESS=zstd DIAL9_COMPRESS=gzip DIAL9_COMPRESS=none DIAL9_MODE=flight; do
	say "$how"
	start "${how#*=}" "$how"
	"$dial9" top --once --interval 5s "$pid" | shape
	[ $how = DIAL9_MODE=flight ] || stop
done

say "the slow one comes first, its calls take what they take"
"$dial9" top --json --interval 5s "$pid" | tr '{}' '\n' | grep '_one' |
	sed 's/.*"callback":"\([a-z_]*\)".*"max_ns":\([0-9]*\).*/\1 \2/' |
	awk '{ print $1, $1 == "slow_one" ? ($2 >= 2000000) : ($2 > 0) }'
"$dial9" top --once --rows 1 --no-symbols --interval 5s "$pid" | sed -n '3s/.*\(prog+0x\).*/\1/p; 4p'

say "in a terminal: one table after the other, until it ends"
(
	# Ends with the program, which ends when the second table is there.
	script -qec "stty rows 10 cols 70; $dial9 top --interval 50ms $pid" /dev/null >screen 2>&1 </dev/null
	echo "[exit status $?]" >ended
) &
tries=0
: >screen # the other shell may be slow to make it
until [ "$(grep -c 'CALLBACK' screen)" -ge 2 ] || [ $tries = 200 ]; do
	tries=$((tries + 1))
	sleep 0.1
done
stop
wait
cat ended
[ "$(grep -c 'CALLBACK' screen)" -ge 2 ] && echo "two tables and more"
grep -q 'slow_one' screen && echo "with the callbacks"

say "processes that cannot be looked at, and usage"
run top 2147483647
run top
run top x
run top --interval 1ms 1

finish ''
