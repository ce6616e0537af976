/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "ship/object_key.h"
#include "support/d9_test.h"

static void test_key_tells_date_service_minute_instance_and_process(void)
{
	struct d9__object_key key = { .prefix = "a/b",
				      .service = "cache",
				      .instance = "host.example",
				      .boot_id = "abcd-12",
				      .epoch_s = 1795916687,
				      .index = 41,
				      .ending = ".bin.zst" };
	char out[512];

	CU_ASSERT_TRUE(d9__object_key_write(&key, out, sizeof(out)) > 0);
	CU_ASSERT_STRING_EQUAL(out, "a/b/version=1/date=2026-11-29/service=cache/time=0144/instance=host.example/boot=abcd-12/"
				    "1795916687-41.bin.zst");
	key.prefix = "";
	CU_ASSERT_TRUE(d9__object_key_write(&key, out, sizeof(out)) > 0);
	CU_ASSERT_STRING_EQUAL(out, "version=1/date=2026-11-29/service=cache/time=0144/instance=host.example/boot=abcd-12/"
				    "1795916687-41.bin.zst");
}

static void test_key_of_a_dump_is_its_id(void)
{
	char out[64];

	CU_ASSERT_TRUE(d9__object_key_dump("p", "01KB5E0Q7W8N2M4T6V9XYZABCD", out, sizeof(out)) > 0);
	CU_ASSERT_STRING_EQUAL(out, "p/dumps/01KB5E0Q7W8N2M4T6V9XYZABCD.json");
}

static void test_key_that_has_no_room_is_refused(void)
{
	char out[32];

	CU_ASSERT_EQUAL(d9__object_key_dump("p", "01KB5E0Q7W8N2M4T6V9XYZABCD", out, sizeof(out)), -ENAMETOOLONG);
}

static void test_parts_of_keys_hold_plain_letters_only(void)
{
	static const char *const cases[][2] = {
		{ "", "_" },	  { ".", "_" },		     { "..", "_." },	    { "...", "..." }, { "a b/c=d%e\n", "a_b_c_d_e_" },
		{ "\303\244", "__" }, { "A-Z_0.9", "A-Z_0.9" },
	};
	char out[D9__OBJECT_PART + 1], longer[300];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		d9__object_part(cases[i][0], out);
		CU_ASSERT_STRING_EQUAL(out, cases[i][1]);
	}
	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	d9__object_part(longer, out);
	CU_ASSERT_EQUAL(strlen(out), D9__OBJECT_PART);
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "segments", test_key_tells_date_service_minute_instance_and_process },
		{ "dumps", test_key_of_a_dump_is_its_id },
		{ "room", test_key_that_has_no_room_is_refused },
		{ "parts", test_parts_of_keys_hold_plain_letters_only },
		CU_TEST_INFO_NULL,
	};

	return d9_test_main("object key", tests);
}
