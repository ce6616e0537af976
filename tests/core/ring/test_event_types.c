/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "core/record/batch_walk.h"
#include "format/encoder.h"
#include "ring/event_types.h"
#include "support/d9_test.h"

static void test_preamble_defines_the_hot_types_and_nothing_else(void)
{
	struct walk_totals totals;
	const uint8_t *bytes;
	size_t len;

	CU_ASSERT_EQUAL(d9__event_types_init(), 0);
	bytes = d9__preamble(&len);
	totals = walk_batch(bytes, len, NULL, NULL);
	CU_ASSERT_PTR_NULL(totals.error);
	CU_ASSERT_EQUAL(totals.schemas, 7);
	CU_ASSERT_EQUAL(totals.annotations, 0);
	CU_ASSERT(len < 640);
}

static void test_builtin_types_decode_each_alone(void)
{
	d9__event_types_init();
	for (uint32_t id = 1; id < D9__EVENT_BUILTIN_END; id++) {
		const struct d9__type_frames *frames = d9__event_type_frames(id);
		uint8_t batch[1024];
		uint8_t *end = d9__wire_put_header(batch);
		struct walk_totals totals;

		CU_ASSERT_PTR_NOT_NULL_FATAL(frames);
		end = d9__wire_put_bytes(end, frames->bytes, frames->len);
		totals = walk_batch(batch, (size_t)(end - batch), NULL, NULL);
		CU_ASSERT_PTR_NULL(totals.error);
		CU_ASSERT_EQUAL(totals.schemas, 1);
		CU_ASSERT(d9__schema_valid(d9__builtin_schema(id)));
	}
	CU_ASSERT_PTR_NULL(d9__event_type_frames(0));
	CU_ASSERT_PTR_NULL(d9__event_type_frames(D9__TYPES_MAX));
}

static void test_type_registered_twice_has_one_id(void)
{
	const struct d9__field us = { "took", D9__FIELD_VARINT, "us", NULL };
	const struct d9__field ms = { "took", D9__FIELD_VARINT, "ms", NULL };
	int first = d9__schema_register(&(struct d9__schema) { "Hit", &us, 1, NULL, 0 });
	int other = d9__schema_register(&(struct d9__schema) { "Hit", &ms, 1, NULL, 0 });

	CU_ASSERT(first >= D9__EVENT_PROGRAM);
	CU_ASSERT_EQUAL(other, first + 1);
	CU_ASSERT_EQUAL(d9__schema_register(&(struct d9__schema) { "Hit", &us, 1, NULL, 0 }),
			first);
	CU_ASSERT_EQUAL(d9__schema_register(&(struct d9__schema) { "Hit", &ms, 1, NULL, 0 }),
			other);
}

static void test_type_that_the_wire_cannot_hold_is_refused(void)
{
	static char name[70000];
	const struct d9__field bad = { "f", 16, NULL, NULL };

	memset(name, 'n', sizeof(name) - 1);
	CU_ASSERT_EQUAL(d9__schema_register(&(struct d9__schema) { name, NULL, 0, NULL, 0 }),
			-EINVAL);
	CU_ASSERT_EQUAL(d9__schema_register(&(struct d9__schema) { "e", &bad, 1, NULL, 0 }),
			-EINVAL);
	name[9000] = '\0';
	CU_ASSERT_EQUAL(d9__schema_register(&(struct d9__schema) { name, NULL, 0, NULL, 0 }),
			-E2BIG);
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "preamble defines the hot types and nothing else",
		  test_preamble_defines_the_hot_types_and_nothing_else },
		{ "builtin types decode each alone", test_builtin_types_decode_each_alone },
		{ "registered twice has one id", test_type_registered_twice_has_one_id },
		{ "that the wire cannot hold is refused",
		  test_type_that_the_wire_cannot_hold_is_refused },
		CU_TEST_INFO_NULL,
	};

	return d9_test_main("event_types", tests);
}
