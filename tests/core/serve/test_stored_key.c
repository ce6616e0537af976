/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <string.h>

#include "serve/stored_key.h"
#include "support/d9_test.h"

static struct d9__stored_key key;
static char name[D9__STORED_NAME];

static bool parse(const char *text)
{
	if (!d9__stored_key_parse(text, &key))
		return false;
	d9__stored_key_name(&key, name);
	return true;
}

static void test_key_of_a_segment_tells_service_instance_process_and_time(void)
{
	CU_ASSERT_TRUE_FATAL(parse("version=1/date=2026-11-29/service=cache/time=0144/instance=host.example/boot=abcd-12/1795916687-41.bin.zst"));
	CU_ASSERT_EQUAL(key.kind, D9__STORED_SEGMENT);
	CU_ASSERT_STRING_EQUAL(key.service, "cache");
	CU_ASSERT_STRING_EQUAL(key.instance, "host.example");
	CU_ASSERT_STRING_EQUAL(key.boot_id, "abcd-12");
	CU_ASSERT_EQUAL(key.begins_s, 1795916687);
	CU_ASSERT_EQUAL(key.index, 41);
	CU_ASSERT_STRING_EQUAL(name, "cache/host.example/abcd-12/1795916687-41.bin.zst");
}

static void test_segments_of_the_original_are_read_too(void)
{
	CU_ASSERT_TRUE_FATAL(parse("2026-11-29/0144/cache/web-1/abcd-12/1795916687-41.bin.gz"));
	CU_ASSERT_STRING_EQUAL(name, "cache/web-1/abcd-12/1795916687-41.bin.gz");
	CU_ASSERT_TRUE_FATAL(parse("version=1/date=2026-11-29/service=a%20b%2Fc/time=0144/instance=w/boot=b/1795916687-0.bin"));
	CU_ASSERT_STRING_EQUAL(name, "a_b_c/w/b/1795916687-0.bin");
}

static void test_segment_that_claims_another_time_has_that_of_its_key(void)
{
	CU_ASSERT_TRUE_FATAL(parse("version=1/date=2026-11-29/service=s/time=0144/instance=i/boot=b/5-0.bin"));
	CU_ASSERT_EQUAL(key.begins_s, 1795916640);
}

static void test_key_of_an_hour_has_its_figures(void)
{
	CU_ASSERT_TRUE_FATAL(parse("hours/2026-11-29/01/cache/web-1/abcd-12.60.9000000.182.3"));
	CU_ASSERT_EQUAL(key.kind, D9__STORED_HOUR);
	CU_ASSERT_EQUAL(key.begins_s, 1795914000);
	CU_ASSERT_EQUAL(key.segments, 60);
	CU_ASSERT_EQUAL(key.bytes, 9000000);
	CU_ASSERT_EQUAL(key.worst_ms, 182);
	CU_ASSERT_EQUAL(key.missing, 3);
	CU_ASSERT_STRING_EQUAL(name, "cache/web-1/abcd-12/2026-11-29T01.hour");
	CU_ASSERT_TRUE_FATAL(parse("hours/2026-11-29/01/cache/web-1/a.b.c.60.9000000.-.3"));
	CU_ASSERT_STRING_EQUAL(key.boot_id, "a.b.c");
	CU_ASSERT_EQUAL(key.worst_ms, -1);
}

static void test_key_of_a_dump_has_its_id_as_it_is(void)
{
	CU_ASSERT_TRUE_FATAL(parse("dumps/01KB5E0Q7W8N2M4T6V9XYZABCD.json"));
	CU_ASSERT_STRING_EQUAL(name, "dumps/01KB5E0Q7W8N2M4T6V9XYZABCD.json");
	CU_ASSERT_FALSE(parse("dumps/a b.json"));
	CU_ASSERT_FALSE(parse("dumps/../x.json"));
	CU_ASSERT_FALSE(parse("dumps/.json"));
	CU_ASSERT_FALSE(parse("dumps/x"));
}

static void test_what_is_of_no_form_of_ours_tells_nothing(void)
{
	static const char *const keys[] = {
		"", "/", "version=1", "version=1/", "version=2/date=2026-11-29/service=s/time=0144/instance=i/boot=b/5-0.bin",
		"version=1/date=2026-02-31/service=s/time=0144/instance=i/boot=b/5-0.bin",
		"version=1/date=2026-11-29/service=s/time=2460/instance=i/boot=b/5-0.bin",
		"version=1/date=2026-11-29/service=/time=0144/instance=i/boot=b/5-0.bin",
		"version=1/date=2026-11-29/service=s/time=0144/instance=i/boot=b/5-0.exe",
		"version=1/date=2026-11-29/service=s/time=0144/instance=i/boot=b/-5-0.bin",
		"version=1/date=2026-11-29/service=s/time=0144/instance=i/boot=b/5-0.bin/x",
		"hours/2026-11-29/24/s/i/b.1.2.3.4", "hours/2026-11-29/01/s/i/b.1.2.3", "hours/2026-11-29/01/s/i/.1.2.3.4",
		"hours/2026-11-29/01/s/i/b.1.2.3.4/x", "hours/2026-11-29/01/s/i/b.1.2.x.4", "hours/2026-11-29/01/s/i/b.-1.2.3.4",
		"hours/2026-11-29/01/s/i/b.9999999999999999999.2.3.4", "9999-11-29/0144/s/i/b/5-0.bin", "dumps/",
	};

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		CU_ASSERT_FALSE(d9__stored_key_parse(keys[i], &key));
}

static void test_no_part_is_a_way_out_of_a_folder(void)
{
	CU_ASSERT_TRUE_FATAL(parse("2026-11-29/0144/../%2e%2e/./1795916687-41.bin"));
	CU_ASSERT_STRING_EQUAL(name, "_./_./_/1795916687-41.bin");
	CU_ASSERT_TRUE_FATAL(parse("2026-11-29/0144/<b>/a%2Fb/\x01\xff\"/1795916687-41.bin"));
	CU_ASSERT_STRING_EQUAL(name, "_b_/a_b/___/1795916687-41.bin");
}

static void test_part_that_is_too_long_is_none(void)
{
	char text[512] = "hours/2026-11-29/01/s/i/";

	memset(text + strlen(text), 'b', 200);
	strcat(text, ".1.2.3.4");
	CU_ASSERT_FALSE(d9__stored_key_parse(text, &key));
}

static void test_name_of_a_segment_says_where_to_look_for_it(void)
{
	CU_ASSERT_TRUE_FATAL(d9__stored_name_parse("cache/web-1/abcd-12/1795916687-41.bin.zst", &key));
	CU_ASSERT_STRING_EQUAL(key.service, "cache");
	CU_ASSERT_EQUAL(key.begins_s, 1795916687);
	CU_ASSERT_FALSE(d9__stored_name_parse("cache/web-1/abcd-12/2026-11-29T01.hour", &key));
	CU_ASSERT_FALSE(d9__stored_name_parse("trace.0.bin", &key));
	CU_ASSERT_FALSE(d9__stored_name_parse("a/b/c/999999999999999999-0.bin", &key));
}

static const CU_TestInfo tests[] = {
	{ "key of a segment tells service, instance, process and time", test_key_of_a_segment_tells_service_instance_process_and_time },
	{ "segments of the original are read, too", test_segments_of_the_original_are_read_too },
	{ "segment that claims another time has that of its key", test_segment_that_claims_another_time_has_that_of_its_key },
	{ "key of an hour has its figures", test_key_of_an_hour_has_its_figures },
	{ "key of a dump has its id as it is", test_key_of_a_dump_has_its_id_as_it_is },
	{ "what is of no form of ours tells nothing", test_what_is_of_no_form_of_ours_tells_nothing },
	{ "no part is a way out of a folder", test_no_part_is_a_way_out_of_a_folder },
	{ "part that is too long is none", test_part_that_is_too_long_is_none },
	{ "name of a segment says where to look for it", test_name_of_a_segment_says_where_to_look_for_it },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return d9_test_main("stored_key", tests);
}
