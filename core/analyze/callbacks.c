/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/callbacks.h"
#include "analyze/stalls.h"

/* Kinds are bits of a word; more than these share the last. */
#define MAX_KINDS 32

#define SITE_MARK " @ "

static void free_callback(struct d9__callback *callback)
{
	for (size_t i = 0; i < callback->n_stalls; i++)
		d9__stall_unref(callback->stalls[i].stall);
	d9__histogram_release(&callback->durations);
	d9__histogram_release(&callback->delays);
	d9__histogram_release(&callback->lateness);
	free(callback->stale);
	free(callback->lost);
	free(callback->helper);
	free(callback->ran_on);
	free(callback->alive_curve);
	free(callback->function);
	free(callback->source);
	free(callback->site);
	free(callback);
}

void d9__callbacks_release(struct d9__callbacks *callbacks)
{
	for (size_t i = 0; i < callbacks->n; i++)
		free_callback(callbacks->items[i]);
	free(callbacks->items);
	d9__texts_release(&callbacks->locations);
	d9__texts_release(&callbacks->kinds);
	*callbacks = (struct d9__callbacks){ 0 };
}

static bool starts_with(const char *text, size_t len, const char *prefix)
{
	size_t n = strlen(prefix);

	return len >= n && !memcmp(text, prefix, n);
}

static bool is_text(const char *text, size_t len, const char *other)
{
	return len == strlen(other) && !memcmp(text, other, len);
}

bool d9__module_is_loop(const char *module, size_t len)
{
	/* A library, not a program that is called after it. */
	if (!memmem(module, len, ".so", strlen(".so")))
		return false;
	return starts_with(module, len, "libevent") || starts_with(module, len, "libev.so") ||
	       starts_with(module, len, "libev-") || starts_with(module, len, "libglib-") ||
	       starts_with(module, len, "libgio-");
}

bool d9__callback_is_glib(const struct d9__callback *callback)
{
	return callback->internal && starts_with(callback->location, strlen(callback->location), "libg");
}

static int add_callback(struct d9__callbacks *callbacks)
{
	size_t capacity = callbacks->capacity ? 2 * callbacks->capacity : 64;
	struct d9__callback *callback;

	if (callbacks->n == callbacks->capacity) {
		struct d9__callback **items =
			realloc(callbacks->items, capacity * sizeof(*items));

		if (!items)
			return -ENOMEM;
		callbacks->items = items;
		callbacks->capacity = capacity;
	}
	callback = calloc(1, sizeof(*callback));
	if (!callback)
		return -ENOMEM;
	callback->location = callbacks->locations.items[callbacks->n];
	callback->internal = strstr(callback->location, SITE_MARK) &&
			     d9__module_is_loop(callback->location, strlen(callback->location));
	callbacks->items[callbacks->n++] = callback;
	return 0;
}

struct d9__callback *d9__callbacks_at(struct d9__callbacks *callbacks, const char *location,
				      size_t len)
{
	uint32_t number;

	if (d9__texts_number(&callbacks->locations, location, len, &number))
		return NULL;
	while (number >= callbacks->n)
		if (add_callback(callbacks))
			return NULL;
	return callbacks->items[number];
}

int d9__callback_add_kind(struct d9__callbacks *callbacks, struct d9__callback *callback,
			  const char *kind, size_t len)
{
	uint32_t number;

	if (len == 0)
		return 0;
	if (callbacks->kinds.n == MAX_KINDS) {
		callback->kinds |= UINT32_C(1) << (MAX_KINDS - 1);
		return 0;
	}
	if (d9__texts_number(&callbacks->kinds, kind, len, &number))
		return -ENOMEM;
	callback->kinds |= UINT32_C(1) << number;
	/* A listener's descriptor is read by the library, which then calls the user's function. */
	callback->listener |= is_text(kind, len, "listener");
	if (is_text(kind, len, "internal") || callback->listener)
		callback->internal = true;
	return 0;
}

const char *d9__callback_kinds(const struct d9__callbacks *callbacks,
			       const struct d9__callback *callback, char *buf, size_t size)
{
	size_t used = 0;

	if (callback->kinds == 0 && callback->span) {
		snprintf(buf, size, "span");
		return buf;
	}
	buf[0] = '\0';
	for (size_t i = 0; i < callbacks->kinds.n; i++) {
		int n;

		if (!(callback->kinds >> i & 1))
			continue;
		n = snprintf(buf + used, size - used, "%s%s", used ? "+" : "",
			     callbacks->kinds.items[i]);
		if (n < 0 || (size_t)n >= size - used)
			break;
		used += (size_t)n;
	}
	return buf;
}

int d9__callback_begin(struct d9__callback *callback, unsigned worker)
{
	size_t word = worker / 64, n = word + 1;

	callback->calls++;
	if (n > callback->ran_on_words) {
		uint64_t *words = realloc(callback->ran_on, n * sizeof(*words));

		if (!words)
			return -ENOMEM;
		memset(words + callback->ran_on_words, 0,
		       (n - callback->ran_on_words) * sizeof(*words));
		callback->ran_on = words;
		callback->ran_on_words = n;
	}
	callback->ran_on[word] |= UINT64_C(1) << worker % 64;
	return 0;
}

bool d9__callback_ran_on(const struct d9__callback *callback, size_t worker)
{
	return worker / 64 < callback->ran_on_words && callback->ran_on[worker / 64] >> worker % 64 & 1;
}

int d9__callback_end(struct d9__callback *callback, uint64_t ns)
{
	callback->over_1ms += ns > D9__MS(1);
	callback->over_10ms += ns > D9__MS(10);
	callback->over_50ms += ns > D9__MS(50);
	return d9__histogram_add(&callback->durations, ns);
}

const char *d9__callback_name(const struct d9__callback *callback, size_t *len)
{
	const char *mark = strstr(callback->location, SITE_MARK);

	if (callback->function) {
		*len = strlen(callback->function);
		return callback->function;
	}
	*len = mark ? (size_t)(mark - callback->location) : strlen(callback->location);
	if (*len == 0) {
		*len = strlen("(unknown)");
		return "(unknown)";
	}
	return callback->location;
}

const char *d9__callback_site(const struct d9__callback *callback)
{
	const char *mark = strstr(callback->location, SITE_MARK);

	if (callback->site)
		return callback->site;
	return mark ? mark + strlen(SITE_MARK) : NULL;
}
