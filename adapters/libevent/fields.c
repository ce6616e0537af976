/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calibration: a scratch base is driven through states in which a private field must hold known
 * values; an offset counts only if it is the only one.  What is not found is off and named in the
 * trace.  The scratch base's polls are never recorded.
 */

#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <dial9/loop.h>

#include "base/time.h"
#include "hook/probe.h"
#include "libevent/capabilities.h"
#include "libevent/fields.h"
#include "libevent/thread.h"

#define EVENT_BYTES	512 /* larger than any struct event */
#define EVENT_WINDOW	256
#define FAR_SECONDS	123456 /* an interval that nothing else has */
#define MAX_LATENESS_NS (3600 * D9__SECOND_NS)
/* Deadlines of common timeouts carry a tag above the microseconds. */
#define USEC_MASK 0xfffff

struct d9__libevent_fields d9__libevent_fields;

/* Protects the calibration; never taken under a lock of libevent. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool done;
static bool custom_allocator;

/* The scratch base's calls that reached the hooks.  Under |lock|. */
static bool assign_seen, activation_seen;

/* On the heap while calibration runs. */
struct scratch {
	struct d9__probe running; /* the word "event that runs now" of a base */
	struct d9__probe interval, deadline, callback;
	struct event_base *base;
	_Alignas(16) char events[2][EVENT_BYTES];
	int runs;
};

void d9__libevent_field_probe_assign(void)
{
	assign_seen = true;
}

void d9__libevent_field_probe_activation(void)
{
	activation_seen = true;
}

void d9__libevent_field_note_allocator(void)
{
	custom_allocator = true;
}

/* ---- the event that runs now ---- */

static void mark_running(int fd, short what, void *arg)
{
	struct scratch *scratch = arg;

	(void)fd;
	(void)what;
	if (scratch->runs < 2)
		d9__probe_keep_word(&scratch->running, (uintptr_t)scratch->events[scratch->runs]);
	scratch->runs++;
}

static void do_nothing(int fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
}

static struct event *event_at(struct scratch *scratch, int i)
{
	return (struct event *)(void *)scratch->events[i];
}

static size_t window_of(const struct event_base *base)
{
	return custom_allocator ? d9__probe_readable(base, 4096) : d9__probe_window(base);
}

static void find_current_event(struct scratch *scratch)
{
	int offset;

	d9__probe_init(&scratch->running, scratch->base, window_of(scratch->base), sizeof(void *));
	for (int i = 0; i < 2; i++) {
		d9__real.event_assign(event_at(scratch, i), scratch->base, -1, 0, mark_running,
				      scratch);
		d9__real.event_active(event_at(scratch, i), D9__EV_READ, 1);
	}
	/* Reaches our hook of event_assign(), if libevent's inner calls can be seen at all. */
	d9__real.event_base_once(scratch->base, -1, D9__EV_TIMEOUT, do_nothing, NULL, NULL);
	d9__real.event_base_loop(scratch->base, D9__EVLOOP_NONBLOCK);
	d9__probe_keep_word(&scratch->running, 0);
	offset = d9__probe_result(&scratch->running);
	if (scratch->runs == 2 && offset > 0)
		d9__libevent_fields.current_event = (uint32_t)offset;
	if (d9__real.event_debug_unassign) {
		for (int i = 0; i < 2; i++)
			d9__real.event_debug_unassign(event_at(scratch, i));
	}
}

/* ---- deadline and interval ---- */

static bool is_far_deadline(const uint8_t *at, size_t len, void *arg)
{
	const struct timeval *pair = (const void *)at;
	const struct timespec *now = arg;
	long seconds;

	if (len < sizeof(*pair) || pair->tv_usec < 0 || pair->tv_usec >= 1000000)
		return false;
	seconds = pair->tv_sec - now->tv_sec - FAR_SECONDS;
	return seconds >= -2 && seconds <= 2;
}

static void find_deadline(struct scratch *scratch)
{
	const struct timeval far = { FAR_SECONDS, 0 };
	const uintptr_t interval[] = { FAR_SECONDS, 0 };
	struct event *event = event_at(scratch, 0);
	struct timespec now;
	int at, every;

	d9__real.event_assign(event, scratch->base, -1, D9__EV_PERSIST, do_nothing, NULL);
	d9__real.event_add(event, &far);
	clock_gettime(CLOCK_MONOTONIC, &now);
	d9__probe_init(&scratch->interval, event, EVENT_WINDOW, sizeof(void *));
	d9__probe_keep_words(&scratch->interval, interval, 2);
	d9__probe_init(&scratch->deadline, event, EVENT_WINDOW, sizeof(void *));
	d9__probe_keep_if(&scratch->deadline, is_far_deadline, &now);
	at = d9__probe_result(&scratch->deadline);
	every = d9__probe_result(&scratch->interval);
	if (at > 0 && every > 0) {
		d9__libevent_fields.deadline = (uint32_t)at;
		d9__libevent_fields.interval = (uint32_t)every;
	}
	d9__real.event_del(event);
	if (d9__real.event_debug_unassign)
		d9__real.event_debug_unassign(event);
}

/* ---- the callback ---- */

static void find_callback(struct scratch *scratch)
{
	static const d9__event_fn callbacks[] = { do_nothing, mark_running };
	struct event *event = event_at(scratch, 0);
	int at;

	d9__probe_init(&scratch->callback, event, EVENT_WINDOW, sizeof(void *));
	for (int i = 0; i < 2; i++) {
		d9__real.event_assign(event, scratch->base, -1, 0, callbacks[i], NULL);
		d9__probe_keep_word(&scratch->callback, (uintptr_t)callbacks[i]);
		if (d9__real.event_debug_unassign)
			d9__real.event_debug_unassign(event);
	}
	at = d9__probe_result(&scratch->callback);
	if (at > 0)
		atomic_store_explicit(&d9__libevent_fields.callback, (uint32_t)at, memory_order_relaxed);
}

uint64_t d9__libevent_field_timeout_ns(const struct timeval *timeout)
{
	return (uint64_t)timeout->tv_sec * D9__SECOND_NS +
	       ((uint64_t)timeout->tv_usec & USEC_MASK) * 1000;
}

static uint64_t pair_ns(const void *event, uint32_t offset)
{
	return d9__libevent_field_timeout_ns((const void *)((uintptr_t)event + offset));
}

uint64_t d9__libevent_field_deadline_ns(const void *event)
{
	uint32_t offset = d9__libevent_fields.deadline;

	return offset ? pair_ns(event, offset) : 0;
}

uint64_t d9__libevent_field_due_ns(const void *event, uint64_t now_ns)
{
	uint64_t due_ns;

	if (!d9__libevent_fields.deadline)
		return 0;
	due_ns = pair_ns(event, d9__libevent_fields.deadline);
	/* A persistent timer may have been put back for its next run before this one. */
	if (due_ns > now_ns)
		due_ns -= pair_ns(event, d9__libevent_fields.interval);
	return due_ns && due_ns <= now_ns && now_ns - due_ns <= MAX_LATENESS_NS ? due_ns : 0;
}

/* ---- all of it ---- */

/*
 * With EVENT_SHOW_METHOD set libevent announces each new base on stderr.  The scratch base is not the
 * program's: it must not be seen there.  Where these are hidden (2.2), its line is stopped in logs.c.
 */
static const char *ask_environment(const char *(*real)(const char *), const char *name)
{
	if (d9__libevent_thread()->calibrating && strcmp(name, "EVENT_SHOW_METHOD") == 0)
		return NULL;
	return real(name);
}

const char *d9__hook_evutil_getenv_(const char *name)
{
	return ask_environment(d9__real.evutil_getenv_, name);
}

const char *d9__hook_evutil_getenv(const char *name)
{
	return ask_environment(d9__real.evutil_getenv, name);
}

/*
 * A mapping of its own: with the program's allocator the size of the base is unknown and more than it
 * is searched, and on the heap our notes would lie behind it and be found.
 */
static void run_scratch(void)
{
	struct scratch *scratch = mmap(NULL, sizeof(*scratch), PROT_READ | PROT_WRITE,
				       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (scratch == MAP_FAILED)
		return;
	scratch->base = d9__real.event_base_new();
	if (scratch->base) {
		find_current_event(scratch);
		find_deadline(scratch);
		find_callback(scratch);
		d9__real.event_base_free(scratch->base);
	}
	munmap(scratch, sizeof(*scratch));
}

/* libevent ends the program where a base finds no descriptors for its signals. */
static bool has_descriptors(void)
{
	int fds[8], n = 0;
	bool short_of;

	while (n < 8 && (fds[n] = eventfd(0, EFD_CLOEXEC)) >= 0)
		n++;
	short_of = n < 8 && (errno == EMFILE || errno == ENFILE);
	while (n)
		close(fds[--n]);
	return !short_of;
}

void d9__libevent_field_calibrate(struct event_base *base)
{
	struct d9__libevent_thread *thread = d9__libevent_thread();
	int saved = errno;

	pthread_mutex_lock(&lock);
	if (!done) {
		thread->calibrating = true;
		if (d9__real.event_self_cbarg)
			atomic_store_explicit(&d9__libevent_fields.self_argument,
					      d9__real.event_self_cbarg(), memory_order_relaxed);
		if (has_descriptors())
			run_scratch();
		else
			d9__capability_degrade(&d9__libevent_capabilities, "there were no descriptors for its trial");
		thread->calibrating = false;
		atomic_store_explicit(&d9__libevent_fields.wake_by_public_calls, !activation_seen,
				      memory_order_relaxed);
		d9__libevent_capability_describe(base, assign_seen, activation_seen);
		atomic_store_explicit(&d9__libevent_fields.calibrated, true, memory_order_relaxed);
		done = true;
	}
	pthread_mutex_unlock(&lock);
	errno = saved;
}
