#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Triggers: timers that come late, work that waits, loops that go round too often; and lists in files.
# shellcheck source=tests/cli/harness.sh
. "$top_srcdir/tests/cli/harness.sh"

cat >late_ev.c <<'END'
#include <ev.h>
#include <unistd.h>

static ev_timer blocks, late;

static void on_blocks(struct ev_loop *loop, ev_timer *w, int events)
{
	(void)loop, (void)w, (void)events;
	usleep(150000);
}

static void on_late(struct ev_loop *loop, ev_timer *w, int events)
{
	(void)w, (void)events;
	if (!access("enough", F_OK))
		ev_break(loop, EVBREAK_ALL);
}

int main(void)
{
	struct ev_loop *loop = ev_default_loop(0);

	alarm(300);
	ev_timer_init(&blocks, on_blocks, .2, .2);
	ev_timer_init(&late, on_late, .21, .01);
	ev_timer_start(loop, &blocks);
	ev_timer_start(loop, &late);
	ev_run(loop, 0);
	return 0;
}
END

cat >late_glib.c <<'END'
#include <glib.h>
#include <unistd.h>

static gboolean on_blocks(gpointer data)
{
	(void)data;
	usleep(150000);
	return TRUE;
}

static gboolean on_late(gpointer loop)
{
	if (!access("enough", F_OK))
		g_main_loop_quit(loop);
	return TRUE;
}

int main(void)
{
	GMainLoop *loop = g_main_loop_new(NULL, FALSE);

	alarm(300);
	g_timeout_add(200, on_blocks, NULL);
	g_timeout_add(10, on_late, loop);
	g_main_loop_run(loop);
	return 0;
}
END

# What it does is its argument: a callback that blocks a timer, one that is called all the time, or work from another thread.
cat >late_event.c <<'END'
#include <event2/event.h>
#include <event2/thread.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#define WORK 60

static struct event_base *base;
static struct event *work[WORK], *spins;
static char what_for;

static int is_enough(void)
{
	return !access("enough", F_OK);
}

static void on_blocks(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what, (void)arg;
	usleep(150000);
}

static void on_late(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what, (void)arg;
	if (is_enough())
		event_base_loopbreak(base);
}

static void on_work(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what, (void)arg;
}

static void on_spin(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what, (void)arg;
	usleep(300);
	if (is_enough())
		event_base_loopbreak(base);
	else
		event_active(spins, EV_READ, 0);
}

static void *hand_over(void *arg)
{
	while (!is_enough()) {
		for (int i = 0; i < WORK; i++)
			event_active(work[i], EV_READ, 0);
		usleep(1000);
	}
	return arg;
}

int main(int argc, char **argv)
{
	const struct timeval often = { 0, 10000 }, seldom = { 0, 200000 };
	pthread_t thread;

	alarm(300);
	what_for = argv[argc - 1][0];
	evthread_use_pthreads();
	base = event_base_new();
	event_add(event_new(base, -1, EV_PERSIST, on_late, NULL), &often);
	if (what_for != 's')
		event_add(event_new(base, -1, EV_PERSIST, on_blocks, NULL), &seldom);
	spins = event_new(base, -1, EV_READ, on_spin, NULL);
	if (what_for == 's')
		event_active(spins, EV_READ, 0);
	for (int i = 0; i < WORK; i++)
		work[i] = event_new(base, -1, EV_READ, on_work, NULL);
	if (what_for == 'q')
		pthread_create(&thread, NULL, hand_over, NULL);
	event_base_dispatch(base);
	if (what_for == 'q')
		pthread_join(thread, NULL);
	return 0;
}
END
$CC -g -O1 -o late_event late_event.c -levent -levent_pthreads 2>errors || skip "no libevent to build with: $(head -n 1 errors)"
$CC -g -O1 -o late_ev late_ev.c -lev 2>errors || skip "no libev to build with: $(head -n 1 errors)"
# shellcheck disable=SC2046
$CC -g -O1 -o late_glib late_glib.c $(pkg-config --cflags --libs glib-2.0) 2>errors || skip "no GLib to build with: $(head -n 1 errors)"

# fired TRIGGER COMMAND...: what the first dump's manifest says of the one that fired, and the report's line; times and counts are N.
fired() {
	trigger=$1
	shift
	rm -rf enough tr
	"$dial9" record --quiet --flight -o tr --trigger "$trigger" -- "$@" &
	until grep -qs '"state": "closed"' tr/*/dump.*.json; do
		kill -0 $! || return
		sleep 0.05
	done
	: >enough
	wait $!
	grep -h '"condition"' tr/*/dump.*.json | sed 's/"time": ".*"/"time": "TIME"/; s/"value": [0-9]*/"value": N/'
	"$dial9" report --color never tr |
		sed -n 's/fired at [0-9.a-z ]*: /fired at TIME: /; s/\(: [a-z]* \)[0-9.]*\( [mu]\{0,1\}s\)\{0,1\}\(\/s\)\{0,1\},/\1N\3,/; s/, in .* \(on_[a-z]*\).*/, in \1/; /^trigger/p'
}

for program in event ev glib; do
	say "a timer that comes late: lib$program"
	fired 'late: lateness > 60ms where thread ~ late* then 0s' ./late_$program
done

say "work that other threads hand over, and that waits"
fired 'waits: queue > 50 for 30ms where loop ~ late* then 0s' ./late_event queue

say "a loop that goes round and round"
fired 'spins: polls > 300/s where loop ~ late* then 0s' ./late_event spin
fired 'storm: wakes > 300/s for 200ms then 0s' ./late_event spin

say "a list in a file"
printf '# what we keep\n\nnever: lateness > 1h\n  spins: polls > 300/s then 0s ; idle: queue > 100000\n' >list
fired '@list' ./late_event spin
"$dial9" info tr | sed -n 's/ *$//; s/^ *\(trigger\.[a-z]*\)  */\1: /p'
printf 'call\n\n  \303\244: poll > 1ms\n' >list
run record --trigger 'call;@list' -- true
printf '# nothing\n' >list
run record --trigger '@list' -- true
run record --trigger '@none' -- true
run record --trigger '@.' -- true
yes '#' | head -n 40000 >list
run record --trigger '@list' -- true
printf 'call\0' >list
run record --trigger '@list' -- true
finish ''
