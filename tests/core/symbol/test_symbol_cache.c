/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/d9_test.h"
#include "symbol/symbol_cache.h"

#define ID "0123456789abcdef"

static char dir_name[] = "/tmp/dial9-cache.XXXXXX";
static int dir;

/* |n| frames at |address| of |space|, of which the ith is function |name| and i. */
static void answer(struct d9__answers *answers, uint32_t space, uint64_t address, const char *name, unsigned n)
{
	struct d9__question question = { address, space, D9__RETURN };
	struct d9__symbol frames[8] = { { 0 } };
	char text[64];

	for (unsigned i = 0; i < n; i++) {
		snprintf(text, sizeof(text), "%s%u", name, i);
		frames[i].function = d9__answers_text(answers, text, strlen(text));
		frames[i].path = i ? d9__answers_text(answers, "a.c", 3) : NULL;
		frames[i].line = i;
	}
	CU_ASSERT_TRUE(d9__answers_add(answers, &question, frames, n));
}

/* The name of the innermost frame at |address|; "" for an answer without frames, NULL for none. */
static const char *find(const struct d9__symbol_cache *cache, uint64_t address)
{
	struct d9__dwarf_frame frames[D9__SYMBOL_DEPTH_MAX];
	size_t n;

	if (!d9__symbol_cache_find(cache, address, D9__RETURN, frames, &n))
		return NULL;
	return n ? frames[0].function : "";
}

static void test_answers_come_back_and_more_are_added(void)
{
	struct d9__dwarf_frame frames[D9__SYMBOL_DEPTH_MAX];
	struct d9__answers answers = { 0 };
	struct d9__symbol_cache cache = { 0 };
	size_t n;

	answer(&answers, 3, 500, "late", 1);
	answer(&answers, 3, 100, "early", 3);
	answer(&answers, 3, 300, "none", 0);
	answer(&answers, 4, 100, "other", 1);
	CU_ASSERT_EQUAL(d9__symbol_cache_save(&cache, dir, ID, 7, &answers, 3), 0);
	d9__symbol_cache_load(&cache, dir, ID, 7);
	CU_ASSERT_STRING_EQUAL(find(&cache, 100), "early0");
	CU_ASSERT_STRING_EQUAL(find(&cache, 500), "late0");
	CU_ASSERT_STRING_EQUAL(find(&cache, 300), "");
	CU_ASSERT_PTR_NULL(find(&cache, 101));
	CU_ASSERT_FALSE(d9__symbol_cache_find(&cache, 100, D9__EXECUTING, frames, &n));
	CU_ASSERT_TRUE(d9__symbol_cache_find(&cache, 100, D9__RETURN, frames, &n));
	CU_ASSERT_EQUAL(n, 3);
	CU_ASSERT_STRING_EQUAL(frames[2].path, "a.c");
	CU_ASSERT_EQUAL(frames[2].line, 2);
	d9__answers_release(&answers);

	answer(&answers, 0, 200, "between", 2);
	answer(&answers, 0, 500, "newer", 1);
	CU_ASSERT_EQUAL(d9__symbol_cache_save(&cache, dir, ID, 7, &answers, 0), 0);
	d9__symbol_cache_release(&cache);
	d9__symbol_cache_load(&cache, dir, ID, 7);
	CU_ASSERT_EQUAL(cache.n_answers, 4);
	CU_ASSERT_STRING_EQUAL(find(&cache, 100), "early0");
	CU_ASSERT_STRING_EQUAL(find(&cache, 200), "between0");
	CU_ASSERT_STRING_EQUAL(find(&cache, 500), "newer0");
	d9__symbol_cache_release(&cache);
	d9__answers_release(&answers);
}

static void test_answers_of_other_files_do_not_count(void)
{
	struct d9__answers answers = { 0 };
	struct d9__symbol_cache cache = { 0 };

	answer(&answers, 0, 1, "f", 1);
	CU_ASSERT_EQUAL(d9__symbol_cache_save(&cache, dir, ID, 7, &answers, 0), 0);
	d9__symbol_cache_load(&cache, dir, ID, 8);
	CU_ASSERT_PTR_NULL(find(&cache, 1));
	d9__symbol_cache_load(&cache, dir, ID, 0);
	CU_ASSERT_STRING_EQUAL(find(&cache, 1), "f0");
	d9__symbol_cache_release(&cache);
	d9__symbol_cache_load(&cache, dir, "fedcba", 7);
	CU_ASSERT_PTR_NULL(find(&cache, 1));
	d9__answers_release(&answers);
}

/* A file that says anything: nothing outside of it is read, which a sanitizer sees. */
static void test_any_byte_may_be_wrong(void)
{
	struct d9__answers answers = { 0 };
	struct d9__symbol_cache cache = { 0 };
	size_t len;
	uint8_t *good, *bad;

	answer(&answers, 0, 1, "f", 3);
	answer(&answers, 0, 2, "g", 2);
	CU_ASSERT_EQUAL(d9__symbol_cache_save(&cache, dir, ID, 7, &answers, 0), 0);
	d9__symbol_cache_load(&cache, dir, ID, 7);
	len = cache.len;
	good = malloc(len);
	memcpy(good, cache.bytes, len);
	d9__symbol_cache_release(&cache);
	for (size_t at = 0; at < len; at++) {
		for (unsigned value = 0; value < 256; value += 15) {
			bad = malloc(len);
			memcpy(bad, good, len);
			bad[at] = (uint8_t)value;
			d9__symbol_cache_take(&cache, bad, len);
			for (uint64_t address = 0; address < 4; address++) {
				const char *name = find(&cache, address);

				CU_ASSERT_TRUE(!name || strlen(name) < len);
			}
			d9__symbol_cache_release(&cache);
		}
		bad = malloc(at + 1);
		memcpy(bad, good, at);
		CU_ASSERT_FALSE(d9__symbol_cache_take(&cache, bad, at));
	}
	free(good);
	d9__answers_release(&answers);
}

static void test_what_was_written_long_ago_goes_first(void)
{
	struct d9__answers answers = { 0 };
	struct d9__symbol_cache cache = { 0 };
	struct stat st;
	char id[16], name[32];

	answer(&answers, 0, 1, "f", 3);
	for (unsigned i = 0; i < 8; i++) {
		struct timespec times[2] = { { 1000 + i, 0 }, { 1000 + i, 0 } };

		snprintf(id, sizeof(id), "aaaa%u", i);
		snprintf(name, sizeof(name), "%s.symbols", id);
		CU_ASSERT_EQUAL(d9__symbol_cache_save(&cache, dir, id, 7, &answers, 0), 0);
		CU_ASSERT_EQUAL(utimensat(dir, name, times, 0), 0);
	}
	CU_ASSERT_EQUAL(fstatat(dir, "aaaa0.symbols", &st, 0), 0);
	d9__symbol_cache_trim(dir, 5 * (uint64_t)st.st_size);
	CU_ASSERT_NOT_EQUAL(faccessat(dir, "aaaa0.symbols", F_OK, 0), 0);
	CU_ASSERT_EQUAL(faccessat(dir, "aaaa7.symbols", F_OK, 0), 0);
	d9__symbol_cache_trim(dir, 0);
	CU_ASSERT_NOT_EQUAL(faccessat(dir, "aaaa7.symbols", F_OK, 0), 0);
	CU_ASSERT_NOT_EQUAL(faccessat(dir, ID ".symbols", F_OK, 0), 0);
	d9__answers_release(&answers);
}

static const CU_TestInfo tests[] = {
	{ "answers come back and more are added", test_answers_come_back_and_more_are_added },
	{ "answers of other files do not count", test_answers_of_other_files_do_not_count },
	{ "any byte may be wrong", test_any_byte_may_be_wrong },
	{ "what was written long ago goes first", test_what_was_written_long_ago_goes_first },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	int status;

	dir = mkdtemp(dir_name) ? open(dir_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	if (dir < 0)
		return 99;
	status = d9_test_main("symbol_cache", tests);
	close(dir);
	rmdir(dir_name);
	return status;
}
