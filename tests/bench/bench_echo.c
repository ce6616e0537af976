/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cost of recording a real server: an echo service on libevent with 50 connections that send 21
 * bytes, wait for them and send again.  A server process that records nothing, one that records
 * and throws away, and one that writes its trace take turns; printed are the medians of the ratios
 * within a round.  Loopback only; every server ends with its last connection.
 *
 *	bench_echo [ROUNDS [MILLISECONDS]]
 */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <dial9/libevent.h>
#include <dial9/options.h>
#include <dial9/recorder.h>

#include <event2/event.h>

#include "bench/bench.h"

#define CONNECTIONS 50
#define MESSAGE	    21
#define MAX_ROUNDS  32
#define DEADLINE_MS 10000

enum mode { UNRECORDED, THROWN_AWAY, WRITTEN, UNRECORDED_AGAIN, MODES };

/* Figures that a server writes when it ends. */
struct result {
	uint64_t requests, elapsed_ns;
	uint64_t loop_cpu_ns;	 /* of the thread that serves */
	uint64_t process_cpu_ns; /* until everything is on disk */
	struct d9_counters counters;
};

/* ---- server ---- */

struct server {
	struct event_base *base;
	struct event *accepting;
	uint64_t requests, begin_ns, begin_loop_ns, begin_process_ns;
	int open;
};

static uint64_t read_clock(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

struct connection {
	struct server *server;
	struct event *event;
};

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct connection *connection = arg;
	struct server *server = connection->server;
	char buf[256];
	ssize_t n = read(fd, buf, sizeof(buf));

	(void)what;
	if (n > 0 && write(fd, buf, (size_t)n) == n) {
		server->requests++;
		return;
	}
	event_free(connection->event);
	free(connection);
	close(fd);
	if (--server->open == 0)
		event_base_loopbreak(server->base);
}

static void on_connection(evutil_socket_t fd, short what, void *arg)
{
	struct server *server = arg;
	struct connection *connection = malloc(sizeof(*connection));
	int one = 1, peer = accept(fd, NULL, NULL);

	(void)what;
	if (peer < 0 || !connection)
		_exit(1);
	setsockopt(peer, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	connection->server = server;
	connection->event =
		event_new(server->base, peer, EV_READ | EV_PERSIST, on_readable, connection);
	event_add(connection->event, NULL);
	if (++server->open < CONNECTIONS)
		return;
	event_del(server->accepting);
	server->begin_ns = read_clock(CLOCK_MONOTONIC);
	server->begin_loop_ns = read_clock(CLOCK_THREAD_CPUTIME_ID);
	server->begin_process_ns = read_clock(CLOCK_PROCESS_CPUTIME_ID);
}

static void record(enum mode mode, const char *dir, struct event_base *base)
{
	const struct timespec settle = { 0, 300000000 };
	struct d9_options *options;

	if (mode == THROWN_AWAY || mode == WRITTEN) {
		if (d9_options_new(&options))
			_exit(1);
		d9_options_set_writer(options,
				      mode == WRITTEN ? D9_WRITER_ROTATING : D9_WRITER_NULL);
		d9_options_set_trace_dir(options, dir);
		if (d9_recorder_start(options, NULL) || d9_event_base_attach(base))
			_exit(1);
		d9_options_free(options);
	}
	/* The clock changes over to ticks when it is calibrated. */
	nanosleep(&settle, NULL);
}

static void serve(enum mode mode, int listener, const char *dir, int out)
{
	const struct timeval limit = { 60, 0 };
	struct server server = { .base = event_base_new() };
	struct result result = { 0 };

	record(mode, dir, server.base);
	server.accepting =
		event_new(server.base, listener, EV_READ | EV_PERSIST, on_connection, &server);
	event_add(server.accepting, NULL);
	event_base_loopexit(server.base, &limit);
	event_base_dispatch(server.base);
	result.requests = server.requests;
	result.elapsed_ns = read_clock(CLOCK_MONOTONIC) - server.begin_ns;
	result.loop_cpu_ns = read_clock(CLOCK_THREAD_CPUTIME_ID) - server.begin_loop_ns;
	if (mode == WRITTEN)
		d9_recorder_rotate(d9_recorder_running(), DEADLINE_MS);
	result.process_cpu_ns = read_clock(CLOCK_PROCESS_CPUTIME_ID) - server.begin_process_ns;
	if (d9_recorder_running())
		d9_recorder_counters(d9_recorder_running(), &result.counters,
				     sizeof(result.counters));
	if (write(out, &result, sizeof(result)) != sizeof(result))
		_exit(1);
	d9_recorder_stop(d9_recorder_running(), DEADLINE_MS);
	_exit(0);
}

/* ---- client ---- */

static int dial(const struct sockaddr_in *address, int epoll)
{
	struct epoll_event event = { .events = EPOLLIN };
	int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || connect(fd, (const struct sockaddr *)address, sizeof(*address)))
		return -1;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	event.data.fd = fd;
	epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
	return fd;
}

static void talk(const struct sockaddr_in *address, unsigned ms)
{
	static const char message[MESSAGE] = "twenty-one bytes here";
	int epoll = epoll_create1(EPOLL_CLOEXEC), fds[CONNECTIONS];
	struct epoll_event events[CONNECTIONS];
	uint64_t end;
	char buf[256];

	for (int i = 0; i < CONNECTIONS; i++)
		fds[i] = dial(address, epoll);
	for (int i = 0; i < CONNECTIONS; i++)
		if (write(fds[i], message, MESSAGE) != MESSAGE)
			return;
	end = read_clock(CLOCK_MONOTONIC) + ms * UINT64_C(1000000);
	while (read_clock(CLOCK_MONOTONIC) < end) {
		int n = epoll_wait(epoll, events, CONNECTIONS, 1000);

		for (int i = 0; i < n; i++)
			if (read(events[i].data.fd, buf, sizeof(buf)) <= 0 ||
			    write(events[i].data.fd, message, MESSAGE) != MESSAGE)
				break;
	}
	for (int i = 0; i < CONNECTIONS; i++)
		close(fds[i]);
	close(epoll);
}

static int listen_anywhere(struct sockaddr_in *address)
{
	socklen_t len = sizeof(*address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	*address = (struct sockaddr_in) { .sin_family = AF_INET,
					  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	if (fd < 0 || bind(fd, (struct sockaddr *)address, len) || listen(fd, CONNECTIONS) ||
	    getsockname(fd, (struct sockaddr *)address, &len))
		return -1;
	return fd;
}

static bool run(enum mode mode, unsigned ms, const char *dir, struct result *result)
{
	struct sockaddr_in address;
	int listener = listen_anywhere(&address), pipes[2], status;
	pid_t pid;

	if (listener < 0 || pipe(pipes) || (pid = fork()) < 0)
		return false;
	if (!pid)
		serve(mode, listener, dir, pipes[1]);
	close(listener);
	close(pipes[1]);
	talk(&address, ms);
	status = read(pipes[0], result, sizeof(*result)) == sizeof(*result) ? 0 : 1;
	close(pipes[0]);
	waitpid(pid, NULL, 0);
	return !status && result->requests;
}

/* ---- figures ---- */

enum figure { LOOP_CPU, PROCESS_CPU, THROUGHPUT, EVENTS, BYTES, FLUSH_NS, FIGURES };

static void derive(const struct result *r, double figures[FIGURES])
{
	double requests = (double)r->requests, events = (double)r->counters.events_written;

	figures[LOOP_CPU] = (double)r->loop_cpu_ns / requests;
	figures[PROCESS_CPU] = (double)r->process_cpu_ns / requests;
	figures[THROUGHPUT] = requests / ((double)r->elapsed_ns / 1e9);
	figures[EVENTS] = events / requests;
	figures[BYTES] = events > 0 ? (double)r->counters.bytes_written / events : 0;
	figures[FLUSH_NS] = events > 0 ? (double)(r->process_cpu_ns - r->loop_cpu_ns) / events : 0;
}

static double values[MODES][FIGURES][MAX_ROUNDS];

static void against(const char *what, const char *unit, enum mode mode, enum figure figure,
		    unsigned rounds, double budget)
{
	bench_ratio(what, unit, values[mode][figure], "unrecorded", values[UNRECORDED][figure],
		    rounds, budget);
}

static void print(unsigned rounds)
{
	bench_same("CPU of an echo server", values[UNRECORDED][LOOP_CPU],
		   values[UNRECORDED_AGAIN][LOOP_CPU], rounds);
	against("echo server: CPU of its loop per request", "ns", WRITTEN, LOOP_CPU, rounds, 1.015);
	against("echo server: requests per second", "", WRITTEN, THROUGHPUT, rounds, -0.985);
	against("echo server: CPU of the process per request", "ns", WRITTEN, PROCESS_CPU, rounds,
		1.025);
	against("echo server: CPU of its loop, null writer", "ns", THROWN_AWAY, LOOP_CPU, rounds,
		0);
	bench_value("echo server: events per request", "", values[WRITTEN][EVENTS], rounds, 0);
	bench_value("echo server: on disk", "bytes/event", values[WRITTEN][BYTES], rounds, 1.4);
	bench_value("echo server: flush thread", "ns/event", values[WRITTEN][FLUSH_NS], rounds, 0);
}

int main(int argc, char **argv)
{
	unsigned rounds = argc > 1 ? (unsigned)atoi(argv[1]) : 7;
	unsigned ms = argc > 2 ? (unsigned)atoi(argv[2]) : 1000;
	char dir[] = "/tmp/bench_echo.XXXXXX", command[64];
	struct result result;

	if (rounds < 1 || rounds > MAX_ROUNDS || !mkdtemp(dir))
		return 2;
	for (unsigned round = 0; round < rounds; round++) {
		for (unsigned i = 0; i < MODES; i++) {
			unsigned mode = round % 2 ? MODES - 1 - i : i;
			double figures[FIGURES];

			if (!run((enum mode)mode, ms, dir, &result)) {
				fputs("a server failed\n", stderr);
				return 1;
			}
			derive(&result, figures);
			for (unsigned f = 0; f < FIGURES; f++)
				values[mode][f][round] = figures[f];
		}
	}
	print(rounds);
	snprintf(command, sizeof(command), "rm -rf '%s'", dir);
	return system(command) ? 1 : 0;
}
