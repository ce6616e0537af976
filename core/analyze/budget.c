/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>

#include "analyze/budget.h"
#include "text/json.h"
#include "text/units.h"

#define BASE_BYTES ((uint64_t)88 << 20)
#define FACTOR     2

static const struct {
	const char *key, *words; /* of many */
} kinds[D9__KEPT_KINDS] = {
	[D9__KEPT_NAMES] = { "names", "names" },
	[D9__KEPT_ENDS] = { "ends_of_names", "ends of long names" },
	[D9__KEPT_CALLBACKS] = { "callbacks", "calls of further callbacks" },
	[D9__KEPT_CLASSES] = { "classes", "classes of durations" },
	[D9__KEPT_TASKS] = { "tasks", "events of further tasks" },
	[D9__KEPT_SPANS] = { "spans", "spans" },
	[D9__KEPT_STACKS] = { "stacks", "samples of further stacks" },
	[D9__KEPT_SYMBOLS] = { "symbols", "symbols" },
	[D9__KEPT_MODULES] = { "modules", "modules" },
	[D9__KEPT_FILES] = { "files", "files with names of functions" },
	[D9__KEPT_METADATA] = { "metadata", "metadata" },
	[D9__KEPT_MARKS] = { "marks", "moments of the life" },
	[D9__KEPT_PROCESSES] = { "processes", "processes" },
	[D9__KEPT_SEGMENTS] = { "segments", "rests of segments" },
	[D9__KEPT_BLOCKS] = { "blocks", "allocated blocks" },
	[D9__KEPT_CALLS] = { "calls", "calls (--from and --to choose others)" },
	[D9__KEPT_ROWS] = { "rows", "additions to further rows of tables" },
};

static bool limited;
static uint64_t left_bytes;
static uint64_t left_out[D9__KEPT_KINDS];

void d9__budget_start(uint64_t input_bytes)
{
	limited = true;
	if (__builtin_mul_overflow(input_bytes, FACTOR, &left_bytes) ||
	    __builtin_add_overflow(left_bytes, BASE_BYTES, &left_bytes))
		left_bytes = UINT64_MAX;
	for (size_t i = 0; i < D9__KEPT_KINDS; i++)
		left_out[i] = 0;
}

bool d9__budget_take(enum d9__kept what, size_t bytes)
{
	if (!limited)
		return true;
	if (bytes > left_bytes) {
		left_out[what]++;
		return false;
	}
	left_bytes -= bytes;
	return true;
}

void d9__budget_give(size_t bytes)
{
	if (limited && __builtin_add_overflow(left_bytes, bytes, &left_bytes))
		left_bytes = UINT64_MAX;
}

void d9__budget_leave_out(enum d9__kept what, uint64_t n)
{
	left_out[what] += n;
}

char *d9__budget_left_out(void)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);
	const char *between = "";

	if (!out)
		return NULL;
	for (size_t i = 0; i < D9__KEPT_KINDS; i++) {
		if (!left_out[i])
			continue;
		fprintf(out, "%s%s %s", between, d9__units_count(left_out[i]).text, kinds[i].words);
		between = ", ";
	}
	if (fclose(out) || !len) {
		free(text);
		return NULL;
	}
	return text;
}

const char *d9__budget_key(enum d9__kept what, uint64_t *n)
{
	*n = left_out[what];
	return kinds[what].key;
}

void d9__budget_json(struct d9__json *json)
{
	d9__json_open(json, "left_out", '{');
	for (size_t i = 0; i < D9__KEPT_KINDS; i++)
		if (left_out[i])
			d9__json_u64(json, kinds[i].key, left_out[i]);
	d9__json_close(json, '}');
}
