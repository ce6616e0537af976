/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/callbacks.h"
#include "analyze/budget.h"
#include "analyze/hot.h"
#include "analyze/stalls.h"
#include "base/array.h"
#include "base/utf8.h"

/* Kinds are bits of a word; more than these share the last. */
#define MAX_KINDS 32

/* The budget counts so many bytes for each callback: its own, some classes of its distributions, its longest calls. */
#define CALLBACK_BYTES 4096

#define SITE_MARK " @ "

static void free_spells(struct d9__table *spells)
{
	void *spell;

	for (size_t place = 0; (place = d9__table_next(spells, place, &spell)) != 0;)
		free(spell);
	d9__table_release(spells);
}

static void free_callback(struct d9__callback *callback)
{
	for (size_t i = 0; i < D9__SPELLS; i++)
		free_spells(&callback->spells[i].of);
	for (size_t i = 0; i < callback->n_stalls; i++)
		d9__stall_unref(callback->stalls[i].stall);
	d9__histogram_release(&callback->durations);
	d9__histogram_release(&callback->own);
	d9__histogram_release(&callback->blocked);
	d9__histogram_release(&callback->delays);
	d9__histogram_release(&callback->own_delays);
	d9__histogram_release(&callback->lateness);
	free(callback->stale);
	free(callback->lost);
	free(callback->helper);
	d9__hot_free(callback->hot);
	free(callback->shape);
	for (size_t i = 0; i < callback->n_on; i++)
		free(callback->on[i]);
	free(callback->on);
	free(callback->alive_curve);
	free(callback->task_name);
	for (size_t i = 0; i < D9__OUTSIDE_PHASES; i++) {
		free(callback->outside[i].function);
		free(callback->outside[i].source);
	}
	free(callback->function);
	free(callback->source);
	free(callback->site);
	free(callback->inner_source);
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

static bool lies_in_loop(const struct d9__callback *callback)
{
	return d9__module_is_loop(callback->location, strcspn(callback->location, "+"));
}

bool d9__callback_is_glib(const struct d9__callback *callback)
{
	return callback->internal && starts_with(callback->location, strlen(callback->location), "libg");
}

static int add_callback(struct d9__callbacks *callbacks)
{
	struct d9__callback *callback;

	if (!d9__array_grow(callbacks->items, callbacks->n))
		return -ENOMEM;
	callback = calloc(1, sizeof(*callback));
	if (!callback)
		return -ENOMEM;
	callback->location = callbacks->locations.items[callbacks->n];
	callback->internal = strstr(callback->location, SITE_MARK) &&
			     d9__module_is_loop(callback->location, strlen(callback->location));
	callback->number = callbacks->n;
	callbacks->items[callbacks->n++] = callback;
	return 0;
}

struct d9__callback *d9__callbacks_at(struct d9__callbacks *callbacks, const char *location,
				      size_t len)
{
	uint32_t number;

	callbacks->locations.each = CALLBACK_BYTES;
	if (d9__texts_number(&callbacks->locations, location, len, &number))
		return NULL;
	while (number >= callbacks->n)
		if (add_callback(callbacks))
			return NULL;
	return callbacks->items[number];
}

/* "GIdleSource", "GSocket", "GIOChannel (Unix)" and the like are no names but types. */
static bool is_type(const char *name, size_t len)
{
	if (starts_with(name, len, "GIOChannel"))
		return true;
	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)name[i]))
			return false;
	return len > 2 && name[0] == 'G' && isupper((unsigned char)name[1]) && islower((unsigned char)name[2]);
}

/* "python timer callback 2", "other lua callbacks": what the recorder calls functions without a symbol. */
static bool is_generated(const char *location, size_t len)
{
	static const char word[] = " callback";
	const char *site = memmem(location, len, SITE_MARK, strlen(SITE_MARK));
	const char *end = site ? site : location + len;
	const char *at = memmem(location, (size_t)(end - location), word, strlen(word));

	if (!at || memchr(location, '+', (size_t)(end - location)))
		return false;
	at += strlen(word);
	if (starts_with(location, len, "other ") && at < end && *at == 's')
		at++;
	else if (at < end && *at == ' ')
		for (at++; at < end && isdigit((unsigned char)*at);)
			at++;
	return at == end;
}

bool d9__name_is_better(const char *name, size_t len, const char *location, size_t location_len)
{
	return len && !is_type(name, len) && is_generated(location, location_len);
}

/*
 * A name in new memory.  Some of GIO's have a file in them, "[gio, ../gio/gtask.c] f", and two of its functions are
 * those in which a program's D-Bus objects are called.
 */
static char *copy_name(const char *name, size_t len)
{
	const char *comma = memchr(name, ',', len), *bracket = memchr(name, ']', len);
	char *copy;

	if (!starts_with(name, len, "[gio") || !bracket)
		return strndup(name, len);
	if (is_text(bracket, len - (size_t)(bracket - name), "] call_in_idle_cb"))
		return strdup("D-Bus method call");
	if (is_text(bracket, len - (size_t)(bracket - name), "] emit_signal_instance_in_idle_cb"))
		return strdup("D-Bus signal");
	if (!comma || comma > bracket)
		comma = bracket;
	return asprintf(&copy, "%.*s%.*s", d9__precision((size_t)(comma - name)), name,
			d9__precision(len - (size_t)(bracket - name)), bracket) < 0 ? NULL : copy;
}

int d9__callback_add_name(struct d9__callback *callback, const char *name, size_t len)
{
	char *copy, *both;

	/* Of a loop library's own function a type says more than the place of it. */
	if (len == 0 || callback->names || (is_type(name, len) && !lies_in_loop(callback)))
		return 0;
	copy = copy_name(name, len);
	if (copy && callback->task_name && strcmp(copy, callback->task_name) != 0) {
		callback->names = true;
		/* GTask has one for all that ends. */
		if (asprintf(&both, "%s, ...", callback->task_name) < 0)
			both = NULL;
		free(copy);
		copy = both;
	}
	if (!copy)
		return -ENOMEM;
	free(callback->task_name);
	callback->task_name = copy;
	return 0;
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
	callback->each_round |= is_text(kind, len, "prepare") || is_text(kind, len, "check");
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

struct d9__callback_on *d9__callback_on(const struct d9__callback *callback, size_t worker)
{
	return worker < callback->n_on ? callback->on[worker] : NULL;
}

/* The first call on |worker|.  Beyond the budget it is left out.  0 or -ENOMEM. */
static int add_on(struct d9__callback *callback, size_t worker)
{
	size_t grows = worker < callback->n_on ? 0 : worker + 1 - callback->n_on;

	if (!d9__budget_take(D9__KEPT_CALLBACKS,
			     sizeof(**callback->on) + grows * sizeof(*callback->on)))
		return 0;
	if (!d9__array_reach(callback->on, &callback->n_on, worker))
		return -ENOMEM;
	callback->on[worker] = calloc(1, sizeof(*callback->on[worker]));
	return callback->on[worker] ? 0 : -ENOMEM;
}

int d9__callback_begin(struct d9__callback *callback, unsigned worker, uint64_t task)
{
	struct d9__callback_on *on = d9__callback_on(callback, worker);

	callback->calls++;
	if (!on && add_on(callback, worker) < 0)
		return -ENOMEM;
	on = d9__callback_on(callback, worker);
	if (on) {
		on->calls++;
		on->latest_task = task;
	}
	return 0;
}

bool d9__callback_follows_itself(const struct d9__callback *callback, size_t worker, uint64_t task)
{
	const struct d9__callback_on *on = d9__callback_on(callback, worker);

	return !on || !on->latest_task || on->latest_task == task;
}

bool d9__callback_ran_on(const struct d9__callback *callback, size_t worker)
{
	return d9__callback_on(callback, worker) != NULL;
}

void d9__callback_stayed(struct d9__callback *callback, size_t worker, uint64_t ns)
{
	struct d9__callback_on *on = d9__callback_on(callback, worker);

	if (on)
		on->ns += ns;
}

struct d9__account *d9__callback_time(struct d9__callback *callback, size_t worker)
{
	struct d9__callback_on *on = d9__callback_on(callback, worker);

	return on ? &on->time : &callback->time;
}

void d9__callbacks_finish(struct d9__callbacks *callbacks)
{
	for (size_t i = 0; i < callbacks->n; i++) {
		struct d9__callback *callback = callbacks->items[i];

		for (size_t j = 0; j < callback->n_on; j++)
			if (callback->on[j])
				d9__time_account_add(&callback->time, &callback->on[j]->time);
	}
}

void d9__callback_ran_loop(struct d9__callback *callback, uint64_t open_ns, uint64_t nested_ns,
			   uint64_t parked_ns, unsigned depth)
{
	callback->nested.calls++;
	callback->nested.ns += nested_ns;
	callback->nested.parked_ns += parked_ns;
	if (open_ns > callback->nested.longest_ns) {
		callback->nested.longest_ns = open_ns;
		callback->nested.longest_own_ns = open_ns - nested_ns;
	}
	if (depth > callback->nested.depth)
		callback->nested.depth = depth;
}

struct d9__io d9__callback_io(const struct d9__callback *callback)
{
	struct d9__io sum = { .fd = -1 };

	for (size_t i = 0; i < callback->n_on; i++)
		if (callback->on[i])
			d9__io_add(&sum, &callback->on[i]->io);
	return sum;
}

uint64_t d9__callback_slept_below_ns(const struct d9__callback *callback, uint64_t limit_ns)
{
	uint64_t above_ns = d9__histogram_sum_above(&callback->blocked, limit_ns);

	return callback->time.blocked_ns > above_ns ? callback->time.blocked_ns - above_ns : 0;
}

bool d9__vote_add(struct d9__vote *vote, uint64_t id, uint64_t ns)
{
	bool fresh = vote->ahead == 0;

	if (fresh)
		*vote = (struct d9__vote) { .id = id };
	if (vote->id != id) {
		vote->ahead -= ns < vote->ahead ? ns : vote->ahead;
		return false;
	}
	vote->ahead += ns;
	vote->ns += ns;
	vote->n++;
	return fresh;
}

int d9__callback_end(struct d9__callback *callback, uint64_t ns)
{
	callback->over_1ms += ns > D9__MS_NS;
	callback->over_10ms += ns > 10 * D9__MS_NS;
	callback->over_50ms += ns > 50 * D9__MS_NS;
	return d9__histogram_add(&callback->durations, ns);
}

const char *d9__callback_name(const struct d9__callback *callback, size_t *len)
{
	const char *mark = strstr(callback->location, SITE_MARK);

	if (callback->function) {
		*len = strlen(callback->function);
		return callback->function;
	}
	if (callback->task_name && (!callback->names || lies_in_loop(callback))) {
		*len = strlen(callback->task_name);
		return callback->task_name;
	}
	*len = mark ? (size_t)(mark - callback->location) : strlen(callback->location);
	if (*len == 0) {
		*len = strlen("(unknown)");
		return "(unknown)";
	}
	return callback->location;
}

const char *d9__callback_way(const struct d9__callback *callback, char *buf, size_t size)
{
	size_t len, caller_len = 0;
	const char *name = d9__callback_name(callback, &len), *caller = "";

	if (callback->caller) {
		caller = d9__callback_name(callback->caller, &caller_len);
		/* Of a stripped library its module says more than an offset. */
		if (!callback->caller->function && memchr(caller, '+', caller_len))
			caller_len = (size_t)((const char *)memchr(caller, '+', caller_len) - caller);
	}
	snprintf(buf, size, "%.*s%s%.*s", d9__precision(caller_len), caller, caller_len ? " > " : "",
		 d9__precision(len), name);
	return buf;
}

const char *d9__callback_site(const struct d9__callback *callback)
{
	const char *mark = strstr(callback->location, SITE_MARK);

	if (callback->site)
		return callback->site;
	return mark ? mark + strlen(SITE_MARK) : NULL;
}

const struct d9__spell *d9__callback_spell(const struct d9__callback *callback, enum d9__spell_kind kind,
					   uint64_t worker)
{
	return d9__table_find(&callback->spells[kind].of, worker);
}

struct d9__spell *d9__callback_new_spell(struct d9__callback *callback, enum d9__spell_kind kind,
					 uint64_t worker)
{
	struct d9__spell *spell = d9__table_find(&callback->spells[kind].of, worker);

	if (spell)
		return spell;
	spell = calloc(1, sizeof(*spell));
	if (spell && d9__table_add(&callback->spells[kind].of, worker, spell) < 0) {
		free(spell);
		return NULL;
	}
	return spell;
}

void d9__callback_spell_grew(struct d9__callback *callback, enum d9__spell_kind kind,
			     const struct d9__spell *spell)
{
	const struct d9__spell *worst = callback->spells[kind].worst;

	callback->spells[kind].workers += spell->windows == D9__SPELL_WINDOWS;
	if (!worst || spell->windows > worst->windows)
		callback->spells[kind].worst = spell;
}
