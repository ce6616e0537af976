/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include <dial9/field_type.h>
#include <dial9/reader.h>

#include "stage/scrub_plan.h"

static const struct rule {
	enum d9_event_kind kind;
	const char *field;
	enum d9__redact_field how;
} rules[] = {
	{ D9_EVENT_SEGMENT_METADATA, "entries", D9__SCRUB_PAIRS },
	{ D9_EVENT_POLL_START, "spawn_loc", D9__SCRUB_PLACE },
	{ D9_EVENT_TASK_SPAWN, "spawn_loc", D9__SCRUB_PLACE },
	{ D9_EVENT_TASK_SPAWN, "callback", D9__SCRUB_ADDRESS },
	{ D9_EVENT_TASK_SPAWN, "spawn_addr", D9__SCRUB_ADDRESS },
	{ D9_EVENT_TASK_SPAWN, "kind", D9__SCRUB_WORD },
	{ D9_EVENT_TASK_SPAWN, "name", D9__SCRUB_NAME },
	{ D9_EVENT_CPU_SAMPLE, "thread_name", D9__SCRUB_THREAD },
	{ D9_EVENT_BOUND_THREAD, "thread_name", D9__SCRUB_THREAD },
	{ D9_EVENT_BOUND_THREAD, "cpus", D9__SCRUB_WORD },
	{ D9_EVENT_ALLOC, "addr", D9__SCRUB_ADDRESS },
	{ D9_EVENT_FREE, "addr", D9__SCRUB_ADDRESS },
	{ D9_EVENT_TCP_ACCEPT_QUEUE, "local_addr", D9__REDACT_EMPTY },
	{ D9_EVENT_TCP_ACCEPT_QUEUE, "local_port", D9__REDACT_EMPTY },
	{ D9_EVENT_TCP_ACCEPT_QUEUE, "socket_cookie", D9__REDACT_EMPTY },
	{ D9_EVENT_TCP_ACCEPT_QUEUE, "socket_inode", D9__REDACT_EMPTY },
	{ D9_EVENT_SYMBOL, "addr", D9__SCRUB_ADDRESS },
	{ D9_EVENT_SYMBOL, "symbol_name", D9__SCRUB_FUNCTION },
	{ D9_EVENT_SYMBOL, "source_file", D9__SCRUB_FILE },
	{ D9_EVENT_SYMBOL, "source_line", D9__REDACT_EMPTY },
	{ D9_EVENT_SPAN_ENTER, "span_name", D9__SCRUB_SPAN },
	{ D9_EVENT_SPAN_EXIT, "span_name", D9__SCRUB_SPAN },
	{ D9_EVENT_SPAN_CALL, "span_name", D9__SCRUB_SPAN },
	{ D9_EVENT_SPAN_CLOSE, "span_name", D9__SCRUB_SPAN },
	{ D9_EVENT_SPAN_CLOSE, "target", D9__SCRUB_TARGET },
	{ D9_EVENT_SPAN_CLOSE, "file", D9__REDACT_EMPTY },
	{ D9_EVENT_SPAN_CLOSE, "line", D9__REDACT_EMPTY },
	{ D9_EVENT_SPAN_CLOSE, "level", D9__SCRUB_WORD },
	{ D9_EVENT_SPAN_OPEN, "span_name", D9__SCRUB_SPAN },
	{ D9_EVENT_SPAN_OPEN, "origin", D9__SCRUB_WORD },
	{ D9_EVENT_SPAN_MISUSE, "span_name", D9__SCRUB_SPAN },
	{ D9_EVENT_SPAN_MISUSE, "mistake", D9__SCRUB_WORD },
	{ D9_EVENT_RUNTIME_METRICS, "runtime_name", D9__SCRUB_LOOP },
	{ D9_EVENT_LOOP_TASKS, "loop", D9__SCRUB_LOOP },
	{ D9_EVENT_RECORDER_LOSS, "cause", D9__SCRUB_WORD },
	{ D9_EVENT_RECORDER_HEALTH, "state", D9__SCRUB_WORD },
	{ D9_EVENT_MODULE, "base", D9__SCRUB_MODULE_START },
	{ D9_EVENT_MODULE, "start", D9__SCRUB_MODULE_START },
	{ D9_EVENT_MODULE, "size", D9__SCRUB_MODULE_SIZE },
	{ D9_EVENT_MODULE, "path", D9__SCRUB_MODULE_PATH },
	{ D9_EVENT_MODULE, "build_id", D9__REDACT_EMPTY },
	{ D9_EVENT_BLOCKING_CALL, "function", D9__SCRUB_WORD },
	{ D9_EVENT_STUCK_POLL, "syscall", D9__SCRUB_WORD },
	{ D9_EVENT_STUCK_POLL, "wchan", D9__SCRUB_WORD },
	{ D9_EVENT_STUCK_POLL, "kind", D9__SCRUB_WORD },
	{ D9_EVENT_HELPER_RUN, "function", D9__SCRUB_PLACE },
	{ D9_EVENT_LAST_SIGN, "span", D9__SCRUB_SPAN },
	{ D9_EVENT_SOURCE_TIME, "phase", D9__SCRUB_WORD },
	{ D9_EVENT_SOURCE_TIME, "function", D9__SCRUB_PLACE },
	{ D9_EVENT_SOURCE_TIME, "address", D9__SCRUB_ADDRESS },
	{ D9_EVENT_DUMP_TRIGGER, "trigger", D9__SCRUB_TRIGGER },
	{ D9_EVENT_DUMP_TRIGGER, "dump_id", D9__SCRUB_WORD },
	{ D9_EVENT_DUMP_TRIGGER, "callback", D9__SCRUB_ADDRESS },
};

/* Numbers that say to whom an event belongs, in events of any type. */
static bool is_relation(const char *name)
{
	static const char *const names[] = {
		"worker_id", "task_id", "tid", "span_id", "parent_span_id", "span_instance_id", "parent_span_instance_id",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

/* True for an annotation that readers understand, with one of its defined values. */
bool d9__scrub_is_vocabulary(const struct d9__annotation_definition *annotation)
{
	static const char *const all[][2] = {
		{ "unit", "ns" },
		{ "unit", "us" },
		{ "unit", "ms" },
		{ "unit", "s" },
		{ "unit", "bytes" },
		{ "kind", "gauge" },
		{ "kind", "counter" },
		{ "kind", "updown-counter" },
		{ "dial9.role", "span.start" },
		{ "dial9.role", "span.duration" },
		{ "dial9.role", "span.name" },
		{ "dial9.role", "thread_id" },
		{ "dial9.role", "tokio.task_id" },
		{ "dial9.role", "tokio.worker_id" },
		{ "dial9.span.type", "callback" },
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (!strcmp(annotation->key, all[i][0]) && !strcmp(annotation->value, all[i][1]))
			return true;
	return false;
}

static bool is_known(const struct d9_schema *schema, uint32_t i)
{
	for (size_t k = 0; schema->kind != D9_EVENT_CUSTOM && k < D9__DEFINITION_KNOWN_MAX; k++)
		if (schema->known[k] == (int32_t)i)
			return true;
	return is_relation(schema->fields[i].name);
}

/* True for a number that is a measure, or an id of what the event belongs to. */
static bool is_measure(const struct d9_schema *schema, uint32_t i)
{
	for (uint32_t a = 0; a < schema->n_annotations; a++)
		if (schema->annotations[a].field == i && d9__scrub_is_vocabulary(&schema->annotations[a]))
			return true;
	return is_known(schema, i);
}

static enum d9__redact_field by_type(const struct d9_schema *schema, uint32_t i)
{
	switch (schema->fields[i].type) {
	case D9_FIELD_I64:
	case D9_FIELD_F64:
	case D9_FIELD_VARINT:
	case D9_FIELD_U8:
	case D9_FIELD_U16:
	case D9_FIELD_U32:
		return is_measure(schema, i) ? D9__REDACT_LEAVE : D9__REDACT_EMPTY;
	case D9_FIELD_BOOL:
		return D9__REDACT_LEAVE;
	case D9_FIELD_STRING:
	case D9_FIELD_POOLED_STRING:
		return D9__SCRUB_TEXT;
	case D9_FIELD_STACK:
	case D9_FIELD_POOLED_STACK:
		return D9__SCRUB_ADDRESS;
	default:
		return D9__REDACT_EMPTY;
	}
}

static bool takes_numbers(enum d9__redact_field how)
{
	return how == D9__SCRUB_ADDRESS || how == D9__SCRUB_MODULE_START || how == D9__SCRUB_MODULE_SIZE;
}

/* True if the plan fits the type, because a foreign trace may have any type under a known name. */
static bool fits(enum d9__redact_field how, uint8_t type)
{
	if (how == D9__REDACT_EMPTY)
		return true;
	if (takes_numbers(how))
		return type == D9_FIELD_VARINT;
	if (how == D9__SCRUB_PAIRS)
		return type == D9_FIELD_STRING_MAP;
	return type == D9_FIELD_STRING || type == D9_FIELD_POOLED_STRING;
}

static const struct rule *rule_of(const struct d9_schema *schema, const char *field)
{
	for (size_t r = 0; schema->kind != D9_EVENT_CUSTOM && r < sizeof(rules) / sizeof(rules[0]); r++)
		if (rules[r].kind == schema->kind && !strcmp(rules[r].field, field))
			return &rules[r];
	return NULL;
}

/* Fields of the recorder's own events that the catalogue does not list are measures. */
bool d9__scrub_keeps_name(const struct d9_schema *schema, uint32_t i)
{
	return is_known(schema, i) || rule_of(schema, schema->fields[i].name) ||
	       (schema->kind == D9_EVENT_RECORDER_HEALTH && is_measure(schema, i));
}

static enum d9__redact_field field_plan(const struct d9_schema *schema, uint32_t i)
{
	const struct d9__field_definition *field = &schema->fields[i];
	const struct rule *rule = rule_of(schema, field->name);

	if (rule)
		return fits(rule->how, field->type) ? rule->how : D9__REDACT_EMPTY;
	return by_type(schema, i);
}

struct d9__redact_plan *d9__scrub_plan(const struct d9_schema *schema)
{
	struct d9__redact_plan *plan = calloc(1, sizeof(*plan) + schema->n_fields);

	if (!plan)
		return NULL;
	/*
	 * Drop log lines, which have names and paths in them, and built-in events that lack a
	 * required field.
	 */
	plan->drop = schema->kind == D9_EVENT_RECORDER_LOG || schema->incomplete;
	for (uint32_t i = 0; i < schema->n_fields; i++)
		plan->fields[i] = (uint8_t)field_plan(schema, i);
	return plan;
}
