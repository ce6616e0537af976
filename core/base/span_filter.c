/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <dial9/span.h>

#include "base/heap.h"
#include "base/span_filter.h"

/* Spans of one target and level. */
struct class {
	struct class *next;
	uint32_t on; /* relaxed: a switch may be seen one span late */
	unsigned level;
	char target[];
};

/* Protects everything below; the words are read without. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char filter[D9__SPAN_FILTER_MAX] = "info";
static struct class *classes;
static bool recording;

_Atomic(uint32_t) d9__span_epoch;

uint32_t d9_span_unseen;

/* ---- the text ---- */

static const char *const levels[] = { "off", "error", "warn", "info", "debug", "trace" };

/* One part of a filter: "info", "net=debug". */
struct rule {
	const char *target;
	size_t len; /* of it; 0: every target */
	unsigned level;
};

static int parse_level(const char *text, size_t len, unsigned *level)
{
	for (unsigned i = 0; i < sizeof(levels) / sizeof(levels[0]); i++)
		if (strlen(levels[i]) == len && !strncasecmp(levels[i], text, len)) {
			*level = i;
			return 0;
		}
	return -EINVAL;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static void trim(const char **text, size_t *len)
{
	while (*len && is_blank(**text))
		++*text, --*len;
	while (*len && is_blank((*text)[*len - 1]))
		--*len;
}

/* Take the next rule from |*text|.  1, 0 at the end, -EINVAL. */
static int next_rule(const char **text, struct rule *rule)
{
	const char *begin = *text, *equals;
	size_t len = strcspn(begin, ",");

	if (!*begin)
		return 0;
	*text = begin + len + (begin[len] == ',');
	equals = memchr(begin, '=', len);
	rule->target = begin;
	rule->len = equals ? (size_t)(equals - begin) : 0;
	if (equals) {
		len -= rule->len + 1;
		begin = equals + 1;
		trim(&rule->target, &rule->len);
		if (!rule->len)
			return -EINVAL;
	}
	trim(&begin, &len);
	return parse_level(begin, len, &rule->level) ? -EINVAL : 1;
}

int d9__span_filter_check(const char *text)
{
	struct rule rule;
	int more;

	if (!text || !*text || strlen(text) >= D9__SPAN_FILTER_MAX)
		return -EINVAL;
	while ((more = next_rule(&text, &rule)) == 1)
		;
	return more;
}

/* The level up to which spans of |target| are wanted: the longest prefix decides, then the last. */
static unsigned level_of_locked(const char *target)
{
	const char *text = filter;
	unsigned level = 0;
	struct rule rule;
	size_t best = 0;

	while (next_rule(&text, &rule) == 1)
		if (rule.len >= best && !strncmp(target, rule.target, rule.len)) {
			best = rule.len;
			level = rule.level;
		}
	return level;
}

/* ---- the words ---- */

static void set_locked(struct class *class)
{
	bool on = recording && class->level <= level_of_locked(class->target);

	__atomic_store_n(&class->on, on, __ATOMIC_RELAXED);
}

static void set_all_locked(void)
{
	/* A descriptor that was never looked at is looked at as soon as that could matter. */
	__atomic_store_n(&d9_span_unseen, recording, __ATOMIC_RELAXED);
	for (struct class *class = classes; class; class = class->next)
		set_locked(class);
}

int d9__span_filter_apply(const char *text)
{
	int err = d9__span_filter_check(text);

	if (err)
		return err;
	pthread_mutex_lock(&lock);
	strcpy(filter, text);
	set_all_locked();
	pthread_mutex_unlock(&lock);
	return 0;
}

int d9_span_filter(const char *text)
{
	int saved = errno, err = d9__span_filter_apply(text);

	errno = saved;
	return err;
}

static struct class *find_locked(const char *target, unsigned level)
{
	struct class *class = classes;

	while (class && (class->level != level || strcmp(class->target, target)))
		class = class->next;
	return class;
}

static struct class *add_locked(const char *target, unsigned level)
{
	size_t len = strlen(target) + 1;
	struct class *class = d9__malloc(sizeof(*class) + len);

	if (!class)
		return NULL;
	class->level = level;
	memcpy(class->target, target, len);
	set_locked(class);
	class->next = classes;
	classes = class;
	return class;
}

const uint32_t *d9__span_filter_word(const char *target, unsigned level)
{
	struct class *class;
	int saved = errno;

	pthread_mutex_lock(&lock);
	class = find_locked(target, level);
	if (!class)
		class = add_locked(target, level);
	pthread_mutex_unlock(&lock);
	errno = saved;
	return class ? &class->on : NULL;
}

void d9__span_filter_follow(bool on)
{
	pthread_mutex_lock(&lock);
	recording = on;
	set_all_locked();
	pthread_mutex_unlock(&lock);
}

/* ---- fork ---- */

void d9__span_filter_fork_prepare(void)
{
	pthread_mutex_lock(&lock);
}

void d9__span_filter_fork_parent(void)
{
	pthread_mutex_unlock(&lock);
}

void d9__span_filter_fork_child(void)
{
	atomic_fetch_add_explicit(&d9__span_epoch, 1, memory_order_relaxed);
	pthread_mutex_unlock(&lock);
}
