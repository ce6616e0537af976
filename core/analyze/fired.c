/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "analyze/fired.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/callbacks.h"
#include "base/trigger_text.h"
#include "read/known_text.h"
#include "text/units.h"

void d9__fired_release(struct d9__fired *fired)
{
	for (size_t i = 0; i < fired->n && i < D9__FIRED_MAX; i++) {
		free(fired->items[i].trigger);
		free(fired->items[i].dump_id);
	}
	*fired = (struct d9__fired){ .n = 0 };
}

int d9__fired_add(struct d9__fired *fired, const struct d9_event *event,
		  const struct d9__callback *callback, const struct d9__worker *worker)
{
	struct d9_text trigger = d9__known_text(event, D9_DUMP_TRIGGER_TRIGGER);
	struct d9_text dump_id = d9__known_text(event, D9_DUMP_TRIGGER_DUMP_ID);
	struct d9__fire *fire;

	if (fired->n >= D9__FIRED_MAX) {
		fired->n++;
		return 0;
	}
	fire = &fired->items[fired->n];
	*fire = (struct d9__fire){
		.trigger = strndup(trigger.len ? trigger.data : "", trigger.len),
		.dump_id = strndup(dump_id.len ? dump_id.data : "", dump_id.len),
		.ns = event->timestamp_ns,
		.value = d9_event_known_u64(event, D9_DUMP_TRIGGER_VALUE, 0),
		.threshold = d9_event_known_u64(event, D9_DUMP_TRIGGER_THRESHOLD, 0),
		.task = d9_event_known_u64(event, D9_DUMP_TRIGGER_TASK_ID, 0),
		.address = d9_event_known_u64(event, D9_DUMP_TRIGGER_CALLBACK, 0),
		.callback = callback,
		.worker = worker,
	};
	fired->n++;
	return fire->trigger && fire->dump_id ? 0 : -ENOMEM;
}

void d9__fired_name(struct d9__fired *fired, const struct d9__callbacks *callbacks)
{
	for (size_t i = 0; i < fired->n && i < D9__FIRED_MAX; i++) {
		struct d9__fire *fire = &fired->items[i];

		if (!fire->address || (fire->callback && fire->callback->address == fire->address))
			continue;
		for (size_t j = 0; j < callbacks->n; j++)
			if (callbacks->items[j]->address == fire->address)
				fire->callback = callbacks->items[j];
	}
}

void d9__fired_put_first(struct d9__fired *fired, const char *id)
{
	size_t n = fired->n < D9__FIRED_MAX ? fired->n : D9__FIRED_MAX, first = 0;

	for (size_t i = 0; i < n; i++) {
		struct d9__fire own = fired->items[i];

		if (strcmp(own.dump_id, id) != 0)
			continue;
		memmove(&fired->items[first + 1], &fired->items[first], (i - first) * sizeof(own));
		fired->items[first++] = own;
	}
}

const char *d9__fired_text(const struct d9__fire *fire, const struct d9__metadata *metadata)
{
	char key[sizeof("trigger.") + D9__TRIGGER_NAME];

	snprintf(key, sizeof(key), "trigger.%s", fire->trigger);
	return d9__metadata_value(metadata, key);
}

struct d9__units d9__fired_number(enum d9__trigger_unit unit, uint64_t n)
{
	struct d9__units out;

	if (unit == D9__TRIGGER_NS)
		return d9__units_ns(n);
	snprintf(out.text, sizeof(out.text), "%" PRIu64 "%s", n, unit == D9__TRIGGER_PER_SECOND ? "/s" : "");
	return out;
}

void d9__fired_measure(const struct d9__fire *fire, const struct d9__metadata *metadata, char *out, size_t size)
{
	const char *text = d9__fired_text(fire, metadata);
	struct d9__trigger_fault fault;
	struct d9__trigger trigger = { .kind = D9__TRIGGER_CALL };
	enum d9__trigger_unit unit;
	int n;

	out[0] = '\0';
	if (!text || !d9__trigger_parse_names(text, strlen(text), &trigger, &fault) || trigger.kind == D9__TRIGGER_CALL)
		return;
	unit = d9__trigger_unit(trigger.kind);
	n = snprintf(out, size, "%s %s, over %s", d9__trigger_kind_name(trigger.kind), d9__fired_number(unit, fire->value).text,
		     d9__fired_number(unit, fire->threshold).text);
	if (trigger.for_ns && n > 0 && (size_t)n < size)
		snprintf(out + n, size - (size_t)n, " for %s", d9__units_ns(trigger.for_ns).text);
}
