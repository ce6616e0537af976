/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Something to watch while it runs: chatty clients of an echo server, each at its own pace, a burst
 * of work every two seconds, a task that only yields.  At the end the recorder tells what it wrote.
 *
 *	DIAL9_TRACE_DIR=traces long_workload [SECONDS]
 *	dial9 top
 *	dial9 serve traces
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <event2/event.h>

#include <dial9/dial9.h>
#include <dial9/libevent.h>

#define CLIENTS	 8
#define BURST	 20
#define YIELDS	 100
#define DEADLINE 5000 /* ms for the recorder to write what it has */

static struct event_base *base;
static unsigned long echoes, answers, bursts, yields;

static void compute(uint64_t rounds)
{
	volatile uint64_t sum = 0;

	for (uint64_t i = 0; i < rounds; i++)
		sum += i * i;
	(void)sum;
}

/* ---- clients, and the server at the other end of each one's pair of sockets ---- */

struct client {
	struct event *speak, *hear, *echo;
	struct timeval pause;
	int ends[2];
};

static void on_message(evutil_socket_t fd, short what, void *arg)
{
	char bytes[64];
	ssize_t len = read(fd, bytes, sizeof(bytes));

	(void)what, (void)arg;
	compute(5000);
	if (len > 0 && write(fd, bytes, (size_t)len) == len)
		echoes++;
}

static void on_speak(evutil_socket_t fd, short what, void *arg)
{
	struct client *client = arg;

	(void)fd, (void)what;
	if (write(client->ends[0], "a message", 9) != 9)
		event_base_loopbreak(base);
}

static void on_answer(evutil_socket_t fd, short what, void *arg)
{
	struct client *client = arg;
	char bytes[64];

	(void)what;
	if (read(fd, bytes, sizeof(bytes)) > 0)
		answers++;
	event_add(client->speak, &client->pause);
}

static int connect_client(struct client *client, unsigned number)
{
	static const struct timeval paces[] = { { 0, 10000 }, { 0, 50000 }, { 0, 200000 } };

	client->pause = paces[number % 3];
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, client->ends))
		return -1;
	client->echo = event_new(base, client->ends[1], EV_READ | EV_PERSIST, on_message, NULL);
	client->hear = event_new(base, client->ends[0], EV_READ | EV_PERSIST, on_answer, client);
	client->speak = evtimer_new(base, on_speak, client);
	event_add(client->echo, NULL);
	event_add(client->hear, NULL);
	return event_add(client->speak, &client->pause);
}

static void disconnect_client(struct client *client)
{
	event_free(client->speak);
	event_free(client->hear);
	event_free(client->echo);
	close(client->ends[0]);
	close(client->ends[1]);
}

/* ---- what else there is to do ---- */

static void burst_part(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what, (void)arg;
	compute(100000);
	bursts++;
}

static void on_burst(evutil_socket_t fd, short what, void *arg)
{
	const struct timeval at_once = { 0, 0 };

	(void)fd, (void)what, (void)arg;
	for (int i = 0; i < BURST; i++)
		event_base_once(base, -1, EV_TIMEOUT, burst_part, NULL, &at_once);
}

static void on_yield(evutil_socket_t fd, short what, void *timer)
{
	const struct timeval at_once = { 0, 0 }, pause = { 0, 50000 };

	(void)fd, (void)what;
	event_add(timer, ++yields % YIELDS ? &at_once : &pause);
}

static void report(struct d9_recorder *recorder)
{
	struct d9_counters counters;

	if (d9_recorder_stop(recorder, DEADLINE) ||
	    d9_recorder_counters(recorder, &counters, sizeof(counters)))
		puts("not recorded");
	else
		printf("%" PRIu64 " events in %" PRIu64 " bytes\n", counters.events_written,
		       counters.bytes_written);
}

int main(int argc, char **argv)
{
	const struct timeval end = { argc > 1 ? atol(argv[1]) : 30, 0 }, every_two_s = { 2, 0 },
			     at_once = { 0, 0 };
	struct client clients[CLIENTS];
	struct event *burst, *yielder;

	base = event_base_new();
	d9_event_base_attach(base);
	for (unsigned i = 0; i < CLIENTS; i++)
		if (connect_client(&clients[i], i))
			return 1;
	burst = event_new(base, -1, EV_PERSIST, on_burst, NULL);
	yielder = evtimer_new(base, on_yield, event_self_cbarg());
	event_add(burst, &every_two_s);
	event_active(burst, EV_TIMEOUT, 1);
	event_add(yielder, &at_once);
	event_base_loopexit(base, &end);
	event_base_dispatch(base);

	for (unsigned i = 0; i < CLIENTS; i++)
		disconnect_client(&clients[i]);
	event_free(burst);
	event_free(yielder);
	event_base_free(base);
	printf("%lu echoes, %lu answers, %lu parts of bursts, %lu yields\n", echoes, answers,
	       bursts, yields);
	report(d9_recorder_running());
	return 0;
}
