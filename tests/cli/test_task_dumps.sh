#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Where idle tasks wait: three timers that are armed by three paths through one function, on each loop library, and a
# descriptor that is watched from the start; killed programs; accept queues of a loop that a callback holds.
# shellcheck source=tests/cli/harness.sh
. "$top_srcdir/tests/cli/harness.sh"

# What all programs share: |left| rounds of three timers of 10 ms, and a pipe that is written to in each.
cat >paths.h <<'END'
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TIMER_MS 10

static int ends[2], left = 60;
static int dies;

static void arm(int i);
static void stop(void);

/* Neither merged nor jumped to. */
#define PATH(name)                                                                                 \
	__attribute__((noinline)) static void name(int i)                                          \
	{                                                                                          \
		arm(i);                                                                            \
		__asm__ volatile("# " #name);                                                      \
	}

PATH(by_client)
PATH(by_server)
PATH(by_cache)

static void next(int i)
{
	if (--left <= 0) {
		if (dies)
			kill(getpid(), SIGKILL);
		stop();
		return;
	}
	if (write(ends[1], "", 1) != 1)
		abort();
	if (i == 0)
		by_client(i);
	else if (i == 1)
		by_server(i);
	else
		by_cache(i);
}

static void take(void)
{
	char c;

	if (read(ends[0], &c, 1) != 1)
		abort();
}

static void begin(int argc, char **argv)
{
	dies = argc > 1 && !strcmp(argv[1], "dies");
	if (pipe(ends))
		abort();
}
END

cat >libevent.c <<'END'
#include <event2/event.h>
#include <stdint.h>
#include "paths.h"

static struct event_base *base;
static struct event *timers[3];

__attribute__((noinline)) static void arm(int i)
{
	event_add(timers[i], &(struct timeval){ 0, TIMER_MS * 1000 });
	__asm__ volatile("");
}

static void stop(void)
{
	event_base_loopbreak(base);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	next((int)(intptr_t)arg);
}

static void on_pipe(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what, (void)arg;
	take();
}

int main(int argc, char **argv)
{
	begin(argc, argv);
	base = event_base_new();
	event_add(event_new(base, ends[0], EV_READ | EV_PERSIST, on_pipe, NULL), NULL);
	for (int i = 0; i < 3; i++)
		timers[i] = event_new(base, -1, 0, on_timer, (void *)(intptr_t)i);
	by_client(0), by_server(1), by_cache(2);
	return event_base_dispatch(base) < 0;
}
END

cat >libev.c <<'END'
#include <ev.h>
#include "paths.h"

static struct ev_loop *loop;
static ev_timer timers[3];
static ev_io reader;

__attribute__((noinline)) static void arm(int i)
{
	ev_timer_set(&timers[i], TIMER_MS / 1e3, 0.);
	ev_timer_start(loop, &timers[i]);
	__asm__ volatile("");
}

static void stop(void)
{
	ev_break(loop, EVBREAK_ALL);
}

static void on_timer(struct ev_loop *l, ev_timer *w, int events)
{
	(void)l, (void)events;
	next((int)(w - timers));
}

static void on_pipe(struct ev_loop *l, ev_io *w, int events)
{
	(void)l, (void)w, (void)events;
	take();
}

int main(int argc, char **argv)
{
	begin(argc, argv);
	loop = EV_DEFAULT;
	ev_io_init(&reader, on_pipe, ends[0], EV_READ);
	ev_io_start(loop, &reader);
	for (int i = 0; i < 3; i++)
		ev_init(&timers[i], on_timer);
	by_client(0), by_server(1), by_cache(2);
	ev_run(loop, 0);
	return 0;
}
END

cat >glib.c <<'END'
#include <glib.h>
#include <glib-unix.h>
#include <stdint.h>
#include "paths.h"

static GMainLoop *loop;
static gboolean on_timer(gpointer arg);

__attribute__((noinline)) static void arm(int i)
{
	g_timeout_add(TIMER_MS, on_timer, (void *)(intptr_t)i);
	__asm__ volatile("");
}

static void stop(void)
{
	g_main_loop_quit(loop);
}

static gboolean on_timer(gpointer arg)
{
	next((int)(intptr_t)arg);
	return FALSE;
}

static gboolean on_pipe(gint fd, GIOCondition condition, gpointer arg)
{
	(void)fd, (void)condition, (void)arg;
	take();
	return TRUE;
}

int main(int argc, char **argv)
{
	begin(argc, argv);
	loop = g_main_loop_new(NULL, FALSE);
	g_unix_fd_add(ends[0], G_IO_IN, on_pipe, NULL);
	by_client(0), by_server(1), by_cache(2);
	g_main_loop_run(loop);
	return 0;
}
END

build() {
	# shellcheck disable=SC2086 # flags
	cc -g -O2 -fno-ipa-icf -fno-optimize-sibling-calls -o "$1" "$1.c" $2 || exit 99
}
build libevent -levent
build libev -lev
build glib "$(pkg-config --cflags --libs glib-2.0)"

# stacks TRACE: those of which there are dumps, without figures.  The timers that main() arms are left out: a loop counts
# from when it looked at the clock, so that of one that a busy machine kept from running they are due at once.
stacks() {
	"$dial9" report --section idle --top 100 --width 300 --no-pager "$1" |
		sed -nE 's/^.* (event_add|ev_[a-z]*_start|g_[a-z_]*add) < /\1 < /p' |
		sed -E 's/ paths\.h:[0-9]*//; s/ [a-z]*\.c:[0-9]*//; s/ < __libc_start_call_main.*_start//; s/ < next < on_timer.*//; /by_[a-z]* < main/d' |
		sort -u
}

for library in libevent libev glib; do
	say "$library"
	run record --quiet --task-dumps=1 -o "$work/tr.$library" -- ./$library
	stacks "$work/tr.$library"
	"$dial9" info "$work/tr.$library" | grep -E '^  (source.task_dumps|.*idle_threshold)'
	# 60 waits of 10 ms and more, of three timers at once; one in 22,000 is not dumped.
	n=$("$dial9" events -e TaskDumpEvent "$work/tr.$library" | wc -l)
	[ "$n" -ge 60 ] || echo "$n dumps"
done

say "as wide as they idle"
run flamegraph --kind idle -o idle.svg "$work/tr.libevent"
grep -o '>[0-9.]* m*s of idle tasks' idle.svg | sed 's/>[0-9.]* m*s/N s/' | uniq
"$dial9" export --kind idle --format folded -o - "$work/tr.libevent" | sed -nE 's/.*;(by_[a-z]*;arm;event_add) [0-9]+$/\1/p' | sort -u
"$dial9" export --kind idle --format speedscope -o - "$work/tr.libevent" | grep -E '"(name": "idle|unit)'
run flamegraph --kind waits -o idle.svg "$work/tr.libevent"

say "killed"
"$dial9" record --quiet --task-dumps=1 -o "$work/tr.killed" -- ./libevent dies
stacks "$work/tr.killed" | grep -c 'arm < by_'

say "not asked for"
run record --quiet -o "$work/tr.off" -- ./libevent
run flamegraph --kind idle -o off.svg "$work/tr.off"
"$dial9" info "$work/tr.off" | grep -E '^  [a-z._]*task_dump'

say "values that make no sense"
run record --task-dumps=0 true
run record --task-dumps=soon true
run record --accept-queues=3600001 true

say "connections wait while a callback holds the loop"
cat >server.c <<'END'
#include <arpa/inet.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static struct event_base *base;
static struct sockaddr_in address;
static int accepted;

static void on_connection(struct evconnlistener *listener, evutil_socket_t fd, struct sockaddr *from, int len, void *arg)
{
	(void)listener, (void)from, (void)len, (void)arg;
	close(fd);
	if (++accepted == 50)
		event_base_loopbreak(base);
}

__attribute__((noinline)) static void hold(evutil_socket_t fd, short what, void *arg)
{
	struct timespec pause = { 0, 600000000 };

	(void)fd, (void)what, (void)arg;
	for (int i = 0; i < 50; i++)
		connect(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), (struct sockaddr *)&address, sizeof(address));
	nanosleep(&pause, NULL);
}

int main(void)
{
	struct evconnlistener *listener;
	socklen_t len = sizeof(address);

	base = event_base_new();
	address.sin_family = AF_INET;
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	listener = evconnlistener_new_bind(base, on_connection, NULL, LEV_OPT_CLOSE_ON_FREE, 64,
					   (struct sockaddr *)&address, sizeof(address));
	getsockname(evconnlistener_get_fd(listener), (struct sockaddr *)&address, &len);
	event_add(event_new(base, -1, 0, hold, NULL), &(struct timeval){ 0, 20000 });
	return event_base_dispatch(base) < 0;
}
END
build server -levent
run record --quiet --accept-queues=100 -o "$work/tr.server" -- ./server
"$dial9" report --no-pager "$work/tr.server" | grep 'waited at' | sed 's/:[0-9]*$/:PORT/'
"$dial9" events -e TcpAcceptQueueEvent "$work/tr.server" |
	sed -nE 's/.*"ip_version":([0-9]+),"local_addr":"([^"]*)".*"pending_connections":([0-9]+),"backlog_limit":([0-9]+).*/\1 \2 \3 \4/p' | sort -u | tail -n 1
"$dial9" info "$work/tr.server" | grep '^  source.accept_queues'
finish 's/  */ /g'
