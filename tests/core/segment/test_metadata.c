/* SPDX-License-Identifier: Apache-2.0 */
/* The table of facts, and what a reader finds of it.  Each test begins with an empty one. */
#include "config.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>

#include "base/heap.h"
#include "core/record/scratch.h"
#include "ring/event_types.h"
#include "ring/note.h"
#include "segment/metadata.h"

#define PAIRS_MAX 1024

/* ---- a heap that has no more ---- */

static int allowed = INT_MAX; /* allocations, where one thread makes them */

void *d9__malloc(size_t size)
{
	return allowed == INT_MAX || allowed-- > 0 ? malloc(size) : NULL;
}

void *d9__realloc(void *block, size_t size)
{
	return allowed == INT_MAX || allowed-- > 0 ? realloc(block, size) : NULL;
}

void d9__free(void *block)
{
	free(block);
}

/* ---- what is read ---- */

/* "KEY=VALUE;" for each pair, in order. */
static char text[1 << 20];
static size_t text_len;
static uint64_t read_ns;

static void note_pairs(void *arg, const struct d9_event *event)
{
	const struct d9_value *pairs = &event->values[0];

	(void)arg;
	CU_ASSERT_EQUAL_FATAL(event->kind, D9_EVENT_SEGMENT_METADATA);
	read_ns = event->timestamp_ns;
	for (size_t i = 0; i < pairs->u.string_map.n; i++) {
		const struct d9_text *pair = &pairs->u.string_map.pairs[2 * i];

		text_len += (size_t)snprintf(text + text_len, sizeof(text) - text_len, "%.*s=%.*s;", (int)pair[0].len,
					     pair[0].data, (int)pair[1].len, pair[1].data);
	}
}

static const char *written(const char *const *more)
{
	struct d9__builder b = { 0 };
	char path[2 * PATH_MAX];
	FILE *f;

	CU_ASSERT_EQUAL_FATAL(d9__event_types_init(), 0);
	d9__metadata_write(&b, 4711, more);
	CU_ASSERT_FALSE(b.failed);
	snprintf(path, sizeof(path), "%s/trace.0.bin", scratch_new());
	f = fopen(path, "we");
	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	CU_ASSERT_EQUAL(fwrite(b.data, 1, b.len, f), b.len);
	fclose(f);
	d9__builder_release(&b);
	text_len = 0;
	text[0] = '\0';
	CU_ASSERT_EQUAL(scratch_read(path, true, note_pairs, NULL), 1);
	CU_ASSERT_EQUAL(read_ns, 4711);
	return text;
}

static void set(const char *key, const char *value)
{
	CU_ASSERT_EQUAL(d9__metadata_set(key, value), 0);
}

static void forget_all(void)
{
	d9__metadata_forget("");
}

/* ---- tests ---- */

static void test_facts_are_written_once_each_and_those_of_a_segment_behind_them(void)
{
	const char *more[] = { "segment.a", "1", "segment.b", "2", NULL };

	forget_all();
	CU_ASSERT_STRING_EQUAL(written(NULL), "");
	set("b", "two");
	set("c", "");
	set("a", "one");
	set("b", "three");
	CU_ASSERT_STRING_EQUAL(written(NULL), "a=one;b=three;c=;");
	CU_ASSERT_STRING_EQUAL(written(more), "a=one;b=three;c=;segment.a=1;segment.b=2;");
	set("b", NULL);
	set("never", NULL);
	CU_ASSERT_STRING_EQUAL(written(NULL), "a=one;c=;");
}

static void test_texts_are_copied(void)
{
	char key[] = "key", value[] = "value";

	forget_all();
	set(key, value);
	key[0] = value[0] = 'X';
	CU_ASSERT_STRING_EQUAL(written(NULL), "key=value;");
}

static void test_generation_changes_with_what_is_there_and_with_nothing_else(void)
{
	uint32_t before;

	forget_all();
	before = d9__metadata_generation();
	set("a", "1");
	CU_ASSERT_NOT_EQUAL(d9__metadata_generation(), before);
	before = d9__metadata_generation();
	set("a", "1");
	set("b", NULL);
	d9__metadata_forget("b");
	CU_ASSERT_EQUAL(d9__metadata_set("", "1"), -EINVAL);
	CU_ASSERT_EQUAL(d9__metadata_generation(), before);
	set("a", "2");
	CU_ASSERT_NOT_EQUAL(d9__metadata_generation(), before);
	before = d9__metadata_generation();
	set("a", NULL);
	CU_ASSERT_NOT_EQUAL(d9__metadata_generation(), before);
	set("ab", "1");
	before = d9__metadata_generation();
	d9__metadata_forget("a");
	CU_ASSERT_NOT_EQUAL(d9__metadata_generation(), before);
}

static void test_key_or_value_that_is_too_long_is_refused(void)
{
	static char key[257], value[65537];

	forget_all();
	memset(key, 'k', 256);
	memset(value, 'v', 65536);
	CU_ASSERT_EQUAL(d9__metadata_set(NULL, "1"), -EINVAL);
	CU_ASSERT_EQUAL(d9__metadata_set(key, "1"), -EINVAL);
	CU_ASSERT_EQUAL(d9__metadata_set("key", value), -EINVAL);
	CU_ASSERT_STRING_EQUAL(written(NULL), "");
	key[255] = value[65535] = '\0';
	set(key, value);
	CU_ASSERT_EQUAL(strlen(written(NULL)), 255 + 65535 + 2);
}

static void test_table_that_is_full_takes_new_values_but_no_keys(void)
{
	char key[16];

	forget_all();
	for (unsigned i = 0; i < PAIRS_MAX; i++) {
		snprintf(key, sizeof(key), "%u", i);
		set(key, "old");
	}
	CU_ASSERT_EQUAL(d9__metadata_set("one more", "1"), -ENOSPC);
	set("77", "new");
	CU_ASSERT_PTR_NOT_NULL(strstr(written(NULL), ";77=new;"));
	set("78", NULL);
	set("one more", "1");
	CU_ASSERT_PTR_NOT_NULL(strstr(written(NULL), ";one more=1;"));
	forget_all();
}

static void test_fact_for_which_there_is_no_memory_leaves_the_others_as_they_were(void)
{
	forget_all();
	set("a", "1");
	for (int i = 0; i < 2; i++) {
		allowed = i; /* for the value, for the key */
		CU_ASSERT_EQUAL(d9__metadata_set("b", "1"), -ENOMEM);
		allowed = INT_MAX;
		CU_ASSERT_STRING_EQUAL(written(NULL), "a=1;");
	}
	allowed = 0;
	CU_ASSERT_EQUAL(d9__metadata_set("a", "2"), -ENOMEM);
	allowed = INT_MAX;
	CU_ASSERT_STRING_EQUAL(written(NULL), "a=1;");
}

static void test_prefix_forgets_what_begins_with_it(void)
{
	forget_all();
	set("loo", "1");
	set("loop", "2");
	set("loop.a", "3");
	set("loop.b", "4");
	set("loops", "5");
	set("lop", "6");
	d9__metadata_forget("loop.");
	CU_ASSERT_STRING_EQUAL(written(NULL), "loo=1;loop=2;loops=5;lop=6;");
	d9__metadata_forget("loop");
	CU_ASSERT_STRING_EQUAL(written(NULL), "loo=1;lop=6;");
}

static void test_status_gets_the_facts_that_it_wants_a_line_each(void)
{
	char facts[128];

	forget_all();
	set("program", "/bin/x\ny\n");
	set("host", "not wanted");
	set("loop.1.name", "main");
	set("ring.kind", "shm");
	set("runtime.libc", "glibc");
	set("source.cpu", "on");
	d9__metadata_facts(facts, sizeof(facts));
	CU_ASSERT_STRING_EQUAL(facts, "loop.1.name=main\nprogram=/bin/x y \nring.kind=shm\nruntime.libc=glibc\nsource.cpu=on\n");
}

static void test_status_gets_no_line_in_part(void)
{
	static const char all[] = "loop.a=long\nring.b=1\n";

	forget_all();
	set("loop.a", "long");
	set("ring.b", "1");
	for (size_t size = 1; size <= sizeof(all); size++) {
		char facts[sizeof(all) + 1];

		memset(facts, '#', sizeof(facts));
		d9__metadata_facts(facts, size);
		CU_ASSERT_EQUAL(facts[size], '#');
		/* The first one, or the shorter one behind it. */
		CU_ASSERT_STRING_EQUAL(facts, size == sizeof(all) ? all :
					      size > 12 ? "loop.a=long\n" :
					      size > 9 ? "ring.b=1\n" : "");
	}
}

static unsigned settled;

static void settle(void)
{
	settled++;
}

static void test_who_has_more_to_tell_is_called_before_a_segment_ends(void)
{
	d9__metadata_settle(); /* no callback is set */
	d9__metadata_on_seal(settle);
	CU_ASSERT_EQUAL(settled, 0);
	d9__metadata_settle();
	d9__metadata_settle();
	CU_ASSERT_EQUAL(settled, 2);
}

static void test_log_has_what_the_recorder_says_of_its_own_parts_once(void)
{
	uint32_t before;

	forget_all();
	before = d9__notes_end();
	set("program", "x");
	set("source.cpu", "off: not asked for");
	CU_ASSERT_EQUAL(d9__notes_end(), before + 1);
	set("source.cpu", "off: not asked for");
	set("loop.polls_unbound", "1");
	set("loop.polls_unbound", "27"); /* a counter goes on */
	CU_ASSERT_EQUAL(d9__notes_end(), before + 2);
	set("source.cpu", NULL);
	CU_ASSERT_EQUAL(d9__notes_end(), before + 2);
}

static void test_log_warns_of_faults_alone(void)
{
	static const struct {
		const char *key, *value;
		enum d9_log_level level;
	} facts[] = {
		{ "source.a", "on", D9_LOG_INFO },
		{ "source.b", "off: no rights", D9_LOG_WARNING },
		{ "source.c", "off: not asked for", D9_LOG_INFO },
		{ "loop.libev.hooks", "all", D9_LOG_INFO },
		{ "loop.libev.refused", "3", D9_LOG_WARNING },
		{ "ring.why", "no room", D9_LOG_WARNING },
	};
	static struct d9__notes copy;

	forget_all();
	for (size_t i = 0; i < sizeof(facts) / sizeof(facts[0]); i++) {
		struct d9__note_line line = { .number = 0 };
		uint32_t at = 0;

		set(facts[i].key, facts[i].value);
		d9__notes_copy(&copy);
		while (d9__notes_next(&copy, &at, &line))
			;
		CU_ASSERT_EQUAL(line.level, facts[i].level);
		CU_ASSERT(!strncmp(line.text, facts[i].key, strlen(facts[i].key)));
	}
}

static void test_metadata_is_kept_for_good_once_it_is_worth_a_segment(void)
{
	CU_ASSERT_FALSE(d9__metadata_is_kept());
	d9__metadata_keep();
	CU_ASSERT(d9__metadata_is_kept());
	forget_all();
	CU_ASSERT(d9__metadata_is_kept());
}

#define THREADS 4
#define EACH	50

static void *set_many(void *arg)
{
	for (unsigned i = 0; i < EACH; i++) {
		char key[16];

		snprintf(key, sizeof(key), "%u.%u", *(unsigned *)arg, i);
		d9__metadata_set(key, "x");
		d9__metadata_set("all", key);
	}
	return NULL;
}

static void test_threads_set_facts_beside_each_other(void)
{
	pthread_t threads[THREADS];
	unsigned numbers[THREADS], found = 0;

	forget_all();
	for (unsigned i = 0; i < THREADS; i++) {
		numbers[i] = i;
		CU_ASSERT_EQUAL_FATAL(pthread_create(&threads[i], NULL, set_many, &numbers[i]), 0);
	}
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (const char *p = written(NULL); *p; p++)
		found += *p == ';';
	CU_ASSERT_EQUAL(found, THREADS * EACH + 1);
	forget_all();
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "written", test_facts_are_written_once_each_and_those_of_a_segment_behind_them },
		{ "copied", test_texts_are_copied },
		{ "generation", test_generation_changes_with_what_is_there_and_with_nothing_else },
		{ "too long", test_key_or_value_that_is_too_long_is_refused },
		{ "full", test_table_that_is_full_takes_new_values_but_no_keys },
		{ "no memory", test_fact_for_which_there_is_no_memory_leaves_the_others_as_they_were },
		{ "prefix", test_prefix_forgets_what_begins_with_it },
		{ "status", test_status_gets_the_facts_that_it_wants_a_line_each },
		{ "whole lines", test_status_gets_no_line_in_part },
		{ "settle", test_who_has_more_to_tell_is_called_before_a_segment_ends },
		{ "log", test_log_has_what_the_recorder_says_of_its_own_parts_once },
		{ "warnings", test_log_warns_of_faults_alone },
		{ "kept", test_metadata_is_kept_for_good_once_it_is_worth_a_segment },
		{ "threads", test_threads_set_facts_beside_each_other },
		CU_TEST_INFO_NULL,
	};
	int status = d9_test_main("metadata", tests);

	forget_all();
	scratch_remove();
	return status;
}
