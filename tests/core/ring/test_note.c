/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/record/scratch.h"
#include "drain/recover.h"
#include "ring/clock.h"
#include "ring/emit_inl.h"
#include "ring/note.h"

#define MINUTE_NS UINT64_C(60000000000)
#define WRITERS	  4
#define ROUNDS	  20000

static uint64_t now_ns;

static uint64_t fake_mono(void)
{
	return now_ns;
}

/* An empty log, of which the clock stands. */
static void begin(void)
{
	d9__notes_use(NULL);
	now_ns = 1000;
	d9__clock_fake(NULL, fake_mono);
}

static unsigned lines(struct d9__note_line *out, unsigned max)
{
	struct d9__notes copy;
	uint32_t at = 0;
	unsigned n = 0;

	d9__notes_copy(&copy);
	while (n < max && d9__notes_next(&copy, &at, &out[n]))
		n++;
	return n;
}

static void test_lines_are_there_in_order_with_time_and_level(void)
{
	struct d9__note_line line[3];

	begin();
	errno = EXDEV;
	d9__note(D9_LOG_WARNING, "cannot %s: %d", "write", 28);
	CU_ASSERT_EQUAL(errno, EXDEV);
	now_ns = 2000;
	d9__note(D9_LOG_INFO, "%s", "recording");

	CU_ASSERT_EQUAL_FATAL(lines(line, 3), 2);
	CU_ASSERT_STRING_EQUAL(line[0].text, "cannot write: 28");
	CU_ASSERT_EQUAL(line[0].level, D9_LOG_WARNING);
	CU_ASSERT_EQUAL(line[0].ns, 1000);
	CU_ASSERT_STRING_EQUAL(line[1].text, "recording");
	CU_ASSERT_EQUAL(line[1].number, 1);
	CU_ASSERT_EQUAL(line[1].ns, 2000);
}

static void test_line_that_is_long_or_no_text_is_cut_and_mended(void)
{
	struct d9__note_line line[2];
	char text[400];

	begin();
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	text[7] = '\xff';
	d9__note(D9_LOG_INFO, "%s", text);
	d9__note(D9_LOG_INFO, "%s", "");

	CU_ASSERT_EQUAL_FATAL(lines(line, 2), 2);
	CU_ASSERT_EQUAL(strlen(line[0].text), D9__NOTE_TEXT);
	CU_ASSERT_EQUAL(line[0].text[7], '?');
	CU_ASSERT_STRING_EQUAL(line[1].text, "");
}

static void test_same_text_within_a_minute_is_counted(void)
{
	struct d9__note_line line[4];

	begin();
	for (unsigned i = 0; i < 5; i++) {
		d9__note(D9_LOG_WARNING, "no space");
		d9__note(D9_LOG_INFO, "trying again");
	}
	CU_ASSERT_EQUAL_FATAL(lines(line, 4), 2);
	CU_ASSERT_EQUAL(line[0].times, 1);
	CU_ASSERT_EQUAL(line[0].again, 4);

	now_ns += MINUTE_NS;
	d9__note(D9_LOG_WARNING, "no space");
	CU_ASSERT_EQUAL_FATAL(lines(line, 4), 3);
	CU_ASSERT_EQUAL(line[2].times, 5);
	CU_ASSERT_EQUAL(line[0].again + line[2].again, 0);
	CU_ASSERT_EQUAL(line[1].again, 4);
}

static void test_count_of_what_came_again_is_told_after_a_minute(void)
{
	struct d9__note_line line[4];

	begin();
	for (unsigned i = 0; i < 3; i++)
		d9__note(D9_LOG_WARNING, "no space");
	d9__notes_settle(false);
	CU_ASSERT_EQUAL(lines(line, 4), 1);
	now_ns += MINUTE_NS;
	d9__notes_settle(false);
	d9__notes_settle(false);
	CU_ASSERT_EQUAL_FATAL(lines(line, 4), 2);
	CU_ASSERT_STRING_EQUAL(line[1].text, "no space");
	CU_ASSERT_EQUAL(line[1].times, 2);

	d9__note(D9_LOG_WARNING, "no space");
	d9__notes_settle(true);
	CU_ASSERT_EQUAL(lines(line, 4), 3);
}

static void test_newest_lines_stay_when_the_ring_is_full(void)
{
	static struct d9__note_line line[D9__NOTE_WORDS];
	unsigned n;

	begin();
	for (unsigned i = 0; i < 5000; i++)
		d9__note(D9_LOG_INFO, "line number %u", i);
	n = lines(line, D9__NOTE_WORDS);
	CU_ASSERT(n > D9__NOTE_WORDS / 6);
	for (unsigned i = 0; i < n; i++) {
		char text[32];

		snprintf(text, sizeof(text), "line number %u", 5000 - n + i);
		CU_ASSERT_STRING_EQUAL(line[i].text, text);
		CU_ASSERT_EQUAL(line[i].number, 5000 - n + i);
	}
}

/* |lost| of the lines "one", "two", "three", "four" are not in |notes|, the others are, and nothing
 * else. */
static void check_all_but(const struct d9__notes *notes, unsigned lost)
{
	static const char *const texts[] = { "one", "two", "three", "four, which is longer" };
	struct d9__note_line line;
	uint32_t at = 0;
	unsigned n = 0;

	while (d9__notes_next(notes, &at, &line)) {
		CU_ASSERT_FATAL(line.number < 4);
		CU_ASSERT_STRING_EQUAL(line.text, texts[line.number]);
		n++;
	}
	CU_ASSERT_EQUAL(n, 4 - lost);
}

static void test_line_of_which_a_bit_is_wrong_is_not_shown(void)
{
	struct d9__notes notes;
	uint32_t end;

	begin();
	d9__note(D9_LOG_INFO, "one");
	d9__note(D9_LOG_WARNING, "two");
	d9__note(D9_LOG_ERROR, "three");
	d9__note(D9_LOG_INFO, "four, which is longer");
	d9__notes_copy(&notes);
	end = (uint32_t)notes.head;
	for (uint32_t i = 0; i < end; i++)
		for (unsigned bit = 0; bit < 64; bit++) {
			notes.words[i] ^= UINT64_C(1) << bit;
			check_all_but(&notes, 1);
			notes.words[i] ^= UINT64_C(1) << bit;
		}
	check_all_but(&notes, 0);
}

/* A writer that was held while the others went once around comes back and writes where they have
 * written. */
static void test_line_that_is_a_round_late_is_not_shown(void)
{
	static struct d9__note_line line[D9__NOTE_WORDS];
	struct d9__notes early, late;
	uint32_t at = 0, n;

	begin();
	d9__note(D9_LOG_INFO, "first of all");
	d9__notes_copy(&early);
	late = early;
	n = (uint32_t)early.head;
	for (unsigned i = 0; (uint32_t)late.head < 2 * D9__NOTE_WORDS - 20; i++) {
		d9__note(D9_LOG_INFO, "line number %u", i);
		d9__notes_copy(&late);
	}
	for (uint32_t i = 0; i < n; i++)
		late.words[i] = early.words[i];
	for (n = 0; d9__notes_next(&late, &at, &line[n]); n++)
		CU_ASSERT_STRING_NOT_EQUAL(line[n].text, "first of all");
	CU_ASSERT(n > D9__NOTE_WORDS / 6 - 8);
}

static _Atomic(bool) go_on;

/* A row of one letter, as long as the letter says. */
static void *write_lines(void *arg)
{
	char letter = (char)('a' + (intptr_t)arg), text[201];

	for (unsigned i = 0; i < ROUNDS; i++) {
		size_t len = 1 + i % (sizeof(text) - 2);

		memset(text, letter, len);
		text[len] = '\0';
		d9__note((enum d9_log_level)(letter % 3), "%u:%s", (unsigned)len, text);
	}
	return NULL;
}

/* How many bad ones there were. */
static void *read_lines(void *arg)
{
	unsigned *bad = arg;
	struct d9__note_line line;
	struct d9__notes copy;

	while (atomic_load(&go_on)) {
		uint32_t at = 0;

		d9__notes_copy(&copy);
		while (d9__notes_next(&copy, &at, &line)) {
			const char *text = strchr(line.text, ':');
			unsigned len = (unsigned)atoi(line.text);

			if (!text || strlen(text + 1) != len ||
			    strspn(text + 1, (char[]) { text[1], '\0' }) != len ||
			    (int)line.level != text[1] % 3)
				++*bad;
		}
	}
	return NULL;
}

static void test_no_line_is_torn_while_threads_write_and_others_read(void)
{
	pthread_t writer[WRITERS], reader;
	unsigned bad = 0;

	begin();
	d9__clock_fake(NULL, NULL);
	atomic_store(&go_on, true);
	pthread_create(&reader, NULL, read_lines, &bad);
	for (intptr_t i = 0; i < WRITERS; i++)
		pthread_create(&writer[i], NULL, write_lines, (void *)i);
	for (unsigned i = 0; i < WRITERS; i++)
		pthread_join(writer[i], NULL);
	atomic_store(&go_on, false);
	pthread_join(reader, NULL);
	CU_ASSERT_EQUAL(bad, 0);
	CU_ASSERT_EQUAL(d9__notes_end(), WRITERS * ROUNDS);
}

static void *count_up(void *unused)
{
	(void)unused;
	for (unsigned i = 0; i < 1000; i++)
		d9__note(D9_LOG_INFO, "again");
	return NULL;
}

static void test_no_repetition_is_forgotten_by_threads_at_once(void)
{
	static struct d9__note_line line[D9__NOTE_WORDS];
	pthread_t thread[WRITERS];
	unsigned times = 0;

	begin();
	for (unsigned i = 0; i < WRITERS; i++)
		pthread_create(&thread[i], NULL, count_up, NULL);
	for (unsigned i = 0; i < WRITERS; i++)
		pthread_join(thread[i], NULL);
	for (unsigned n = lines(line, D9__NOTE_WORDS); n; n--)
		times += line[n - 1].times + line[n - 1].again;
	CU_ASSERT_EQUAL(times, WRITERS * 1000);
}

static void on_signal(int number)
{
	(void)number;
	d9__note(D9_LOG_INFO, "from a handler");
}

static void test_handler_may_write_a_line(void)
{
	struct d9__note_line line[2];

	begin();
	signal(SIGUSR1, on_signal);
	raise(SIGUSR1);
	signal(SIGUSR1, SIG_DFL);
	CU_ASSERT_EQUAL_FATAL(lines(line, 2), 1);
	CU_ASSERT_STRING_EQUAL(line[0].text, "from a handler");
}

/* ---- in the trace ---- */

struct told {
	char text[4096];
	uint64_t n, gone;
};

static void note_told(void *arg, const struct d9_event *event)
{
	struct told *told = arg;
	const struct d9_value *text = d9_event_field(event, "text");
	size_t len = strlen(told->text);

	if (strcmp(d9_event_name(event), "RecorderLogEvent") != 0 || !text)
		return;
	told->n++;
	if (memmem(text->u.text.data, text->u.text.len, "of this log overwritten", 23))
		told->gone += strtoull(text->u.text.data, NULL, 10);
	snprintf(told->text + len, sizeof(told->text) - len, "%.*s\n", (int)text->u.text.len,
		 text->u.text.data);
}

static void poll_once(void)
{
	struct d9__slot *slot = d9__slot_self();

	d9__emit_poll_start(slot, d9__slot_now(slot), 0, 0, 4, d9__name_intern("here", 4));
	d9__emit_poll_end(slot, d9__slot_now(slot), 0);
}

static unsigned occurrences(const char *text, const char *what)
{
	unsigned n = 0;

	for (; (text = strstr(text, what)); text++)
		n++;
	return n;
}

static void test_trace_has_each_line_once(void)
{
	struct d9_recorder *recorder;
	struct told told = { .n = 0 };

	d9__clock_fake(NULL, NULL);
	recorder = scratch_start(scratch_options());
	poll_once();
	d9__note(D9_LOG_WARNING, "a line of this test");
	d9_recorder_rotate(recorder, 5000);
	poll_once();
	d9__note(D9_LOG_WARNING, "a line of this test");
	d9_recorder_stop(recorder, 5000);

	scratch_read(scratch_dir, true, note_told, &told);
	CU_ASSERT_EQUAL(occurrences(told.text, "a line of this test\n"),
			2); /* the second as a repetition */
	CU_ASSERT_EQUAL(occurrences(told.text, "started in process"), 1);
	CU_ASSERT_EQUAL(occurrences(told.text, "asked to seal the segment: done\n"), 1);
	CU_ASSERT_EQUAL(occurrences(told.text, "stopping\n"), 1);
	CU_ASSERT_EQUAL(told.gone, 0);
}

static void test_trace_says_how_many_lines_were_overwritten(void)
{
	struct d9_recorder *recorder;
	struct told told = { .n = 0 };
	uint32_t before;

	recorder = scratch_start(scratch_options());
	before = d9__notes_told();
	/* Without an event there is no segment, and they stay in the ring. */
	for (unsigned i = 0; i < 1000; i++)
		d9__note(D9_LOG_INFO, "line number %u", i);
	poll_once();
	d9_recorder_stop(recorder, 5000);

	scratch_read(scratch_dir, true, note_told, &told);
	CU_ASSERT(told.gone > 500);
	CU_ASSERT_EQUAL(told.n - 1 + told.gone, d9__notes_told() - before);
}

/* Whether the ring of this process has a line with |what|. */
static bool noted(const char *what)
{
	static struct d9__note_line line[D9__NOTE_WORDS];
	unsigned n = lines(line, D9__NOTE_WORDS);

	while (n && !strstr(line[n - 1].text, what))
		n--;
	return n > 0;
}

static void test_directory_that_is_made_again_is_noted(void)
{
	struct d9_recorder *recorder = scratch_start(scratch_options());
	char dir[PATH_MAX];

	poll_once();
	CU_ASSERT_EQUAL(d9_recorder_rotate(recorder, 5000), 0);
	CU_ASSERT_FATAL(d9_recorder_dir(recorder, dir, sizeof(dir)) > 0);
	poll_once();
	nftw(dir, scratch_remove_entry, 16, FTW_DEPTH | FTW_PHYS);
	d9_recorder_rotate(recorder, 5000);
	poll_once();
	d9_recorder_stop(recorder, 5000);
	CU_ASSERT(noted("the directory of segments was gone and is made again"));
}

static void test_segment_that_the_budget_takes_is_noted(void)
{
	struct d9_options *options = scratch_options();
	struct d9_recorder *recorder;

	d9_options_set_max_total_bytes(options, 64 << 10);
	d9_options_set_max_file_bytes(options, 16 << 10);
	recorder = scratch_start(options);
	for (unsigned i = 0; i < 100 && !noted("for the budget is full"); i++) {
		poll_once();
		d9_recorder_rotate(recorder, 5000);
	}
	d9_recorder_stop(recorder, 5000);
	CU_ASSERT(noted("the oldest segment was deleted, for the budget is full"));
}

static void die_with_lines(void)
{
	struct d9_options *options = scratch_options();
	pid_t pid = fork();
	int status;

	if (!pid) {
		if (d9_recorder_start(options, NULL))
			_exit(1);
		poll_once();
		d9__note(D9_LOG_ERROR, "the last line of all");
		kill(getpid(), SIGKILL);
	}
	d9_options_free(options);
	CU_ASSERT_EQUAL_FATAL(waitpid(pid, &status, 0), pid);
	CU_ASSERT_FATAL(WIFSIGNALED(status));
}

static void test_recovery_of_a_killed_process_has_its_lines(void)
{
	struct d9__recover walk;
	struct d9__recovered found;
	struct told told = { .n = 0 };

	die_with_lines();
	CU_ASSERT_EQUAL_FATAL(d9__recover_begin(&walk, scratch_dir, D9__RECOVER_WAIT), 0);
	while (d9__recover_next(&walk, &found) == 1)
		CU_ASSERT_EQUAL(found.err, 0);
	d9__recover_end(&walk);

	scratch_read(scratch_dir, true, note_told, &told);
	CU_ASSERT_EQUAL(occurrences(told.text, "the last line of all\n"), 1);
	CU_ASSERT_EQUAL(occurrences(told.text, "forked from process"), 1);
	CU_ASSERT_EQUAL(occurrences(told.text, "started in process"), 1);
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "lines are there in order", test_lines_are_there_in_order_with_time_and_level },
		{ "long line, no text", test_line_that_is_long_or_no_text_is_cut_and_mended },
		{ "same text is counted", test_same_text_within_a_minute_is_counted },
		{ "count is told", test_count_of_what_came_again_is_told_after_a_minute },
		{ "newest lines stay", test_newest_lines_stay_when_the_ring_is_full },
		{ "wrong bit", test_line_of_which_a_bit_is_wrong_is_not_shown },
		{ "a round late", test_line_that_is_a_round_late_is_not_shown },
		{ "threads and a reader",
		  test_no_line_is_torn_while_threads_write_and_others_read },
		{ "threads count", test_no_repetition_is_forgotten_by_threads_at_once },
		{ "handler", test_handler_may_write_a_line },
		{ "trace has each line once", test_trace_has_each_line_once },
		{ "trace tells of overwritten lines",
		  test_trace_says_how_many_lines_were_overwritten },
		{ "directory made again", test_directory_that_is_made_again_is_noted },
		{ "budget", test_segment_that_the_budget_takes_is_noted },
		{ "recovery", test_recovery_of_a_killed_process_has_its_lines },
		CU_TEST_INFO_NULL,
	};
	int status = d9_test_main("note", tests);

	scratch_remove();
	return status;
}
