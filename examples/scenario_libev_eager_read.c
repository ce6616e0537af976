/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A handler reads as long as there is something to read, and one busy peer keeps all others waiting.
 * The innocent twin takes a few messages and goes back to the loop.
 *
 *	scenario_libev_eager_read [innocent]
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <ev.h>

#include <dial9/libev.h>

#define BURSTS	 4
#define MESSAGES 500

static int ends[2];
static unsigned most, messages, bursts, beats;

/* Of CPU time, so that a busy machine does not make it less. */
static void compute(long us)
{
	struct timespec begin, now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
	do
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	while ((now.tv_sec - begin.tv_sec) * 1000000 + (now.tv_nsec - begin.tv_nsec) / 1000 < us);
}

static void read_messages(struct ev_loop *loop, ev_io *w, int events)
{
	char message;

	(void)loop, (void)events;
	for (unsigned i = 0; i < most && read(w->fd, &message, 1) == 1; i++) {
		messages++;
		compute(100);
	}
}

static void beat(struct ev_loop *loop, ev_timer *w, int events)
{
	(void)loop, (void)w, (void)events;
	beats++;
}

/* What the peer sends at once. */
static void send_burst(struct ev_loop *loop, ev_timer *w, int events)
{
	char burst[MESSAGES] = { 0 };

	(void)w, (void)events;
	if (bursts++ == BURSTS)
		ev_break(loop, EVBREAK_ALL);
	else if (write(ends[1], burst, sizeof(burst)) != sizeof(burst))
		perror("write");
}

int main(int argc, char **argv)
{
	struct ev_loop *loop = ev_default_loop(0);
	ev_timer heart, peer;
	ev_io reader;

	most = argc > 1 && !strcmp(argv[1], "innocent") ? 4 : MESSAGES;
	d9_ev_loop_attach(loop);
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) < 0) {
		perror("socketpair");
		return 1;
	}
	fcntl(ends[0], F_SETFL, O_NONBLOCK);
	ev_io_init(&reader, read_messages, ends[0], EV_READ);
	ev_timer_init(&heart, beat, 0.02, 0.02);
	ev_timer_init(&peer, send_burst, 0.15, 0.15);
	ev_io_start(loop, &reader);
	ev_timer_start(loop, &heart);
	ev_timer_start(loop, &peer);
	ev_run(loop, 0);

	ev_loop_destroy(loop);
	printf("%u messages, %u beats\n", messages, beats);
	return 0;
}
