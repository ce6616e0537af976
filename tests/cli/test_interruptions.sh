#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Calls that wait return what they return without us while their thread is sampled 1,000 times a second: read(), accept(),
# poll(), nanosleep() and epoll_wait(), of which only the first two go on behind a signal.
# shellcheck source=tests/cli/harness.sh
. "$top_srcdir/tests/cli/harness.sh"

# A peer answers each call a little later, and the thread computes a little between them.
cat >calls.c <<'END'
#include "cpu_work.h"
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#define ROUNDS 1500

enum { READ, ACCEPT, POLL, SLEEP, EPOLL, N };

static const char *const names[N] = { "read", "accept", "poll", "nanosleep", "epoll_wait" };
static int listener, asked[2], answer[2], wrong[N], interrupted[N];
static struct sockaddr_in address = { .sin_family = AF_INET };

/* Each byte asks for a connection ('c') or for a byte. */
static void *serve(void *unused)
{
	char byte;

	while (read(asked[0], &byte, 1) == 1) {
		if (byte == 'c') {
			int fd = socket(AF_INET, SOCK_STREAM, 0);

			connect(fd, (struct sockaddr *)&address, sizeof(address));
			close(fd);
		} else if (write(answer[1], "x", 1) != 1) {
			abort();
		}
	}
	return unused;
}

static void ask(const char *what)
{
	if (write(asked[1], what, 1) != 1)
		abort();
}

static void note(int call, int result, int due)
{
	if (result < 0 && errno == EINTR)
		interrupted[call]++;
	else if (result != due)
		wrong[call]++;
}

static void answer_arrives(void)
{
	char byte;

	while (read(answer[0], &byte, 1) != 1)
		;
}

static void call_each(int epoll)
{
	struct pollfd waits = { .fd = answer[0], .events = POLLIN };
	struct epoll_event event;
	char byte;
	int fd;

	ask("b");
	note(READ, (int)read(answer[0], &byte, 1), 1);
	ask("c");
	fd = accept(listener, NULL, NULL);
	note(ACCEPT, fd < 0 ? fd : 0, 0);
	close(fd);
	ask("b");
	note(POLL, poll(&waits, 1, -1), 1);
	answer_arrives();
	ask("b");
	note(EPOLL, epoll_wait(epoll, &event, 1, -1), 1);
	answer_arrives();
	note(SLEEP, nanosleep(&(struct timespec){ 0, 20000 }, NULL), 0);
}

int main(void)
{
	struct epoll_event event = { .events = EPOLLIN };
	socklen_t size = sizeof(address);
	int epoll = epoll_create1(0);
	double began;
	pthread_t peer;

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	listener = socket(AF_INET, SOCK_STREAM, 0);
	if (bind(listener, (struct sockaddr *)&address, size) || listen(listener, 8) ||
	    getsockname(listener, (struct sockaddr *)&address, &size) || pipe(asked) || pipe(answer) ||
	    epoll_ctl(epoll, EPOLL_CTL_ADD, answer[0], &event) || pthread_create(&peer, NULL, serve, NULL))
		return 99;
	if (getenv("LD_PRELOAD"))
		await_sampling();
	began = used();
	for (int i = 0; i < ROUNDS; i++) {
		call_each(epoll);
		compute(0.0001);
	}
	fprintf(stderr, "%.0f\n", (used() - began) * 1000);
	for (int i = 0; i < N; i++)
		printf("%s: %d interrupted, %d wrong\n", names[i], interrupted[i], wrong[i]);
	close(asked[1]);
	pthread_join(peer, NULL);
	return 0;
}
END
cc -g -O2 -pthread -I"$top_srcdir/tests/cli" -o calls calls.c || exit 99

say "alone"
./calls 2>used
say "sampled"
"$dial9" record --quiet --profile-only --cpu 1000 -o tr -- ./calls 2>used
n=$("$dial9" events -e CpuSampleEvent tr | grep -c '"source":0')
[ "$n" -ge $(($(cat used) / 2)) ] && echo "samples of at least half of its CPU time"
finish ''
