/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/heap.h"
#include "format/encoder.h"
#include "ring/event_types.h"
#include "ring/note.h"
#include "segment/metadata.h"

#define PAIRS_MAX 1024

struct pair {
	char *key, *value;
	size_t key_len, value_len;
};

/* Protects the table; the generation is read without it. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct pair *pairs; /* sorted by key */
static size_t n_pairs;
static _Atomic(uint32_t) generation;
static _Atomic(bool) kept;
static _Atomic(void (*)(void)) on_seal;

void d9__metadata_on_seal(void (*fn)(void))
{
	atomic_store_explicit(&on_seal, fn, memory_order_release);
}

void d9__metadata_settle(void)
{
	void (*fn)(void) = atomic_load_explicit(&on_seal, memory_order_acquire);

	if (fn)
		fn();
}

/* Where |key| is or belongs. */
static size_t place_of(const char *key, bool *found)
{
	size_t low = 0, high = n_pairs;

	*found = false;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = strcmp(pairs[middle].key, key);

		if (!order) {
			*found = true;
			return middle;
		}
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static int insert_locked(size_t at, const char *key, char *value)
{
	struct pair pair = { d9__strdup(key), value, strlen(key), strlen(value) };

	if (!pair.key)
		return -ENOMEM;
	if (!d9__array_grow(pairs, n_pairs)) {
		d9__free(pair.key);
		return -ENOMEM;
	}
	memmove(&pairs[at + 1], &pairs[at], (n_pairs - at) * sizeof(*pairs));
	pairs[at] = pair;
	n_pairs++;
	return 0;
}

static void remove_locked(size_t at)
{
	d9__free(pairs[at].key);
	d9__free(pairs[at].value);
	n_pairs--;
	memmove(&pairs[at], &pairs[at + 1], (n_pairs - at) * sizeof(*pairs));
}

/* Counters that go on, and texts with one inside. */
static bool same_but_digits(const char *a, const char *b)
{
	const char *digits = "0123456789";

	for (; *a == *b && *a; a++, b++) {
		a += strspn(a, digits);
		b += strspn(b, digits);
		if (*a != *b || !*a)
			break;
	}
	a += strspn(a, digits);
	b += strspn(b, digits);
	return !*a && !*b;
}

/* 1 if the table changed, 0 if not, -errno.  Takes |value| over if it succeeds with 1.  |*news|: not only in its digits. */
static int set_locked(const char *key, char *value, bool *news)
{
	bool found;
	size_t at = place_of(key, &found);
	int err;

	if (!value) {
		if (found)
			remove_locked(at);
		return found;
	}
	if (found && !strcmp(pairs[at].value, value))
		return 0;
	*news = !found || !same_but_digits(pairs[at].value, value);
	if (found) {
		d9__free(pairs[at].value);
		pairs[at].value = value;
		pairs[at].value_len = strlen(value);
		return 1;
	}
	if (n_pairs == PAIRS_MAX)
		return -ENOSPC;
	err = insert_locked(at, key, value);
	return err ? err : 1;
}

/*
 * Keys by which the recorder says which of its parts began, ended, was refused or works only
 * partly.
 */
static bool is_of_recorder(const char *key)
{
	static const char *const prefixes[] = { "source.", "ring.", "loop.", "recorder.ended", "recorder.sandboxed",
						"names.other", "log.dropped", "processes.cloned" };

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
		if (!strncmp(key, prefixes[i], strlen(prefixes[i])))
			return true;
	return false;
}

static enum d9_log_level level_of(const char *key, const char *value)
{
	static const char *const faults[] = { "degraded", "refused", "loops_dropped", "polls_unbound", "slots_foreign",
					      "slots_refused", "stubs_full", "tables_unpatchable", "unseen" };
	bool fault;

	if (!strncmp(key, "source.", 7)) {
		fault = !strncmp(value, "off", 3) && !strstr(value, "not asked for");
	} else if (!strncmp(key, "loop.", 5)) {
		fault = false;
		for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
			fault |= !strcmp(strrchr(key, '.') + 1, faults[i]);
	} else {
		fault = true;
	}
	return fault ? D9_LOG_WARNING : D9_LOG_INFO;
}

int d9__metadata_set(const char *key, const char *value)
{
	char *copy = NULL;
	bool news = false;
	int changed;

	if (!key || !*key || strlen(key) > 255 || (value && strlen(value) > 65535))
		return -EINVAL;
	if (value && !(copy = d9__strdup(value)))
		return -ENOMEM;
	pthread_mutex_lock(&lock);
	changed = set_locked(key, copy, &news);
	pthread_mutex_unlock(&lock);
	if (changed == 1 && news && *value && is_of_recorder(key))
		d9__note(level_of(key, value), "%s: %s", key, value);
	if (changed == 1)
		atomic_fetch_add_explicit(&generation, 1, memory_order_release);
	else
		d9__free(copy);
	return changed < 0 ? changed : 0;
}

void d9__metadata_forget(const char *prefix)
{
	bool found;
	size_t at;

	pthread_mutex_lock(&lock);
	at = place_of(prefix, &found);
	while (at < n_pairs && !strncmp(pairs[at].key, prefix, strlen(prefix))) {
		remove_locked(at);
		found = true;
	}
	pthread_mutex_unlock(&lock);
	if (found)
		atomic_fetch_add_explicit(&generation, 1, memory_order_release);
}

uint32_t d9__metadata_generation(void)
{
	return atomic_load_explicit(&generation, memory_order_acquire);
}

static uint8_t *put_pair(uint8_t *p, const char *key, size_t key_len, const char *value,
			 size_t value_len)
{
	return d9__wire_put_text(d9__wire_put_text(p, key, key_len), value, value_len);
}

void d9__metadata_write(struct d9__builder *out, uint64_t ns, const char *const *more)
{
	static const char *const none[] = { NULL };
	uint32_t n_more = 0;
	size_t size = 4;
	uint8_t *p;

	for (more = more ? more : none; more[2 * n_more]; n_more++)
		size += 8 + strlen(more[2 * n_more]) + strlen(more[2 * n_more + 1]);
	d9__builder_begin(out);
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < n_pairs; i++)
		size += 8 + pairs[i].key_len + pairs[i].value_len;
	p = d9__builder_event(out, D9__EVENT_SEGMENT_METADATA, ns, size);
	if (p) {
		p = d9__wire_put_u32(p, (uint32_t)n_pairs + n_more);
		for (size_t i = 0; i < n_pairs; i++)
			p = put_pair(p, pairs[i].key, pairs[i].key_len, pairs[i].value,
				     pairs[i].value_len);
		for (; *more; more += 2)
			p = put_pair(p, more[0], strlen(more[0]), more[1], strlen(more[1]));
		d9__builder_end(out, p);
	}
	pthread_mutex_unlock(&lock);
}

void d9__metadata_keep(void)
{
	atomic_store_explicit(&kept, true, memory_order_relaxed);
}

bool d9__metadata_is_kept(void)
{
	return atomic_load_explicit(&kept, memory_order_relaxed);
}

static bool is_fact(const char *key)
{
	return !strcmp(key, "program") || !strncmp(key, "ring.", 5) || !strncmp(key, "loop.", 5) ||
	       !strncmp(key, "runtime.", 8) || !strncmp(key, "source.", 7) ||
	       !strncmp(key, "recorder.raw", 12);
}

void d9__metadata_facts(char *buf, size_t size)
{
	size_t len = 0;

	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < n_pairs; i++) {
		const struct pair *pair = &pairs[i];
		char *line = buf + len;

		if (!is_fact(pair->key) || size - len < pair->key_len + pair->value_len + 3)
			continue;
		len += (size_t)snprintf(line, size - len, "%s=%s", pair->key, pair->value);
		for (; line < buf + len; line++)
			*line = *line == '\n' ? ' ' : *line;
		buf[len++] = '\n';
	}
	buf[len] = '\0';
	pthread_mutex_unlock(&lock);
}

void d9__metadata_fork_prepare(void)
{
	pthread_mutex_lock(&lock);
}

void d9__metadata_fork_done(void)
{
	pthread_mutex_unlock(&lock);
}
