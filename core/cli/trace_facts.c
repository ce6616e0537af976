/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/trace_facts.h"

#include "analyze/budget.h"
#include "base/array.h"
#include "text/text.h"

/* Far more than a process has, which are some dozens. */
#define FACTS_MAX 4096
#define FACT_MAX  16384

/* Producers of very old traces stamped metadata with the wall clock: from the year 2020 on. */
#define WALL_CLOCK_FROM_NS UINT64_C(1577836800000000000)

/* ---- tallies ---- */

/*
 * Find the item |name| of |tallies|, or make it with 0.  Returns its index, or -1 if out of memory.
 */
static ptrdiff_t find_tally(struct d9__tallies *tallies, const char *name, size_t len)
{
	uint32_t number;

	tallies->names.each = sizeof(*tallies->items);
	if (d9__texts_number(&tallies->names, name, len, &number))
		return -1;
	if (number < tallies->n)
		return (ptrdiff_t)number;
	if (!d9__array_grow(tallies->items, tallies->n))
		return -1;
	tallies->items[tallies->n] = (struct d9__tally) { .name = tallies->names.items[number] };
	return (ptrdiff_t)tallies->n++;
}

static int compare_tallies(const void *a, const void *b)
{
	return strcmp(((const struct d9__tally *)a)->name, ((const struct d9__tally *)b)->name);
}

static void sort_tallies(struct d9__tallies *tallies)
{
	if (tallies->n)
		qsort(tallies->items, tallies->n, sizeof(*tallies->items), compare_tallies);
}

static void release_tallies(struct d9__tallies *tallies)
{
	free(tallies->items);
	d9__texts_release(&tallies->names);
}

/* ---- processes ---- */

static int make_processes(struct d9__trace_facts *facts)
{
	facts->processes = calloc(facts->ids.n + 1, sizeof(*facts->processes));
	if (!facts->processes)
		return -ENOMEM;
	facts->n_processes = facts->ids.n;
	for (size_t i = 0; i < facts->ids.n; i++)
		facts->processes[i].directory = facts->ids.items[i].folder;
	return 0;
}

int d9__trace_facts_init(struct d9__trace_facts *facts, const struct d9_reader *reader)
{
	static struct d9__text_out scratch;
	int err;

	*facts = (struct d9__trace_facts){ .scratch = &scratch };
	scratch.fd = -1; /* holds one line at a time */
	d9__event_lines_init(&facts->lines, &scratch, NULL);
	err = d9__processes_find(&facts->ids, reader);
	return err ? err : make_processes(facts);
}

/* ---- events ---- */

static int count_type(struct d9__trace_facts *facts, const struct d9_schema *schema)
{
	uint32_t id = d9_schema_id(schema);
	const char *name;
	ptrdiff_t type;

	while (id >= facts->n_schemas) {
		if (!d9__array_grow(facts->type_of_schema, facts->n_schemas))
			return -ENOMEM;
		facts->type_of_schema[facts->n_schemas++] = 0;
	}
	/* Stored plus one: 0 is a schema not met yet. */
	if (!facts->type_of_schema[id]) {
		name = d9_schema_name(schema);
		type = find_tally(&facts->types, name, strlen(name));
		if (type < 0)
			return -ENOMEM;
		facts->type_of_schema[id] = (size_t)type + 1;
	}
	facts->types.items[facts->type_of_schema[id] - 1].n++;
	return 0;
}

static void count_time(struct d9__process *process, const struct d9_event *event)
{
	uint64_t ns = event->timestamp_ns;

	if (!event->has_timestamp || !ns ||
	    (event->kind == D9_EVENT_SEGMENT_METADATA && ns >= WALL_CLOCK_FROM_NS))
		return;
	if (!process->first_ns || ns < process->first_ns)
		process->first_ns = ns;
	if (ns > process->last_ns)
		process->last_ns = ns;
}

static void take_clock_sync(struct d9__process *process, const struct d9_event *event)
{
	uint64_t wall_ns = d9_event_u64(event, "realtime_ns", 0);

	if (!wall_ns || !event->timestamp_ns ||
	    (process->sync_ns && event->timestamp_ns >= process->sync_ns))
		return;
	process->sync_ns = event->timestamp_ns;
	process->sync_wall_ns = wall_ns;
}

/* Find the fact of |key|, or make it.  NULL: out of memory. */
static struct d9__fact *find_fact(struct d9__process *process, const struct d9_text *key)
{
	uint32_t number;

	if (d9__texts_number(&process->keys, key->data, key->len, &number))
		return NULL;
	if (number < process->n_metadata)
		return &process->metadata[number];
	if (!d9__array_grow(process->metadata, process->n_metadata))
		return NULL;
	process->metadata[process->n_metadata++] =
		(struct d9__fact) { .key = process->keys.items[number] };
	return &process->metadata[number];
}

static int set_fact(struct d9__process *process, const struct d9_text *key,
		    const struct d9_text *value, uint64_t at_ns)
{
	struct d9__fact *fact;
	char *copy;

	if (process->n_metadata == FACTS_MAX || value->len > FACT_MAX) {
		d9__budget_leave_out(D9__KEPT_METADATA, 1);
		return 0;
	}
	copy = strndup(value->data, value->len);
	fact = copy ? find_fact(process, key) : NULL;

	if (!fact || (fact->value && at_ns < fact->at_ns)) {
		free(copy);
		return fact ? 0 : -ENOMEM;
	}
	free(fact->value);
	fact->value = copy;
	fact->at_ns = at_ns;
	return 0;
}

static int take_metadata(struct d9__process *process, const struct d9_event *event)
{
	const struct d9_value *entries = d9_event_field(event, "entries");
	int err = 0;

	if (!entries || entries->type != D9_FIELD_STRING_MAP)
		return 0;
	for (size_t i = 0; !err && i < entries->u.string_map.n; i++)
		err = set_fact(process, &entries->u.string_map.pairs[2 * i],
			       &entries->u.string_map.pairs[2 * i + 1], event->timestamp_ns);
	return err;
}

static int take_loss(struct d9__process *process, const struct d9_event *event)
{
	const struct d9_value *cause = d9_event_field(event, "cause");
	struct d9_text unknown = { "unknown", 7 }, *name = &unknown, text;
	ptrdiff_t item;

	if (cause && cause->type == D9_FIELD_STRING) {
		text = cause->u.text;
		name = &text;
	}
	item = find_tally(&process->loss, name->data, name->len);
	if (item < 0)
		return -ENOMEM;
	process->loss.items[item].n += d9_event_u64(event, "events", 0);
	return 0;
}

/* Replace |*line| by the scratch buffer's text without the newline; by NULL if it did not fit. */
static int keep_line(struct d9__text_out *scratch, char **line)
{
	bool fits = !scratch->err;

	free(*line);
	*line = NULL;
	scratch->err = 0;
	if (!fits) {
		scratch->len = 0;
		return 0;
	}
	*line = strndup(scratch->data, scratch->len ? scratch->len - 1 : 0);
	scratch->len = 0;
	return *line ? 0 : -ENOMEM;
}

static int take_health(struct d9__trace_facts *facts, struct d9__process *process,
		       const struct d9_event *event)
{
	int err;

	if (event->timestamp_ns < process->health_ns)
		return 0;
	process->health_ns = event->timestamp_ns;
	facts->scratch->len = 0;
	err = d9__event_lines_json(&facts->lines, event);
	if (!err)
		err = keep_line(facts->scratch, &process->health_json);
	if (!err)
		err = d9__event_lines_fields(&facts->lines, event);
	return err ? err : keep_line(facts->scratch, &process->health_text);
}

/* ---- the recorder's log ---- */

static void release_line(struct d9__log_line *line)
{
	free(line->level);
	free(line->text);
}

static char *known_text(const struct d9_event *event, unsigned field, const char *instead)
{
	const struct d9_value *value = d9_event_known(event, field);

	if (!value)
		return strdup(instead);
	return strndup(value->u.text.data, value->u.text.len < FACT_MAX ? value->u.text.len : FACT_MAX);
}

/* In the place that its time gives it; the earliest of too many goes. */
static void keep_log_line(struct d9__log *log, struct d9__log_line *line)
{
	size_t at = log->n;

	while (at && log->last[at - 1].ns > line->ns)
		at--;
	if (log->n < D9__LOG_KEPT) {
		memmove(&log->last[at + 1], &log->last[at], (log->n++ - at) * sizeof(*line));
	} else if (!at) {
		release_line(line);
		return;
	} else {
		release_line(&log->last[0]);
		memmove(&log->last[0], &log->last[1], --at * sizeof(*line));
	}
	log->last[at] = *line;
}

static int take_log(struct d9__log *log, const struct d9_event *event)
{
	struct d9__log_line line = { .ns = event->timestamp_ns,
				     .times = d9_event_known_u64(event, D9_RECORDER_LOG_TIMES, 1),
				     .level = known_text(event, D9_RECORDER_LOG_LEVEL, "unknown"),
				     .text = known_text(event, D9_RECORDER_LOG_TEXT, "") };
	ptrdiff_t item = line.level && line.text ? find_tally(&log->levels, line.level, strlen(line.level)) : -1;

	if (item < 0) {
		release_line(&line);
		return -ENOMEM;
	}
	log->levels.items[item].n++;
	keep_log_line(log, &line);
	return 0;
}

int d9__trace_facts_add(struct d9__trace_facts *facts, const struct d9_event *event)
{
	struct d9__process *process;
	int err = count_type(facts, event->schema);

	if (err || event->segment >= facts->ids.n_segments)
		return err;
	process = &facts->processes[facts->ids.of_segment[event->segment]];
	process->events++;
	count_time(process, event);
	switch (event->kind) {
	case D9_EVENT_CLOCK_SYNC:
		take_clock_sync(process, event);
		return 0;
	case D9_EVENT_SEGMENT_METADATA:
		return take_metadata(process, event);
	case D9_EVENT_RECORDER_LOSS:
		return take_loss(process, event);
	case D9_EVENT_RECORDER_HEALTH:
		return take_health(facts, process, event);
	case D9_EVENT_RECORDER_LOG:
		return take_log(&process->log, event);
	default:
		return 0;
	}
}

/* ---- results ---- */

static int compare_facts(const void *a, const void *b)
{
	return strcmp(((const struct d9__fact *)a)->key, ((const struct d9__fact *)b)->key);
}

void d9__trace_facts_finish(struct d9__trace_facts *facts)
{
	sort_tallies(&facts->types);
	for (size_t i = 0; i < facts->n_processes; i++) {
		struct d9__process *process = &facts->processes[i];

		sort_tallies(&process->loss);
		sort_tallies(&process->log.levels);
		if (process->n_metadata)
			qsort(process->metadata, process->n_metadata, sizeof(*process->metadata),
			      compare_facts);
	}
}

void d9__trace_facts_release(struct d9__trace_facts *facts)
{
	for (size_t i = 0; i < facts->n_processes; i++) {
		struct d9__process *process = &facts->processes[i];

		for (size_t k = 0; k < process->n_metadata; k++)
			free(process->metadata[k].value);
		free(process->metadata);
		d9__texts_release(&process->keys);
		free(process->health_json);
		free(process->health_text);
		release_tallies(&process->loss);
		for (size_t k = 0; k < process->log.n; k++)
			release_line(&process->log.last[k]);
		release_tallies(&process->log.levels);
	}
	free(facts->processes);
	d9__processes_release(&facts->ids);
	free(facts->type_of_schema);
	release_tallies(&facts->types);
	d9__event_lines_release(&facts->lines);
}

uint64_t d9__process_wall_start_ns(const struct d9__process *process)
{
	if (!process->sync_ns || !process->first_ns)
		return 0;
	return process->first_ns + (process->sync_wall_ns - process->sync_ns);
}

const char *d9__process_fact(const struct d9__process *process, const char *key)
{
	for (size_t i = 0; i < process->n_metadata; i++)
		if (!strcmp(process->metadata[i].key, key))
			return process->metadata[i].value;
	return NULL;
}
