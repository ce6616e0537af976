/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <event2/event.h>
#include <event2/thread.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "judged.h"

#define UNUSED (void)fd, (void)what, (void)arg
#define LOOPS  4
#define EIGHT  8

static bool is_innocent;
static double begun;

static struct event *every(struct event_base *base, double ms, event_callback_fn callback,
			   void *arg)
{
	struct timeval period = { (time_t)(ms / 1e3), (suseconds_t)(ms * 1e3) % 1000000 };
	struct event *event = event_new(base, -1, EV_PERSIST, callback, arg);

	event_add(event, &period);
	return event;
}

static void stop(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	event_base_loopbreak(arg);
}

/* Requests of clients: short, and often. */
static void on_client(evutil_socket_t fd, short what, void *arg)
{
	UNUSED;
	judged_compute(0.02);
}

static struct event_base *with_clients(double seconds)
{
	struct event_base *base = event_base_new();

	for (unsigned i = 0; i < 4; i++)
		every(base, 5, on_client, NULL);
	every(base, seconds * 1e3, stop, base);
	return base;
}

/* ---- a callback, a loop inside of one, a time between rounds that hold the loop ---- */

static void rebuild_index(evutil_socket_t fd, short what, void *arg)
{
	UNUSED;
	judged_compute(is_innocent ? 0.2 : 9);
}

static void hold_callback(bool innocent, double seconds)
{
	struct event_base *base = with_clients(seconds);

	is_innocent = innocent;
	every(base, 250, rebuild_index, NULL);
	event_base_dispatch(base);
}

static void on_answer(evutil_socket_t fd, short what, void *arg)
{
	UNUSED;
	judged_compute(0.02);
}

/* Waits for an answer in a loop of its own. */
static void ask_peer(evutil_socket_t fd, short what, void *arg)
{
	struct timeval wait = { 0, 45000 };
	struct event_base *base;
	struct event *answer;

	UNUSED;
	if (is_innocent)
		return;
	base = event_base_new();
	answer = evtimer_new(base, on_answer, NULL);
	evtimer_add(answer, &wait);
	event_base_dispatch(base);
	event_free(answer);
	event_base_free(base);
}

static void hold_nested(bool innocent, double seconds)
{
	struct event_base *base = with_clients(seconds);

	is_innocent = innocent;
	every(base, 500, ask_peer, NULL);
	event_base_dispatch(base);
}

/* Enough for samples to find it: so the report knows who runs the loop. */
static void on_batch(evutil_socket_t fd, short what, void *arg)
{
	UNUSED;
	judged_compute(2);
}

static __attribute__((noinline)) void sweep_cache(void)
{
	judged_compute(is_innocent ? 0.2 : 25);
}

static __attribute__((noinline)) void hold_between(bool innocent, double seconds)
{
	struct event_base *base = with_clients(seconds);
	double end = judged_now() + seconds - 0.3, next = judged_now();

	is_innocent = innocent;
	every(base, 40, on_batch, NULL);
	while (judged_now() < end) {
		event_base_loop(base, EVLOOP_ONCE);
		if (judged_now() < next)
			continue;
		next += 0.5;
		sweep_cache();
	}
}

static __attribute__((noinline)) void ask_sidecar(int sidecar)
{
	char byte = 'x';

	if (write(sidecar, &byte, 1) != 1 || read(sidecar, &byte, 1) != 1)
		abort();
}

static void ask_between(bool innocent, double seconds)
{
	struct event_base *base = with_clients(seconds);
	double end = judged_now() + seconds - 0.3;
	int sidecar = judged_sidecar(innocent ? 0.05 : 6);

	while (judged_now() < end) {
		event_base_loop(base, EVLOOP_ONCE);
		ask_sidecar(sidecar);
	}
}

/* ---- a lock, and a write that the kernel interrupts ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int pair[2];

static __attribute__((noinline)) void compact_index(void)
{
	pthread_mutex_lock(&lock);
	judged_sleep(is_innocent ? 0.01 : 30);
	pthread_mutex_unlock(&lock);
}

static void *keep_compacting(void *arg)
{
	(void)arg;
	while (judged_now() < begun + 60) {
		compact_index();
		judged_sleep(20);
	}
	return NULL;
}

static __attribute__((noinline)) void look_up(void)
{
	pthread_mutex_lock(&lock);
	judged_compute(0.05);
	pthread_mutex_unlock(&lock);
}

static void *drain(void *arg)
{
	static char bytes[1 << 16];

	(void)arg;
	while (read(pair[1], bytes, sizeof(bytes)) > 0)
		;
	return NULL;
}

/* Writes without waiting, many times, and looks something up. */
static void on_request(evutil_socket_t fd, short what, void *arg)
{
	static char bytes[30000];

	UNUSED;
	for (unsigned i = 0; i < 60; i++)
		if (write(pair[0], bytes, sizeof(bytes)) < 0 && errno != EAGAIN)
			abort();
	look_up();
}

static void spawn(void *(*run)(void *arg), void *arg)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, run, arg))
		abort();
	pthread_detach(thread);
}

static void lock_and_write(bool innocent, double seconds)
{
	struct event_base *base = event_base_new();

	is_innocent = innocent;
	socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
	evutil_make_socket_nonblocking(pair[0]);
	spawn(drain, NULL);
	spawn(keep_compacting, NULL);
	every(base, 20, on_request, NULL);
	every(base, seconds * 1e3, stop, base);
	event_base_dispatch(base);
}

static double run_for;

static void *serve(void *arg)
{
	struct event_base *base = event_base_new();

	(void)arg;
	every(base, 20, on_request, NULL);
	every(base, run_for * 1e3, stop, base);
	event_base_dispatch(base);
	return NULL;
}

static void run_threads(unsigned n, void *(*run)(void *arg), double seconds)
{
	pthread_t threads[EIGHT];

	run_for = seconds;
	for (unsigned i = 0; i < n; i++)
		if (pthread_create(&threads[i], NULL, run, NULL))
			abort();
	for (unsigned i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
}

/* Several loops stand in one lock. */
static void convoy(bool innocent, double seconds)
{
	is_innocent = innocent;
	socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
	evutil_make_socket_nonblocking(pair[0]);
	spawn(drain, NULL);
	spawn(keep_compacting, NULL);
	run_threads(LOOPS, serve, seconds);
}

/* A lock whose holder computes, for so short a time that only a machine without a CPU for it makes
 * callbacks wait for long. */
static __attribute__((noinline)) void count_words(void)
{
	pthread_mutex_lock(&lock);
	judged_compute(is_innocent ? 0.5 : 40);
	pthread_mutex_unlock(&lock);
}

static void *keep_counting(void *arg)
{
	(void)arg;
	while (judged_now() < begun + 60) {
		count_words();
		judged_sleep(2);
	}
	return NULL;
}

static void on_word(evutil_socket_t fd, short what, void *arg)
{
	UNUSED;
	look_up();
}

static void holder_computes(bool innocent, double seconds)
{
	struct event_base *base = event_base_new();

	is_innocent = innocent;
	spawn(keep_counting, NULL);
	every(base, 20, on_word, NULL);
	every(base, seconds * 1e3, stop, base);
	event_base_dispatch(base);
}

/* ---- advice by the call ---- */

static void run_hook(evutil_socket_t fd, short what, void *arg)
{
	UNUSED;
	if (!is_innocent && fork() == 0)
		_exit(0);
}

static void forks(bool innocent, double seconds)
{
	size_t bytes = (size_t)300 << 20;
	char *memory = malloc(bytes);
	struct event_base *base;

	is_innocent = innocent;
	signal(SIGCHLD, SIG_IGN);
	memset(memory, 1, bytes);
	base = with_clients(seconds);
	every(base, 300, run_hook, memory);
	event_base_dispatch(base);
}

static void *drain_slowly(void *arg)
{
	static char bytes[1 << 14];

	(void)arg;
	while (read(pair[1], bytes, sizeof(bytes)) > 0)
		judged_sleep(2);
	return NULL;
}

/* Tries again until all is written. */
static void send_page(evutil_socket_t fd, short what, void *arg)
{
	static char bytes[500000];
	size_t done = 0, size = is_innocent ? 10000 : sizeof(bytes);

	UNUSED;
	while (done < size) {
		ssize_t n = write(pair[0], bytes + done, size - done);

		if (n > 0)
			done += (size_t)n;
		else if (is_innocent)
			return;
	}
}

static void write_again(bool innocent, double seconds)
{
	struct event_base *base = with_clients(seconds);

	is_innocent = innocent;
	socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
	evutil_make_socket_nonblocking(pair[0]);
	spawn(drain_slowly, NULL);
	every(base, 400, send_page, NULL);
	event_base_dispatch(base);
}

/* Asks for the time again and again, until it is time. */
static void wait_for_device(evutil_socket_t fd, short what, void *arg)
{
	double end = judged_now() + (is_innocent ? 0.0001 : 0.04);

	UNUSED;
	while (judged_now() < end)
		;
}

static void asks_time(bool innocent, double seconds)
{
	struct event_base *base = with_clients(seconds);

	is_innocent = innocent;
	every(base, 300, wait_for_device, NULL);
	event_base_dispatch(base);
}

/* Both ask again and again, the one for a lock that is held for 25 ms, the other for an answer. */
static pthread_spinlock_t spin_lock;
static volatile bool asked;

static void *keep_rehashing(void *arg)
{
	(void)arg;
	for (;;) {
		pthread_spin_lock(&spin_lock);
		judged_compute(is_innocent ? 0 : 25);
		pthread_spin_unlock(&spin_lock);
		judged_sleep(75);
	}
	return NULL;
}

static void look_up_word(evutil_socket_t fd, short what, void *arg)
{
	UNUSED;
	pthread_spin_lock(&spin_lock);
	judged_compute(0.02);
	pthread_spin_unlock(&spin_lock);
}

static void spins_on_lock(bool innocent, double seconds)
{
	struct event_base *base = with_clients(seconds);

	is_innocent = innocent;
	pthread_spin_init(&spin_lock, PTHREAD_PROCESS_PRIVATE);
	spawn(keep_rehashing, NULL);
	every(base, 4, look_up_word, NULL);
	event_base_dispatch(base);
}

static void *keep_answering(void *arg)
{
	(void)arg;
	for (;;) {
		judged_sleep(12);
		asked = false;
	}
	return NULL;
}

static void ask_worker(evutil_socket_t fd, short what, void *arg)
{
	UNUSED;
	asked = !is_innocent;
	while (asked)
		sched_yield();
}

static void yields(bool innocent, double seconds)
{
	struct event_base *base = with_clients(seconds);

	is_innocent = innocent;
	spawn(keep_answering, NULL);
	every(base, 100, ask_worker, NULL);
	event_base_dispatch(base);
}

/* Half of a message has come: it looks whether all of it is there, and leaves it where it is. */
static void on_frame(evutil_socket_t fd, short what, void *arg)
{
	char bytes[32];

	(void)what, (void)arg;
	if (recv(fd, bytes, sizeof(bytes), is_innocent ? 0 : MSG_PEEK) < (ssize_t)sizeof(bytes))
		return;
	if (recv(fd, bytes, sizeof(bytes), 0) < 0)
		abort();
}

static void looks(bool innocent, double seconds)
{
	struct event_base *base = with_clients(seconds);

	is_innocent = innocent;
	socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
	if (write(pair[1], "half of a frame", 15) != 15)
		abort();
	event_add(event_new(base, pair[0], EV_READ | EV_PERSIST, on_frame, NULL), NULL);
	event_base_dispatch(base);
}

static void *render(void *arg)
{
	(void)arg;
	judged_sleep(is_innocent ? 0 : 40);
	return NULL;
}

static void on_render(evutil_socket_t fd, short what, void *arg)
{
	pthread_t thread;

	UNUSED;
	if (pthread_create(&thread, NULL, render, NULL))
		abort();
	if (is_innocent)
		pthread_detach(thread);
	else
		pthread_join(thread, NULL);
}

static void joins(bool innocent, double seconds)
{
	struct event_base *base = with_clients(seconds);

	is_innocent = innocent;
	every(base, 300, on_render, NULL);
	event_base_dispatch(base);
}

static void *answer_late(void *arg)
{
	char byte;

	(void)arg;
	while (read(pair[1], &byte, 1) == 1) {
		judged_sleep(25);
		if (write(pair[1], &byte, 1) != 1)
			break;
	}
	return NULL;
}

static void authorise(evutil_socket_t fd, short what, void *arg)
{
	char byte = 'q';

	UNUSED;
	if (is_innocent || write(pair[0], &byte, 1) != 1)
		return;
	if (read(pair[0], &byte, 1) != 1)
		abort();
}

static void reads(bool innocent, double seconds)
{
	struct event_base *base = with_clients(seconds);

	is_innocent = innocent;
	socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
	spawn(answer_late, NULL);
	every(base, 200, authorise, NULL);
	event_base_dispatch(base);
}

/* A child's answer, read by stdio; the innocent reads a file like that. */
static __attribute__((noinline)) void ask_child(void)
{
	FILE *stream = is_innocent ? fopen("/proc/self/statm", "r")
				   : popen("sleep 0.06; echo 12", "r");
	char line[64];

	if (!stream)
		return;
	while (fgets(line, sizeof(line), stream))
		;
	if (is_innocent)
		fclose(stream);
	else
		pclose(stream);
}

static void on_metrics(evutil_socket_t fd, short what, void *arg)
{
	UNUSED;
	ask_child();
}

static void asks_child(bool innocent, double seconds)
{
	struct event_base *base = with_clients(seconds);

	is_innocent = innocent;
	every(base, 200, on_metrics, NULL);
	event_base_dispatch(base);
}

/* ---- one round, priorities ---- */

static struct event *again;

/* Of CPU time, as a busy machine lets it do less in a second. */
#define ENDLESS_CPU 2

static void poll_queue(evutil_socket_t fd, short what, void *arg)
{
	struct timeval soon = { 0, 20000 };

	UNUSED;
	judged_compute(0.2);
	if (is_innocent)
		evtimer_add(again, &soon);
	else if (judged_cpu() < ENDLESS_CPU)
		event_active(again, EV_TIMEOUT, 1);
}

static void endless_round(bool innocent, double seconds)
{
	struct event_base *base = with_clients(seconds);
	struct timeval soon = { 0, 1000 };

	is_innocent = innocent;
	run_for = seconds;
	again = evtimer_new(base, poll_queue, NULL);
	evtimer_add(again, &soon);
	event_base_dispatch(base);
}

static int stream[2], client[2];

/* Always has more to do, between the first and the last second. */
static void on_stream(evutil_socket_t fd, short what, void *arg)
{
	char bytes[100];
	double at = judged_now() - begun;

	UNUSED;
	if (read(fd, bytes, sizeof(bytes)) < 0)
		return;
	judged_compute(0.5);
	if (!is_innocent && at > 0.5 && at < run_for - 1 && write(stream[1], bytes, 1) != 1)
		abort();
}

static void on_query(evutil_socket_t fd, short what, void *arg)
{
	char bytes[8];

	UNUSED;
	if (read(fd, bytes, sizeof(bytes)) < 0)
		abort();
}

static void feed(evutil_socket_t fd, short what, void *arg)
{
	UNUSED;
	if (write(client[1], "q", 1) != 1 || write(stream[1], "s", 1) != 1)
		abort();
}

static void starved(bool innocent, double seconds)
{
	struct event_base *base = event_base_new();
	struct event *high, *low, *timer, *end;

	is_innocent = innocent;
	run_for = seconds;
	event_base_priority_init(base, 2);
	socketpair(AF_UNIX, SOCK_STREAM, 0, stream);
	socketpair(AF_UNIX, SOCK_STREAM, 0, client);
	evutil_make_socket_nonblocking(stream[0]);
	high = event_new(base, stream[0], EV_READ | EV_PERSIST, on_stream, NULL);
	low = event_new(base, client[0], EV_READ | EV_PERSIST, on_query, NULL);
	event_priority_set(high, 0);
	event_priority_set(low, 1);
	event_add(high, NULL);
	event_add(low, NULL);
	timer = event_new(base, -1, EV_PERSIST, feed, NULL);
	event_priority_set(timer, 1);
	event_add(timer, &(struct timeval) { 0, 50000 });
	end = event_new(base, -1, EV_PERSIST, stop, base);
	event_priority_set(end, 0);
	event_add(end, &(struct timeval) { (time_t)seconds, 0 });
	event_base_dispatch(base);
}

/* ---- the same on eight loops ---- */

static void flush_part(evutil_socket_t fd, short what, void *arg)
{
	UNUSED;
	judged_compute(is_innocent ? 0.1 : 12);
}

static void *serve_part(void *arg)
{
	struct event_base *base = event_base_new();

	(void)arg;
	every(base, 20, on_client, NULL);
	every(base, 500, flush_part, NULL);
	every(base, run_for * 1e3, stop, base);
	event_base_dispatch(base);
	return NULL;
}

static void eight(bool innocent, double seconds)
{
	is_innocent = innocent;
	run_threads(EIGHT, serve_part, seconds);
}

static __attribute__((noinline)) void expire_part(void)
{
	judged_compute(is_innocent ? 0.1 : 15);
}

static void *drive_part(void *arg)
{
	struct event_base *base = event_base_new();
	double end = judged_now() + run_for, next = judged_now();

	(void)arg;
	every(base, 100, on_batch, NULL);
	while (judged_now() < end) {
		event_base_loop(base, EVLOOP_ONCE);
		if (judged_now() < next)
			continue;
		next += 0.5;
		expire_part();
	}
	return NULL;
}

static void eight_between(bool innocent, double seconds)
{
	is_innocent = innocent;
	run_threads(EIGHT, drive_part, seconds);
}

/* ---- one function for many clients ---- */

#define CLIENTS 20

static int asking[CLIENTS][2];

/* Asks another service, which answers soon. */
static void on_ask(evutil_socket_t fd, short what, void *arg)
{
	char byte;

	UNUSED;
	if (read(fd, &byte, 1) != 1)
		return;
	if (!is_innocent)
		judged_sleep(3);
	if (write(fd, &byte, 1) != 1)
		abort();
}

/* All ask at once, have their answers, and think. */
static void *ask(void *arg)
{
	char byte = 'q';

	(void)arg;
	for (;;) {
		for (unsigned i = 0; i < CLIENTS; i++)
			if (write(asking[i][1], &byte, 1) != 1)
				abort();
		for (unsigned i = 0; i < CLIENTS; i++)
			if (read(asking[i][1], &byte, 1) != 1)
				abort();
		judged_sleep(60);
	}
	return NULL;
}

static void clients(bool innocent, double seconds)
{
	struct event_base *base = event_base_new();

	is_innocent = innocent;
	for (unsigned i = 0; i < CLIENTS; i++) {
		if (socketpair(AF_UNIX, SOCK_STREAM, 0, asking[i]))
			abort();
		event_add(event_new(base, asking[i][0], EV_READ | EV_PERSIST, on_ask, NULL), NULL);
	}
	spawn(ask, NULL);
	every(base, seconds * 1e3, stop, base);
	event_base_dispatch(base);
}

int main(int argc, char **argv)
{
	static const struct judged programs[] = {
		{ "hold_callback", hold_callback },
		{ "hold_nested", hold_nested },
		{ "hold_between", hold_between },
		{ "ask_between", ask_between },
		{ "lock_and_write", lock_and_write },
		{ "convoy", convoy },
		{ "holder_computes", holder_computes },
		{ "forks", forks },
		{ "write_again", write_again },
		{ "asks_time", asks_time },
		{ "looks", looks },
		{ "spins_on_lock", spins_on_lock },
		{ "yields", yields },
		{ "joins", joins },
		{ "reads", reads },
	{ "asks_child", asks_child },
		{ "endless_round", endless_round },
		{ "starved", starved },
		{ "clients", clients },
		{ "eight", eight },
		{ "eight_between", eight_between },
		{ NULL, NULL },
	};

	evthread_use_pthreads();
	begun = judged_now();
	return judged_main(argc, argv, programs);
}
