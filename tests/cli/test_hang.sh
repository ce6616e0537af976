#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A callback that never returns: seen while it hangs, in what a kill leaves of it, and in the report.  Its innocent twin.
# shellcheck source=tests/cli/harness.sh
. "$top_srcdir/tests/cli/harness.sh"

[ -x "$top_builddir/examples/scenario_hang" ] || skip "no libevent to build the example with"
[ -x "$top_builddir/adapters/dial9-selftest-glib" ] || skip "no GLib to build a source with"

# begin VARIANT: the example in the background, $pid, which kills itself when all is long over.
begin() {
	DIAL9_SERVICE_NAME="$test_name-$$" DIAL9_TRACE_DIR="$work/$1" "$top_builddir/examples/scenario_hang" 300 "$1" >/dev/null &
	pid=$!
}

# wait_for TEXT: until the status of $pid has it; a hang is told when it is a second old.
wait_for() {
	tries=0
	until "$dial9" status --json "$pid" 2>/dev/null | grep -q "$1"; do
		tries=$((tries + 1))
		[ $tries -lt 300 ] || { echo "never in the status: $1"; break; }
	done
}

# end: killed as by a supervisor that lost patience, and recovered.
end() {
	kill -KILL "$pid"
	wait "$pid" 2>/dev/null
}

for variant in hang lock; do
	say "$variant"
	begin $variant
	# The background thread looks once a second; it may have to wait for a CPU.
	wait_for '"for_ns":[4-9][0-9]\{9\}'
	"$dial9" status "$pid" | grep 'running now'
	# Other tests cut rings short, and this lists all.
	"$dial9" status 2>/dev/null | grep -A 1 "^ *$pid " | grep 'running now'
	"$dial9" status --json "$pid" | grep -o '"running":\[[^]]*\]'
	"$dial9" top --once "$pid" | sed -n '2,3p; 5s/^.* \([^ ]* [^ ]* > [^ ]*\)$/\1/p'
	end
	# Of this directory: of all that are dead here only the latest two have lines.
	"$dial9" status --dir "$work/$variant" 2>/dev/null | grep -A 1 "^ *$pid " | grep 'ran when'
	"$dial9" recover "$work/$variant" >/dev/null
	"$dial9" report "$work/$variant" | grep -v ' awake' | sed -n '1,2p'
	"$dial9" report -v "$work/$variant" | sed -n '/CRITICAL/,/ended\./p'
	"$dial9" events --format text "$work/$variant" | grep -E 'LastSign|StuckPoll' | tail -n 1
done

say "a loop inside that nobody ends"
begin loop
wait_for '"for_ns":[4-9][0-9]\{9\}'
"$dial9" status "$pid" | grep 'running now'
"$dial9" status --json "$pid" | grep -o '"running":\[[^]]*\]'
"$dial9" top --once "$pid" | grep 'running now'
end
"$dial9" status --dir "$work/loop" 2>/dev/null | grep -A 1 "^ *$pid " | grep 'ran when'
"$dial9" recover "$work/loop" >/dev/null
"$dial9" report "$work/loop" | grep -v ' awake' | sed -n '1,2p'

# Its background thread sleeps from 1.7 s to 2.7 s, if nobody wakes it.
say "an idle program that blocks for a moment"
cat >nap.c <<'END'
#include <event2/event.h>
#include <unistd.h>

static void nap(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what, (void)arg;
	usleep(400000);
}

int main(void)
{
	struct event_base *base = event_base_new();

	event_base_once(base, -1, EV_TIMEOUT, nap, NULL, &(struct timeval){ 1, 800000 });
	return event_base_dispatch(base) < 0;
}
END
cc -g -rdynamic -o nap nap.c -levent || exit 99
"$dial9" record --quiet -o "$work/naps" -- ./nap
"$dial9" report "$work/naps" | grep -m 1 '^!'

say "a loop that stands still outside of callbacks"
cat >device.c <<'END'
#include <glib.h>
#include <stdlib.h>
#include <unistd.h>

static int rounds, hang;

static gboolean device_check(GSource *source)
{
	(void)source;
	if (++rounds == 5 && hang)
		pause();
	return FALSE;
}

static gboolean device_prepare(GSource *source, gint *timeout)
{
	(void)source;
	*timeout = 10;
	return FALSE;
}

static gboolean device_dispatch(GSource *source, GSourceFunc callback, gpointer data)
{
	(void)source, (void)callback, (void)data;
	return TRUE;
}

static GSourceFuncs functions = { .prepare = device_prepare, .check = device_check, .dispatch = device_dispatch };

int main(int argc, char **argv)
{
	GMainLoop *loop = g_main_loop_new(NULL, FALSE);

	hang = argc == 1;
	g_source_attach(g_source_new(&functions, sizeof(GSource)), NULL);
	alarm(300);
	/* Goes round by itself, and sleeps in between. */
	while (argc > 1 && *argv[1] == 'o') {
		g_main_context_iteration(NULL, FALSE);
		sleep(3);
	}
	g_main_loop_run(loop);
	return 0;
}
END
# shellcheck disable=SC2046 # two lists of options
cc -g -rdynamic -o "device-$$" device.c $(pkg-config --cflags --libs glib-2.0) || exit 99
"$dial9" record --quiet -o "$work/device" -- "./device-$$" &
pid=$!
wait_for_child() {
	tries=0
	until child=$(pgrep -x "${2-device-$$}") && "$dial9" status --json "$child" 2>/dev/null | grep -q "$1"; do
		tries=$((tries + 1))
		[ $tries -lt 300 ] || { echo "never in the status: $1"; break; }
		sleep 0.1
	done
}
wait_for_child '"for_ns":[2-9][0-9]\{9\}'
"$dial9" status "$child" | grep 'running now'
"$dial9" status --json "$child" | grep -o '"running":\[[^]]*\]'
"$dial9" top --once "$child" | grep 'running now'
kill -KILL "$child"
wait "$pid" 2>/dev/null
"$dial9" report "$work/device" | grep -v ' awake' | sed -n '2p'
"$dial9" report -v "$work/device" | sed -n '/CRITICAL/,/ended\./p'
"$dial9" report "$work/device" | grep -c '^ .* device_check'

# Killed as soon as the recorder saw that it was open for so long.
say "a callback that had been open for 300 ms when a supervisor killed the process"
cat >lookup.c <<'END'
#include <event2/event.h>
#include <signal.h>
#include <unistd.h>

static int is_short;

static void lookup(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what, (void)arg;
	if (!is_short)
		sleep(300);
	usleep(5000);
	raise(SIGKILL);
}

int main(int argc, char **argv)
{
	struct event_base *base = event_base_new();

	is_short = argc > 1 && *argv[1] == 's';
	event_base_once(base, -1, EV_TIMEOUT, lookup, NULL, &(struct timeval){ 0, 100000 });
	return event_base_dispatch(base) < 0;
}
END
cc -g -rdynamic -o "lookup-$$" lookup.c -levent || exit 99
"$dial9" record --quiet -o "$work/lookup" -- "./lookup-$$" open &
pid=$!
wait_for_child '"for_ns":[0-9]*[3-9][0-9]\{8\}' "lookup-$$"
kill -KILL "$child"
wait "$pid" 2>/dev/null
# On a busy machine it was open for a second.
"$dial9" report "$work/lookup" | grep '^!' |
	sed 's/stuck for \(.*\) in nanosleep()/open at the end, in nanosleep() for \1 at least/; s/for [0-9.]* m\{0,1\}s at/for TIME at/; s/  *lookup.c:.*//'

say "its innocent twin, which dies in a callback of 5 ms"
"$dial9" record --quiet -o "$work/short" -- "./lookup-$$" short &
wait $! 2>/dev/null
"$dial9" report "$work/short" | grep '^!'

for twin in quiet own; do
	say "its innocent twin, which sleeps in its poll, or between rounds of its own: $twin"
	"$dial9" record --quiet -o "$work/$twin" -- "./device-$$" $twin &
	pid=$!
	wait_for_child '"workers":\[{"id"'
	sleep 2
	"$dial9" status --json "$child" | grep -o '"running":\[[^]]*\]'
	kill -KILL "$child"
	wait "$pid" 2>/dev/null
	"$dial9" events "$work/$twin" | grep -c LastSign
done

say "the innocent twin"
begin innocent
wait_for '"state":"parked"'
"$dial9" status --json "$pid" | grep -o '"running":\[[^]]*\]'
end
"$dial9" recover "$work/innocent" >/dev/null
"$dial9" report "$work/innocent" | grep -c stuck
"$dial9" events "$work/innocent" | grep -c LastSign

finish 's/[0-9.]* m\?s\( in\| waiting\)/TIME\1/g; s/busy, queue.*/busy/; s/  [0-9.]* s  complete/  TIME  complete/
	s/"\(tid\|for_ns\|task\)":[0-9]*/"\1":N/g; s/^ *[0-9.]*  w0/TIME w0/; s/for_ns=[0-9]*ns/for_ns=N/; s/task_id=[0-9]*/task_id=N/
	s/since_ns=[0-9]*/since_ns=N/; s/[0-9]* % awake, [0-9]* % CPU: \([a-z_]*\) .*/N % awake: \1/; s/running=.*/running=.../; s/ *$//; s/^\(!! [a-z_]*\)  */\1  /
	s/test_hang-[0-9]*/SERVICE/; s/+0x[0-9a-f]*/+OFFSET/g; s/  *scenario_hang\.c:[0-9]*//
	s/\(ran when it ended: \)scenario_hang+OFFSET/\1on_request/; s/inside for [0-9.]* s, [0-9]* %/inside for TIME, N %/
	s/, [0-9]* % of the time  *nap/, N % of the time  nap/'
