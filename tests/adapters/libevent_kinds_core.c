/* SPDX-License-Identifier: Apache-2.0 */
/* Callbacks of libevent's core: descriptors, timers, signals, activations, finalizers, threads. */

#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "libevent_kinds.h"

/* A value no system call leaves behind: hooks must neither change it nor see it changed. */
#define OUR_ERRNO 4242

static const struct timeval one_ms = { 0, 1000 };

static void expect_errno(const char *where)
{
	if (errno != OUR_ERRNO)
		complain(where, OUR_ERRNO, errno);
}

/* ---- descriptors ---- */

struct channel {
	struct event *event;
	int pair[2];
	int left;
};

static void channel_open(struct channel *channel, int left)
{
	channel->left = left;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, channel->pair))
		complain("socketpair", 0, errno);
}

/* The descriptors stay open: with a changelist libevent must not see their numbers again. */
static void channel_close(struct channel *channel)
{
	event_free(channel->event);
}

static void put_byte(struct channel *channel)
{
	if (write(channel->pair[1], "x", 1) != 1)
		complain("write", 1, errno);
}

static void get_byte(struct channel *channel)
{
	char byte;

	if (read(channel->pair[0], &byte, 1) != 1)
		complain("read", 1, errno);
}

static void on_read_once_armed(evutil_socket_t fd, short what, void *arg)
{
	struct channel *channel = arg;

	COUNT(on_read_once_armed, KIND_POLL);
	log_line("read %d", what);
	if (fd != channel->pair[0])
		complain("fd", channel->pair[0], fd);
	get_byte(channel);
	if (--channel->left) {
		put_byte(channel);
		event_add(channel->event, NULL);
	}
}

static void on_read_persistent(evutil_socket_t fd, short what, void *arg)
{
	struct channel *channel = arg;

	(void)fd;
	COUNT(on_read_persistent, KIND_POLL);
	log_line("read persistent %d", what);
	get_byte(channel);
	if (--channel->left)
		put_byte(channel);
	else
		event_del(channel->event);
}

static void on_read_edge(evutil_socket_t fd, short what, void *arg)
{
	struct channel *channel = arg;

	(void)fd;
	COUNT(on_read_edge, KIND_POLL);
	log_line("read edge %d", what & EV_READ);
	get_byte(channel);
	if (--channel->left)
		put_byte(channel);
	else
		event_del(channel->event);
}

static void on_write(evutil_socket_t fd, short what, void *arg)
{
	struct channel *channel = arg;

	(void)fd;
	COUNT(on_write, KIND_POLL);
	log_line("write %d", what);
	if (!--channel->left)
		event_del(channel->event);
}

#if LIBEVENT_VERSION_NUMBER >= 0x02010000
static void on_closed(evutil_socket_t fd, short what, void *arg)
{
	struct channel *channel = arg;

	(void)fd;
	COUNT(on_closed, KIND_POLL);
	log_line("closed %d", what);
	event_del(channel->event);
}
#endif

static void on_read_timeout(evutil_socket_t fd, short what, void *arg)
{
	struct channel *channel = arg;

	(void)fd;
	COUNT(on_read_timeout, KIND_POLL);
	log_line("read or timeout %d", what);
	if (!--channel->left)
		event_del(channel->event);
}

static void run_channel(struct run *run, int left, short events, event_callback_fn callback)
{
	struct channel channel;

	channel_open(&channel, left);
	channel.event = event_new(run->base, channel.pair[0], events, callback, &channel);
	event_add(channel.event, NULL);
	put_byte(&channel);
	event_base_dispatch(run->base);
	channel_close(&channel);
}

void stage_descriptors(struct run *run)
{
	struct channel channel;

	run_channel(run, 5, EV_READ, on_read_once_armed);
	run_channel(run, 6, EV_READ | EV_PERSIST, on_read_persistent);
	if (event_base_get_features(run->base) & EV_FEATURE_ET)
		run_channel(run, 4, EV_READ | EV_PERSIST | EV_ET, on_read_edge);
	run_channel(run, 3, EV_WRITE | EV_PERSIST, on_write);
#if LIBEVENT_VERSION_NUMBER >= 0x02010000
	if (event_base_get_features(run->base) & EV_FEATURE_EARLY_CLOSE) {
		channel_open(&channel, 1);
		channel.event = event_new(run->base, channel.pair[0], EV_CLOSED | EV_PERSIST,
					  on_closed, &channel);
		event_add(channel.event, NULL);
		close(channel.pair[1]);
		event_base_dispatch(run->base);
		channel_close(&channel);
	}
#endif
	channel_open(&channel, 3);
	channel.event = event_new(run->base, channel.pair[0], EV_READ | EV_PERSIST, on_read_timeout,
				  &channel);
	event_add(channel.event, &one_ms);
	event_base_dispatch(run->base);
	channel_close(&channel);
}

/* ---- timers ---- */

static struct event embedded;
static int timer_runs;

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	COUNT(on_timer, KIND_POLL);
	log_line("timer %d %d %d", (int)fd, what, arg == &timer_runs);
}

static void on_embedded_timer(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	COUNT(on_embedded_timer, KIND_POLL);
	log_line("embedded timer %d", what);
	if (++*(int *)arg < 4)
		event_add(&embedded, &one_ms);
}

static void on_persistent_timer(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	COUNT(on_persistent_timer, KIND_POLL);
	log_line("persistent timer %d", what);
	if (++timer_runs == 5)
		event_del(*(struct event **)arg);
}

#if LIBEVENT_VERSION_NUMBER >= 0x02010000
static void on_self_argument(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	COUNT(on_self_argument, KIND_POLL);
	log_line("self argument %d", what);
	event_free(arg);
}
#endif

static void on_common_timeout(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)arg;
	COUNT(on_common_timeout, KIND_POLL);
	log_line("common timeout %d", what);
}

static void run_common_timeouts(struct run *run)
{
	const struct timeval three_ms = { 0, 3000 };
	const struct timeval *common = event_base_init_common_timeout(run->base, &three_ms);
	struct event *events[4];

	for (int i = 0; i < 4; i++) {
		events[i] = event_new(run->base, -1, 0, on_common_timeout, NULL);
		event_add(events[i], common);
	}
	event_base_dispatch(run->base);
	for (int i = 0; i < 4; i++)
		event_free(events[i]);
}

void stage_timers(struct run *run)
{
	struct event *timer = evtimer_new(run->base, on_timer, &timer_runs);
	int embedded_runs = 0;

	evtimer_add(timer, &one_ms);
	event_base_dispatch(run->base);
	event_free(timer);

	evtimer_assign(&embedded, run->base, on_embedded_timer, &embedded_runs);
	evtimer_add(&embedded, &one_ms);
	event_base_dispatch(run->base);
	event_debug_unassign(&embedded);

	timer_runs = 0;
	timer = event_new(run->base, -1, EV_PERSIST, on_persistent_timer, &timer);
	event_add(timer, &one_ms);
	event_base_dispatch(run->base);
	event_free(timer);

#if LIBEVENT_VERSION_NUMBER >= 0x02010000
	timer = event_new(run->base, -1, 0, on_self_argument, event_self_cbarg());
	event_add(timer, &one_ms);
	event_base_dispatch(run->base);
#endif
	run_common_timeouts(run);
}

/* ---- signals ---- */

static struct event *signal_event;
static int signals_left;

static void on_signal(evutil_socket_t fd, short what, void *arg)
{
	(void)arg;
	COUNT(on_signal, KIND_POLL);
	log_line("signal %d %d", (int)fd, what);
	if (--signals_left)
		raise(SIGUSR1);
	else
		event_del(signal_event);
}

static void on_many_signals(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)arg;
	COUNT(on_many_signals, KIND_POLL);
	log_line("many signals %d", what);
	if (!--signals_left)
		event_del(signal_event);
}

void stage_signals(struct run *run)
{
	signals_left = 3;
	signal_event = evsignal_new(run->base, SIGUSR1, on_signal, NULL);
	event_add(signal_event, NULL);
	raise(SIGUSR1);
	event_base_dispatch(run->base);
	event_free(signal_event);

	/* Four signals before the loop looks: one activation with four calls; by signalfd() they are one. */
	signals_left = getenv("EVENT_USE_SIGNALFD") ? 1 : 4;
	signal_event = evsignal_new(run->base, SIGUSR2, on_many_signals, NULL);
	event_add(signal_event, NULL);
	for (int i = 0; i < 4; i++)
		raise(SIGUSR2);
	event_base_dispatch(run->base);
	event_free(signal_event);
}

/* ---- activations ---- */

static struct event *active_event;
static int active_left;

static void on_active(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)arg;
	COUNT(on_active, KIND_POLL);
	log_line("active %d", what);
	expect_errno("on_active");
	if (--active_left)
		event_active(active_event, EV_WRITE, 1);
	expect_errno("event_active");
}

void stage_active(struct run *run)
{
	struct event *other;

	active_left = 100;
	errno = OUR_ERRNO;
	active_event = event_new(run->base, -1, 0, on_active, NULL);
	expect_errno("event_new");
	event_active(active_event, EV_READ, 1);
	event_base_loop(run->base, EVLOOP_NONBLOCK);
	expect_errno("event_base_loop");
	event_assign(active_event, run->base, -1, 0, on_active, NULL);
	expect_errno("event_assign");
	other = event_new(run->base, -1, 0, on_active, &active_event);
	event_free(other);
	event_free(active_event);
	expect_errno("event_free");
}

static void on_once(evutil_socket_t fd, short what, void *arg)
{
	COUNT(on_once, KIND_POLL);
	log_line("once %d %d %d", (int)fd, what, arg == &active_left);
}

static void on_once_read(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	COUNT(on_once_read, KIND_POLL);
	log_line("once read %d", what);
	get_byte(arg);
}

void stage_once(struct run *run)
{
	struct channel channel = { 0 };

	event_base_once(run->base, -1, EV_TIMEOUT, on_once, &active_left, NULL);
	event_base_once(run->base, -1, EV_TIMEOUT, on_once, &active_left, &one_ms);
	event_base_dispatch(run->base);
	channel_open(&channel, 1);
	put_byte(&channel);
	event_base_once(run->base, channel.pair[0], EV_READ, on_once_read, &channel, NULL);
	event_base_dispatch(run->base);
	event_base_loopexit(run->base, &one_ms);
	event_base_dispatch(run->base);
}

static void on_low(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)arg;
	COUNT(on_low, KIND_POLL);
	log_line("low %d", what);
}

static void on_middle(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)arg;
	COUNT(on_middle, KIND_POLL);
	log_line("middle %d", what);
}

static void on_high(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)arg;
	COUNT(on_high, KIND_POLL);
	log_line("high %d", what);
}

void stage_priorities(struct run *run)
{
	static const event_callback_fn callbacks[] = { on_low, on_middle, on_high };
	struct event *events[3];

	for (int i = 0; i < 3; i++) {
		events[i] = event_new(run->base, -1, 0, callbacks[i], NULL);
		event_priority_set(events[i], 2 - i);
	}
	for (int round = 0; round < 4; round++) {
		for (int i = 0; i < 3; i++)
			event_active(events[i], EV_READ, 1);
		event_base_loop(run->base, EVLOOP_NONBLOCK);
	}
	for (int i = 0; i < 3; i++)
		event_free(events[i]);
}

/* ---- finalizers ---- */

#if LIBEVENT_VERSION_NUMBER >= 0x02010000

static struct event finalized;

static void on_never(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
	complain("on_never runs", 0, 1);
}

static void on_finalize(struct event *event, void *arg)
{
	const struct run *run = arg;

	COUNT(on_finalize, KIND_POLL);
	log_line("finalize %d", event == &finalized);
	if (run->debug)
		return;
	if (event_get_fd(event) != -1 || event_get_base(event) != run->base)
		complain("getters in a finalizer", 1, 0);
}

static void on_free_finalize(struct event *event, void *arg)
{
	COUNT(on_free_finalize, KIND_POLL);
	log_line("free finalize %d %d", event != NULL, arg == &finalized);
}

static void on_finalize_by_free(struct event *event, void *arg)
{
	(void)event;
	log_line("finalize by event_base_free %d", arg == &finalized);
}

void stage_finalizers(struct run *run)
{
	struct event_base *other = event_base_new();
	struct event *event;

	event_assign(&finalized, run->base, -1, EV_PERSIST, on_never, run);
	event_add(&finalized, &(struct timeval) { 100, 0 });
	event_finalize(0, &finalized, on_finalize);
	event_base_loop(run->base, EVLOOP_NONBLOCK);
	event_debug_unassign(&finalized);

	for (int i = 0; i < 3; i++) {
		event = event_new(run->base, -1, EV_PERSIST, on_never, &finalized);
		event_add(event, &(struct timeval) { 100, 0 });
		event_free_finalize(0, event, on_free_finalize);
	}
	event_base_loop(run->base, EVLOOP_NONBLOCK);

	event = event_new(other, -1, 0, on_never, &finalized);
	event_free_finalize(0, event, on_finalize_by_free);
	event_base_free(other);
}
#else
void stage_finalizers(struct run *run)
{
	(void)run;
}
#endif

/* ---- getters and copies: the program never sees anything but its own pointers ---- */

#if LIBEVENT_VERSION_NUMBER >= 0x02010000
#define RAW_CALLBACK(event) (event)->ev_evcallback.evcb_cb_union.evcb_callback
#else
#define RAW_CALLBACK(event) (event)->ev_callback
#endif

static void on_copy(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	COUNT(on_copy, KIND_POLL);
	log_line("copy %d %d", what, arg == &signals_left);
}

void stage_getters(struct run *run)
{
	struct event_base *base = NULL;
	event_callback_fn callback = NULL;
	void *arg = NULL;
	struct event first, second, third;
	short events = 0;
	int fd = 0;

	event_assign(&first, run->base, -1, EV_PERSIST, on_copy, &signals_left);
	event_get_assignment(&first, &base, &fd, &events, &callback, &arg);
	if (event_get_callback(&first) != on_copy || callback != on_copy || base != run->base ||
	    arg != &signals_left || fd != -1 || events != EV_PERSIST)
		complain("getters", 1, 0);
	event_get_assignment(&first, NULL, NULL, NULL, NULL, NULL);

	/* The raw field handed to a new event, and a copy of the structure. */
	event_assign(&second, run->base, -1, 0, RAW_CALLBACK(&first), &signals_left);
	third = first;
	if (event_get_callback(&second) != on_copy)
		complain("a copied callback", 1, 0);
	/* A direct call outside of any loop is no poll. */
	RAW_CALLBACK (&first)(-1, 0, &signals_left);
	counter_of("on_copy", (void *)on_copy, KIND_POLL)->count--;
	event_active(&first, EV_READ, 1);
	event_active(&second, EV_WRITE, 1);
	if (!run->debug) {
		if (event_get_callback(&third) != on_copy)
			complain("the callback of a copy", 1, 0);
		event_active(&third, EV_TIMEOUT, 1);
	}
	event_base_loop(run->base, EVLOOP_NONBLOCK);
	event_debug_unassign(&first);
	event_debug_unassign(&second);
}

/* ---- other threads ---- */

#define CROSS_ROUNDS 50

static struct event *cross_event;
static pthread_mutex_t cross_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cross_ran = PTHREAD_COND_INITIALIZER;
static int cross_runs;

static void on_cross_thread(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	COUNT(on_cross_thread, KIND_POLL);
	log_line("cross thread %d", what);
	pthread_mutex_lock(&cross_mutex);
	if (++cross_runs == CROSS_ROUNDS)
		event_base_loopbreak(arg);
	pthread_cond_signal(&cross_ran);
	pthread_mutex_unlock(&cross_mutex);
}

static void *activate_often(void *arg)
{
	(void)arg;
	for (int i = 0; i < CROSS_ROUNDS; i++) {
		event_active(cross_event, EV_READ, 1);
		pthread_mutex_lock(&cross_mutex);
		while (cross_runs == i)
			pthread_cond_wait(&cross_ran, &cross_mutex);
		pthread_mutex_unlock(&cross_mutex);
	}
	return NULL;
}

void stage_cross_thread(struct run *run)
{
	pthread_t thread;

	cross_runs = 0;
	cross_event = event_new(run->base, -1, EV_PERSIST, on_cross_thread, run->base);
	event_add(cross_event, &(struct timeval) { 100, 0 });
	pthread_create(&thread, NULL, activate_often, NULL);
	/* On a slow machine the exit that stage_dns() asks for in a second comes now. */
	while (cross_runs < CROSS_ROUNDS)
		event_base_dispatch(run->base);
	pthread_join(thread, NULL);
	event_free(cross_event);
}
