/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "format/definition.h"

#include <stdbool.h>
#include <stdio.h>

#include "format/schema.h"
#include "support/d9_test.h"

static bool collide; /* every hash is the same */

uint64_t __real_d9__hash_bytes(uint64_t secret, const void *bytes, size_t len);
uint64_t __wrap_d9__hash_bytes(uint64_t secret, const void *bytes, size_t len);

uint64_t __wrap_d9__hash_bytes(uint64_t secret, const void *bytes, size_t len)
{
	return collide ? 1 : __real_d9__hash_bytes(secret, bytes, len);
}

static const struct d9_schema *intern(struct d9__definitions *set, const char *name)
{
	const struct d9__schema schema = { name, NULL, 0, NULL, 0 };
	uint8_t bytes[128];
	struct d9__cursor in = { bytes + 3, bytes + d9__schema_encoded_len(&schema, 1), 0 };
	const uint8_t *definition;
	const struct d9_schema *out = NULL;
	size_t len;

	d9__schema_encode(bytes, &schema, 1);
	CU_ASSERT_EQUAL_FATAL(d9__definition_pass(&in, &definition, &len), 1);
	CU_ASSERT_EQUAL_FATAL(d9__definitions_intern(set, definition, len, NULL, 0, &out), 0);
	return out;
}

static void test_equal_definitions_are_one_schema(void)
{
	struct d9__definitions set = { 0 };
	const struct d9_schema *first[200];
	char name[16];

	for (unsigned i = 0; i < 200; i++) {
		snprintf(name, sizeof(name), "Event%u", i);
		first[i] = intern(&set, name);
		CU_ASSERT_EQUAL(first[i]->id, i);
	}
	for (unsigned i = 0; i < 200; i++) {
		snprintf(name, sizeof(name), "Event%u", i);
		CU_ASSERT_PTR_EQUAL(intern(&set, name), first[i]);
		CU_ASSERT_STRING_EQUAL(first[i]->name, name);
	}
	CU_ASSERT_EQUAL(set.n, 200);
	d9__definitions_release(&set);
	CU_ASSERT_EQUAL(set.n, 0);
}

static void test_different_definitions_with_one_hash_are_told_apart(void)
{
	struct d9__definitions set = { 0 };
	const struct d9_schema *first;

	collide = true;
	first = intern(&set, "First");
	CU_ASSERT_STRING_EQUAL(intern(&set, "Second")->name, "Second");
	CU_ASSERT_STRING_EQUAL(intern(&set, "Second")->name, "Second");
	CU_ASSERT_PTR_EQUAL(intern(&set, "First"), first);
	CU_ASSERT_STRING_EQUAL(first->name, "First");
	collide = false;
	d9__definitions_release(&set);
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "equal definitions are one schema", test_equal_definitions_are_one_schema },
		{ "different definitions with one hash are told apart",
		  test_different_definitions_with_one_hash_are_told_apart },
		CU_TEST_INFO_NULL,
	};

	return d9_test_main("definition", tests);
}
