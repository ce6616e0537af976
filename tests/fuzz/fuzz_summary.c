/* SPDX-License-Identifier: Apache-2.0 */
/* Any texts, a line each, as summaries of segments: their sum is one of the same shape, and nothing is in it twice. */
#include "config.h"

#include <errno.h>
#include <json-c/json.h>
#include <string.h>

#include "fuzz/fuzz.h"
#include "ship/summary_sum.h"

static uint64_t number_at(struct json_object *list, size_t i)
{
	return (uint64_t)json_object_get_int64(json_object_array_get_idx(list, i));
}

static void check_nodes(struct json_object *nodes)
{
	size_t n = json_object_array_length(nodes) / 4;

	fuzz_require(json_object_array_length(nodes) % 4 == 0, "a node has four parts");
	for (size_t i = 0; i < n; i++)
		fuzz_require(number_at(nodes, 4 * i) <= i, "parents come first");
}

static void check_called(struct json_object *list)
{
	for (size_t i = 0; i < json_object_array_length(list); i++) {
		struct json_object *called = json_object_array_get_idx(list, i), *steps, *segment;

		fuzz_require(json_object_object_get_ex(called, "segment", &segment), "the longest call has a place");
		fuzz_require(json_object_object_get_ex(called, "durations", &steps), "there are durations");
		for (size_t k = 2; k < json_object_array_length(steps); k += 2)
			fuzz_require(number_at(steps, k) > number_at(steps, k - 2), "steps ascend");
	}
	fuzz_require(json_object_array_length(list) <= 400, "a list has an end");
}

static void check(struct json_object *sum)
{
	struct json_object *bins = json_object_object_get(sum, "bins");

	check_nodes(json_object_object_get(sum, "nodes"));
	check_called(json_object_object_get(sum, "callbacks"));
	check_called(json_object_object_get(sum, "spans"));
	fuzz_require(json_object_array_length(bins) <= 1440, "bins have an end");
	fuzz_require(json_object_array_length(json_object_object_get(sum, "findings")) <= 5, "findings have an end");
}

static struct json_object *parse(const char *text, size_t len)
{
	struct json_tokener *tokener = json_tokener_new_ex(8);
	struct json_object *of = json_tokener_parse_ex(tokener, text, (int)len);

	json_tokener_free(tokener);
	if (json_object_is_type(of, json_type_object))
		return of;
	json_object_put(of);
	return NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct json_object *sum = json_object_new_object(), *again = json_object_new_object();
	const char *text = (const char *)data, *end = text + size;

	while (text < end) {
		const char *stop = memchr(text, '\n', (size_t)(end - text));
		struct json_object *part = parse(text, (size_t)((stop ? stop : end) - text));

		text = stop ? stop + 1 : end;
		if (!part)
			continue;
		fuzz_require(!d9__summary_add(sum, part, "a/b"), "a sum can be made");
		check(sum);
		json_object_put(part);
	}
	/* A sum is a summary. */
	fuzz_require(!d9__summary_add(again, sum, "c"), "a sum can be added");
	check(again);
	fuzz_require(json_object_get_int64(json_object_object_get(again, "events")) ==
			     json_object_get_int64(json_object_object_get(sum, "events")),
		     "nothing is lost");
	json_object_put(sum);
	json_object_put(again);
	return 0;
}
