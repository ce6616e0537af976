/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is told of a poll beside that it ran: why and by whom it was woken, how many were ready with
 * it, who set its event up.
 *
 *	libevent_facts wakes|public|server [--out=FILE]
 *
 * public: as wakes, where only the program's own calls can tell of them.
 */

#include "config.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <event2/event.h>
#include <event2/http.h>
#include <event2/thread.h>

#include "counters.h"

#define ROUNDS 5

static const struct timeval one_ms = { 0, 1000 };
static struct event_base *base;
static bool only_public;

static void expect(const char *name, event_callback_fn callback, enum kind kind, unsigned long n)
{
	counter_of(name, (void *)callback, kind)->count = n;
}

/* All but libevent's own are set up here. */
static __attribute__((noinline)) struct event *make_event(int fd, short events,
							  event_callback_fn callback, void *arg)
{
	struct event *event = event_new(base, fd, events, callback, arg);

	expect("make_event", callback, KIND_SITE, (uintptr_t)make_event);
	return event;
}

/* ---- why ---- */

static void on_pipe(evutil_socket_t fd, short what, void *arg)
{
	char byte;

	(void)what, (void)arg;
	COUNT(on_pipe, KIND_POLL);
	if (read(fd, &byte, 1) != 1)
		complain("read", 1, 0);
}

static void wake_by_descriptor(void)
{
	struct event *event;
	int fds[2];

	if (pipe(fds))
		complain("pipe", 0, -1);
	event = make_event(fds[0], EV_READ | EV_PERSIST, on_pipe, NULL);
	event_add(event, NULL);
	for (int i = 0; i < ROUNDS; i++) {
		if (write(fds[1], "x", 1) != 1)
			complain("write", 1, 0);
		event_base_loop(base, EVLOOP_ONCE);
	}
	event_free(event);
	expect("fd", on_pipe, KIND_REASON, only_public ? 0 : ROUNDS);
}

static void on_deadline(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what, (void)arg;
	COUNT(on_deadline, KIND_POLL);
}

static void wake_by_deadline(void)
{
	struct event *event = make_event(-1, 0, on_deadline, NULL);

	for (int i = 0; i < ROUNDS; i++) {
		event_add(event, &one_ms);
		event_base_dispatch(base);
	}
	event_free(event);
	expect("timer", on_deadline, KIND_REASON, ROUNDS);
}

static void on_usr1(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	COUNT(on_usr1, KIND_POLL);
	event_del(*(struct event **)arg);
}

static void wake_by_signal(void)
{
	struct event *event = NULL;

	event = make_event(SIGUSR1, EV_SIGNAL | EV_PERSIST, on_usr1, &event);
	for (int i = 0; i < ROUNDS; i++) {
		event_add(event, NULL);
		raise(SIGUSR1);
		event_base_dispatch(base);
	}
	event_free(event);
	expect("signal", on_usr1, KIND_REASON, only_public ? 0 : ROUNDS);
}

/* ---- by whom ---- */

static void on_woken(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what, (void)arg;
	COUNT(on_woken, KIND_POLL);
}

static void on_waker(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	COUNT(on_waker, KIND_POLL);
	event_active(arg, EV_READ, 1);
	event_active(arg, EV_READ, 1); /* coalesced */
}

static void wake_by_callback(void)
{
	struct event *woken = make_event(-1, 0, on_woken, NULL);
	struct event *waker = make_event(-1, 0, on_waker, woken);

	for (int i = 0; i < ROUNDS; i++) {
		event_add(waker, &one_ms);
		event_base_dispatch(base);
	}
	event_free(woken);
	event_free(waker);
	expect("active", on_woken, KIND_REASON, ROUNDS);
	expect("on_waker", on_waker, KIND_WAKER, ROUNDS);
}

/* Locks of ours: a thread that lingers comes back from letting go of one when on_called() has run. */
static __thread bool lingers;
static sem_t called;

static void *make_lock(unsigned type)
{
	pthread_mutex_t *lock = malloc(sizeof(pthread_mutex_t));
	pthread_mutexattr_t attributes;

	pthread_mutexattr_init(&attributes);
	if (type & EVTHREAD_LOCKTYPE_RECURSIVE)
		pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
	if (!lock || pthread_mutex_init(lock, &attributes))
		abort();
	pthread_mutexattr_destroy(&attributes);
	return lock;
}

static void end_lock(void *lock, unsigned type)
{
	(void)type;
	pthread_mutex_destroy(lock);
	free(lock);
}

static int take_lock(unsigned mode, void *lock)
{
	return mode & EVTHREAD_TRY ? pthread_mutex_trylock(lock) : pthread_mutex_lock(lock);
}

static int let_go(unsigned mode, void *lock)
{
	int err = pthread_mutex_unlock(lock);

	(void)mode;
	if (lingers)
		sem_wait(&called);
	return err;
}

static unsigned long own_id(void)
{
	return (unsigned long)pthread_self();
}

static void use_own_locks(void)
{
	static const struct evthread_lock_callbacks callbacks = {
		EVTHREAD_LOCK_API_VERSION, EVTHREAD_LOCKTYPE_RECURSIVE, make_lock, end_lock, take_lock, let_go,
	};

	sem_init(&called, 0, 0);
	evthread_set_lock_callbacks(&callbacks);
	evthread_set_id_callback(own_id);
}

static void on_called(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what, (void)arg;
	COUNT(on_called, KIND_POLL);
	sem_post(&called);
}

static void *call_from_outside(void *arg)
{
	event_active(arg, EV_READ, 1);
	return NULL;
}

/* The wake is told even so before the poll that it is of. */
static void *call_and_linger(void *arg)
{
	lingers = true;
	return call_from_outside(arg);
}

static void wake_by_thread(void)
{
	struct event *event = make_event(-1, EV_PERSIST, on_called, NULL);

	event_add(event, &(struct timeval) { 100, 0 });
	for (int i = 0; i < ROUNDS; i++) {
		pthread_t thread;

		pthread_create(&thread, NULL, i % 2 ? call_from_outside : call_and_linger, event);
		if (i % 2)
			pthread_join(thread, NULL);
		/* The notification may come in a round of its own. */
		while (counter_of("on_called", (void *)on_called, KIND_POLL)->count <= (unsigned)i)
			event_base_loop(base, EVLOOP_ONCE);
		if (i % 2 == 0)
			pthread_join(thread, NULL);
		else
			sem_wait(&called);
	}
	event_free(event);
	expect("cross_thread", on_called, KIND_REASON, ROUNDS);
}

/* ---- how many ---- */

static void on_first(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what, (void)arg;
	COUNT(on_first, KIND_POLL);
}

static void on_second(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what, (void)arg;
	COUNT(on_second, KIND_POLL);
}

static void on_third(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what, (void)arg;
	COUNT(on_third, KIND_POLL);
}

static void queue_three(void)
{
	static const event_callback_fn callbacks[] = { on_first, on_second, on_third };
	struct event *events[3];

	for (int i = 0; i < 3; i++)
		events[i] = make_event(-1, 0, callbacks[i], NULL);
	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < 3; i++)
			event_active(events[i], EV_READ, 1);
		event_base_loop(base, EVLOOP_NONBLOCK);
	}
	for (int i = 0; i < 3; i++) {
		event_free(events[i]);
		expect("queue", callbacks[i], KIND_DEPTH, (unsigned)(3 - i) * ROUNDS);
	}
}

/* ---- by whose call: all that a server makes comes of the call that bound it ---- */

#ifndef CORE_ONLY
static void on_page(struct evhttp_request *request, void *arg)
{
	(void)arg;
	COUNT(on_page, KIND_SPAN);
	evhttp_send_reply(request, 200, "OK", NULL);
}

static __attribute__((noinline)) struct evhttp_bound_socket *bind_server(struct evhttp *http)
{
	struct evhttp_bound_socket *bound = evhttp_bind_socket_with_handle(http, "127.0.0.1", 0);

	counter_of("bind_server", NULL, KIND_INTERNAL_SITE)->count = (uintptr_t)bind_server;
	return bound;
}

static void ask(int server)
{
	static const char request[] = "GET / HTTP/1.0\r\n\r\n";
	struct sockaddr_in address;
	socklen_t len = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	char reply[256];

	getsockname(server, (struct sockaddr *)&address, &len);
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) ||
	    write(fd, request, sizeof(request) - 1) != sizeof(request) - 1)
		complain("connect", 0, -1);
	while (recv(fd, reply, sizeof(reply), MSG_DONTWAIT) != 0)
		event_base_loop(base, EVLOOP_NONBLOCK);
	close(fd);
}

static void serve(void)
{
	struct evhttp_bound_socket *bound;
	struct evhttp *http;

	base = event_base_new();
	http = evhttp_new(base);
	bound = bind_server(http);
	evhttp_set_gencb(http, on_page, NULL);
	for (int i = 0; i < ROUNDS; i++)
		ask(evhttp_bound_socket_get_fd(bound));
	evhttp_free(http);
	event_base_free(base);
}
#endif

static void wake(void)
{
	use_own_locks();
	base = event_base_new();
	wake_by_descriptor();
	wake_by_deadline();
	wake_by_signal();
	wake_by_callback();
	wake_by_thread();
	queue_three();
	event_base_free(base);
}

int main(int argc, char **argv)
{
	const char *out = argc > 2 && !strncmp(argv[2], "--out=", 6) ? argv[2] + 6 : NULL;

	if (argc < 2)
		return 2;
	only_public = !strcmp(argv[1], "public");
	if (only_public || !strcmp(argv[1], "wakes"))
		wake();
#ifndef CORE_ONLY
	else
		serve();
#endif
	return counters_write(out);
}
