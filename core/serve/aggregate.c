/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Aggregates: the summaries of a scope's segments added up.  Each answer begins with their number:
 *
 *	"coverage": { "segments": 500, "read": 412, "waiting": 80, "failed": 6, "left_out": 2,
 *"not_fetched": 0 }
 *
 * |left_out| was read and not kept, because the memory was used up; |not_fetched| is in a bucket,
 *and beyond the limit of a fetch.  An hour whose summary was read counts as one.  Then the
 *callbacks, most time first:
 *
 *	"callbacks": [ { "service", "name", "source", "calls", "total_ns", "longest_ns",
 *			 "p50_ns", "p99_ns", "segments",
 *			 "segment", "process", "worker", "at_ns" (of the longest call) } ]
 *
 * or, likewise, the passes of spans, which have no source:
 *
 *	"spans": [ ... ]
 *
 * or a tree of stacks, parents first and counted from 1, with the samples that end in each node:
 *
 *	"nodes": [ PARENT, KIND, SAMPLES, NAME, ... ]
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "serve/aggregate.h"
#include "serve/archive_parts.h"
#include "text/json.h"

struct sums {
	uint64_t calls, total_ns, segments;
	uint64_t durations[D9__DURATION_STEPS];
	const struct d9__archive_entry *where; /* of the longest call; NULL: none was made */
	const struct d9__archived_callback *longest;
};

bool d9__archive_is_wanted(const struct d9__archive_scope *scope, const struct d9__archived *said)
{
	bool named = !scope->n_processes;

	for (size_t i = 0; i < scope->n_processes && !named; i++)
		named = !strcmp(scope->processes[i], said->process);
	/* As in the page, a segment that begins at the window's end is outside. */
	return named && said->from_ms < scope->to_ms && said->to_ms >= scope->from_ms;
}

/* Return the summary of |entry| if it is in |scope| and counts; else NULL. */
static const struct d9__archived *counted(const struct d9__archive_entry *entry,
					  const struct d9__archive_scope *scope)
{
	return entry->said && entry->said->counts && d9__archive_is_wanted(scope, entry->said) ? entry->said
										   : NULL;
}

/* Segments of which nothing is known yet may be of the scope. */
static void put_coverage(struct d9__json *json, const struct d9__archive *archive,
			 const struct d9__archive_scope *scope)
{
	uint64_t read = 0, waiting = 0, failed = 0, left_out = 0, listed = 0;

	for (size_t i = 0; i < archive->n; i++) {
		const struct d9__archive_entry *entry = archive->entries[i];

		if (entry->said && !d9__archive_is_wanted(scope, entry->said))
			continue;
		if (entry->state == D9__KNOWN_FAILED && (!entry->said || entry->facts))
			failed++;
		else if (!entry->said || (entry->facts && entry->state == D9__KNOWN_LISTED))
			*(entry->said ? &listed : &waiting) += 1;
		else if (entry->facts && entry->state != D9__KNOWN)
			waiting++;
		else
			*(entry->said->counts ? &read : &left_out) += 1;
	}
	d9__json_open(json, "coverage", '{');
	d9__json_u64(json, "segments", read + waiting + failed + left_out + listed);
	d9__json_u64(json, "read", read);
	d9__json_u64(json, "waiting", waiting);
	d9__json_u64(json, "failed", failed);
	d9__json_u64(json, "left_out", left_out);
	d9__json_u64(json, "not_fetched", listed);
	d9__json_close(json, '}');
}

/* ---- callbacks ---- */

static void add_callback(struct sums *sums, const struct d9__archive_entry *entry,
			 const struct d9__archived_callback *callback)
{
	sums->calls += callback->calls;
	sums->total_ns += callback->total_ns;
	sums->segments++;
	for (size_t i = 0; i < callback->n_durations; i++)
		sums->durations[callback->durations[i].step] += callback->durations[i].calls;
	if (sums->longest && sums->longest->longest_ns >= callback->longest_ns)
		return;
	sums->longest = callback;
	sums->where = entry;
}

/* The middle of the step in which the nearest rank lies, but never more than the longest. */
static uint64_t quantile(const struct sums *sums, double q)
{
	uint64_t rank = (uint64_t)(q * (double)sums->calls + 0.999999), before = 0;

	for (unsigned step = 0; step < D9__DURATION_STEPS; step++) {
		uint64_t at = d9__duration_at(step, 2 * (step % 4) + 1);

		before += sums->durations[step];
		if (before >= rank)
			return at < sums->longest->longest_ns ? at : sums->longest->longest_ns;
	}
	return sums->longest->longest_ns;
}

/* One part of "SERVICE\x1fNAME\x1fSOURCE". */
static void put_part(struct d9__json *json, const char *key, const char *text, unsigned part)
{
	while (part && (text = strchr(text, '\x1f'))) {
		text++;
		part--;
	}
	if (text)
		d9__json_text(json, key, text, strcspn(text, "\x1f"));
}

static void put_callback(struct d9__json *json, const char *name, const struct sums *sums)
{
	char at_ns[24];

	/* As text: a double does not hold every time. */
	snprintf(at_ns, sizeof(at_ns), "%llu", (unsigned long long)sums->longest->at_ns);
	d9__json_open(json, NULL, '{');
	put_part(json, "service", name, 0);
	put_part(json, "name", name, 1);
	put_part(json, "source", name, 2);
	d9__json_u64(json, "calls", sums->calls);
	d9__json_u64(json, "total_ns", sums->total_ns);
	d9__json_u64(json, "longest_ns", sums->longest->longest_ns);
	d9__json_u64(json, "p50_ns", quantile(sums, 0.5));
	d9__json_u64(json, "p99_ns", quantile(sums, 0.99));
	d9__json_u64(json, "segments", sums->segments);
	d9__json_string(json, "segment", sums->longest->segment ? sums->longest->segment : sums->where->name);
	d9__json_string(json, "process", sums->where->said->process);
	d9__json_u64(json, "worker", sums->longest->worker);
	d9__json_string(json, "at_ns", at_ns);
	d9__json_close(json, '}');
}

static const struct sums *compared;

static int compare_sums(const void *left, const void *right)
{
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;

	if (compared[a].total_ns != compared[b].total_ns)
		return compared[a].total_ns < compared[b].total_ns ? 1 : -1;
	return a < b ? -1 : 1;
}

/* Write the sums of |names|, under the key |what|. */
static void put_sums(struct d9__json *json, const char *what, const struct d9__texts *names,
		     const struct sums *sums, uint32_t *order)
{
	size_t n = 0;

	for (uint32_t i = 0; i < names->n; i++)
		if (sums[i].longest)
			order[n++] = i;
	compared = sums;
	qsort(order, n, sizeof(*order), compare_sums);
	d9__json_open(json, what, '[');
	for (size_t i = 0; i < n; i++)
		put_callback(json, names->items[order[i]], &sums[order[i]]);
	d9__json_close(json, ']');
}

static void add_callbacks(struct sums *sums, const struct d9__archive_entry *entry, const struct d9__archived *said)
{
	for (size_t k = 0; k < said->n_callbacks; k++)
		add_callback(&sums[said->callbacks[k].number], entry, &said->callbacks[k]);
}

static void add_spans(struct sums *sums, const struct d9__archive_entry *entry, const struct d9__archived *said)
{
	for (size_t k = 0; k < said->n_spans; k++)
		add_callback(&sums[said->spans[k].number], entry, &said->spans[k]);
}

static void put_left_out(struct d9__json *json, const struct d9__archive *archive, const struct d9__archive_scope *scope)
{
	uint64_t calls = 0, ns = 0;

	for (size_t i = 0; i < archive->n; i++) {
		const struct d9__archived *said = counted(archive->entries[i], scope);

		calls += said ? said->left_out_calls : 0;
		ns += said ? said->left_out_ns : 0;
	}
	d9__json_u64(json, "left_out_calls", calls);
	d9__json_u64(json, "left_out_ns", ns);
}

/* Return the sums of |names| as JSON, under the key |what|; |add| adds one segment. */
static char *make_sums(struct d9__archive *archive, const struct d9__archive_scope *scope, const char *what,
		       const struct d9__texts *names,
		       void (*add)(struct sums *, const struct d9__archive_entry *, const struct d9__archived *), size_t *len)
{
	char *text = NULL;
	struct d9__json json = { .out = open_memstream(&text, len) };
	struct sums *sums = calloc(names->n + 1, sizeof(*sums));
	uint32_t *order = calloc(names->n + 1, sizeof(*order));

	if (json.out && sums && order) {
		for (size_t i = 0; i < archive->n; i++) {
			const struct d9__archived *said = counted(archive->entries[i], scope);

			if (said)
				add(sums, archive->entries[i], said);
		}
		d9__json_open(&json, NULL, '{');
		put_coverage(&json, archive, scope);
		put_sums(&json, what, names, sums, order);
		if (add == add_callbacks)
			put_left_out(&json, archive, scope);
		d9__json_close(&json, '}');
	}
	free(sums);
	free(order);
	if (!json.out || fclose(json.out) || !*len) {
		free(text);
		return NULL;
	}
	return text;
}

char *d9__archive_callbacks(struct d9__archive *archive, const struct d9__archive_scope *scope,
			    size_t *len)
{
	return make_sums(archive, scope, "callbacks", &archive->callbacks, add_callbacks, len);
}

char *d9__archive_spans(struct d9__archive *archive, const struct d9__archive_scope *scope, size_t *len)
{
	return make_sums(archive, scope, "spans", &archive->spans, add_spans, len);
}

/* ---- stacks ---- */

/*
 * Write the tree's nodes.  |own| are samples by node, |total| gets those below, too; |number|
 * numbers the nodes that have any.
 */
static void put_nodes(struct d9__json *json, const struct d9__archive *archive, const uint64_t *own,
		      uint64_t *total, uint32_t *number)
{
	uint32_t n = 0;

	for (size_t i = archive->n_nodes; i-- > 1;) {
		total[i] += own[i];
		total[archive->nodes[i].parent] += total[i];
	}
	d9__json_u64(json, "samples", archive->n_nodes ? total[0] + own[0] : 0);
	d9__json_open(json, "nodes", '[');
	for (size_t i = 1; i < archive->n_nodes; i++) {
		const struct d9__archive_node *node = &archive->nodes[i];

		if (!total[i])
			continue;
		number[i] = ++n;
		d9__json_u64(json, NULL, number[node->parent]);
		d9__json_u64(json, NULL, node->kind);
		d9__json_u64(json, NULL, own[i]);
		d9__json_string(json, NULL, archive->names.items[node->name]);
	}
	d9__json_close(json, ']');
}

char *d9__archive_stacks(struct d9__archive *archive, const struct d9__archive_scope *scope,
			 size_t *len)
{
	char *text = NULL;
	struct d9__json json = { .out = open_memstream(&text, len) };
	uint64_t *own = calloc(archive->n_nodes + 1, sizeof(*own)),
		 *total = calloc(archive->n_nodes + 1, sizeof(*total));
	uint32_t *number = calloc(archive->n_nodes + 1, sizeof(*number));

	if (json.out && own && total && number) {
		for (size_t i = 0; i < archive->n; i++) {
			const struct d9__archived *said = counted(archive->entries[i], scope);

			for (size_t k = 0; said && k < said->n_selves; k++)
				own[said->selves[k].node] += said->selves[k].samples;
		}
		d9__json_open(&json, NULL, '{');
		put_coverage(&json, archive, scope);
		put_nodes(&json, archive, own, total, number);
		d9__json_close(&json, '}');
	}
	free(own);
	free(total);
	free(number);
	if (!json.out || fclose(json.out) || !*len) {
		free(text);
		return NULL;
	}
	return text;
}
