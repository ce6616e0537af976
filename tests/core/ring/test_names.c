/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "ring/names.h"
#include "support/d9_test.h"

static void test_name_equal_texts_have_one_handle(void)
{
	uint32_t a = d9__name_intern("a @ b", 5);

	CU_ASSERT(a > D9__NAME_OTHER);
	CU_ASSERT_EQUAL(d9__name_intern("a @ bcd", 5), a);
	CU_ASSERT_NOT_EQUAL(d9__name_intern("a @ c", 5), a);
	CU_ASSERT_EQUAL(d9__name_text(a)->len, 5);
	CU_ASSERT_NSTRING_EQUAL(d9__name_text(a)->text, "a @ b", 5);
}

static void test_name_that_is_empty_has_handle_zero(void)
{
	CU_ASSERT_EQUAL(d9__name_intern("", 0), D9__NAME_EMPTY);
	CU_ASSERT_EQUAL(d9__name_text(D9__NAME_EMPTY)->len, 0);
	CU_ASSERT_EQUAL(d9__name_text(UINT32_MAX), d9__name_text(D9__NAME_OTHER));
}

static void test_name_too_long_is_cut_between_characters(void)
{
	char text[D9__NAME_BYTES + 2];

	memset(text, 'x', sizeof(text));
	memcpy(text + D9__NAME_BYTES - 1, "\xc3\xa4", 2); /* one character of two bytes */
	CU_ASSERT_EQUAL(d9__name_text(d9__name_intern(text, sizeof(text)))->len,
			D9__NAME_BYTES - 1);
}

static void *intern_many(void *arg)
{
	uint32_t *handles = arg;

	for (unsigned i = 0; i < 500; i++) {
		char text[32];

		snprintf(text, sizeof(text), "shared %u", i);
		handles[i] = d9__name_intern(text, strlen(text));
	}
	return NULL;
}

static void test_name_interned_by_two_threads_is_one(void)
{
	static uint32_t handles[2][500];
	pthread_t thread[2];

	for (unsigned i = 0; i < 2; i++)
		pthread_create(&thread[i], NULL, intern_many, handles[i]);
	for (unsigned i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	CU_ASSERT_EQUAL(memcmp(handles[0], handles[1], sizeof(handles[0])), 0);
}

static void test_name_beyond_the_table_is_other_and_counted(void)
{
	errno = EXDEV;
	for (unsigned i = 0; i < 100000; i++) {
		char text[32];

		snprintf(text, sizeof(text), "name %u", i);
		d9__name_intern(text, strlen(text));
	}
	CU_ASSERT_EQUAL(errno, EXDEV);
	CU_ASSERT_EQUAL(d9__name_count(), D9__NAMES_MAX);
	CU_ASSERT_EQUAL(d9__name_intern("name 99999", 10), D9__NAME_OTHER);
	CU_ASSERT_NSTRING_EQUAL(d9__name_text(d9__name_intern("name 7", 6))->text, "name 7", 6);
	CU_ASSERT(d9__name_overflows() > 34000);
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "equal texts have one handle", test_name_equal_texts_have_one_handle },
		{ "that is empty has handle zero", test_name_that_is_empty_has_handle_zero },
		{ "too long is cut between characters",
		  test_name_too_long_is_cut_between_characters },
		{ "interned by two threads is one", test_name_interned_by_two_threads_is_one },
		{ "beyond the table is other and counted",
		  test_name_beyond_the_table_is_other_and_counted },
		CU_TEST_INFO_NULL,
	};

	return d9_test_main("names", tests);
}
