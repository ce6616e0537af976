/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "analyze/blocked.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/budget.h"
#include "analyze/hot.h"

#define ENTRY_BYTES (3 * sizeof(struct d9__table_entry))
#define CALLS_MAX   4096 /* that are told apart: no program blocks in so many ways */

void d9__blocked_release(struct d9__blocked *blocked)
{
	void *calls;

	for (size_t place = 0; (place = d9__table_next(&blocked->by_key, place, &calls));)
		free(calls);
	d9__table_release(&blocked->by_key);
	d9__texts_release(&blocked->functions);
}

static uint64_t key_of(const struct d9__blocked_event *event, uint32_t function)
{
	uint64_t hash = (uintptr_t)event->callback;

	hash = (hash ^ function) * UINT64_C(0x9e3779b97f4a7c15);
	return (hash ^ hash >> 29 ^ (uintptr_t)event->stack) * UINT64_C(0x9e3779b97f4a7c15);
}

/* NULL: out of memory, or |*left_out|. */
static struct d9__blocked_calls *calls_of(struct d9__blocked *blocked,
					  const struct d9__blocked_event *event, bool *left_out)
{
	uint32_t function;
	struct d9__blocked_calls *calls;
	uint64_t key;

	if (d9__texts_number(&blocked->functions, event->function, event->function_len, &function))
		return NULL;
	key = key_of(event, function);
	calls = d9__table_find(&blocked->by_key, key);
	if (calls)
		return calls;
	if (blocked->by_key.n == CALLS_MAX)
		d9__budget_leave_out(D9__KEPT_STACKS, 1);
	*left_out = blocked->by_key.n == CALLS_MAX ||
		    !d9__budget_take(D9__KEPT_STACKS, sizeof(*calls) + ENTRY_BYTES);
	if (*left_out)
		return NULL;
	calls = calloc(1, sizeof(*calls));
	if (!calls || d9__table_add(&blocked->by_key, key, calls)) {
		free(calls);
		return NULL;
	}
	calls->callback = event->callback;
	calls->function = blocked->functions.items[function];
	calls->stack = event->stack;
	calls->fd = event->fd;
	return calls;
}

static void keep_longest(struct d9__blocked_event *longest, const struct d9__blocked_event *event)
{
	if (!longest->callback || event->ns > longest->ns ||
	    (event->ns == longest->ns && event->at_ns < longest->at_ns))
		*longest = *event;
}

int d9__blocked_add(struct d9__blocked *blocked, const struct d9__blocked_event *event)
{
	struct d9__blocked_event kept = *event;
	struct d9__blocked_calls *calls;
	bool left_out = false;

	blocked->n++;
	calls = calls_of(blocked, event, &left_out);
	if (!calls)
		return left_out ? 0 : -ENOMEM;
	kept.function = calls->function;
	calls->n++;
	calls->several_fds |= calls->fd != event->fd;
	calls->total_ns += event->ns;
	keep_longest(&calls->longest, &kept);
	if (event->holder_tid) {
		calls->held++;
		keep_longest(&calls->longest_held, &kept);
	}
	return 0;
}

/* ---- sites ---- */

/* Whether the frame lies in a loop library or in what hooks it: what is farther out is not inside a
 * callback. */
static bool is_loop(const struct d9__frame_name *frame)
{
	return d9__frame_is_ours(frame) ||
	       (frame->module && d9__module_is_loop(frame->module, strlen(frame->module)));
}

/* Whether |callback| itself, or any for NULL, is among the frames from |i| on. */
static bool is_inside(const struct d9__callback *callback, const struct d9__stack *stack, size_t i)
{
	if (!callback)
		return true;
	for (; callback->function && i < stack->n; i++)
		if (!strcmp(stack->names[i].function, callback->function))
			return true;
	return false;
}

/*
 * The program's function that called, perhaps by way of its loop library; else, if the callback's
 * own call was its last and left no frame, or the stack has no names, NULL; else, as in a plugin,
 * the caller of the innermost.  |callback| lies in the program, |running| is the one that the stack
 * is of, NULL if none was.
 */
static const struct d9__frame_name *frame_of(const struct d9__callback *callback,
					     const struct d9__callback *running,
					     const struct d9__stack *stack)
{
	size_t own;

	if (!stack || !stack->names || stack->n < 2)
		return NULL;
	own = d9__hot_own_frame(callback, stack);
	/* Between the two may be a loop library that waits for the program, as in a synchronous
	 * call of GIO. */
	if (d9__hot_entry(stack))
		return &stack->names[own];
	for (size_t i = 1; i < (own ? own : 2); i++)
		if (is_loop(&stack->names[i]) && !(own && is_inside(running, stack, own)))
			return NULL;
	return &stack->names[own ? own : 1];
}

static bool is_same_frame(const struct d9__frame_name *a, const struct d9__frame_name *b)
{
	return a == b ||
	       (a && b && a->function == b->function && a->file == b->file && a->line == b->line);
}

static struct d9__blocked_site *site_of(struct d9__blocked_site *sites, size_t n,
					const struct d9__blocked_site *like)
{
	for (size_t i = 0; i < n; i++)
		if (sites[i].calls.callback == like->calls.callback &&
		    sites[i].calls.function == like->calls.function &&
		    is_same_frame(sites[i].frame, like->frame))
			return &sites[i];
	return NULL;
}

static void add_to_site(struct d9__blocked_site *site, const struct d9__blocked_calls *calls)
{
	site->calls.several_fds |= calls->several_fds || calls->fd != site->calls.fd;
	site->calls.n += calls->n;
	site->calls.total_ns += calls->total_ns;
	site->calls.held += calls->held;
	keep_longest(&site->calls.longest, &calls->longest);
	if (calls->held)
		keep_longest(&site->calls.longest_held, &calls->longest_held);
}

static int compare_longest(const struct d9__blocked_event *a, const struct d9__blocked_event *b)
{
	if (a->at_ns != b->at_ns)
		return a->at_ns < b->at_ns ? -1 : 1;
	return (a->worker > b->worker) - (a->worker < b->worker);
}

static int compare_sites(const void *left, const void *right)
{
	const struct d9__blocked_calls *a = &((const struct d9__blocked_site *)left)->calls;
	const struct d9__blocked_calls *b = &((const struct d9__blocked_site *)right)->calls;

	if (a->total_ns != b->total_ns)
		return a->total_ns < b->total_ns ? 1 : -1;
	return compare_longest(&a->longest, &b->longest);
}

/* By their first long call, so that what is merged into what is the same in each run. */
static int compare_calls(const void *left, const void *right)
{
	const struct d9__blocked_calls *a = *(const struct d9__blocked_calls *const *)left;
	const struct d9__blocked_calls *b = *(const struct d9__blocked_calls *const *)right;

	return compare_longest(&a->longest, &b->longest);
}

static size_t sort_calls(const struct d9__blocked *blocked, const struct d9__callback *callback,
			 struct d9__blocked_calls **sorted)
{
	size_t n = 0;
	void *item;

	for (size_t place = 0; (place = d9__table_next(&blocked->by_key, place, &item));) {
		struct d9__blocked_calls *calls = item;

		if (!callback || calls->callback == callback)
			sorted[n++] = calls;
	}
	qsort(sorted, n, sizeof(*sorted), compare_calls);
	return n;
}

struct d9__blocked_site *d9__blocked_sites(const struct d9__blocked *blocked,
					   const struct d9__callback *callback, size_t *n)
{
	struct d9__blocked_calls **sorted;
	struct d9__blocked_site *sites;
	size_t n_calls;

	*n = 0;
	if (!blocked->by_key.n)
		return NULL;
	sorted = calloc(blocked->by_key.n, sizeof(struct d9__blocked_calls *));
	sites = calloc(blocked->by_key.n, sizeof(*sites));
	if (!sorted || !sites) {
		*n = SIZE_MAX;
		free(sorted);
		free(sites);
		return NULL;
	}
	n_calls = sort_calls(blocked, callback, sorted);
	for (size_t i = 0; i < n_calls; i++) {
		struct d9__blocked_site one = { .calls = *sorted[i],
						.frame = frame_of(sorted[i]->callback,
								  sorted[i]->callback,
								  sorted[i]->stack) };
		struct d9__blocked_site *site = site_of(sites, *n, &one);

		if (site)
			add_to_site(site, sorted[i]);
		else
			sites[(*n)++] = one;
	}
	free(sorted);
	for (size_t i = 0; i < *n; i++)
		sites[i].held =
			frame_of(sites[i].calls.callback, sites[i].calls.longest_held.holder,
				 sites[i].calls.longest_held.held_stack);
	qsort(sites, *n, sizeof(*sites), compare_sites);
	return sites;
}

/* ---- words ---- */

const char *d9__blocked_waits_for(const char *function)
{
	static const struct {
		const char *prefix, *what;
	} waits[] = {
		{ "pthread_mutex_", "a lock" },
		{ "pthread_rwlock_", "a lock" },
		{ "pthread_cond_", "a condition" },
		{ "sem_", "a semaphore" },
		{ "pthread_join", "the end of a thread" },
		{ "pthread_barrier_", "a barrier" },
		{ "pthread_once", "an initialisation" },
		{ "flockfile", "the lock of a FILE" },
		{ "futex", "a futex" },
		{ "sigwait", "a signal" },
		{ "sigtimedwait", "a signal" },
		{ "sigsuspend", "a signal" },
		{ "pause", "a signal" },
	};

	for (size_t i = 0; i < sizeof(waits) / sizeof(waits[0]); i++)
		if (!strncmp(function, waits[i].prefix, strlen(waits[i].prefix)))
			return waits[i].what;
	return NULL;
}

bool d9__blocked_is_own_wait(const char *function)
{
	static const char *const waits[] = { "poll",	    "ppoll",	  "select",
					     "pselect",	    "sleep",	  "usleep",
					     "nanosleep",   "epoll_wait", "pause",
					     "sigsuspend",  "sigwait",	  "sigwaitinfo",
					     "sigtimedwait" };

	for (size_t i = 0; i < sizeof(waits) / sizeof(waits[0]); i++)
		if (!strcmp(function, waits[i]))
			return true;
	return false;
}

void d9__blocked_what(const struct d9__blocked_calls *calls, char *buf, size_t size)
{
	if (calls->fd >= 0 && !calls->several_fds)
		snprintf(buf, size, "%.32s(%lld)", calls->function, (long long)calls->fd);
	else
		snprintf(buf, size, "%.32s()", calls->function);
}

static void spell_frame(const struct d9__frame_name *frame, char *buf, size_t size)
{
	if (frame->file)
		snprintf(buf, size, "%.80s (%.80s:%u)", frame->function, frame->file, frame->line);
	else
		snprintf(buf, size, "%.80s", frame->function);
}

void d9__blocked_where(const struct d9__blocked_site *site, char *buf, size_t size)
{
	const struct d9__callback *callback = site->calls.callback;

	buf[0] = '\0';
	if (site->frame)
		spell_frame(site->frame, buf, size);
	else if (site->calls.stack && callback->function && callback->source)
		snprintf(buf, size, "%.80s (%.80s)", callback->function, callback->source);
	else if (site->calls.stack && callback->function)
		snprintf(buf, size, "%.80s", callback->function);
}

void d9__blocked_held_where(const struct d9__blocked_site *site, char *buf, size_t size)
{
	buf[0] = '\0';
	if (site->held)
		spell_frame(site->held, buf, size);
}
