/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lots of events go round: the thread fills one, the user empties it.  At the most LOTS are full,
 * so that what is read ahead stays in the processors' caches; a thread that waits for room goes on
 * when half of them are empty, as to wake it costs as much as a lot.
 */
#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/thread.h"
#include "read/event_copy.h"
#include "read/reader_state.h"
#include "tool/progress.h"
#include "tool/read_ahead.h"

#define LOTS	   8
#define LOT_EVENTS 1024
#define LOT_VALUES (6 * LOT_EVENTS)
#define LOT_BYTES  ((size_t)1 << 20) /* a lot ends behind the event that takes it here */

/* About eight events further on. */
#define CACHE_LINE	   64
#define EVENTS_AHEAD_BYTES (8 * CACHE_LINE)
#define VALUES_AHEAD_BYTES (16 * CACHE_LINE)

struct lot {
	struct d9_event events[LOT_EVENTS];
	size_t n;
	struct d9_value values[LOT_VALUES]; /* of |events|, as long as there is room */
	struct d9__arena arena;		    /* what else they point to */
	int got;	      /* behind them: 1 more, 0 the end, or -errno */
	uint64_t done, total; /* bytes, for progress */
};

struct d9__read_ahead {
	struct d9_reader *reader;
	pthread_t thread;
	bool has_thread;
	pthread_mutex_t lock; /* of the next three; one of the two waits at the most */
	pthread_cond_t changed;
	uint64_t filled, emptied; /* lots, since the beginning */
	bool stop;
	struct lot *lot; /* the user's, as long as |emptied| has not passed it; or NULL */
	size_t at;	 /* in it */
	struct lot lots[LOTS];
};

/* The reader has delivered |event|, with its values at |*values| if there was room. */
static int keep(struct lot *lot, struct d9_event *event, struct d9_value **values)
{
	struct d9_value *own = *values;

	if (event->values != own)
		return d9__event_copy(&lot->arena, event, event);
	*values += event->schema->n_fields;
	return event->schema->borrows ? d9__event_copy_borrowed(&lot->arena, event->schema, own)
				      : 0;
}

static void fill(struct d9__read_ahead *ahead, struct lot *lot)
{
	struct d9_value *values = lot->values;
	const struct d9_event *next;

	lot->n = 0;
	d9__arena_reset(&lot->arena);
	do {
		struct d9_event *event = &lot->events[lot->n];

		d9__reader_deliver_to(ahead->reader, event, values,
				      (size_t)(lot->values + LOT_VALUES - values));
		lot->got = d9_reader_next(ahead->reader, &next);
		if (lot->got == 1 && keep(lot, event, &values))
			lot->got = -ENOMEM;
	} while (lot->got == 1 && ++lot->n < LOT_EVENTS && lot->arena.given_bytes < LOT_BYTES);
	d9_reader_progress(ahead->reader, &lot->done, &lot->total);
}

static void *read_on(void *arg)
{
	struct d9__read_ahead *ahead = arg;
	bool more = true;

	while (more) {
		struct lot *lot = &ahead->lots[ahead->filled % LOTS];

		fill(ahead, lot);
		more = lot->got == 1;
		pthread_mutex_lock(&ahead->lock);
		ahead->filled++;
		pthread_cond_signal(&ahead->changed);
		while (!ahead->stop && ahead->filled - ahead->emptied == LOTS)
			pthread_cond_wait(&ahead->changed, &ahead->lock);
		more = more && !ahead->stop;
		pthread_mutex_unlock(&ahead->lock);
	}
	return NULL;
}

int d9__read_ahead_begin(struct d9__read_ahead **out, struct d9_reader *reader)
{
	struct d9__read_ahead *ahead = calloc(1, sizeof(*ahead));

	if (!ahead)
		return -ENOMEM;
	ahead->reader = reader;
	pthread_mutex_init(&ahead->lock, NULL);
	pthread_cond_init(&ahead->changed, NULL);
	ahead->has_thread = !pthread_create(&ahead->thread, NULL, read_on, ahead);
	*out = ahead;
	return 0;
}

/* Give back the user's lot and take the next. */
static void take_lot(struct d9__read_ahead *ahead)
{
	pthread_mutex_lock(&ahead->lock);
	if (ahead->lot) {
		ahead->emptied++;
		if (ahead->filled - ahead->emptied == LOTS / 2)
			pthread_cond_signal(&ahead->changed);
	}
	while (ahead->has_thread && ahead->filled == ahead->emptied)
		pthread_cond_wait(&ahead->changed, &ahead->lock);
	pthread_mutex_unlock(&ahead->lock);
	ahead->lot = &ahead->lots[ahead->emptied % LOTS];
	ahead->at = 0;
	if (!ahead->has_thread)
		fill(ahead, ahead->lot);
}

const struct d9_event *d9__read_ahead_next(struct d9__read_ahead *ahead,
					   struct d9__progress *progress, int *err)
{
	struct lot *lot = ahead->lot;
	const struct d9_event *event;

	if (__builtin_expect(!lot || (ahead->at == lot->n && lot->got == 1), 0)) {
		take_lot(ahead);
		lot = ahead->lot;
		d9__progress_draw(progress, lot->done, lot->total);
	}
	if (ahead->at == lot->n) {
		*err = lot->got;
		return NULL;
	}
	event = &lot->events[ahead->at++];
	/* Another processor wrote them: fetch those that come soon while this one is looked at. */
	__builtin_prefetch((const char *)event + EVENTS_AHEAD_BYTES);
	__builtin_prefetch((const char *)event->values + VALUES_AHEAD_BYTES);
	__builtin_prefetch((const char *)event->values + VALUES_AHEAD_BYTES + CACHE_LINE);
	return event;
}

void d9__read_ahead_end(struct d9__read_ahead *ahead)
{
	if (!ahead)
		return;
	pthread_mutex_lock(&ahead->lock);
	ahead->stop = true;
	pthread_cond_signal(&ahead->changed);
	pthread_mutex_unlock(&ahead->lock);
	if (ahead->has_thread)
		pthread_join(ahead->thread, NULL);
	for (size_t i = 0; i < LOTS; i++)
		d9__arena_release(&ahead->lots[i].arena);
	pthread_cond_destroy(&ahead->changed);
	pthread_mutex_destroy(&ahead->lock);
	free(ahead);
}
