/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/heap.h"
#include "base/options.h"
#include "base/thread.h"
#include "base/time.h"
#include "ring/note.h"
#include "segment/user_callbacks.h"

#define WAITING_MAX 64
#define LINE_MAX_LEN 512

struct item {
	struct item *next;
	struct d9_sealed_segment *segment; /* NULL: a line for the log */
	enum d9_log_level level;
	char line[];
};

/* Protects all below. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work;    /* something to do, or |ending| */
static pthread_cond_t idle;    /* the thread has ended */
static struct item *first, **last = &first;
static unsigned waiting_lines, waiting_segments;
static bool running, ending, detached;
static bool paused; /* the thread has ended, and is to be started again */
static pthread_t thread;
static int tid; /* of the thread */
static d9_log_fn log_fn;
static void *log_arg;
static d9_segment_fn sealed_fn;
static void *sealed_arg;

void d9__sealed_segment_drop(struct d9_sealed_segment *segment)
{
	/* acq_rel: who frees it sees what the other holders did to it */
	if (atomic_fetch_sub_explicit(&segment->references, 1, memory_order_acq_rel) != 1)
		return;
	d9__free(segment->path);
	d9__free(segment->data);
	d9__free(segment);
}

static void item_free(struct item *item)
{
	if (item->segment)
		d9__sealed_segment_drop(item->segment);
	d9__free(item);
}

static void run(struct item *item)
{
	if (item->segment && sealed_fn)
		sealed_fn(sealed_arg, item->segment);
	else if (!item->segment && log_fn)
		log_fn(log_arg, item->level, item->line);
}

static struct item *take_locked(void)
{
	struct item *item = first;

	if (!item)
		return NULL;
	first = item->next;
	if (!first)
		last = &first;
	return item;
}

static void *callback_main(void *arg)
{
	(void)arg;
	pthread_mutex_lock(&lock);
	tid = (int)syscall(SYS_gettid);
	for (;;) {
		struct item *item = paused ? NULL : take_locked();

		if (!item && (ending || paused))
			break;
		if (!item) {
			pthread_cond_wait(&work, &lock);
			continue;
		}
		pthread_mutex_unlock(&lock);
		run(item);
		pthread_mutex_lock(&lock);
		*(item->segment ? &waiting_segments : &waiting_lines) -= 1;
		item_free(item);
	}
	running = false;
	pthread_cond_broadcast(&idle);
	pthread_mutex_unlock(&lock);
	return NULL;
}

static void init_conditions(void)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&work, &attr);
	pthread_cond_init(&idle, &attr);
	pthread_condattr_destroy(&attr);
}

int d9__user_callbacks_start(const struct d9_options *options)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	int err = 0;

	if (!options->log && !options->sealed)
		return 0;
	pthread_once(&once, init_conditions);
	pthread_mutex_lock(&lock);
	if (running) {
		err = -EBUSY; /* a callback of the recorder before has not returned yet */
	} else {
		log_fn = options->log;
		log_arg = options->log_arg;
		sealed_fn = options->sealed;
		sealed_arg = options->sealed_arg;
		ending = detached = false;
		err = d9__thread_start(&thread, "dial9-callback", callback_main, 0);
		running = !err;
	}
	pthread_mutex_unlock(&lock);
	return err;
}

bool d9__user_callbacks_stop(uint64_t deadline_ns)
{
	struct timespec until = d9__timespec_of(deadline_ns);
	bool ours, ended;

	pthread_mutex_lock(&lock);
	ours = running && !detached;
	ending = true;
	if (running)
		pthread_cond_signal(&work);
	while (running && !pthread_cond_timedwait(&idle, &lock, &until))
		;
	ended = !running;
	/* The deadline passed: detach the thread, because neither this stop nor a later one will join it. */
	detached = !ended;
	if (ended) {
		log_fn = NULL;
		sealed_fn = NULL;
	}
	pthread_mutex_unlock(&lock);
	if (ours) {
		if (ended)
			pthread_join(thread, NULL);
		else
			pthread_detach(thread);
	}
	return ended;
}

bool d9__user_callbacks_pause(uint64_t deadline_ns)
{
	struct timespec until = d9__timespec_of(deadline_ns);
	bool ended = true;

	/* In a signal handler: the thread that it interrupted may hold the lock. */
	if (pthread_mutex_trylock(&lock))
		return false;
	if (running && pthread_equal(pthread_self(), thread)) {
		ended = false;
	} else if (running && !ending) {
		paused = true;
		pthread_cond_signal(&work);
		while (running && !pthread_cond_timedwait(&idle, &lock, &until))
			;
		ended = !running;
		paused = ended;
	}
	pthread_mutex_unlock(&lock);
	if (ended && paused)
		d9__thread_join(thread, tid);
	return ended;
}

void d9__user_callbacks_go_on(void)
{
	pthread_mutex_lock(&lock);
	if (paused) {
		paused = false;
		running = !d9__thread_start(&thread, "dial9-callback", callback_main, 0);
	}
	pthread_mutex_unlock(&lock);
}

static bool push_locked(struct item *item, unsigned *waiting)
{
	if (!(running || paused) || ending || *waiting >= WAITING_MAX)
		return false;
	++*waiting;
	*last = item;
	last = &item->next;
	pthread_cond_signal(&work);
	return true;
}

static bool push(struct item *item, unsigned *waiting)
{
	bool pushed;

	pthread_mutex_lock(&lock);
	pushed = push_locked(item, waiting);
	pthread_mutex_unlock(&lock);
	if (!pushed)
		item_free(item);
	return pushed;
}

void d9__log(enum d9_log_level level, const char *fmt, ...)
{
	struct item *item = d9__calloc(1, sizeof(*item) + LINE_MAX_LEN);
	va_list ap;

	if (!item)
		return;
	item->level = level;
	va_start(ap, fmt);
	vsnprintf(item->line, LINE_MAX_LEN, fmt, ap);
	va_end(ap);
	d9__note(level, "%s", item->line);
	push(item, &waiting_lines);
}

bool d9__user_callbacks_announce(struct d9_sealed_segment *segment)
{
	struct item *item;

	pthread_mutex_lock(&lock);
	item = sealed_fn ? d9__calloc(1, sizeof(*item) + 1) : NULL;
	pthread_mutex_unlock(&lock);
	if (!item)
		return false;
	item->segment = segment;
	atomic_fetch_add_explicit(&segment->references, 1, memory_order_relaxed);
	return push(item, &waiting_segments);
}

bool d9__user_callbacks_running(void)
{
	bool is;

	pthread_mutex_lock(&lock);
	is = running;
	pthread_mutex_unlock(&lock);
	return is;
}

bool d9__user_callbacks_inside(void)
{
	bool inside;

	pthread_mutex_lock(&lock);
	inside = running && pthread_equal(pthread_self(), thread);
	pthread_mutex_unlock(&lock);
	return inside;
}

void d9__user_callbacks_fork_child(void)
{
	pthread_mutex_init(&lock, NULL);
	init_conditions();
	first = NULL; /* leaked: a segment's other references were the parent's */
	last = &first;
	waiting_lines = waiting_segments = 0;
	running = ending = paused = false;
	log_fn = NULL;
	sealed_fn = NULL;
}

/* ---- what a callback may ask about a segment ---- */

uint64_t d9_sealed_segment_index(const struct d9_sealed_segment *segment)
{
	return segment->index;
}

const char *d9_sealed_segment_path(const struct d9_sealed_segment *segment)
{
	return segment->path;
}

const void *d9_sealed_segment_data(const struct d9_sealed_segment *segment, size_t *len)
{
	if (len)
		*len = segment->data ? (size_t)segment->bytes : 0;
	return segment->data;
}

uint64_t d9_sealed_segment_bytes(const struct d9_sealed_segment *segment)
{
	return segment->bytes;
}

uint64_t d9_sealed_segment_events(const struct d9_sealed_segment *segment)
{
	return segment->events;
}

void d9_sealed_segment_span(const struct d9_sealed_segment *segment, uint64_t *first_ns,
			    uint64_t *last_ns)
{
	*first_ns = segment->first_ns;
	*last_ns = segment->last_ns;
}

bool d9_sealed_segment_complete(const struct d9_sealed_segment *segment)
{
	return segment->complete;
}
