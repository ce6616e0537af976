/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "hook/capabilities.h"
#include "record/recorder.h"
#include "record/source.h"
#include "segment/metadata.h"

#define TEXT_MAX   1024
#define FOLLOW_MAX 8

/* ---- text ---- */

struct text {
	char *buf;
	size_t size, len; /* |len| goes on counting behind a full |buf| */
};

static void append(struct text *text, const char *part)
{
	for (; *part; part++, text->len++) {
		if (text->len + 1 < text->size)
			text->buf[text->len] = *part;
	}
}

static void terminate(struct text *text)
{
	if (text->size)
		text->buf[text->len < text->size ? text->len : text->size - 1] = '\0';
}

static void write_list_locked(const struct d9__capabilities *caps, struct text *text)
{
	for (unsigned i = 0; i < caps->n; i++) {
		append(text, i ? "," : "");
		append(text, caps->list[i].key);
		append(text, "=");
		append(text, caps->list[i].text);
	}
	terminate(text);
}

static void write_reasons_locked(const struct d9__capabilities *caps, struct text *text)
{
	for (unsigned i = 0; i < caps->n_reasons; i++) {
		append(text, i ? "; " : "");
		append(text, caps->reasons[i]);
	}
	terminate(text);
}

/* ---- setting ---- */

void d9__capabilities_set_version(struct d9__capabilities *caps, const char *version)
{
	pthread_mutex_lock(&caps->lock);
	struct text text = { caps->version, sizeof(caps->version), 0 };
	append(&text, version);
	terminate(&text);
	pthread_mutex_unlock(&caps->lock);
}

static struct d9__capability *find_capability_locked(struct d9__capabilities *caps, const char *key)
{
	for (unsigned i = 0; i < caps->n; i++) {
		if (strcmp(caps->list[i].key, key) == 0)
			return &caps->list[i];
	}
	return NULL;
}

void d9__capability_set(struct d9__capabilities *caps, const char *key, const char *text)
{
	pthread_mutex_lock(&caps->lock);
	struct d9__capability *capability = find_capability_locked(caps, key);
	if (!capability && caps->n < D9__CAPABILITIES_MAX) {
		capability = &caps->list[caps->n++];
		capability->key = key;
	}
	if (capability)
		capability->text = text;
	pthread_mutex_unlock(&caps->lock);
}

const char *d9__capability(struct d9__capabilities *caps, const char *key)
{
	pthread_mutex_lock(&caps->lock);
	const struct d9__capability *capability = find_capability_locked(caps, key);
	const char *text = capability ? capability->text : NULL;
	pthread_mutex_unlock(&caps->lock);
	return text;
}

void d9__capability_degrade(struct d9__capabilities *caps, const char *reason)
{
	bool known = false;

	pthread_mutex_lock(&caps->lock);
	for (unsigned i = 0; i < caps->n_reasons; i++)
		known = known || strcmp(caps->reasons[i], reason) == 0;
	if (!known && caps->n_reasons < D9__REASONS_MAX)
		caps->reasons[caps->n_reasons++] = reason;
	pthread_mutex_unlock(&caps->lock);
}

static void add_counter(struct d9__capabilities *caps, const struct d9__capability_counter *counter)
{
	bool known = false;

	pthread_mutex_lock(&caps->lock);
	for (unsigned i = 0; i < caps->n_counters; i++)
		known = known || strcmp(caps->counters[i].key, counter->key) == 0;
	if (!known && caps->n_counters < D9__COUNTERS_MAX)
		caps->counters[caps->n_counters++] = *counter;
	pthread_mutex_unlock(&caps->lock);
}

void d9__capability_count(struct d9__capabilities *caps, const char *key, _Atomic(uint32_t) *count)
{
	add_counter(caps, &(struct d9__capability_counter) { .key = key, .count = count });
}

void d9__capability_sum(struct d9__capabilities *caps, const char *key, uint64_t (*sum)(void))
{
	add_counter(caps, &(struct d9__capability_counter) { .key = key, .sum = sum });
}

void d9__capability_loop(struct d9__capabilities *caps, int err)
{
	if (!err)
		return;
	atomic_fetch_add_explicit(&caps->loops_dropped, 1, memory_order_relaxed);
	d9__capability_count(caps, "loops_dropped", &caps->loops_dropped);
}

size_t d9__capabilities_text(struct d9__capabilities *caps, char *buf, size_t len)
{
	struct text text = { buf, len, 0 };

	pthread_mutex_lock(&caps->lock);
	write_list_locked(caps, &text);
	pthread_mutex_unlock(&caps->lock);
	return text.len;
}

/* ---- publishing ---- */

static void publish(const struct d9__capabilities *caps, const char *key, const char *value)
{
	char full_key[96];
	struct text text = { full_key, sizeof(full_key), 0 };

	append(&text, "loop.");
	append(&text, caps->library);
	append(&text, ".");
	append(&text, key);
	terminate(&text);
	/* Keys that the recorder has no room for come again with the next tick. */
	(void)d9__metadata_set(full_key, value);
}

static void publish_counter(const struct d9__capabilities *caps,
			    const struct d9__capability_counter *counter)
{
	uint64_t value = counter->sum ? counter->sum()
				      : atomic_load_explicit(counter->count, memory_order_relaxed);
	char digits[24], *first = digits + sizeof(digits) - 1;

	if (value == 0)
		return;
	for (*first = '\0'; value; value /= 10)
		*--first = (char)('0' + value % 10);
	publish(caps, counter->key, first);
}

/* Copies under the lock, hands over without it: the recorder takes locks of its own. */
static void publish_all(struct d9__capabilities *caps)
{
	char version[sizeof(caps->version)], list[TEXT_MAX], reasons[TEXT_MAX];
	const char *refused;
	unsigned n_counters;

	pthread_mutex_lock(&caps->lock);
	memcpy(version, caps->version, sizeof(version));
	write_list_locked(caps, &(struct text){ list, sizeof(list), 0 });
	write_reasons_locked(caps, &(struct text){ reasons, sizeof(reasons), 0 });
	n_counters = caps->n_counters;
	refused = caps->refused;
	pthread_mutex_unlock(&caps->lock);

	if (*version)
		publish(caps, "version", version);
	if (refused)
		publish(caps, "refused", refused);
	publish(caps, "capabilities", list);
	publish(caps, "degraded", reasons);
	for (unsigned i = 0; i < n_counters; i++)
		publish_counter(caps, &caps->counters[i]);
}

void d9__capabilities_publish(struct d9__capabilities *caps)
{
	int saved_errno = errno;

	publish_all(caps);
	errno = saved_errno;
}

static const char *refusal_text(int err, const char *unsupported)
{
	switch (err) {
	case -EPERM:
		return "the kernel refused to make a page writable";
	case -ENOMEM:
		return "there was no memory for its trial";
	case -ENOENT:
		return "it is not loaded as a shared library";
	case -EDEADLK:
		return "another thread was loading a library when this process was forked, so that nobody may ask the loader";
	case -EACCES:
		return "the program limited its own system calls (seccomp) before it made a loop of it; "
		       "make the loop first";
	default:
		return unsupported;
	}
}

void d9__capability_refuse(struct d9__capabilities *caps, int err, const char *unsupported,
			   bool record)
{
	int saved_errno = errno;

	pthread_mutex_lock(&caps->lock);
	caps->refused = refusal_text(err, unsupported);
	pthread_mutex_unlock(&caps->lock);
	/* The recorder says itself if it cannot start. */
	if (record) {
		d9__metadata_keep();
		(void)d9__recorder_ensure();
	}
	publish_all(caps);
	errno = saved_errno;
}

/* ---- at every tick ---- */

static struct d9__capabilities *_Atomic followed[FOLLOW_MAX];
static _Atomic(unsigned) n_followed;

static void publish_followed(void)
{
	for (unsigned i = 0; i < FOLLOW_MAX; i++) {
		/* acquire: pairs with the release in d9__capabilities_follow() */
		struct d9__capabilities *caps =
			atomic_load_explicit(&followed[i], memory_order_acquire);

		if (caps)
			d9__capabilities_publish(caps);
	}
}

void d9__capabilities_follow(struct d9__capabilities *caps)
{
	unsigned i = atomic_fetch_add_explicit(&n_followed, 1, memory_order_relaxed);

	if (i >= FOLLOW_MAX)
		return;
	/* release: pairs with the acquire in publish_followed() */
	atomic_store_explicit(&followed[i], caps, memory_order_release);
	if (i == 0)
		d9__tick_add(publish_followed);
}
