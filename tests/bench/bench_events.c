/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cost of recording libevent besides polls: making and freeing events, one-time events, and the
 * benchmark that libevent itself comes with, in its usual form: 500 socket pairs, of which some are
 * active and each byte that is read is sent on to the next.  This program records; the same source
 * without dial9 is the other one, and they take turns.
 *
 *	bench_events PLAIN_PROGRAM [ROUNDS]
 */

#include "config.h"

#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench/bench.h"

#include <event2/event.h>

#define PAIRS  500
#define ACTIVE 100
#define SENDS  3000

struct lane {
	struct event_base *base;
	struct event *readers[PAIRS];
	int pairs[PAIRS][2];
	long left, open; /* of the bytes to be sent, and on their way */
};

/* ---- what is measured: ns each ---- */

static void nothing(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
}

static double make_and_free(struct lane *lane)
{
	double begin = bench_cpu_ns();
	const int n = 2000;

	for (int i = 0; i < n; i++)
		event_free(event_new(lane->base, -1, 0, nothing, lane));
	return (bench_cpu_ns() - begin) / n;
}

static double run_once(struct lane *lane)
{
	const struct timeval now = { 0, 0 };
	double begin = bench_cpu_ns();
	const int n = 500;

	for (int i = 0; i < n; i++)
		event_base_once(lane->base, -1, EV_TIMEOUT, nothing, lane, &now);
	event_base_loop(lane->base, EVLOOP_NONBLOCK);
	return (bench_cpu_ns() - begin) / n;
}

static void on_byte(evutil_socket_t fd, short what, void *arg)
{
	struct lane *lane = arg;
	char byte;

	(void)what;
	if (read(fd, &byte, 1) != 1)
		exit(98);
	lane->open--;
	if (lane->left <= 0)
		return;
	lane->left--;
	lane->open++;
	if (write(lane->pairs[(lane->left * 7) % PAIRS][1], "e", 1) != 1)
		exit(98);
}

static double pass_bytes(struct lane *lane)
{
	double begin = bench_cpu_ns();

	lane->left = SENDS;
	lane->open = ACTIVE;
	for (int i = 0; i < ACTIVE; i++) {
		if (write(lane->pairs[i * PAIRS / ACTIVE][1], "e", 1) != 1)
			exit(98);
	}
	while (lane->open)
		event_base_loop(lane->base, EVLOOP_ONCE);
	return (bench_cpu_ns() - begin) / (SENDS + ACTIVE);
}

/* ---- both programs ---- */

static double (*const measures[])(struct lane *) = { make_and_free, run_once, pass_bytes };

static void add_pairs(struct lane *lane)
{
	const struct rlimit files = { 4096, 4096 };

	setrlimit(RLIMIT_NOFILE, &files);
	for (int i = 0; i < PAIRS; i++) {
		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, lane->pairs[i]))
			exit(98);
		lane->readers[i] = event_new(lane->base, lane->pairs[i][0], EV_READ | EV_PERSIST,
					     on_byte, lane);
		event_add(lane->readers[i], NULL);
	}
}

#ifdef D9_BENCH_PLAIN

/* Takes the number of a measure, gives its result, until the other program closes its end. */
int main(void)
{
	static struct lane lane;
	unsigned char which;

	lane.base = event_base_new();
	add_pairs(&lane);
	while (read(STDIN_FILENO, &which, 1) == 1) {
		double ns = measures[which](&lane);

		if (write(STDIN_FILENO, &ns, sizeof(ns)) != sizeof(ns))
			return 98;
	}
	return 0;
}

#else

#include <dial9/libevent.h>
#include <dial9/recorder.h>

static int peer;

static double ask_peer(unsigned char which)
{
	double ns;

	if (write(peer, &which, 1) != 1 || read(peer, &ns, sizeof(ns)) != sizeof(ns))
		exit(98);
	return ns;
}

static void start_peer(const char *program)
{
	int ends[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) || (pid = fork()) < 0)
		exit(98);
	if (pid == 0) {
		dup2(ends[1], STDIN_FILENO);
		execl(program, program, (char *)NULL);
		_exit(98);
	}
	close(ends[1]);
	peer = ends[0];
}

enum { RAW, OURS, RAW_AGAIN, VARIANTS };

static double ns[VARIANTS][BENCH_ROUNDS_MAX];

static void take(unsigned char which, struct lane *recorded, unsigned rounds)
{
	for (int i = -2; i < (int)rounds; i++) {
		unsigned at = i < 0 ? 0 : (unsigned)i;

		ns[RAW][at] = ask_peer(which);
		ns[OURS][at] = measures[which](recorded);
		ns[RAW_AGAIN][at] = ask_peer(which);
	}
}

static void print_added(const char *what, unsigned rounds, double budget)
{
	bench_same(what, ns[RAW], ns[RAW_AGAIN], rounds);
	for (unsigned i = 0; i < rounds; i++)
		ns[OURS][i] -= ns[RAW][i];
	bench_value(what, "ns more", ns[OURS], rounds, budget);
}

static void print_ratio(const char *what, unsigned rounds, double budget)
{
	bench_same(what, ns[RAW], ns[RAW_AGAIN], rounds);
	bench_ratio(what, "ns", ns[OURS], "not recorded", ns[RAW], rounds, budget);
}

int main(int argc, char **argv)
{
	const struct timespec settle = { 0, 400000000 };
	unsigned rounds = argc > 2 ? (unsigned)atoi(argv[2]) : 101;
	static struct lane lane;

	if (argc < 2 || rounds < 1 || rounds > BENCH_ROUNDS_MAX)
		return 99;
	start_peer(argv[1]);
	lane.base = event_base_new();
	if (d9_event_base_attach(lane.base))
		return 99;
	add_pairs(&lane);
	/* The clock changes over to ticks when it is calibrated. */
	nanosleep(&settle, NULL);
	take(0, &lane, rounds);
	print_added("libevent: event_new() and event_free()", rounds, 25);
	take(1, &lane, rounds);
	print_added("libevent: event_base_once() and its call", rounds, 60);
	take(2, &lane, rounds);
	print_ratio("libevent: 500 socket pairs, a byte", rounds, 1.05);
	/* The hooks alone: recording is switched off. */
	d9_disable();
	take(1, &lane, rounds);
	print_added("libevent: event_base_once() and its call, switched off", rounds, 0);
	take(2, &lane, rounds);
	print_ratio("libevent: 500 socket pairs, a byte, switched off", rounds, 1.04);
	return 0;
}

#endif
