/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calibration.  A scratch loop is driven through states in which a private member must hold known
 * values; an offset counts only if it is the only one.  Then libev's drain and ours run the same
 * scripts.  What is not found is off and named in the trace.
 */

#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include <dial9/loop.h>

#include "hook/probe.h"
#include "libev/drains.h"
#include "libev/layout.h"
#include "libev/static.h"
#include "libev/thread.h"

#define WINDOW_MAX 4096
#define ROUNDS	   4
#define FED_MAX	   20 /* watchers in a round */
#define SCRIPTS	   64
#define FAR	   123456. /* seconds, of a timer that never runs */

struct d9__libev_layout d9__libev_layout = { .reason = "libev was not seen yet" };
struct d9__libev_seen d9__libev_seen;

/* Protects the calibration; never taken under a lock of the program. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool done;

static const int tuples[ROUNDS][D9__LIBEV_PRIORITIES] = {
	{ 3, 1, 4, 2, 5 }, { 1, 5, 2, 4, 3 }, { 5, 2, 1, 3, 4 }, { 2, 4, 5, 1, 3 }
};

/* A mapping of its own: on the heap our notes might lie behind the loop and be found. */
struct scratch {
	struct d9__probe counts, arrays, priority, word;
	struct ev_loop *loop;
	size_t window;
	const int *tuple;
	ev_prepare watchers[FED_MAX];
	int n_fed, ran;
};

/* Callbacks of the scratch loop find it here.  Under |lock|. */
static struct scratch *current;

static int events_of(int i)
{
	return EV_CUSTOM | (i + 1);
}

/* ---- callbacks ---- */

static void on_fed(struct ev_loop *loop, ev_prepare *w, int events)
{
	int index = w->priority - EV_MINPRI;

	(void)loop;
	current->ran += events == events_of((int)(w - current->watchers));
	d9__probe_keep_ints(&current->priority, &index, 1);
}

static void on_nothing(struct ev_loop *loop, ev_prepare *w, int events)
{
	(void)loop;
	(void)w;
	(void)events;
}

static void on_timer(struct ev_loop *loop, ev_timer *w, int events)
{
	(void)loop;
	(void)w;
	(void)events;
}

static void marker_invoke(struct ev_loop *loop)
{
	(void)loop;
}

static void marker_release(struct ev_loop *loop)
{
	(void)loop;
}

static void marker_acquire(struct ev_loop *loop)
{
	(void)loop;
}

/* ---- one step each; a reason, or NULL ---- */

/* Feeding a watcher outside of libev's range would overwrite memory. */
static const char *check_priorities(struct scratch *scratch)
{
	static const int asked[] = { 100, -100 }, want[] = { EV_MAXPRI, EV_MINPRI };

	for (int i = 0; i < 2; i++) {
		ev_prepare *w = &scratch->watchers[0];

		ev_init(w, on_nothing);
		ev_set_priority(w, asked[i]);
		d9__libev.ev_prepare_start(scratch->loop, w);
		if (w->priority != want[i])
			return "priority range";
		d9__libev.ev_prepare_stop(scratch->loop, w);
	}
	return NULL;
}

/* Five arrays of exactly what was fed, each watcher with its place in it. */
static bool holds_what_was_fed(const uint8_t *at, size_t len, void *arg)
{
	const struct scratch *scratch = arg;
	struct d9__libev_pending pending[5], *arrays[D9__LIBEV_PRIORITIES];
	int fed = 0;

	if (len < sizeof(arrays))
		return false;
	memcpy(arrays, at, sizeof(arrays));
	for (int pri = 0; pri < D9__LIBEV_PRIORITIES; pri++) {
		int n = scratch->tuple[pri];

		if (!arrays[pri] || (uintptr_t)arrays[pri] % sizeof(void *) ||
		    d9__probe_copy(pending, arrays[pri], (size_t)n * sizeof(pending[0])))
			return false;
		for (int i = 0; i < n; i++, fed++) {
			const ev_prepare *w = &scratch->watchers[fed];

			if (pending[i].watcher != (const void *)w ||
			    pending[i].events != events_of(fed) || w->pending != i + 1)
				return false;
		}
	}
	return true;
}

static void feed_round(struct scratch *scratch)
{
	scratch->n_fed = scratch->ran = 0;
	for (int pri = 0; pri < D9__LIBEV_PRIORITIES; pri++) {
		for (int i = 0; i < scratch->tuple[pri]; i++) {
			ev_prepare *w = &scratch->watchers[scratch->n_fed];

			ev_init(w, on_fed);
			ev_set_priority(w, pri + EV_MINPRI);
			d9__libev.ev_feed_event(scratch->loop, w, events_of(scratch->n_fed++));
		}
	}
}

static const char *find_pending(struct scratch *scratch)
{
	static const uintptr_t nothing[D9__LIBEV_PRIORITIES];
	static const int highest = D9__LIBEV_PRIORITIES - 1, zero;

	d9__probe_init(&scratch->counts, scratch->loop, scratch->window, sizeof(int));
	d9__probe_init(&scratch->priority, scratch->loop, scratch->window, sizeof(int));
	d9__probe_init(&scratch->arrays, scratch->loop, scratch->window, sizeof(void *));
	d9__probe_keep_words(&scratch->arrays, nothing, D9__LIBEV_PRIORITIES);
	for (int round = 0; round < ROUNDS; round++) {
		scratch->tuple = tuples[round];
		feed_round(scratch);
		if (d9__libev.ev_pending_count(scratch->loop) != (unsigned)scratch->n_fed)
			return "pending count";
		d9__probe_keep_ints(&scratch->counts, scratch->tuple, D9__LIBEV_PRIORITIES);
		d9__probe_keep_ints(&scratch->priority, &highest, 1);
		d9__probe_keep_if(&scratch->arrays, holds_what_was_fed, scratch);
		d9__libev.ev_invoke_pending(scratch->loop);
		d9__probe_keep_ints(&scratch->priority, &zero, 1);
		if (scratch->ran != scratch->n_fed)
			return "callbacks of the scratch loop";
	}
	return NULL;
}

static const char *take_offset(const struct d9__probe *probe, uint16_t *offset, size_t len,
			       const char *reason)
{
	int found = d9__probe_result(probe);

	if (found < 0)
		return found == -EPERM || found == -ENOSYS ? "reading memory is refused" : reason;
	*offset = (uint16_t)found;
	len += *offset;
	if (len > d9__libev_layout.checked)
		d9__libev_layout.checked = (uint16_t)len;
	return NULL;
}

static const char *take_pending(struct scratch *scratch)
{
	struct d9__libev_layout *layout = &d9__libev_layout;
	const char *reason = take_offset(&scratch->counts, &layout->counts, 5 * sizeof(int),
					 "no unique place of the pending counts");

	if (!reason)
		reason = take_offset(&scratch->arrays, &layout->arrays, 5 * sizeof(void *),
				     "no unique place of the pending watchers");
	if (!reason)
		reason = take_offset(&scratch->priority, &layout->priority, sizeof(int),
				     "no unique place of the current priority");
	return reason;
}

/* The watcher that stands in for one whose event was cleared lies in the loop. */
static const char *find_dummy(struct scratch *scratch)
{
	ev_prepare *w = &scratch->watchers[0];
	struct d9__libev_pending **arrays =
		d9__libev_member(scratch->loop, d9__libev_layout.arrays);
	uintptr_t offset;

	ev_init(w, on_nothing);
	d9__libev.ev_feed_event(scratch->loop, w, EV_CUSTOM);
	if (d9__libev.ev_clear_pending(scratch->loop, w) != EV_CUSTOM)
		return "clearing events";
	offset = (uintptr_t)arrays[-EV_MINPRI][0].watcher - (uintptr_t)scratch->loop;
	if (offset < scratch->window)
		d9__libev_static_callback((const void *)arrays[-EV_MINPRI][0].watcher->cb);
	d9__libev.ev_invoke_pending(scratch->loop);
	if (offset >= scratch->window)
		return "no place of the dummy watcher";
	d9__libev_layout.dummy = (uint16_t)offset;
	return NULL;
}

static const char *find_slot(struct scratch *scratch, d9__libev_loop_fn marker, uint16_t *offset)
{
	d9__probe_init(&scratch->word, scratch->loop, scratch->window, sizeof(void *));
	d9__probe_keep_word(&scratch->word, (uintptr_t)marker);
	return take_offset(&scratch->word, offset, sizeof(void *), "no unique place of a callback");
}

static const char *find_slots(struct scratch *scratch)
{
	struct d9__libev_layout *layout = &d9__libev_layout;
	const char *reason;

	d9__libev.ev_set_invoke_pending_cb(scratch->loop, marker_invoke);
	d9__libev.ev_set_loop_release_cb(scratch->loop, marker_release, marker_acquire);
	reason = find_slot(scratch, marker_invoke, &layout->invoke);
	if (!reason)
		reason = find_slot(scratch, marker_release, &layout->release);
	if (!reason)
		reason = find_slot(scratch, marker_acquire, &layout->acquire);
	d9__libev.ev_set_invoke_pending_cb(scratch->loop, d9__libev.ev_invoke_pending);
	d9__libev.ev_set_loop_release_cb(scratch->loop, NULL, NULL);
	layout->slots = !reason;
	return reason;
}

static const char *find_owners(struct scratch *scratch)
{
	struct d9__libev_layout *layout = &d9__libev_layout;

	for (uint16_t at = 0; at < D9__LIBEV_OWNERS_IN; at += sizeof(void *)) {
		void *word = *(void **)d9__libev_member(scratch->loop, at);

		if (d9__in_libev(word) && at != layout->invoke &&
		    layout->n_owners < D9__LIBEV_OWNERS_MAX)
			layout->owners[layout->n_owners++] = at;
	}
	if (layout->checked < D9__LIBEV_OWNERS_IN)
		layout->checked = D9__LIBEV_OWNERS_IN;
	return layout->n_owners ? NULL : "nothing tells a loop from other memory";
}

static const char *compare_drains(struct scratch *scratch)
{
	return d9__libev_drain_differences(scratch->loop, 1, SCRIPTS) ? "differential test" : NULL;
}

/* ---- what is no reason to give up ---- */

static void see_feeds(struct scratch *scratch)
{
	ev_prepare *w = &scratch->watchers[0];

	ev_init(w, on_nothing);
	d9__libev.ev_prepare_start(scratch->loop, w);
	d9__libev.ev_run(scratch->loop, EVRUN_NOWAIT);
	d9__libev.ev_prepare_stop(scratch->loop, w);
	/* In an archive some of its own feeding is inlined, whatever a linker (lld) wraps of the rest. */
	d9__libev_layout.feeds = d9__libev_seen.feed && !d9__libev_is_static();
}

static void see_clock(struct scratch *scratch)
{
	struct timespec now;
	ev_timer timer;
	double difference;

	ev_timer_init(&timer, on_timer, FAR, 0.);
	d9__libev.ev_timer_start(scratch->loop, &timer);
	clock_gettime(CLOCK_MONOTONIC, &now);
	difference = timer.at - FAR - (double)now.tv_sec - (double)now.tv_nsec / 1e9;
	d9__libev.ev_timer_stop(scratch->loop, &timer);
	/* The loop read its clock when it was made or ran. */
	d9__libev_layout.monotonic = difference > -10. && difference < 1.;
}

/* ---- all of it ---- */

static size_t window_of(const struct ev_loop *loop, bool early)
{
	size_t window = early && !d9__libev_seen.allocator ? d9__probe_window(loop)
						   : d9__probe_readable(loop, WINDOW_MAX);

	return window <= WINDOW_MAX ? window : 0;
}

static const char *examine(struct scratch *scratch, bool early)
{
	static const char *(*const steps[])(struct scratch *) = {
		check_priorities, find_pending, take_pending, find_dummy,
		find_slots, find_owners, compare_drains,
	};
	const char *reason = NULL;

	scratch->window = window_of(scratch->loop, early);
	if (!scratch->window)
		return "size of a loop";
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]) && !reason; i++)
		reason = steps[i](scratch);
	return reason;
}

static const char *run_scratch(bool early)
{
	struct scratch *scratch;
	const char *reason;

	if (d9__libev.ev_version_major() != EV_VERSION_MAJOR)
		return "version";
	scratch = mmap(NULL, sizeof(*scratch), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		       -1, 0);
	if (scratch == MAP_FAILED)
		return "out of memory";
	reason = "no scratch loop";
	scratch->loop = d9__libev.ev_loop_new(EVFLAG_NOENV | EVBACKEND_SELECT);
	if (scratch->loop) {
		current = scratch;
		reason = examine(scratch, early);
		see_feeds(scratch);
		see_clock(scratch);
		d9__libev.ev_loop_destroy(scratch->loop);
	}
	munmap(scratch, sizeof(*scratch));
	return reason;
}

void d9__libev_layout_calibrate(bool early)
{
	struct d9__libev_thread *thread = d9__libev_thread();
	int saved = errno;

	pthread_mutex_lock(&lock);
	if (!done) {
		thread->calibrating = true;
		d9__libev_layout.reason = run_scratch(early);
		d9__libev_layout.known = !d9__libev_layout.reason;
		thread->calibrating = false;
		done = true;
	}
	pthread_mutex_unlock(&lock);
	errno = saved;
}

bool d9__libev_layout_is_loop(const struct ev_loop *loop)
{
	const struct d9__libev_layout *layout = &d9__libev_layout;
	unsigned char copy[WINDOW_MAX];
	uintptr_t word;
	unsigned backend;

	if (d9__probe_copy(copy, loop, layout->checked))
		return false;
	for (unsigned i = 0; i < layout->n_owners; i++) {
		memcpy(&word, copy + layout->owners[i], sizeof(word));
		if (!d9__in_libev((void *)word))
			return false;
	}
	memcpy(&word, copy + layout->invoke, sizeof(word));
	backend = d9__libev.ev_backend((struct ev_loop *)(uintptr_t)loop);
	return word && backend && !(backend & (backend - 1)) && backend <= EVBACKEND_ALL;
}
