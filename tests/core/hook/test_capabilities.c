/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "hook/capabilities.h"
#include "support/d9_test.h"

static void test_capabilities_are_a_list_of_keys_in_the_order_they_were_set(void)
{
	static struct d9__capabilities caps = D9__CAPABILITIES_INIT("fake");
	char text[64];

	d9__capability_set(&caps, "poll", "full");
	d9__capability_set(&caps, "park", "on");
	d9__capability_set(&caps, "poll", "partial");

	CU_ASSERT_EQUAL(d9__capabilities_text(&caps, text, sizeof(text)), 20);
	CU_ASSERT_STRING_EQUAL(text, "poll=partial,park=on");
	CU_ASSERT_STRING_EQUAL(d9__capability(&caps, "poll"), "partial");
	CU_ASSERT_PTR_NULL(d9__capability(&caps, "wake"));
}

static void test_capabilities_in_a_short_buffer_are_cut_and_counted(void)
{
	static struct d9__capabilities caps = D9__CAPABILITIES_INIT("fake");
	char text[6] = "xxxxx";

	d9__capability_set(&caps, "poll", "full");

	CU_ASSERT_EQUAL(d9__capabilities_text(&caps, text, sizeof(text)), 9);
	CU_ASSERT_STRING_EQUAL(text, "poll=");
	CU_ASSERT_EQUAL(d9__capabilities_text(&caps, NULL, 0), 9);
}

static void test_capabilities_name_each_reason_and_counter_once(void)
{
	static struct d9__capabilities caps = D9__CAPABILITIES_INIT("fake");
	static _Atomic(uint32_t) refused;

	for (int i = 0; i < 3; i++) {
		d9__capability_degrade(&caps, "no unique deadline");
		d9__capability_count(&caps, "refused", &refused);
	}

	CU_ASSERT_EQUAL(caps.n_reasons, 1);
	CU_ASSERT_EQUAL(caps.n_counters, 1);
}

static unsigned times_asked;

static uint64_t sum_of_many(void)
{
	times_asked++;
	return UINT64_C(10000000000);
}

static void test_capabilities_ask_for_a_sum_whenever_they_are_published(void)
{
	static struct d9__capabilities caps = D9__CAPABILITIES_INIT("fake");

	d9__capability_sum(&caps, "many", sum_of_many);
	d9__capability_sum(&caps, "many", sum_of_many);
	d9__capabilities_publish(&caps);
	d9__capabilities_publish(&caps);

	CU_ASSERT_EQUAL(times_asked, 2);
}

static void test_capabilities_beyond_their_room_are_left_out(void)
{
	static struct d9__capabilities caps = D9__CAPABILITIES_INIT("fake");
	static char keys[D9__CAPABILITIES_MAX + 5][4];

	for (unsigned i = 0; i < D9__CAPABILITIES_MAX + 5; i++) {
		keys[i][0] = 'k';
		keys[i][1] = (char)('a' + i);
		d9__capability_set(&caps, keys[i], "on");
	}

	CU_ASSERT_EQUAL(caps.n, D9__CAPABILITIES_MAX);
}

static void test_capabilities_version_is_copied_and_publishing_keeps_errno(void)
{
	static struct d9__capabilities caps = D9__CAPABILITIES_INIT("fake");
	char version[100];

	memset(version, '7', sizeof(version));
	version[99] = '\0';
	errno = 77;
	d9__capabilities_set_version(&caps, version);
	memset(version, '8', sizeof(version) - 1);
	d9__capabilities_publish(&caps);

	CU_ASSERT_EQUAL(strlen(caps.version), sizeof(caps.version) - 1);
	CU_ASSERT_EQUAL(caps.version[0], '7');
	CU_ASSERT_EQUAL(errno, 77);
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "are a list of keys in the order they were set",
		  test_capabilities_are_a_list_of_keys_in_the_order_they_were_set },
		{ "in a short buffer are cut and counted",
		  test_capabilities_in_a_short_buffer_are_cut_and_counted },
		{ "name each reason and counter once",
		  test_capabilities_name_each_reason_and_counter_once },
		{ "ask for a sum whenever they are published",
		  test_capabilities_ask_for_a_sum_whenever_they_are_published },
		{ "beyond their room are left out",
		  test_capabilities_beyond_their_room_are_left_out },
		{ "version is copied and publishing keeps errno",
		  test_capabilities_version_is_copied_and_publishing_keeps_errno },
		CU_TEST_INFO_NULL,
	};

	return d9_test_main("capabilities", tests);
}
