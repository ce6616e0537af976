/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "base/artefact.h"
#include "support/d9_test.h"

static void test_artefact_names_are_told_apart(void)
{
	static const struct {
		const char *name;
		enum d9__artefact what;
		uint64_t index;
	} cases[] = {
		{ "trace.0.bin", D9__ARTEFACT_SEGMENT, 0 },
		{ "trace.17.bin.zst", D9__ARTEFACT_SEGMENT, 17 },
		{ "trace.3.bin.gz", D9__ARTEFACT_SEGMENT, 3 },
		{ "trace.3.bin.active", D9__ARTEFACT_ACTIVE, 3 },
		{ "trace.12.bin.zst.active", D9__ARTEFACT_ACTIVE, 12 },
		{ ".lock", D9__ARTEFACT_LOCK, 0 },
		{ "ring", D9__ARTEFACT_RING, 0 },
		{ "perf-4711.map", D9__ARTEFACT_JIT_MAP, 0 },
		{ "dump.01ARZ3NDEKTSV4RRFFQ69G5FAV.json", D9__ARTEFACT_MANIFEST, 0 },
		{ "dump.01ARZ3NDEKTSV4RRFFQ69G5FAV.done", D9__ARTEFACT_SHIPPED, 0 },
		{ ".shipped", D9__ARTEFACT_SHIPPED, 0 },
		{ "dump.01ARZ3NDEKTSV4RRFFQ69G5FAV.json~", D9__ARTEFACT_UNKNOWN, 0 },
		{ "dump.01arz3ndektsv4rrffq69g5fav.json", D9__ARTEFACT_UNKNOWN, 0 },
		{ "dump.json", D9__ARTEFACT_UNKNOWN, 0 },
		{ "perf-.map", D9__ARTEFACT_UNKNOWN, 0 },
		{ "perf-4711.map~", D9__ARTEFACT_UNKNOWN, 0 },
		{ "perf-x.map", D9__ARTEFACT_UNKNOWN, 0 },
		{ "trace.bin", D9__ARTEFACT_UNKNOWN, 0 },
		{ "trace.01.bin", D9__ARTEFACT_UNKNOWN, 0 },
		{ "trace.1.bin.zst.activ", D9__ARTEFACT_UNKNOWN, 0 },
		{ "trace.1.bin.zst.active.x", D9__ARTEFACT_UNKNOWN, 0 },
		{ "trace.99999999999999999999.bin", D9__ARTEFACT_UNKNOWN, 0 },
		{ "tr", D9__ARTEFACT_UNKNOWN, 0 },
		{ "notes.txt", D9__ARTEFACT_UNKNOWN, 0 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t index = 0;

		CU_ASSERT_EQUAL(d9__artefact_of(cases[i].name, &index), cases[i].what);
		CU_ASSERT_EQUAL(index, cases[i].index);
	}
}

static void test_boot_ids_are_four_letters_and_a_process(void)
{
	char id[D9__BOOT_ID_MAX];

	d9__boot_id_make(id, 0, 7);
	CU_ASSERT_STRING_EQUAL(id, "aaaa-7");
	d9__boot_id_make(id, 27, 4242);
	CU_ASSERT_STRING_EQUAL(id, "bbaa-4242");
	CU_ASSERT(d9__boot_id_valid("zyxw-1"));
	CU_ASSERT_FALSE(d9__boot_id_valid("zyxw-"));
	CU_ASSERT_FALSE(d9__boot_id_valid("zyx-12"));
	CU_ASSERT_FALSE(d9__boot_id_valid("Zyxw-1"));
	CU_ASSERT_FALSE(d9__boot_id_valid("zyxw-1a"));
	CU_ASSERT_FALSE(d9__boot_id_valid("zyxw.1"));
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "names", test_artefact_names_are_told_apart },
		{ "boot ids", test_boot_ids_are_four_letters_and_a_process },
		CU_TEST_INFO_NULL,
	};

	return d9_test_main("artefact", tests);
}
