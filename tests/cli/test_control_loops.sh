#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Programs on each loop library, started inert: seen by status and doctor, switched on, watched,
# rotated, switched off again; by their user and root alone.
# shellcheck source=tests/cli/harness.sh
. "$top_srcdir/tests/cli/harness.sh"

# Each calls on_timer() every millisecond, and prints how it ended when it is told to by SIGTERM.  All wait
# for their turn, so the alarm is longer than a test may take.
cat >libevent.c <<'END'
#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
}

static void on_signal(evutil_socket_t fd, short what, void *base)
{
	(void)fd;
	(void)what;
	event_base_loopbreak(base);
}

int main(void)
{
	static const struct timeval period = { 0, 1000 };
	struct event_base *base = event_base_new();
	struct event *timer = event_new(base, -1, EV_PERSIST, on_timer, NULL);

	alarm(300);
	event_add(evsignal_new(base, SIGTERM, on_signal, base), NULL);
	event_add(timer, &period);
	event_base_dispatch(base);
	puts("ended by itself");
	return 7;
}
END
cat >libev.c <<'END'
#include <ev.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static void on_timer(struct ev_loop *loop, ev_timer *timer, int what)
{
	(void)loop;
	(void)timer;
	(void)what;
}

static void on_signal(struct ev_loop *loop, ev_signal *watcher, int what)
{
	(void)watcher;
	(void)what;
	ev_break(loop, EVBREAK_ALL);
}

int main(void)
{
	struct ev_loop *loop = ev_default_loop(0);
	ev_timer timer;
	ev_signal term;

	alarm(300);
	ev_signal_init(&term, on_signal, SIGTERM);
	ev_signal_start(loop, &term);
	ev_timer_init(&timer, on_timer, 0.001, 0.001);
	ev_timer_start(loop, &timer);
	ev_run(loop, 0);
	puts("ended by itself");
	return 7;
}
END
cat >glib.c <<'END'
#include <glib-unix.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static gboolean on_timer(gpointer arg)
{
	(void)arg;
	return G_SOURCE_CONTINUE;
}

static gboolean on_signal(gpointer loop)
{
	g_main_loop_quit(loop);
	return G_SOURCE_CONTINUE;
}

int main(void)
{
	GMainLoop *loop = g_main_loop_new(NULL, FALSE);

	alarm(300);
	g_unix_signal_add(SIGTERM, on_signal, loop);
	g_timeout_add(1, on_timer, NULL);
	g_main_loop_run(loop);
	puts("ended by itself");
	return 7;
}
END
$CC -g -o libevent libevent.c -levent 2>errors || skip "no libevent to build with: $(head -n 1 errors)"
$CC -g -o libev libev.c -lev 2>errors || skip "no libev to build with: $(head -n 1 errors)"
# shellcheck disable=SC2046 # a list of words
$CC -g -o glib glib.c $(pkg-config --cflags --libs glib-2.0 2>errors) 2>>errors ||
	skip "no GLib to build with: $(head -n 1 errors)"

# until_status PATTERN: the recorder of $pid says so; an answer in the end, whatever it is.
until_status() {
	tries=0
	until "$dial9" status -j "$pid" 2>/dev/null >json && grep -q "$1" json; do
		tries=$((tries + 1))
		[ $tries -lt 100 ] || { echo "never: $1" && break; }
	done
}

recorded() {
	"$dial9" status -j "$pid" | sed 's/.*"events":{"recorded":\([0-9]*\).*/\1/'
}

libraries="libevent libev glib"
for library in $libraries; do
	DIAL9_ENABLED=false DIAL9_TRACE_DIR="$work/$library.trace" \
		LD_PRELOAD="$top_builddir/adapters/.libs/libdial9-preload.so" ./$library >$library.said &
	echo $! >$library.pid
done

for library in $libraries; do
	pid=$(cat $library.pid)
	say "$library, started inert"
	until_status '"state":"disabled"'
	grep -o "loop.$library.capabilities\":\"[a-z]*=" json | sed 's/=$//'
	grep -q '"workers":\[\]' json && echo "no loop recorded"
	[ "$(recorded)" = 0 ] || echo "it recorded"
	[ ! -e $library.trace ] || echo "it made a directory"
	for command in enable rotate disable enable; do
		"$dial9" $command "$pid" || echo "dial9 $command: status $?"
	done
	until_status '"recorded":[1-9][0-9][0-9]'
	grep -o '"state":"[a-z]*"' json | head -n 1
	grep -o '"id":[0-9]*' json
	tries=0
	# Names need the list of modules, which a segment brings.
	until "$dial9" top --once --interval 1s "$pid" | grep -q on_timer || [ $tries -eq 50 ]; do
		tries=$((tries + 1))
		sleep 0.1
	done
	[ $tries -eq 50 ] || echo on_timer
	"$dial9" rotate "$pid"
	"$dial9" disable "$pid"
	until_status '"state":"disabled"'
	before=$(recorded)
	[ "$(recorded)" = "$before" ] || echo "it records on"
done

say "all of them, in status and doctor"
# Of rings that others have left damaged both say so.
"$dial9" status >table 2>others
"$dial9" doctor -- ./nothing >found 2>others
for library in $libraries; do
	pid=$(cat $library.pid)
	awk -v pid="$pid" '$1 == pid { print $2, $3, $5 }' table
	tr -s ' \n' ' ' <found | grep -o "[a-z]* ($pid, disabled)" | sed "s/$pid/PID/"
done

say "by nobody else"
if [ "$(id -u)" = 0 ] && setpriv --reuid=65534 --clear-groups "$dial9" --version >out 2>&1; then
	for command in enable disable rotate dump top status; do
		setpriv --reuid=65534 --clear-groups "$dial9" $command "$pid" >out 2>err
		echo "$command: status $? $(cat out)"
		sed "s/process $pid/process PID/; s/^/  /" err
	done
	setpriv --reuid=65534 --clear-groups "$dial9" status 2>others | grep -c " glib "
else
	sed -n '/^# by nobody else/,/^$/{/^[^#"]/p;}' "$expected"
fi
"$dial9" status -j "$pid" | grep -o '"state":"[a-z]*"' | head -n 1

say "they end as alone, and the trace has what was on"
for library in $libraries; do
	kill "$(cat $library.pid)"
	wait "$(cat $library.pid)"
	echo "$library: status $?, $(cat $library.said)"
	"$dial9" info $library.trace | awk '$1 == "PollStartEvent" { print ($2 > 20) ? "polls" : "none" }'
	"$dial9" report --json $library.trace | grep -o '"name": *"on_timer"' | head -n 1
done

finish ''
