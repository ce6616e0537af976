/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/budget.h"
#include "analyze/metadata.h"
#include "base/array.h"

#define KEYS_MAX  4096 /* a process has some dozens */
#define VALUE_MAX 16384

void d9__metadata_release(struct d9__metadata *metadata)
{
	for (size_t i = 0; i < metadata->n; i++)
		free(metadata->items[i].value);
	free(metadata->items);
	d9__texts_release(&metadata->keys);
	*metadata = (struct d9__metadata){ 0 };
}

static char *copy_of(const char *text, size_t len)
{
	char *copy = malloc(len + 1);

	if (!copy)
		return NULL;
	if (len)
		memcpy(copy, text, len);
	copy[len] = '\0';
	return copy;
}

/* Room for the entry |number|, the next one if it is new; NULL: out of memory. */
static struct d9__metadata_entry *entry_at(struct d9__metadata *metadata, uint32_t number)
{
	if (number < metadata->n)
		return &metadata->items[number];
	if (!d9__array_grow(metadata->items, metadata->n))
		return NULL;
	metadata->items[metadata->n++] =
		(struct d9__metadata_entry){ metadata->keys.items[number], NULL };
	return &metadata->items[number];
}

int d9__metadata_put(struct d9__metadata *metadata, const char *key, size_t key_len,
		     const char *value, size_t value_len)
{
	struct d9__metadata_entry *entry = NULL;
	char *new_value;
	uint32_t number;

	if (metadata->n == KEYS_MAX || value_len > VALUE_MAX) {
		d9__budget_leave_out(D9__KEPT_METADATA, 1);
		return 0;
	}
	new_value = copy_of(value, value_len);
	if (new_value && !d9__texts_number(&metadata->keys, key, key_len, &number))
		entry = entry_at(metadata, number);
	if (!entry) {
		free(new_value);
		return -ENOMEM;
	}
	free(entry->value);
	entry->value = new_value;
	return 0;
}

const char *d9__metadata_value(const struct d9__metadata *metadata, const char *key)
{
	for (size_t i = 0; i < metadata->n; i++)
		if (!strcmp(metadata->items[i].key, key))
			return metadata->items[i].value;
	return NULL;
}

bool d9__metadata_key_is(const char *key, const char *prefix, const char *suffix,
			 const char **middle, size_t *len)
{
	size_t all = strlen(key), head = strlen(prefix), tail = strlen(suffix);

	if (all <= head + tail || strncmp(key, prefix, head) ||
	    strcmp(key + all - tail, suffix))
		return false;
	*middle = key + head;
	*len = all - head - tail;
	return true;
}

/* The value of |key| in the comma list |list|; NULL if it is not in it. */
static const char *capability(const char *list, const char *key, size_t *len)
{
	size_t key_len = strlen(key);

	while (*list) {
		size_t n = strcspn(list, ",");

		if (n > key_len && list[key_len] == '=' && !strncmp(list, key, key_len)) {
			*len = n - key_len - 1;
			return list + key_len + 1;
		}
		list += n + (list[n] == ',');
	}
	return NULL;
}

static bool is_one_of(const char *text, size_t len, const char *const *words)
{
	for (; *words; words++)
		if (strlen(*words) == len && !memcmp(text, *words, len))
			return true;
	return false;
}

enum d9__coverage d9__metadata_coverage(const struct d9__metadata *metadata, const char *key)
{
	/* The best of each key, as the adapters name it. */
	static const char *const full[] = { "full", "on", "yes", "true", "all", "event",
					    "exact", "site", "destroy+finalize", NULL };
	static const char *const none[] = { "off", "none", "no", "false", NULL };
	unsigned said = 0, are_full = 0, are_none = 0;

	for (size_t i = 0; i < metadata->n; i++) {
		const struct d9__metadata_entry *entry = &metadata->items[i];
		const char *middle, *value;
		size_t len;

		if (!d9__metadata_key_is(entry->key, "loop.", ".capabilities", &middle, &len))
			continue;
		value = capability(entry->value, key, &len);
		if (!value)
			continue;
		said++;
		are_full += is_one_of(value, len, full);
		are_none += is_one_of(value, len, none);
	}
	if (are_full == said)
		return D9__COVERAGE_FULL;
	return are_none == said ? D9__COVERAGE_NONE : D9__COVERAGE_PARTIAL;
}

bool d9__metadata_is_only(const struct d9__metadata *metadata, const char *library)
{
	size_t loops = 0, same = 0, len;
	const char *middle;

	for (size_t i = 0; i < metadata->n; i++) {
		if (!d9__metadata_key_is(metadata->items[i].key, "loop.", ".capabilities", &middle, &len))
			continue;
		loops++;
		same += len == strlen(library) && !memcmp(middle, library, len);
	}
	return loops && same == loops;
}

bool d9__metadata_says(const struct d9__metadata *metadata, const char *key, const char *text)
{
	const char *middle, *value;
	size_t len;

	for (size_t i = 0; i < metadata->n; i++) {
		const struct d9__metadata_entry *entry = &metadata->items[i];

		if (!d9__metadata_key_is(entry->key, "loop.", ".capabilities", &middle, &len))
			continue;
		value = capability(entry->value, key, &len);
		if (value && len == strlen(text) && !memcmp(value, text, len))
			return true;
	}
	return false;
}

static bool lists_id(const char *list, uint64_t id)
{
	while (*list) {
		char *end;
		unsigned long long number = strtoull(list, &end, 10);

		if (end == list)
			return false;
		if (number == id)
			return true;
		list = *end == ',' ? end + 1 : end;
	}
	return false;
}

const char *d9__metadata_group(const struct d9__metadata *metadata, uint64_t id)
{
	const char *name;
	size_t len;

	for (size_t i = 0; i < metadata->n; i++)
		if (d9__metadata_key_is(metadata->items[i].key, "runtime.", "", &name, &len) &&
		    lists_id(metadata->items[i].value, id))
			return name;
	return NULL;
}

static struct d9__trace_loss *loss_of(struct d9__trace_losses *losses, const char *cause, size_t len)
{
	struct d9__trace_loss *loss;

	if (len >= sizeof(loss->cause))
		len = sizeof(loss->cause) - 1;
	for (size_t i = 0; i < losses->n; i++)
		if (strlen(losses->items[i].cause) == len &&
		    !memcmp(losses->items[i].cause, cause, len))
			return &losses->items[i];
	if (losses->n == D9__LOSSES_MAX)
		return &losses->items[D9__LOSSES_MAX - 1];
	loss = &losses->items[losses->n++];
	if (len)
		memcpy(loss->cause, cause, len);
	return loss;
}

static uint64_t saturated_sum(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* Each thread tells of its own: those that overlap are one. */
static void add_unwritten(struct d9__trace_losses *losses, const struct d9__trace_loss *add)
{
	struct d9__left_rings_time *time = losses->unwritten;
	size_t i = 0;

	while (i < losses->n_unwritten && (add->from_ns > time[i].to_ns || add->to_ns < time[i].from_ns))
		i++;
	if (i == D9__UNWRITTEN_TIMES)
		i--;
	if (i == losses->n_unwritten)
		time[losses->n_unwritten++] = (struct d9__left_rings_time){ add->from_ns, add->to_ns, 0 };
	if (add->from_ns < time[i].from_ns)
		time[i].from_ns = add->from_ns;
	if (add->to_ns > time[i].to_ns)
		time[i].to_ns = add->to_ns;
	time[i].events = saturated_sum(time[i].events, add->events);
}

void d9__losses_add(struct d9__trace_losses *losses, const char *cause, size_t len,
		    const struct d9__trace_loss *add)
{
	struct d9__trace_loss *loss = loss_of(losses, cause, len);

	if (loss->gaps == 0 || add->from_ns < loss->from_ns)
		loss->from_ns = add->from_ns;
	if (add->to_ns > loss->to_ns)
		loss->to_ns = add->to_ns;
	loss->gaps++;
	loss->events = saturated_sum(loss->events, add->events);
	losses->events = saturated_sum(losses->events, add->events);
	if (!strcmp(loss->cause, "disk") && add->to_ns >= add->from_ns && add->to_ns)
		add_unwritten(losses, add);
}
