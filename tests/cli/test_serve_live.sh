#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# `dial9 serve --live DIR` and `--pid PID`: what is followed, and the line where there is nothing to follow.
# shellcheck source=tests/cli/harness.sh
. "$top_srcdir/tests/cli/harness.sh"

"$dial9" serve /nonexistent 2>&1 | grep -q 'built without libevent' && skip "built without libevent"
cat >prog.c <<'END_C'
#include <event2/event.h>
#include <unistd.h>

static void tick(evutil_socket_t fd, short what, void *arg)
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
	event_add(event_new(base, -1, EV_PERSIST, tick, NULL), &period);
	return event_base_dispatch(base);
}
END_C
$CC -g -o prog prog.c -levent 2>errors || skip "no libevent to build with: $(head -n 1 errors)"

# start DIR VARIABLE=VALUE: a recorded program, $pid, whose recorder runs.
start() {
	env "$2" DIAL9_TRACE_DIR="$work/$1" LD_PRELOAD="$top_builddir/adapters/.libs/libdial9-preload.so" ./prog &
	pid=$!
	trap 'kill $pid $server 2>/dev/null; rm -rf "$work"' EXIT
	until "$dial9" top --json $pid 2>/dev/null | grep -q tick; do
		kill -0 $pid || return
		sleep 0.1
	done
}

# serve ARGUMENT...: $url.
serve() {
	: >address
	"$dial9" serve "$@" >address &
	server=$!
	until url=$(cat address) && [ -n "$url" ]; do
		kill -0 $server || return
	done
}
end_server() {
	kill -INT $server
	wait $server
	echo "[exit status $?]"
}
ask() {
	python3 "$top_srcdir/tests/cli/ask_http.py" "$url" "$@"
}
server=

say "a running program by its id: its own directory, live"
start traces DIAL9_COMPRESS=none
serve --pid $pid
ask --path /TOKEN/api/segments --save listing
grep -o '"live": *[a-z]*' listing
grep -o '"name": *"trace[^"]*"' listing | sed 's/[0-9][0-9]*/N/'

say "a segment from some byte on; beyond its end there is nothing"
name=$(grep -o 'segment/trace[^"]*' listing | head -n 1)
ask --path "/TOKEN/$name" --save all
ask --path "/TOKEN/$name?from=5" --save rest
tail -c +6 all | cmp -n $(($(wc -c <all) - 5)) - rest && echo "the rest"
for from in 1e15 -7 x; do
	ask --path "/TOKEN/$name?from=$from" --save rest
	if [ "$(wc -c <rest)" -gt 5 ]; then echo all; else wc -c <rest; fi
done
end_server
kill $pid
wait $pid 2>/dev/null
"$dial9" recover traces >recovered 2>&1

say "in flight mode nothing is on disk"
start flight DIAL9_MODE=flight
run serve --pid $pid
kill $pid
wait $pid 2>/dev/null

say "processes that have ended, were never there, or are not recorded"
run serve --pid $pid
"$dial9" recover flight >recovered 2>&1
run serve --pid $pid
run serve --pid $$
for id in 0 x 4294967296; do
	run serve --pid $id
done
run serve --pid $$ traces
run serve --pid $$ --summary

say "a directory that is followed may be empty, but has to be one"
mkdir empty
serve --live empty
ask --path /TOKEN/api/segments --save listing
grep -c '"name": *"trace' listing
end_server
run serve --live missing
run serve --live prog
run serve --live

finish 's/process [1-9][0-9]*/process PID/; s/\(top\|dump\) [0-9][0-9]*/\1 PID/g; s/--pid [1-9][0-9][0-9]* *$/--pid PID/; s/--pid [1-9][0-9]* \([t-]\)/--pid PID \1/'
