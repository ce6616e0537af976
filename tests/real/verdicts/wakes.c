/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loops that wake for nothing: all of several for each connection ("herd"), a timer looks whether
 * there is something to read ("look"), a descriptor has hung up and that was not asked for
 * ("hangup", GLib).  And healthy ones that look alike: a connection for each wake ("accepts"),
 * bursts of thirty datagrams ("bursts"), forty timers of 2 ms ("timers"), a datagram for each call,
 * as many as come ("datagrams"), 5,000 connections that close at once ("closes").
 *
 *	wakes WHICH [SECONDS]
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loop.h"

#define LOOPS 4

static double length = 3;
static int listener, ends[2];
static struct sockaddr_in address;
static unsigned long useful, empty;

static void count(bool is_useful)
{
	__atomic_add_fetch(is_useful ? &useful : &empty, 1, __ATOMIC_RELAXED);
}

/* A client in a process of its own, until it is killed. */
static pid_t client(void (*work)(void))
{
	pid_t pid = fork();

	if (pid)
		return pid;
	alarm(60);
	for (;;)
		work();
}

static void listen_at_any_port(void)
{
	socklen_t size = sizeof(address);

	address = (struct sockaddr_in) { .sin_family = AF_INET,
					 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	if (bind(listener, (struct sockaddr *)&address, size) || listen(listener, 5000) ||
	    getsockname(listener, (struct sockaddr *)&address, &size))
		exit(1);
}

/* ---- connections ---- */

static void connect_and_close(void)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	struct linger abort = { 1, 0 };

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &abort, sizeof(abort));
	connect(fd, (struct sockaddr *)&address, sizeof(address));
	close(fd);
	usleep(4000);
}

ON_READ(take_connection, fd, arg)
{
	int connection;

	(void)arg;
	/* The others wake meanwhile, however many CPUs there are. */
	usleep(50);
	connection = accept(fd, NULL, NULL);
	count(connection >= 0);
	if (connection >= 0)
		close(connection);
}

static void *serve(void *arg)
{
	loop_t *loop = loop_new();

	(void)arg;
	loop_read(loop, listener, take_connection, NULL);
	loop_run(loop, length);
	return NULL;
}

/* ---- datagrams ---- */

ON_READ(take_news, fd, arg)
{
	char byte[8];

	(void)arg;
	count(read(fd, byte, sizeof(byte)) > 0);
}

/* Looks five hundred times a second whether there is something to read. */
ON_TIMER(look_for_news, arg)
{
	char byte[8];

	(void)arg;
	count(read(ends[0], byte, sizeof(byte)) > 0);
}

static void send_burst(void)
{
	char bytes[64] = { 1 };

	for (int i = 0; i < 30; i++)
		if (write(ends[1], bytes, sizeof(bytes)) < 0)
			break;
	usleep(10000);
}

static void send_always(void)
{
	char bytes[64] = { 1 };

	if (write(ends[1], bytes, sizeof(bytes)) < 0)
		usleep(10);
}

/* ---- timers, connections that close at once ---- */

ON_TIMER(tick, arg)
{
	(void)arg;
	count(true);
}

ON_READ(on_close, fd, arg)
{
	void **event = arg;
	char byte[8];
	ssize_t n = read(fd, byte, sizeof(byte));

	count(true);
	if (n > 0)
		return;
	loop_unread(event[0], event[1]);
	close(fd);
}

/* The other ends are all closed after a second. */
static void *close_all(void *arg)
{
	int *others = arg;

	sleep(1);
	for (int i = 0; i < 5000; i++)
		close(others[i]);
	return NULL;
}

static void closes(loop_t *loop)
{
	static int others[5000];
	static void *events[5000][2];
	struct rlimit limit = { 20000, 20000 };
	pthread_t thread;

	if (setrlimit(RLIMIT_NOFILE, &limit))
		exit(77);
	for (int i = 0; i < 5000; i++) {
		int pair[2];

		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair))
			exit(77);
		others[i] = pair[1];
		events[i][0] = loop;
		events[i][1] = loop_read(loop, pair[0], on_close, events[i]);
	}
	pthread_create(&thread, NULL, close_all, others);
	loop_run(loop, length);
	pthread_join(thread, NULL);
}

#ifdef VERDICT_GLIB
static gboolean on_input(GIOChannel *channel, GIOCondition what, gpointer arg)
{
	(void)channel, (void)what, (void)arg;
	return TRUE;
}

/* Only input is asked for: that the other end hung up is told all the same, and nothing is called
 * for it. */
static void hangup(loop_t *loop)
{
	GIOChannel *channel;
	GSource *source;

	if (pipe(ends))
		exit(1);
	channel = g_io_channel_unix_new(ends[0]);
	source = g_io_create_watch(channel, G_IO_IN);
	g_source_set_callback(source, (GSourceFunc)(void (*)(void))on_input, NULL, NULL);
	g_source_attach(source, loop);
	close(ends[1]);
	loop_run(loop, length);
}
#endif

int main(int argc, char **argv)
{
	const char *which = argc > 1 ? argv[1] : "";
	bool herd = !strcmp(which, "herd");
	loop_t *loop = loop_new();
	pthread_t threads[LOOPS];
	pid_t pid = 0;

	length = argc > 2 ? atof(argv[2]) : length;
	if (herd || !strcmp(which, "accepts")) {
		listen_at_any_port();
		pid = client(connect_and_close);
		for (int i = 1; i < LOOPS && herd; i++)
			pthread_create(&threads[i], NULL, serve, NULL);
		loop_read(loop, listener, take_connection, NULL);
		loop_run(loop, length);
		for (int i = 1; i < LOOPS && herd; i++)
			pthread_join(threads[i], NULL);
	} else if (!strcmp(which, "look")) {
		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends))
			return 1;
		loop_every(loop, 0.002, look_for_news, NULL);
		loop_run(loop, length);
	} else if (!strcmp(which, "bursts") || !strcmp(which, "datagrams")) {
		if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends))
			return 1;
		pid = client(*which == 'b' ? send_burst : send_always);
		loop_read(loop, ends[0], take_news, NULL);
		loop_run(loop, length);
	} else if (!strcmp(which, "timers")) {
		for (int i = 0; i < 40; i++)
			loop_every(loop, 0.002, tick, NULL);
		loop_run(loop, length);
	} else if (!strcmp(which, "closes")) {
		closes(loop);
#ifdef VERDICT_GLIB
	} else if (!strcmp(which, "hangup")) {
		hangup(loop);
#endif
	} else {
		return 2;
	}
	if (pid) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
	printf("%lu of use, %lu for nothing\n", useful, empty);
	return 0;
}
