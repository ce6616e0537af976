/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cmd.h"
#include "cli/segment_summary.h"
#include "export/profile.h"
#include "export/stack_tree.h"
#include "findings/checks.h"
#include "serve/duration_steps.h"
#include "text/json.h"
#include "tool/trace_input.h"

#define CALLBACKS_MAX 400   /* by time; more are added up */
#define SPANS_MAX     400   /* kinds of them, by time */
#define NODES_MAX     20000 /* of the tree of stacks */
#define FINDINGS_MAX  5
#define NAME_MAX_LEN  512 /* bytes of a frame's */
#define TIME_BINS      64
#define FIRST_WIDTH_NS (UINT64_C(1) << 20) /* of a bin */

/* The longest call of a callback. */
struct longest {
	uint64_t ns, at_ns, worker;
};

/* ---- time bins ---- */

/*
 * The longest call and the time in calls, over time, in at most TIME_BINS pieces of equal length.
 * All zero is empty.  Bin i covers |width_ns| from (first + i) * width_ns on; the width is a power
 * of two.
 */
struct time_bins {
	uint64_t width_ns, first;
	size_t n;
	struct time_bin {
		uint64_t longest_ns; /* of the calls that ran in it, whole */
		uint64_t busy_ns;    /* of calls, their part in it; of all workers */
	} items[TIME_BINS];
};

/* Merge each two bins into one. */
static void fold(struct time_bins *bins)
{
	struct time_bins wider = { .width_ns = 2 * bins->width_ns, .first = bins->first / 2 };

	for (size_t i = 0; i < bins->n; i++) {
		size_t at = (size_t)((bins->first + i) / 2 - wider.first);
		struct time_bin *bin = &wider.items[at];

		if (bins->items[i].longest_ns > bin->longest_ns)
			bin->longest_ns = bins->items[i].longest_ns;
		bin->busy_ns += bins->items[i].busy_ns;
		wider.n = at + 1;
	}
	*bins = wider;
}

/* Widen the bins until those from |start_ns| to |end_ns| are among them. */
static void cover(struct time_bins *bins, uint64_t start_ns, uint64_t end_ns)
{
	uint64_t from, to;

	if (!bins->n) {
		*bins = (struct time_bins) { .width_ns = FIRST_WIDTH_NS,
					     .first = start_ns / FIRST_WIDTH_NS,
					     .n = 1 };
	}
	for (;; fold(bins)) {
		from = start_ns / bins->width_ns;
		to = end_ns / bins->width_ns;
		from = from < bins->first ? from : bins->first;
		to = to > bins->first + bins->n - 1 ? to : bins->first + bins->n - 1;
		if (to - from < TIME_BINS)
			break;
	}
	if (from < bins->first) {
		size_t by = (size_t)(bins->first - from);

		memmove(bins->items + by, bins->items, bins->n * sizeof(bins->items[0]));
		memset(bins->items, 0, by * sizeof(bins->items[0]));
		bins->first = from;
	}
	bins->n = (size_t)(to - from) + 1;
}

/* Add a call from |start_ns| to |end_ns|; calls come in any order. */
static void add_to_bins(struct time_bins *bins, uint64_t start_ns, uint64_t end_ns)
{
	if (end_ns < start_ns)
		return;
	cover(bins, start_ns, end_ns);
	for (uint64_t at = start_ns / bins->width_ns; at <= end_ns / bins->width_ns; at++) {
		struct time_bin *bin = &bins->items[at - bins->first];
		uint64_t from = at * bins->width_ns, to = end_ns;

		/* The last bin that there can be ends where no number is left. */
		if (end_ns - from > bins->width_ns)
			to = from + bins->width_ns;
		if (end_ns - start_ns > bin->longest_ns)
			bin->longest_ns = end_ns - start_ns;
		bin->busy_ns += to - (start_ns > from ? start_ns : from);
	}
}

struct summary {
	struct d9__profile profile;
	struct d9__stack_tree tree;
	struct d9__findings findings;
	struct time_bins bins;
	struct d9__table longest; /* by address of the callback; owns its struct longest */
	uint64_t *self;		  /* of the nodes that are told */
	int err;
};

/* ---- the pass ---- */

static void keep_longest(struct summary *summary, const struct d9__callback *callback,
			 const struct longest *call)
{
	uint64_t key = (uint64_t)(uintptr_t)callback;
	struct longest *known;

	if (!callback)
		return;
	known = d9__table_find(&summary->longest, key);
	if (!known) {
		known = calloc(1, sizeof(*known));
		if (!known || d9__table_add(&summary->longest, key, known)) {
			free(known);
			summary->err = -ENOMEM;
			return;
		}
	}
	if (call->ns >= known->ns)
		*known = *call;
}

/* Also of calls that never ended, up to the last sign of life. */
static void take_piece(void *context, struct d9__worker *worker, const struct d9__piece *piece)
{
	struct summary *summary = context;
	struct longest call = { .ns = piece->end_ns - piece->start_ns,
				.at_ns = piece->start_ns,
				.worker = worker->id };

	add_to_bins(&summary->bins, piece->start_ns, piece->end_ns);
	keep_longest(summary, piece->task->callback, &call);
	call.ns = piece->inner.longest_ns;
	keep_longest(summary, piece->inner.callback, &call);
}

/* ---- what is told ---- */

static int compare_times(const void *left, const void *right)
{
	const struct d9__callback *a = *(const struct d9__callback *const *)left;
	const struct d9__callback *b = *(const struct d9__callback *const *)right;

	if (a->durations.sum != b->durations.sum)
		return a->durations.sum < b->durations.sum ? 1 : -1;
	return strcmp(a->location, b->location);
}

static void put_histogram(struct d9__json *json, const struct d9__histogram *h)
{
	uint64_t above = h->count;

	d9__json_open(json, "durations", '[');
	for (unsigned step = 0; step < D9__DURATION_STEPS && above; step++) {
		uint64_t next = d9__duration_at(step, 2 * (step % 4) + 2);
		uint64_t rest = d9__histogram_above(h, next - 1);

		if (rest == above)
			continue;
		d9__json_u64(json, NULL, step);
		d9__json_u64(json, NULL, above - rest);
		above = rest;
	}
	d9__json_close(json, ']');
}

static void put_callback(struct d9__json *json, const struct summary *summary,
			 const struct d9__callback *callback)
{
	const struct longest *longest =
		d9__table_find(&summary->longest, (uint64_t)(uintptr_t)callback);
	size_t len;
	const char *name = d9__callback_name(callback, &len);

	d9__json_open(json, NULL, '{');
	d9__json_text(json, "name", name, len < NAME_MAX_LEN ? len : NAME_MAX_LEN);
	if (callback->source)
		d9__json_string(json, "source", callback->source);
	d9__json_u64(json, "calls", callback->durations.count);
	d9__json_u64(json, "total_ns", callback->durations.sum);
	d9__json_u64(json, "longest_ns", callback->durations.max);
	if (longest) {
		d9__json_u64(json, "at_ns", longest->at_ns);
		d9__json_u64(json, "worker", longest->worker);
	}
	put_histogram(json, &callback->durations);
	d9__json_close(json, '}');
}

static int put_callbacks(struct d9__json *json, const struct summary *summary)
{
	const struct d9__callbacks *all = &summary->profile.analysis.callbacks;
	const struct d9__callback **sorted =
		calloc(all->n + 1, sizeof(const struct d9__callback *));
	uint64_t calls = 0, ns = 0;
	size_t n = 0;

	if (!sorted)
		return -ENOMEM;
	for (size_t i = 0; i < all->n; i++)
		if (all->items[i]->durations.count)
			sorted[n++] = all->items[i];
	qsort(sorted, n, sizeof(sorted[0]), compare_times);
	d9__json_open(json, "callbacks", '[');
	for (size_t i = 0; i < n && i < CALLBACKS_MAX; i++)
		put_callback(json, summary, sorted[i]);
	d9__json_close(json, ']');
	for (size_t i = CALLBACKS_MAX; i < n; i++) {
		calls += sorted[i]->durations.count;
		ns += sorted[i]->durations.sum;
	}
	d9__json_u64(json, "left_out_calls", calls);
	d9__json_u64(json, "left_out_ns", ns);
	free(sorted);
	return 0;
}

static int compare_span_times(const void *left, const void *right)
{
	const struct d9__span_type *a = *(const struct d9__span_type *const *)left;
	const struct d9__span_type *b = *(const struct d9__span_type *const *)right;

	if (a->durations.sum != b->durations.sum)
		return a->durations.sum < b->durations.sum ? 1 : -1;
	return strcmp(a->name, b->name);
}

static void put_span(struct d9__json *json, const struct d9__span_type *span)
{
	d9__json_open(json, NULL, '{');
	d9__json_text(json, "name", span->name, strnlen(span->name, NAME_MAX_LEN));
	d9__json_u64(json, "calls", span->durations.count);
	d9__json_u64(json, "total_ns", span->durations.sum);
	d9__json_u64(json, "longest_ns", span->durations.max);
	put_histogram(json, &span->durations);
	d9__json_close(json, '}');
}

static int put_spans(struct d9__json *json, const struct d9__spans *spans)
{
	const struct d9__span_type **sorted = calloc(spans->n + 1, sizeof(const struct d9__span_type *));
	size_t n = 0;

	if (!sorted)
		return -ENOMEM;
	for (size_t i = 0; i < spans->n; i++)
		if (spans->items[i]->durations.count)
			sorted[n++] = spans->items[i];
	qsort(sorted, n, sizeof(sorted[0]), compare_span_times);
	d9__json_open(json, "spans", '[');
	for (size_t i = 0; i < n && i < SPANS_MAX; i++)
		put_span(json, sorted[i]);
	d9__json_close(json, ']');
	free(sorted);
	return 0;
}

static void put_bins(struct d9__json *json, const struct time_bins *bins)
{
	d9__json_u64(json, "bin_ns", bins->n ? bins->width_ns : 0);
	d9__json_u64(json, "bins_from_ns", bins->n ? bins->first * bins->width_ns : 0);
	d9__json_open(json, "bins", '[');
	for (size_t i = 0; i < bins->n; i++) {
		d9__json_u64(json, NULL, bins->items[i].longest_ns);
		d9__json_u64(json, NULL, bins->items[i].busy_ns);
	}
	d9__json_close(json, ']');
}

static void put_findings(struct d9__json *json, const struct d9__findings *findings)
{
	size_t told = 0;

	d9__json_open(json, "findings", '[');
	for (size_t i = 0; i < findings->n && told < FINDINGS_MAX; i++) {
		const struct d9__finding *finding = findings->items[i];

		/*
		 * Of findings about the data only critical ones count, because a single segment is
		 * never a whole trace.
		 */
		if (finding->severity > (finding->about == D9__ABOUT_DATA ? D9__CRITICAL : D9__WARNING))
			continue;
		told++;
		d9__json_open(json, NULL, '{');
		d9__json_string(json, "check", finding->check);
		d9__json_string(json, "severity", d9__severity_name(finding->severity));
		d9__json_string(json, "message", finding->message);
		if (finding->name && finding->brief) {
			d9__json_string(json, "name", finding->name);
			d9__json_string(json, "brief", finding->brief);
		}
		d9__json_close(json, '}');
	}
	d9__json_close(json, ']');
}

/* Nodes parents first, as (number of the parent, name, samples of their own); samples of nodes that
 * are left out count for the nearest that is told. */
static void put_tree(struct d9__json *json, const struct summary *summary)
{
	const struct d9__stack_tree *tree = &summary->tree;
	size_t n = tree->n < NODES_MAX ? tree->n : NODES_MAX;

	for (size_t i = 0; i < tree->n; i++) {
		const struct d9__tree_node *node = tree->nodes[i];

		while (node->id > n)
			node = node->parent;
		summary->self[node->id] += tree->nodes[i]->self;
	}
	d9__json_u64(json, "samples", summary->profile.samples);
	d9__json_bool(json, "stacks_cut", n < tree->n);
	d9__json_open(json, "nodes", '[');
	for (size_t i = 0; i < n; i++) {
		const struct d9__tree_node *node = tree->nodes[i];

		d9__json_u64(json, NULL, node->parent->id);
		d9__json_u64(json, NULL, node->kind);
		d9__json_u64(json, NULL, summary->self[node->id]);
		d9__json_text(json, NULL, node->name, strnlen(node->name, NAME_MAX_LEN));
	}
	d9__json_close(json, ']');
}

static uint64_t count_busy(const struct d9__analysis *analysis)
{
	uint64_t ns = 0;

	for (size_t i = 0; i < analysis->timeline.n; i++)
		ns += analysis->timeline.items[i]->poll_ns;
	return ns;
}

static void put_process(struct d9__json *json, const struct d9__analysis *a)
{
	static const char *const keys[] = { "service", "host", "boot_id", "pid" };

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		d9__json_string(json, keys[i], d9__metadata_value(&a->metadata, keys[i]));
	d9__json_u64(json, "first_ns", a->first_ns);
	d9__json_u64(json, "last_ns", a->last_ns);
	d9__json_u64(json, "wall_ns", d9__analysis_wall_ns(a, a->first_ns));
	d9__json_u64(json, "events", a->events);
	d9__json_u64(json, "lost", a->losses.events);
	d9__json_u64(json, "loops", a->timeline.n);
	d9__json_u64(json, "busy_ns", count_busy(a));
}

static void put_state(struct d9__json *json, const struct d9_reader *reader)
{
	struct d9_segment_info info = { 0 };

	d9_reader_segment(reader, 0, &info);
	d9__json_bool(json, "truncated", info.truncated);
	d9__json_bool(json, "damaged", d9__segment_is_damaged(info.err));
	d9__json_string(json, "message", info.message);
}

static int print(struct summary *summary)
{
	struct d9__json json = { .out = stdout };
	int err;

	d9__json_open(&json, NULL, '{');
	put_process(&json, &summary->profile.analysis);
	put_state(&json, summary->profile.reader);
	put_bins(&json, &summary->bins);
	put_findings(&json, &summary->findings);
	err = put_callbacks(&json, summary);
	if (!err)
		err = put_spans(&json, &summary->profile.analysis.spans);
	if (!err)
		put_tree(&json, summary);
	d9__json_close(&json, '}');
	putc('\n', stdout);
	return err ? err : fflush(stdout) || ferror(stdout) ? -EIO : 0;
}

static void release(struct summary *summary)
{
	void *longest;

	for (size_t place = 0; (place = d9__table_next(&summary->longest, place, &longest));)
		free(longest);
	d9__table_release(&summary->longest);
	d9__findings_release(&summary->findings);
	d9__stack_tree_release(&summary->tree);
	d9__profile_release(&summary->profile);
	free(summary->self);
}

static int make(struct summary *summary)
{
	int err = d9__stack_tree_make(&summary->tree, &summary->profile);

	if (!err)
		err = d9__findings_make(&summary->findings, &summary->profile.analysis);
	if (!err && !(summary->self = calloc(summary->tree.n + 1, sizeof(*summary->self))))
		err = -ENOMEM;
	return err ? err : print(summary);
}

int d9__segment_summary(const char *command, const char *path)
{
	char *paths[] = { (char *)path, NULL };
	struct summary summary = { .profile = { .wanted = { .to_ns = UINT64_MAX },
						.whole = true } };
	int status;

	summary.profile.analysis.on_piece = take_piece;
	summary.profile.analysis.on_piece_context = &summary;
	status = d9__profile_read(&summary.profile, command, paths);
	if (!status && !summary.err)
		summary.err = make(&summary);
	if (summary.err)
		status = d9__cmd_fail(command, "%s", strerror(-summary.err));
	release(&summary);
	return status;
}

int d9__segment_summary_to_stdout(const char *path)
{
	return d9__segment_summary("ship", path);
}
