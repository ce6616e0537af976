/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <string.h>

#include "format/encoder.h"
#include "format/schema.h"
#include "support/d9_test.h"

/* The second worked example of the format: an optional field and an annotation. */
static void test_schema_with_a_unit_is_encoded_as_in_the_worked_example(void)
{
	static const uint8_t expected[] = {
		0x01, 0x00, 0x01, 0x08, 0x00, 'C',  'a',  'c',	'h',  'e',  'H',  'i',	't',  0x01,
		0x03, 0x00, 0x04, 0x00, 't',  'o',  'o',  'k',	0x09, 0x04, 0x00, 'n',	'o',  't',
		'e',  0x84, 0x04, 0x00, 't',  'e',  'm',  'p',	0x02, 0x06, 0x80, 0x02, 0x01, 0x00,
		0x00, 0x00, 0x04, 0x00, 'u',  'n',  'i',  't',	0x02, 0x00, 0x00, 0x00, 'u',  's',
	};
	static const struct d9__field fields[] = {
		{ "took", D9__FIELD_VARINT, "us", NULL },
		{ "note", D9__FIELD_STRING | D9__WIRE_OPTIONAL, NULL, NULL },
		{ "temp", D9__FIELD_F64, NULL, NULL },
	};
	static const struct d9__schema schema = { "CacheHit", fields, 3, NULL, 0 };
	uint8_t bytes[sizeof(expected)];

	CU_ASSERT_EQUAL_FATAL(d9__schema_encoded_len(&schema, 256), sizeof(expected));
	CU_ASSERT_PTR_EQUAL(d9__schema_encode(bytes, &schema, 256), bytes + sizeof(bytes));
	CU_ASSERT_EQUAL(memcmp(bytes, expected, sizeof(expected)), 0);
}

static void test_schema_of_field_types_that_do_not_exist_is_invalid(void)
{
	struct d9__field field = { "f", 0, NULL, NULL };
	const struct d9__schema schema = { "E", &field, 1, NULL, 0 };

	CU_ASSERT_FALSE(d9__schema_valid(&schema));
	for (unsigned type = D9__FIELD_I64; type <= D9__FIELD_MAP; type++) {
		field.type = (uint8_t)type;
		CU_ASSERT(d9__schema_valid(&schema));
		field.type = (uint8_t)(type | D9__WIRE_OPTIONAL);
		CU_ASSERT(d9__schema_valid(&schema));
	}
	field.type = D9__FIELD_MAP + 1;
	CU_ASSERT_FALSE(d9__schema_valid(&schema));
}

static void test_schema_equality_looks_at_names_types_and_annotations(void)
{
	const struct d9__field a = { "f", D9__FIELD_VARINT, "ns", NULL }, b = { "f", D9__FIELD_VARINT, NULL, NULL };
	const struct d9__schema x = { "E", &a, 1, NULL, 0 }, y = { "E", &b, 1, NULL, 0 },
				z = { "F", &a, 1, NULL, 0 };

	CU_ASSERT(d9__schema_equal(&x, &(struct d9__schema) { "E", &a, 1, NULL, 0 }));
	CU_ASSERT_FALSE(d9__schema_equal(&x, &y));
	CU_ASSERT_FALSE(d9__schema_equal(&x, &z));
	CU_ASSERT_FALSE(d9__schema_equal(&x, &(struct d9__schema) { "E", NULL, 0, NULL, 0 }));
}

/* Bytes 0x4b to 0x77 of the first worked example: pool entry, reset, event head. */
static void test_frames_are_encoded_as_in_the_worked_example(void)
{
	static const uint8_t expected[] = {
		0x54, 0x52, 0x43, 0x00, 0x01, 0x03, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
		0x00, 0x09, 0x00, 0x00, 0x00, 'e',  'c',  'h',	'o',  '.',  'c',  ':',	'4',
		'2',  0x05, 0x00, 0xf2, 0x05, 0x2a, 0x01, 0x00, 0x00, 0x00, 0x02, 0x01, 0x00,
		0x00, 0x00, 0x00, 0x00, 0x03, 0xac, 0x02, 0x00, 0x00, 0x00, 0x00,
	};
	uint8_t bytes[sizeof(expected) + 8], *p = d9__wire_put_header(bytes);

	p = d9__wire_put_pool_entry(p, 0, "echo.c:42", 9);
	p = d9__wire_put_time_reset(p, UINT64_C(5000000000));
	p = d9__wire_put_event_head(p, 1, 0);
	*p++ = 0;
	*p++ = 3;
	p = d9__wire_put_u32(d9__varint_put(p, 300), 0);
	CU_ASSERT_EQUAL_FATAL((size_t)(p - bytes), sizeof(expected));
	CU_ASSERT_EQUAL(memcmp(bytes, expected, sizeof(expected)), 0);
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "with a unit is encoded as in the worked example",
		  test_schema_with_a_unit_is_encoded_as_in_the_worked_example },
		{ "of field types that do not exist is invalid",
		  test_schema_of_field_types_that_do_not_exist_is_invalid },
		{ "equality looks at names, types and annotations",
		  test_schema_equality_looks_at_names_types_and_annotations },
		{ "frames are encoded as in the worked example",
		  test_frames_are_encoded_as_in_the_worked_example },
		CU_TEST_INFO_NULL,
	};

	return d9_test_main("schema", tests);
}
