/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <json-c/json.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ship/summary_sum.h"

#define CALLED_MAX   400   /* callbacks, and spans, by time; more are added up */
#define NODES_MAX    20000 /* of the tree of stacks */
#define FINDINGS_MAX 5
#define BINS_MAX     720 /* two hours */
#define STEPS_MAX    256

/* ---- values ---- */

static uint64_t number_of(struct json_object *value)
{
	int64_t n = json_object_is_type(value, json_type_int) ? json_object_get_int64(value) : 0;

	return n > 0 ? (uint64_t)n : 0;
}

static uint64_t number(struct json_object *of, const char *name)
{
	return number_of(json_object_object_get(of, name));
}

static uint64_t number_at(struct json_object *values, size_t i)
{
	return number_of(json_object_array_get_idx(values, i));
}

static const char *text(struct json_object *of, const char *name)
{
	struct json_object *value = json_object_object_get(of, name);

	return json_object_is_type(value, json_type_string) ? json_object_get_string(value) : "";
}

static struct json_object *array(struct json_object *of, const char *name)
{
	struct json_object *value = json_object_object_get(of, name);

	return json_object_is_type(value, json_type_array) ? value : NULL;
}

static size_t length(struct json_object *values)
{
	return values ? json_object_array_length(values) : 0;
}

/* |value| becomes |name| of |of|, and |of|'s own. */
static int set(struct json_object *of, const char *name, struct json_object *value)
{
	if (value && !json_object_object_add(of, name, value))
		return 0;
	json_object_put(value);
	return -ENOMEM;
}

static int set_number(struct json_object *of, const char *name, uint64_t n)
{
	return set(of, name, json_object_new_int64(n > INT64_MAX ? INT64_MAX : (int64_t)n));
}

static int add_number(struct json_object *to, struct json_object *from, const char *name)
{
	uint64_t sum;

	if (__builtin_add_overflow(number(to, name), number(from, name), &sum))
		sum = UINT64_MAX;
	return set_number(to, name, sum);
}

/* A reference to |from|'s, if it has one. */
static int copy(struct json_object *to, struct json_object *from, const char *name)
{
	struct json_object *value = json_object_object_get(from, name);

	return value ? set(to, name, json_object_get(value)) : 0;
}

static int append(struct json_object *values, struct json_object *value)
{
	if (value && !json_object_array_add(values, value))
		return 0;
	json_object_put(value);
	return -ENOMEM;
}

static int append_number(struct json_object *values, uint64_t n)
{
	return append(values, json_object_new_int64(n > INT64_MAX ? INT64_MAX : (int64_t)n));
}

/* ---- callbacks, spans ---- */

static int add_durations(struct json_object *to, struct json_object *from)
{
	struct json_object *lists[] = { array(to, "durations"), array(from, "durations") };
	struct json_object *sum = json_object_new_array();
	uint64_t steps[STEPS_MAX] = { 0 };
	int err = sum ? 0 : -ENOMEM;

	for (size_t k = 0; k < 2; k++)
		for (size_t i = 0; i + 1 < length(lists[k]); i += 2) {
			uint64_t step = number_at(lists[k], i);

			steps[step < STEPS_MAX ? step : STEPS_MAX - 1] += number_at(lists[k], i + 1);
		}
	for (size_t step = 0; step < STEPS_MAX && !err; step++)
		if (steps[step]) {
			err = append_number(sum, step);
			if (!err)
				err = append_number(sum, steps[step]);
		}
	return set(to, "durations", err ? (json_object_put(sum), NULL) : sum);
}

/* Take the longest call with its place; |fresh|: |to| has none yet. */
static int add_called(struct json_object *to, struct json_object *from, bool fresh, const char *key)
{
	static const char *const of_longest[] = { "longest_ns", "at_ns", "worker" };
	bool longer = fresh || number(from, "longest_ns") > number(to, "longest_ns");
	int err = add_number(to, from, "calls");

	if (!err)
		err = add_number(to, from, "total_ns");
	for (size_t i = 0; i < sizeof(of_longest) / sizeof(of_longest[0]) && !err && longer; i++)
		err = copy(to, from, of_longest[i]);
	if (!err && longer)
		err = set(to, "segment", json_object_new_string(key));
	return err ? err : add_durations(to, from);
}

static int compare_times(const void *left, const void *right)
{
	struct json_object *a = *(struct json_object *const *)left, *b = *(struct json_object *const *)right;
	uint64_t a_ns = number(a, "total_ns"), b_ns = number(b, "total_ns");

	return a_ns < b_ns ? 1 : a_ns > b_ns ? -1 : strcmp(text(a, "name"), text(b, "name"));
}

static bool is_same(struct json_object *a, struct json_object *b)
{
	return !strcmp(text(a, "name"), text(b, "name")) && !strcmp(text(a, "source"), text(b, "source"));
}

static struct json_object *find(struct json_object *list, struct json_object *called)
{
	for (size_t i = 0; i < length(list); i++)
		if (is_same(json_object_array_get_idx(list, i), called))
			return json_object_array_get_idx(list, i);
	return NULL;
}

/* Return the list |name| of |sum|, made if it is missing; NULL: out of memory. */
static struct json_object *list_of(struct json_object *sum, const char *name)
{
	struct json_object *list = array(sum, name);

	if (list || set(sum, name, json_object_new_array()))
		return list;
	return array(sum, name);
}

static int add_one(struct json_object *list, struct json_object *called, const char *key)
{
	struct json_object *known = find(list, called);
	bool fresh = !known;
	int err = 0;

	if (!json_object_is_type(called, json_type_object))
		return 0;
	if (fresh) {
		known = json_object_new_object();
		err = append(list, known);
		if (!err)
			err = copy(known, called, "name");
		if (!err)
			err = copy(known, called, "source");
	}
	return err ? err : add_called(known, called, fresh, key);
}

/* Drop the items with the least time; count them if they are callbacks. */
static int cut(struct json_object *sum, struct json_object *list, bool count)
{
	size_t n = length(list);
	int err = 0;

	json_object_array_sort(list, compare_times);
	for (size_t i = CALLED_MAX; i < n && count && !err; i++) {
		struct json_object *called = json_object_array_get_idx(list, i);

		err = set_number(sum, "left_out_calls", number(sum, "left_out_calls") + number(called, "calls"));
		if (!err)
			err = set_number(sum, "left_out_ns", number(sum, "left_out_ns") + number(called, "total_ns"));
	}
	if (n > CALLED_MAX)
		json_object_array_del_idx(list, CALLED_MAX, n - CALLED_MAX);
	return err;
}

static int add_list(struct json_object *sum, struct json_object *part, const char *name, const char *key)
{
	struct json_object *from = array(part, name), *to = list_of(sum, name);
	int err = to ? 0 : -ENOMEM;

	for (size_t i = 0; i < length(from) && !err; i++)
		err = add_one(to, json_object_array_get_idx(from, i), key);
	return err ? err : cut(sum, to, !strcmp(name, "callbacks"));
}

/* ---- stacks: (parent, kind, own samples, name) of each node, parents first, counted from 1 ---- */

/* The sum's tree while another tree is added to it. */
struct tree {
	struct json_object *nodes;
	struct json_object *by_edge; /* number of a node, by "PARENT KIND NAME" */
	size_t n;
};

/* Return an edge's name, owned; NULL: out of memory. */
static char *edge(uint64_t parent, uint64_t kind, const char *name)
{
	char *key;

	return asprintf(&key, "%llu %llu %s", (unsigned long long)parent, (unsigned long long)kind, name) < 0 ? NULL : key;
}

static int know(struct tree *tree, const char *key)
{
	return set(tree->by_edge, key, json_object_new_int64((int64_t)tree->n));
}

static const char *name_at(struct json_object *nodes, size_t i)
{
	struct json_object *name = json_object_array_get_idx(nodes, 4 * i + 3);

	return json_object_is_type(name, json_type_string) ? json_object_get_string(name) : "";
}

static int know_all(struct tree *tree)
{
	size_t n = length(tree->nodes) / 4;
	int err = 0;

	for (size_t i = 0; i < n && !err; i++) {
		char *key = edge(number_at(tree->nodes, 4 * i), number_at(tree->nodes, 4 * i + 1), name_at(tree->nodes, i));

		tree->n++;
		err = key ? know(tree, key) : -ENOMEM;
		free(key);
	}
	return err;
}

static int new_node(struct tree *tree, uint64_t parent, uint64_t kind, const char *name, const char *key)
{
	int err = append_number(tree->nodes, parent);

	if (!err)
		err = append_number(tree->nodes, kind);
	if (!err)
		err = append_number(tree->nodes, 0);
	if (!err)
		err = append(tree->nodes, json_object_new_string(name));
	tree->n++;
	return err ? err : know(tree, key);
}

/* Node |i| of |from|; |numbers| are those that nodes of |from| have in the sum.  One without room counts for its parent. */
static int add_node(struct tree *tree, struct json_object *from, size_t i, uint64_t *numbers)
{
	uint64_t parent = number_at(from, 4 * i), kind = number_at(from, 4 * i + 1), own = number_at(from, 4 * i + 2), at;
	char *key;
	int err = 0;

	parent = numbers[parent <= i ? parent : 0];
	key = edge(parent, kind, name_at(from, i));
	if (!key)
		return -ENOMEM;
	at = number(tree->by_edge, key);
	if (!at && tree->n < NODES_MAX) {
		err = new_node(tree, parent, kind, name_at(from, i), key);
		at = tree->n;
	}
	free(key);
	numbers[i + 1] = at ? at : parent;
	at = numbers[i + 1];
	if (err || !at || !own)
		return err;
	own += number_at(tree->nodes, 4 * (at - 1) + 2);
	json_object_set_int64(json_object_array_get_idx(tree->nodes, 4 * (at - 1) + 2), (int64_t)own);
	return 0;
}

static int add_stacks(struct json_object *sum, struct json_object *part)
{
	struct json_object *from = array(part, "nodes");
	struct tree tree = { .nodes = list_of(sum, "nodes"), .by_edge = json_object_new_object() };
	size_t n = length(from) / 4;
	uint64_t *numbers = calloc(n + 1, sizeof(*numbers));
	int err = tree.nodes && tree.by_edge && numbers ? know_all(&tree) : -ENOMEM;

	for (size_t i = 0; i < n && !err; i++)
		err = add_node(&tree, from, i, numbers);
	free(numbers);
	json_object_put(tree.by_edge);
	return err;
}

/* ---- time ---- */

struct bins {
	uint64_t from, n; /* bin i covers D9__SUMMARY_BIN_NS from (from + i) times that on */
	uint64_t items[2 * BINS_MAX]; /* the longest call, the time in calls */
};

/* |busy| of |from_ns| to |to_ns|, spread over the bins. */
static void put_bin(struct bins *bins, uint64_t from_ns, uint64_t to_ns, uint64_t longest, uint64_t busy)
{
	for (uint64_t at = from_ns / D9__SUMMARY_BIN_NS; at <= (to_ns - 1) / D9__SUMMARY_BIN_NS; at++) {
		uint64_t begin = at * D9__SUMMARY_BIN_NS, end = begin + D9__SUMMARY_BIN_NS, i = at - bins->from;
		double part;

		if (at < bins->from || i >= BINS_MAX)
			continue;
		begin = begin > from_ns ? begin : from_ns;
		end = end < to_ns ? end : to_ns;
		part = (double)(end - begin) / (double)(to_ns - from_ns);
		if (longest > bins->items[2 * i])
			bins->items[2 * i] = longest;
		bins->items[2 * i + 1] += (uint64_t)(part * (double)busy);
		bins->n = i + 1 > bins->n ? i + 1 : bins->n;
	}
}

static void take_bins(struct bins *bins, struct json_object *of)
{
	struct json_object *list = array(of, "bins");
	uint64_t width = number(of, "bin_ns"), from_ns = number(of, "bins_from_ns"), end;

	if (!width || __builtin_mul_overflow(width, length(list) / 2, &end) || __builtin_add_overflow(end, from_ns, &end) ||
	    end > INT64_MAX || width > BINS_MAX * D9__SUMMARY_BIN_NS)
		return;
	for (size_t i = 0; i + 1 < length(list); i += 2, from_ns += width)
		if (number_at(list, i) || number_at(list, i + 1))
			put_bin(bins, from_ns, from_ns + width, number_at(list, i), number_at(list, i + 1));
}

static int add_bins(struct json_object *sum, struct json_object *part)
{
	struct bins *bins = calloc(1, sizeof(*bins));
	struct json_object *list = json_object_new_array();
	uint64_t from[2] = { number(sum, "bins_from_ns"), number(part, "bins_from_ns") };
	bool known[2] = { length(array(sum, "bins")) > 0, length(array(part, "bins")) > 0 };
	int err = bins && list ? 0 : -ENOMEM;

	if (!err) {
		from[0] = !known[0] || (known[1] && from[1] < from[0]) ? from[1] : from[0];
		bins->from = from[0] / D9__SUMMARY_BIN_NS;
		take_bins(bins, sum);
		take_bins(bins, part);
		err = set_number(sum, "bin_ns", D9__SUMMARY_BIN_NS);
		if (!err)
			err = set_number(sum, "bins_from_ns", bins->from * D9__SUMMARY_BIN_NS);
		for (uint64_t i = 0; i < 2 * bins->n && !err; i++)
			err = append_number(list, bins->items[i]);
	}
	free(bins);
	return set(sum, "bins", err ? (json_object_put(list), NULL) : list);
}

/*
 * Extend the sum's times to those of |part|: from the earliest event with a time of day to the
 * latest.
 */
static int add_times(struct json_object *sum, struct json_object *part)
{
	uint64_t first = number(part, "first_ns"), last = number(part, "last_ns");
	int err = 0;

	if (first && (!number(sum, "first_ns") || first < number(sum, "first_ns"))) {
		err = copy(sum, part, "first_ns");
		if (!err)
			err = copy(sum, part, "wall_ns");
	}
	return err || last <= number(sum, "last_ns") ? err : copy(sum, part, "last_ns");
}

/* ---- findings ---- */

static int rank(struct json_object *finding)
{
	static const char *const severities[] = { "critical", "warning" };
	int i = 0;

	while (i < 2 && strcmp(text(finding, "severity"), severities[i]) != 0)
		i++;
	return i;
}

static int compare_severities(const void *left, const void *right)
{
	return rank(*(struct json_object *const *)left) - rank(*(struct json_object *const *)right);
}

static int add_findings(struct json_object *sum, struct json_object *part, const char *key)
{
	struct json_object *from = array(part, "findings"), *to = list_of(sum, "findings");
	int err = to ? 0 : -ENOMEM;

	for (size_t i = 0; i < length(from) && !err; i++) {
		struct json_object *finding = json_object_array_get_idx(from, i);
		bool known = !json_object_is_type(finding, json_type_object);

		for (size_t k = 0; k < length(to) && !known; k++)
			known = !strcmp(text(json_object_array_get_idx(to, k), "check"), text(finding, "check"));
		if (known)
			continue;
		err = set(finding, "segment", json_object_new_string(key));
		if (!err)
			err = append(to, json_object_get(finding));
	}
	if (err)
		return err;
	json_object_array_sort(to, compare_severities);
	if (length(to) > FINDINGS_MAX)
		json_object_array_del_idx(to, FINDINGS_MAX, length(to) - FINDINGS_MAX);
	return 0;
}

/* ---- the whole ---- */

static int add_scalars(struct json_object *sum, struct json_object *part)
{
	static const char *const added[] = { "events", "lost", "busy_ns", "samples", "left_out_calls", "left_out_ns" };
	static const char *const same[] = { "service", "host", "boot_id", "pid", "message" };
	static const char *const flags[] = { "truncated", "damaged", "stacks_cut" };
	int err = 0;

	for (size_t i = 0; i < sizeof(added) / sizeof(added[0]) && !err; i++)
		err = add_number(sum, part, added[i]);
	for (size_t i = 0; i < sizeof(same) / sizeof(same[0]) && !err; i++)
		if (!*text(sum, same[i]))
			err = copy(sum, part, same[i]);
	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]) && !err; i++)
		if (!json_object_get_boolean(json_object_object_get(sum, flags[i])))
			err = copy(sum, part, flags[i]);
	if (!err && number(part, "loops") > number(sum, "loops"))
		err = copy(sum, part, "loops");
	return err;
}

int d9__summary_add(struct json_object *sum, struct json_object *part, const char *key)
{
	int err = add_scalars(sum, part);

	if (!err)
		err = add_times(sum, part);
	if (!err)
		err = add_bins(sum, part);
	if (!err)
		err = add_findings(sum, part, key);
	if (!err)
		err = add_list(sum, part, "callbacks", key);
	if (!err)
		err = add_list(sum, part, "spans", key);
	return err ? err : add_stacks(sum, part);
}
