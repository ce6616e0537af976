/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sample/kernel_names.h"
#include "support/d9_test.h"

/* A descriptor from which |text| can be read. */
static int file_of(const char *text, size_t len)
{
	FILE *file = tmpfile();
	int fd = file ? dup(fileno(file)) : -1;

	CU_ASSERT_FATAL(fd >= 0);
	fwrite(text, 1, len, file);
	fclose(file);
	lseek(fd, 0, SEEK_SET);
	return fd;
}

static int find(const char *text, const uint64_t *addresses, size_t n, struct d9__kernel_symbol *out)
{
	int fd = file_of(text, strlen(text)), err = d9__kallsyms_find(fd, addresses, n, out);

	close(fd);
	return err;
}

static void test_an_address_belongs_to_the_function_that_begins_before_it(void)
{
	static const char text[] = "ffffffff81000000 T _text\n"
				   "ffffffff81000100 t read_it\n"
				   "ffffffff81000180 D some_data\n"
				   "ffffffff81000200 W write_it\n"
				   "ffffffffc0000000 t f_of_a_module\t[ext4]\n";
	static const uint64_t addresses[] = { 0xffffffff80ffffff, 0xffffffff81000000, 0xffffffff810001ff,
					      0xffffffff81000200, 0xffffffff81000300, 0xffffffffc0000010 };
	static const char *const names[] = { "", "_text", "read_it", "write_it", "write_it", "f_of_a_module [ext4]" };
	struct d9__kernel_symbol out[6];

	CU_ASSERT_EQUAL(find(text, addresses, 6, out), 0);
	for (size_t i = 0; i < 6; i++)
		CU_ASSERT_STRING_EQUAL(out[i].name, names[i]);
	CU_ASSERT_EQUAL(out[0].start, 0);
	CU_ASSERT_EQUAL(out[5].start, 0xffffffffc0000000);
}

/* Modules stand behind the kernel, in no order. */
static void test_lines_may_be_in_any_order(void)
{
	static const char text[] = "ffffffffc0000200 t c\t[m]\nffffffff81000000 T a\nffffffffc0000100 t b\t[m]\n";
	static const uint64_t addresses[] = { 0xffffffff81000004, 0xffffffffc0000104, 0xffffffffc0000204 };
	struct d9__kernel_symbol out[3];

	CU_ASSERT_EQUAL(find(text, addresses, 3, out), 0);
	CU_ASSERT_STRING_EQUAL(out[0].name, "a");
	CU_ASSERT_STRING_EQUAL(out[1].name, "b [m]");
	CU_ASSERT_STRING_EQUAL(out[2].name, "c [m]");
}

static void test_addresses_that_are_hidden_are_told(void)
{
	static const char text[] = "0000000000000000 T _text\n0000000000000000 t read_it\n";
	static const uint64_t address = 0xffffffff81000000;
	struct d9__kernel_symbol out;

	CU_ASSERT_EQUAL(find(text, &address, 1, &out), -EPERM);
	CU_ASSERT_EQUAL(find("", &address, 1, &out), -EPERM);
}

/* Longer than what is read at once, with a line across each boundary, and one that is no line of a kernel's. */
static void test_files_of_any_length_are_read(void)
{
	size_t len = 0, max = 4u << 20;
	char *text = malloc(max);
	uint64_t addresses[3] = { 0xffffffff81000000, 0xffffffff81000000 + 10 * 20000,
				  0xffffffff81000000 + 10 * 49999 };
	struct d9__kernel_symbol out[3];
	int fd;

	CU_ASSERT_PTR_NOT_NULL_FATAL(text);
	for (unsigned i = 0; i < 50000; i++) {
		len += (size_t)snprintf(text + len, max - len, "%llx t function_%u\n",
					(unsigned long long)(UINT64_C(0xffffffff81000000) + 10ull * i), i);
		if (i == 100) {
			memset(text + len, 'x', 40000);
			len += 40000;
			text[len++] = '\n';
		}
	}
	fd = file_of(text, len);
	CU_ASSERT_EQUAL(d9__kallsyms_find(fd, addresses, 3, out), 0);
	close(fd);
	free(text);
	CU_ASSERT_STRING_EQUAL(out[0].name, "function_0");
	CU_ASSERT_STRING_EQUAL(out[1].name, "function_20000");
	CU_ASSERT_STRING_EQUAL(out[2].name, "function_49999");
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "an address belongs to the function that begins before it",
		  test_an_address_belongs_to_the_function_that_begins_before_it },
		{ "lines may be in any order", test_lines_may_be_in_any_order },
		{ "addresses that are hidden are told", test_addresses_that_are_hidden_are_told },
		{ "files of any length are read", test_files_of_any_length_are_read },
		CU_TEST_INFO_NULL,
	};

	return d9_test_main("kernel_names", tests);
}
