/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "export/profile_calls.h"
#include "export/profile_export.h"
#include "export/profile_select.h"
#include "export/stack_tree.h"
#include "text/json.h"

#define NO_FRAME UINT32_MAX
#define SCHEMA	 "https://www.speedscope.app/file-format-schema.json"

static void put_frames(struct d9__json *json, const struct d9__stack_tree *tree)
{
	d9__json_open(json, "shared", '{');
	d9__json_open(json, "frames", '[');
	for (size_t i = 0; i < tree->names.n; i++) {
		d9__json_open(json, NULL, '{');
		d9__json_text(json, "name", tree->names.items[i], tree->names.lens[i]);
		d9__json_close(json, '}');
	}
	d9__json_close(json, ']');
	d9__json_close(json, '}');
}

/* The frames of |node|, outermost first; |numbers| has room for them. */
static void put_sample(struct d9__json *json, const struct d9__tree_node *node, uint32_t *numbers)
{
	size_t n = 0;

	for (; node->parent; node = node->parent)
		numbers[n++] = node->number;
	d9__json_open(json, NULL, '[');
	while (n > 0)
		d9__json_u64(json, NULL, numbers[--n]);
	d9__json_close(json, ']');
}

static void put_samples(struct d9__json *json, const struct d9__stack_tree *tree, const struct d9__profile *profile,
			uint32_t *numbers)
{
	const struct d9__profile_kind_facts *facts = profile->facts;
	static const char *const units[] = { [D9__PROFILE_SAMPLES] = "none",
					     [D9__PROFILE_MICROSECONDS] = "microseconds",
					     [D9__PROFILE_NANOSECONDS] = "nanoseconds",
					     [D9__PROFILE_BYTES] = "bytes" };

	d9__json_open(json, NULL, '{');
	d9__json_string(json, "type", "sampled");
	d9__json_string(json, "name", facts->what);
	d9__json_string(json, "unit", units[facts->unit]);
	d9__json_u64(json, "startValue", 0);
	d9__json_u64(json, "endValue", tree->root.total);
	d9__json_open(json, "samples", '[');
	for (const struct d9__tree_node *node = &tree->root; node; node = d9__stack_tree_next(node))
		if (node->self)
			put_sample(json, node, numbers);
	d9__json_close(json, ']');
	d9__json_open(json, "weights", '[');
	for (const struct d9__tree_node *node = &tree->root; node; node = d9__stack_tree_next(node))
		if (node->self)
			d9__json_u64(json, NULL, node->self);
	d9__json_close(json, ']');
	d9__json_close(json, '}');
}

/* ---- calls ---- */

/* The chart of one worker. */
struct chart {
	struct d9__json *json;
	uint64_t from_ns, to_ns; /* calls are cut at these */
	struct {
		uint64_t end_ns;
		uint32_t frame;
	} *open; /* calls, the innermost last */
	size_t n;
};

static void put_event(const struct chart *chart, const char *type, uint32_t frame, uint64_t at)
{
	d9__json_open(chart->json, NULL, '{');
	d9__json_string(chart->json, "type", type);
	d9__json_u64(chart->json, "frame", frame);
	d9__json_u64(chart->json, "at", at);
	d9__json_close(chart->json, '}');
}

/* Close the calls that have ended at |ns|. */
static void close_until(struct chart *chart, uint64_t ns)
{
	for (; chart->n && chart->open[chart->n - 1].end_ns <= ns; chart->n--)
		put_event(chart, "C", chart->open[chart->n - 1].frame, chart->open[chart->n - 1].end_ns);
}

static uint64_t start_of(const struct chart *chart, const struct d9__profile_call *call)
{
	return call->start_ns < chart->from_ns ? chart->from_ns : call->start_ns;
}

static uint64_t end_of(const struct chart *chart, const struct d9__profile_call *call)
{
	return call->end_ns > chart->to_ns ? chart->to_ns : call->end_ns;
}

/*
 * Put a call, shortened to the end of the call around it, because speedscope refuses a file with
 * one that outlasts it.
 */
static void put_call(struct chart *chart, const struct d9__profile_call *call, uint32_t frame)
{
	uint64_t end_ns = end_of(chart, call);

	if (chart->n && end_ns > chart->open[chart->n - 1].end_ns)
		end_ns = chart->open[chart->n - 1].end_ns;
	put_event(chart, "O", frame, start_of(chart, call));
	chart->open[chart->n].end_ns = end_ns;
	chart->open[chart->n++].frame = frame;
}

static void put_worker_name(struct d9__json *json, const struct d9__profile *profile, uint64_t id)
{
	const char *loop = d9__metadata_group(&profile->analysis.metadata, id);
	char name[128];

	snprintf(name, sizeof(name), "worker %" PRIu64 "%s%.64s", id, loop ? " of " : "", loop ? loop : "");
	d9__json_string(json, "name", name);
}

/* Return the end of the last wanted one of |n| calls; 0: none is wanted. */
static uint64_t last_end(const struct chart *chart, const struct d9__profile_call *calls, size_t n, const uint32_t *frames)
{
	uint64_t last_ns = 0;

	for (size_t i = 0; i < n; i++)
		if (calls[i].callback && frames[i] != NO_FRAME && end_of(chart, &calls[i]) > last_ns)
			last_ns = end_of(chart, &calls[i]);
	return last_ns;
}

/* Write the chart of |n| calls from |calls| on, all of one worker, with |frames|. */
static void put_worker(struct chart *chart, const struct d9__profile *profile, const struct d9__profile_call *calls, size_t n,
		       const uint32_t *frames)
{
	uint64_t last_ns = last_end(chart, calls, n, frames);

	if (!last_ns)
		return;
	d9__json_open(chart->json, NULL, '{');
	d9__json_string(chart->json, "type", "evented");
	put_worker_name(chart->json, profile, calls[0].worker);
	d9__json_string(chart->json, "unit", "nanoseconds");
	d9__json_u64(chart->json, "startValue", 0);
	d9__json_u64(chart->json, "endValue", last_ns);
	d9__json_open(chart->json, "events", '[');
	/* Leave out calls that are not inside of a wanted callback. */
	for (size_t i = 0; i < n; i++) {
		close_until(chart, start_of(chart, &calls[i]));
		if (frames[i] != NO_FRAME && (calls[i].callback || chart->n))
			put_call(chart, &calls[i], frames[i]);
	}
	close_until(chart, UINT64_MAX);
	d9__json_close(chart->json, ']');
	d9__json_close(chart->json, '}');
}

static size_t of_one_worker(const struct d9__profile_calls *calls, size_t from)
{
	size_t n = 1;

	while (from + n < calls->n && calls->items[from + n].worker == calls->items[from].worker)
		n++;
	return n;
}

static int put_calls(struct d9__json *json, const struct d9__profile *profile, const uint32_t *frames)
{
	const struct d9__profile_calls *calls = profile->calls;
	struct chart chart = { .json = json,
			       .from_ns = profile->wanted.from_ns,
			       .to_ns = profile->wanted.to_ns,
			       .open = calloc(calls->n + 1, sizeof(*chart.open)) };

	if (!chart.open)
		return -ENOMEM;
	for (size_t i = 0, n; i < calls->n; i += n) {
		n = of_one_worker(calls, i);
		put_worker(&chart, profile, &calls->items[i], n, &frames[i]);
	}
	free(chart.open);
	return 0;
}

/*
 * Return the frame of each call and add new names to |tree|; NO_FRAME: the call is not wanted.
 * NULL: out of memory.
 */
static uint32_t *frames_of(struct d9__stack_tree *tree, const struct d9__profile *profile)
{
	size_t n = profile->calls ? profile->calls->n : 0;
	uint32_t *frames = calloc(n + 1, sizeof(*frames));

	for (size_t i = 0; i < n && frames; i++) {
		const struct d9__profile_call *call = &profile->calls->items[i];
		char way[1024];
		const char *name = call->callback ? d9__callback_way(call->callback, way, sizeof(way)) : call->name;

		frames[i] = NO_FRAME;
		if (call->callback && !d9__profile_selects(profile, call->callback, &call->worker))
			continue;
		if (d9__texts_number(&tree->names, name, strlen(name), &frames[i])) {
			free(frames);
			frames = NULL;
		}
	}
	return frames;
}

int d9__export_speedscope(struct d9__profile *profile, FILE *out)
{
	struct d9__json json = { .out = out };
	struct d9__stack_tree tree = { 0 };
	int err = d9__stack_tree_make(&tree, profile);
	/* No way is longer than all nodes in a row. */
	uint32_t *numbers = err ? NULL : calloc(tree.n + 1, sizeof(*numbers));
	uint32_t *frames = numbers ? frames_of(&tree, profile) : NULL;

	err = frames ? 0 : -ENOMEM;
	if (frames) {
		d9__json_open(&json, NULL, '{');
		d9__json_string(&json, "$schema", SCHEMA);
		d9__json_string(&json, "exporter", "dial9 " PACKAGE_VERSION);
		d9__json_u64(&json, "activeProfileIndex", 0);
		put_frames(&json, &tree);
		d9__json_open(&json, "profiles", '[');
		if (profile->samples)
			put_samples(&json, &tree, profile, numbers);
		if (profile->calls)
			err = put_calls(&json, profile, frames);
		d9__json_close(&json, ']');
		d9__json_close(&json, '}');
	}
	free(frames);
	free(numbers);
	d9__stack_tree_release(&tree);
	return err;
}
