/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A source of one's own: figures that dial9 does not know, here those of a cache, taken ten times a
 * second into the trace.  The viewer charts them beside what the loops did, `dial9 query` has them
 * as rows.
 *
 *	DIAL9_TRACE_DIR=traces custom_source [LOOKUPS]
 *	dial9 events -e CacheSample traces
 *	dial9 serve traces
 *
 * There is no callback for sources in the recorder: its thread runs no code of the program's.  A
 * source is an event type and whatever takes its figures: a timer of the loop, as here, or a thread
 * of your own where a hanging loop must not stop it.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <event2/event.h>

#include <dial9/dial9.h>
#include <dial9/libevent.h>

#define SLOTS 64

/* ---- what the program has anyway ---- */

static struct {
	unsigned keys[SLOTS]; /* 0: free */
	uint64_t used, hits, misses;
} cache;

static void look_up(unsigned key)
{
	unsigned *slot = &cache.keys[key % SLOTS];

	if (*slot == key) {
		cache.hits++;
		return;
	}
	cache.misses++;
	cache.used += !*slot;
	*slot = key;
}

/* ---- the source ---- */

/* Units and kinds are for readers: a gauge is a level, a counter grows and is charted as a rate. */
static const struct d9_field cache_fields[] = {
	{ "used", D9_FIELD_VARINT, NULL, "gauge" },
	{ "hits", D9_FIELD_VARINT, NULL, "counter" },
	{ "misses", D9_FIELD_VARINT, NULL, "counter" },
	{ "memory", D9_FIELD_VARINT, "bytes", "gauge" },
};
static struct d9_event_type cache_sample = D9_EVENT_TYPE("CacheSample", cache_fields);

/* Lines in the chart of `used`. */
static const struct d9_annotation cache_limits[] = {
	{ "used", "warning", "48" },
	{ "used", "critical", "64" },
};

static unsigned samples;

static void take_sample(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what, (void)arg;
	if (!d9_event_on()) /* what a sample costs is spent only while somebody records it */
		return;
	D9_EMIT(&cache_sample, cache.used, cache.hits, cache.misses,
		cache.used * sizeof(*cache.keys));
	samples++;
}

static struct event *start_source(struct event_base *base)
{
	const struct timeval every = { 0, 100000 };
	struct event *timer = event_new(base, -1, EV_PERSIST, take_sample, NULL);

	d9_event_type_annotate(&cache_sample, cache_limits, 2);
	/* What does not change while the process runs is a fact about it, and told once. */
	d9_metadata_set("cache.slots", "64");
	event_add(timer, &every);
	return timer;
}

static void stop_source(struct event *timer)
{
	take_sample(-1, EV_TIMEOUT, NULL); /* the last one has the totals */
	event_free(timer);
}

/* ---- the program ---- */

static long left = 500;

static void work(evutil_socket_t fd, short what, void *base)
{
	(void)fd, (void)what;
	look_up(1 + (unsigned)(left * left) % 100);
	if (--left <= 0)
		event_base_loopbreak(base);
}

int main(int argc, char **argv)
{
	const struct timeval every = { 0, 1000 };
	struct event_base *base = event_base_new();
	struct event *worker = event_new(base, -1, EV_PERSIST, work, base), *source;
	int err = d9_event_base_attach(base);

	if (err)
		fprintf(stderr, "not recorded: %s\n", d9_strerror(err));
	if (argc > 1)
		left = atol(argv[1]);
	source = start_source(base);
	event_add(worker, &every);
	event_base_dispatch(base);

	stop_source(source);
	event_free(worker);
	event_base_free(base);
	printf("%u samples, %lu hits, %lu misses\n", samples, (unsigned long)cache.hits,
	       (unsigned long)cache.misses);
	return 0;
}
