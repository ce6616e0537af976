/* SPDX-License-Identifier: Apache-2.0 */
/* Watchers of descriptors, time and the loop's own rounds; feeding, clearing, invoking. */

#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "libev_kinds.h"

/* ---- waiting ---- */

static bool gave_up;

static void on_too_long(struct ev_loop *loop, ev_timer *w, int events)
{
	(void)w;
	(void)events;
	COUNT(on_too_long, KIND_POLL);
	gave_up = true;
	ev_break(loop, EVBREAK_ALL);
}

void run_until(struct ev_loop *loop, const bool *done, const char *what)
{
	ev_timer guard;

	ev_timer_init(&guard, on_too_long, 20., 0.);
	ev_timer_start(loop, &guard);
	while (!*done && !gave_up)
		ev_run(loop, EVRUN_ONCE);
	ev_timer_stop(loop, &guard);
	if (!*done)
		complain(what, 1, 0);
}

/* ---- fed by hand, in the order of priorities ---- */

#define FED 6

static ev_prepare fed[FED];

static void on_fed(struct ev_loop *loop, ev_prepare *w, int events)
{
	COUNT(on_fed, KIND_POLL);
	log_line("fed %d %x pending %u", (int)(w - fed), events, ev_pending_count(loop));
}

static void on_fed_alone(struct ev_loop *loop, ev_watcher *w, int events)
{
	(void)loop, (void)w;
	COUNT(on_fed_alone, KIND_POLL);
	log_line("fed alone %x", events);
}

/* Feeds another one from inside, of a higher priority than what is left. */
static void on_feeding(struct ev_loop *loop, ev_prepare *w, int events)
{
	COUNT(on_feeding, KIND_POLL);
	log_line("feeding %d %x", w->priority, events);
	errno = EDOM;
	ev_feed_event(loop, &fed[5], EV_CUSTOM);
	ev_feed_event(loop, &fed[5], EV_READ);
	if (errno != EDOM)
		complain("errno behind ev_feed_event()", EDOM, errno);
}

/* A watcher that is only fed has no kind: the events that it is fed with do not tell one. */
static void run_fed_alone(struct ev_loop *loop)
{
	static const int events[] = { EV_READ, EV_TIMER, EV_PERIODIC, EV_SIGNAL, EV_ASYNC };

	for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++) {
		ev_watcher *w = malloc(sizeof(*w));

		if (!w)
			return;
		ev_init(w, on_fed_alone);
		ev_feed_event(loop, w, events[i]);
		ev_invoke_pending(loop);
		free(w);
	}
}

static void run_fed(struct ev_loop *loop)
{
	static const int priorities[FED] = { 0, -2, 2, 1, -1, 2 };
	ev_prepare feeding;

	for (int i = 0; i < FED; i++) {
		ev_init(&fed[i], on_fed);
		ev_set_priority(&fed[i], priorities[i]);
	}
	ev_init(&feeding, on_feeding);
	ev_set_priority(&feeding, 1);
	for (int i = 0; i < FED - 1; i++)
		ev_feed_event(loop, &fed[i], 1 << i);
	ev_feed_event(loop, &feeding, EV_CUSTOM);
	if (ev_clear_pending(loop, &fed[4]) != 1 << 4)
		complain("cleared events", 1 << 4, 0);
	ev_invoke_pending(loop);
	if (ev_pending_count(loop))
		complain("pending behind a drain", 0, (long)ev_pending_count(loop));
	run_fed_alone(loop);
	/* Once more, through a run. */
	ev_feed_event(loop, &fed[1], EV_CUSTOM);
	ev_run(loop, EVRUN_NOWAIT);
}

/* ---- called directly, outside and inside ---- */

static void on_direct(struct ev_loop *loop, ev_timer *w, int events)
{
	(void)loop;
	(void)w;
	COUNT(on_direct, KIND_POLL);
	log_line("direct %x", events);
}

static void on_indirect(struct ev_loop *loop, ev_timer *w, int events)
{
	(void)events;
	COUNT(on_indirect, KIND_POLL);
	ev_invoke(loop, w->data, EV_CUSTOM);
	counter_of("on_direct", (void *)on_direct, KIND_TASKS)->count = 1;
}

static void run_invoked(struct ev_loop *loop)
{
	ev_timer direct, indirect;

	ev_timer_init(&direct, on_direct, 1., 0.);
	ev_timer_init(&indirect, on_indirect, 1., 0.);
	indirect.data = &direct;
	ev_invoke(loop, &direct, EV_TIMER);
	ev_invoke(loop, &indirect, EV_TIMER);
}

/* ---- timers ---- */

static struct {
	ev_timer once, repeat, again;
	ev_periodic wall, absolute, rescheduled;
	int repeats, walls, agains, left;
	bool done;
} timers;

static void finish_timer(void)
{
	timers.done = --timers.left == 0;
}

static void on_once_timer(struct ev_loop *loop, ev_timer *w, int events)
{
	(void)loop;
	(void)w;
	(void)events;
	COUNT(on_once_timer, KIND_POLL);
	finish_timer();
}

static void on_repeat(struct ev_loop *loop, ev_timer *w, int events)
{
	(void)events;
	COUNT(on_repeat, KIND_POLL);
	if (++timers.repeats < 5)
		return;
	ev_timer_stop(loop, w);
	finish_timer();
}

/* Starts itself again in its callback: it stays the same task. */
static void on_again(struct ev_loop *loop, ev_timer *w, int events)
{
	(void)events;
	COUNT(on_again, KIND_POLL);
	counter_of("on_again", (void *)on_again, KIND_TASKS)->count = 1;
	if (++timers.agains == 5) {
		finish_timer();
		return;
	}
	ev_timer_set(w, 0.001, 0.);
	ev_timer_start(loop, w);
}

static void on_wall(struct ev_loop *loop, ev_periodic *w, int events)
{
	(void)events;
	COUNT(on_wall, KIND_POLL);
	if (++timers.walls < 3)
		return;
	ev_periodic_stop(loop, w);
	finish_timer();
}

static void on_absolute(struct ev_loop *loop, ev_periodic *w, int events)
{
	(void)loop;
	(void)w;
	(void)events;
	COUNT(on_absolute, KIND_POLL);
	finish_timer();
}

static ev_tstamp reschedule(ev_periodic *w, ev_tstamp now) EV_NOEXCEPT
{
	(void)w;
	return now + 0.005;
}

static void on_rescheduled(struct ev_loop *loop, ev_periodic *w, int events)
{
	(void)events;
	COUNT(on_rescheduled, KIND_POLL);
	ev_periodic_stop(loop, w);
	finish_timer();
}

static void run_timers(struct ev_loop *loop)
{
	timers.left = 6;
	ev_timer_init(&timers.once, on_once_timer, 0.004, 0.);
	ev_timer_init(&timers.repeat, on_repeat, 0.002, 0.003);
	ev_timer_init(&timers.again, on_again, 0.001, 0.);
	ev_periodic_init(&timers.wall, on_wall, 0., 0.005, NULL);
	ev_periodic_init(&timers.absolute, on_absolute, ev_now(loop) + 0.003, 0., NULL);
	ev_periodic_init(&timers.rescheduled, on_rescheduled, 0., 0., reschedule);
	ev_timer_start(loop, &timers.once);
	ev_timer_again(loop, &timers.repeat);
	ev_timer_start(loop, &timers.again);
	ev_periodic_start(loop, &timers.wall);
	ev_periodic_again(loop, &timers.absolute);
	ev_periodic_start(loop, &timers.rescheduled);
	run_until(loop, &timers.done, "timers");
}

/* ---- late timers: a callback of 30 ms stands before them ---- */

static struct {
	ev_timer first, second, ticking;
	ev_tstamp due, late;
	bool done;
} late;

static void spend(double s)
{
	ev_tstamp until = ev_time() + s;

	while (ev_time() < until)
		continue;
}

static void on_late(struct ev_loop *loop, ev_timer *w, int events);

static void on_blocker(struct ev_loop *loop, ev_timer *w, int events)
{
	(void)loop;
	(void)w;
	(void)events;
	COUNT(on_blocker, KIND_POLL);
	spend(0.030);
	counter_of("on_late", (void *)on_late, KIND_LEAST)->count = (unsigned long)((ev_time() - late.due) * 1e6);
}

static void on_late(struct ev_loop *loop, ev_timer *w, int events)
{
	(void)loop;
	(void)w;
	(void)events;
	COUNT(on_late, KIND_POLL);
	counter_of("on_late", (void *)on_late, KIND_LATE)->count =
		(unsigned long)((ev_time() - late.due) * 1e6);
	late.done = true;
}

static void run_late(struct ev_loop *loop)
{
	ev_now_update(loop);
	late.due = ev_now(loop) + 0.008;
	ev_timer_init(&late.first, on_blocker, 0.002, 0.);
	ev_timer_init(&late.second, on_late, 0.008, 0.);
	ev_timer_start(loop, &late.first);
	ev_timer_start(loop, &late.second);
	run_until(loop, &late.done, "late timers");
}

/* ---- descriptors ---- */

#define ROUNDS 50

static struct {
	ev_io reader, writer, again;
	int fds[2], rounds, writes;
	bool done;
} io;

static void on_readable(struct ev_loop *loop, ev_io *w, int events)
{
	char byte;

	(void)events;
	COUNT(on_readable, KIND_POLL);
	if (read(w->fd, &byte, 1) != 1)
		complain("a byte to read", 1, 0);
	if (++io.rounds < ROUNDS) {
		ev_io_start(loop, &io.writer);
		return;
	}
	ev_io_stop(loop, w);
	io.done = true;
}

/* Stopped and started for each byte: one task. */
static void on_writable(struct ev_loop *loop, ev_io *w, int events)
{
	(void)events;
	COUNT(on_writable, KIND_POLL);
	counter_of("on_writable", (void *)on_writable, KIND_TASKS)->count = 1;
	if (write(w->fd, "x", 1) != 1)
		complain("a byte to write", 1, 0);
	ev_io_stop(loop, w);
}

/* Its descriptor is set anew each time: another task, also where the number is the same. */
static void on_set_anew(struct ev_loop *loop, ev_io *w, int events)
{
	(void)events;
	COUNT(on_set_anew, KIND_POLL);
	COUNT(on_set_anew, KIND_TASKS);
	ev_io_stop(loop, w);
	if (++io.writes == 3) {
		io.done = true;
		return;
	}
	ev_io_set(w, io.fds[0], EV_WRITE);
	ev_io_start(loop, w);
}

static void on_other_callback(struct ev_loop *loop, ev_io *w, int events)
{
	(void)events;
	COUNT(on_other_callback, KIND_POLL);
	counter_of("on_other_callback", (void *)on_other_callback, KIND_TASKS)->count = 1;
	ev_io_stop(loop, w);
	io.done = true;
}

/* The callback is changed while the watcher is active. */
static void on_first_callback(struct ev_loop *loop, ev_io *w, int events)
{
	(void)loop;
	(void)events;
	COUNT(on_first_callback, KIND_POLL);
	counter_of("on_first_callback", (void *)on_first_callback, KIND_TASKS)->count = 1;
	ev_set_cb(w, on_other_callback);
}

static void run_io(struct ev_loop *loop)
{
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, io.fds))
		complain("socketpair", 0, errno);
	ev_io_init(&io.reader, on_readable, io.fds[0], EV_READ);
	ev_io_init(&io.writer, on_writable, io.fds[1], EV_WRITE);
	ev_io_start(loop, &io.reader);
	ev_io_start(loop, &io.writer);
	run_until(loop, &io.done, "bytes");
	io.done = false;
	ev_io_init(&io.again, on_set_anew, io.fds[0], EV_WRITE);
	ev_io_start(loop, &io.again);
	run_until(loop, &io.done, "a descriptor set anew");
	io.done = false;
	ev_io_init(&io.again, on_first_callback, io.fds[0], EV_WRITE);
	ev_io_start(loop, &io.again);
	run_until(loop, &io.done, "another callback");
	/* Fed by its descriptor alone. */
	ev_io_init(&io.again, on_other_callback, io.fds[1], EV_READ);
	ev_io_start(loop, &io.again);
	ev_feed_fd_event(loop, io.fds[1], EV_READ);
	ev_invoke_pending(loop);
	counter_of("on_other_callback", (void *)on_other_callback, KIND_TASKS)->count = 2;
	close(io.fds[0]);
	close(io.fds[1]);
}

/* ---- memory that is used again ---- */

static unsigned long reused;

static void on_reused(struct ev_loop *loop, ev_timer *w, int events)
{
	(void)loop;
	(void)events;
	COUNT(on_reused, KIND_POLL);
	reused++;
	free(w);
}

static void on_reused_too(struct ev_loop *loop, ev_timer *w, int events)
{
	(void)loop;
	(void)events;
	COUNT(on_reused_too, KIND_POLL);
	reused++;
	free(w);
}

static void run_reused(struct ev_loop *loop)
{
	for (int i = 0; i < 20; i++) {
		ev_timer *timer = malloc(sizeof(*timer));

		if (!timer)
			return;
		ev_init(timer, i % 2 ? on_reused : on_reused_too);
		ev_timer_set(timer, 0., 0.);
		ev_timer_start(loop, timer);
		while (reused <= (unsigned long)i)
			ev_run(loop, EVRUN_ONCE);
	}
}

/* ---- each round ---- */

static struct {
	ev_idle idle;
	ev_prepare prepare;
	ev_check check;
	int idles;
	bool done;
} rounds;

static void on_idle(struct ev_loop *loop, ev_idle *w, int events)
{
	(void)events;
	COUNT(on_idle, KIND_POLL);
	if (++rounds.idles < 10)
		return;
	ev_idle_stop(loop, w);
	ev_prepare_stop(loop, &rounds.prepare);
	ev_check_stop(loop, &rounds.check);
	rounds.done = true;
}

static void on_prepare(struct ev_loop *loop, ev_prepare *w, int events)
{
	(void)loop;
	(void)w;
	(void)events;
	COUNT(on_prepare, KIND_POLL);
}

static void on_check(struct ev_loop *loop, ev_check *w, int events)
{
	(void)loop;
	(void)w;
	(void)events;
	COUNT(on_check, KIND_POLL);
}

static void run_rounds(struct ev_loop *loop)
{
	ev_idle_init(&rounds.idle, on_idle);
	ev_prepare_init(&rounds.prepare, on_prepare);
	ev_check_init(&rounds.check, on_check);
	ev_idle_start(loop, &rounds.idle);
	ev_prepare_start(loop, &rounds.prepare);
	ev_check_start(loop, &rounds.check);
	run_until(loop, &rounds.done, "idle rounds");
}

void run_core_kinds(struct ev_loop *loop)
{
	run_fed(loop);
	run_invoked(loop);
	run_timers(loop);
	run_late(loop);
	run_io(loop);
	run_reused(loop);
	run_rounds(loop);
}
