#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Results of reads and writes in callbacks, on each loop library: the trace has the counts that the program itself made.
# shellcheck source=tests/cli/harness.sh
. "$top_srcdir/tests/cli/harness.sh"

cat >io.h <<'END'
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#define ROUNDS 200

static struct sum {
	long calls, bytes, again, eof, errors;
} reads, writes;

static int fds[2], rounds;

static void add(struct sum *sum, ssize_t result)
{
	sum->calls++;
	if (result > 0)
		sum->bytes += result;
	else if (!result)
		sum->eof++;
	else if (errno == EAGAIN)
		sum->again++;
	else
		sum->errors++;
}

static void prepare(void)
{
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds))
		exit(99);
}

/* One read of those that on_read() makes; -1 with errno. */
static ssize_t read_some(void);

/* True if all is read, and the end was read three times. */
static int read_all(void)
{
	ssize_t result;

	do
		add(&reads, result = read_some());
	while (result > 0);
	return reads.eof == 3;
}

static ssize_t plain_read(void)
{
	char buf[64];

	return read(fds[0], buf, sizeof(buf));
}

/* True if no more is to be written. */
static int write_some(void)
{
	static char text[150];
	struct iovec parts[2] = { { text, 50 }, { text + 50, 50 } };

	add(&writes, write(fds[1], text, 20));
	add(&writes, writev(fds[1], parts, 2));
	add(&writes, send(fds[1], text, 30, MSG_NOSIGNAL));
	if (rounds % 10 == 0)
		add(&writes, write(-1, text, 1));
	if (++rounds < ROUNDS)
		return 0;
	shutdown(fds[1], SHUT_WR);
	return 1;
}

static int end(void)
{
	const char *command = getenv("AT_END");

	printf("on_read reads %ld bytes %ld again %ld eof %ld errors %ld\n", reads.calls, reads.bytes, reads.again, reads.eof,
	       reads.errors);
	printf("on_write writes %ld bytes %ld again %ld eof %ld errors %ld\n", writes.calls, writes.bytes, writes.again,
	       writes.eof, writes.errors);
	fflush(stdout);
	return command ? system(command) : 0;
}
END

cat >on_libevent.c <<'END'
#include "io.h"
#include <event2/event.h>

static ssize_t read_some(void)
{
	return plain_read();
}

static void on_read(evutil_socket_t fd, short what, void *base)
{
	(void)fd, (void)what;
	if (read_all())
		event_base_loopbreak(base);
}

static void on_write(evutil_socket_t fd, short what, void *timer)
{
	(void)fd, (void)what;
	if (write_some())
		event_del(*(struct event **)timer);
}

int main(void)
{
	struct event_base *base = event_base_new();
	struct event *reader, *timer;

	prepare();
	reader = event_new(base, fds[0], EV_READ | EV_PERSIST, on_read, base);
	timer = event_new(base, -1, EV_PERSIST, on_write, &timer);
	event_add(reader, NULL);
	event_add(timer, &(struct timeval){ 0, 1000 });
	event_base_dispatch(base);
	return end();
}
END

cat >on_libev.c <<'END'
#include "io.h"
#include <ev.h>

static ssize_t read_some(void)
{
	return plain_read();
}

static void on_read(EV_P_ ev_io *w, int revents)
{
	(void)w, (void)revents;
	if (read_all())
		ev_break(EV_A_ EVBREAK_ALL);
}

static void on_write(EV_P_ ev_timer *w, int revents)
{
	(void)revents;
	if (write_some())
		ev_timer_stop(EV_A_ w);
}

int main(void)
{
	struct ev_loop *loop = ev_default_loop(0);
	ev_timer timer;
	ev_io io;

	prepare();
	ev_io_init(&io, on_read, fds[0], EV_READ);
	ev_timer_init(&timer, on_write, 0.001, 0.001);
	ev_io_start(loop, &io);
	ev_timer_start(loop, &timer);
	ev_run(loop, 0);
	return end();
}
END

# Through GIO, which makes the calls for the program.
cat >on_glib.c <<'END'
#include "io.h"
#include <gio/gio.h>

static GMainLoop *loop;
static GSocket *socket_;

static ssize_t read_some(void)
{
	GError *error = NULL;
	char buf[64];
	gssize result = g_socket_receive(socket_, buf, sizeof(buf), NULL, &error);

	errno = error && g_error_matches(error, G_IO_ERROR, G_IO_ERROR_WOULD_BLOCK) ? EAGAIN : EIO;
	g_clear_error(&error);
	return result;
}

static gboolean on_read(GSocket *unused, GIOCondition condition, gpointer data)
{
	(void)unused, (void)condition, (void)data;
	if (read_all())
		g_main_loop_quit(loop);
	return G_SOURCE_CONTINUE;
}

static gboolean on_write(gpointer data)
{
	(void)data;
	return write_some() ? G_SOURCE_REMOVE : G_SOURCE_CONTINUE;
}

int main(void)
{
	GSource *source;

	prepare();
	loop = g_main_loop_new(NULL, FALSE);
	socket_ = g_socket_new_from_fd(fds[0], NULL);
	g_socket_set_blocking(socket_, FALSE);
	source = g_socket_create_source(socket_, G_IO_IN, NULL);
	g_source_set_callback(source, G_SOURCE_FUNC(on_read), NULL, NULL);
	g_source_attach(source, NULL);
	g_timeout_add(1, on_write, NULL);
	g_main_loop_run(loop);
	return end();
}
END

# told TRACE: the sums of the trace, in the words of the program.
told() {
	for kind in read write; do
		"$dial9" query "$1" "
			SELECT c.name || ' ${kind}s ' || sum(e.fields->>'${kind}s') || ' bytes ' || sum(e.fields->>'${kind}_bytes') ||
				' again ' || sum(e.fields->>'again') || ' eof ' || sum(e.fields->>'eof') ||
				' errors ' || sum(e.fields->>'errors') AS told
			FROM events e JOIN tasks t ON t.task = e.fields->>'task_id' JOIN callbacks c ON c.callback = t.callback
			WHERE e.name = 'TaskIoEvent' AND c.name = 'on_$kind' GROUP BY c.name" | sed 1d
	done
}

# try PROGRAM
try() {
	say "$1"
	"$dial9" record --quiet -o "$work/tr.$1" "./$1" >counted || echo "status $?"
	"$dial9" info "$work/tr.$1" | grep '^  source.io'
	told "$work/tr.$1" >found
	# How often a reader is called is the machine's.
	sed 's/ reads [0-9]* / reads N /; s/ again [0-9]* eof 3/ again N eof 3/' counted
	cmp counted found || cat counted found
	"$dial9" query "$work/tr.$1" "SELECT max(fields->>'last_errno') AS errno FROM events WHERE name = 'TaskIoEvent'"
}

# build PROGRAM FLAGS...
build() {
	program=$1
	shift
	cc -O2 -g -o "$program" "$program.c" "$@"
}

build on_libevent -levent || skip "no libevent to build with"
try on_libevent
! build on_libev -lev 2>errors || try on_libev
# Words of pkg-config are meant.
# shellcheck disable=SC2046
! build on_glib $(pkg-config --cflags --libs gio-2.0 2>/dev/null) 2>errors || try on_glib

# off OPTION: nothing is told, and the trace says why.
off() {
	say "$1"
	"$dial9" record --quiet "$1" -o "$work/off" ./on_libevent >counted || echo "status $?"
	"$dial9" info "$work/off" | grep '^  source.io'
	told "$work/off"
	rm -r "$work/off"
}

off --no-io
off --no-blocking

say "status says whether calls are counted, and how many were"
cat >look.sh <<'END'
tries=0
until "$dial9" status "$1" >status && grep -q '^  I/O  *on; [1-9]' status || [ $tries = 1000 ]; do
	tries=$((tries + 1))
done
END
export dial9
AT_END="sh look.sh \$PPID" "$dial9" record --quiet -o "$work/looked" ./on_libevent >counted || echo "status $?"
grep '^  I/O' status | sed 's/[0-9][0-9]*/N/g'
AT_END="\"$dial9\" status \$PPID >status" "$dial9" record --quiet --no-io -o "$work/looked" ./on_libevent >counted || echo "status $?"
grep '^  I/O' status
finish ''
