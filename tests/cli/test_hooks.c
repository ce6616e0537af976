/* SPDX-License-Identifier: Apache-2.0 */
/* Commands that are run for dumps: their words, their time, and which dumps they get. */
#include "config.h"

#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/d9_test.h"

#include "cli/cmd.h"
#include "cli/on_dump.h"
#include "stage/words.h"

#define S UINT64_C(1000000000)

static char dir[PATH_MAX], told[1024];

int d9__cmd_fail(const char *command, const char *format, ...)
{
	va_list args;

	(void)command;
	va_start(args, format);
	vsnprintf(told, sizeof(told), format, args);
	va_end(args);
	return D9__EXIT_USAGE;
}

/* ---- words ---- */

static void test_words_are_those_of_a_shell_that_expands_nothing(void)
{
	static const struct {
		const char *text, *words; /* each followed by | */
	} all[] = {
		{ "notify", "notify|" },
		{ "  a  b\tc\nd ", "a|b|c|d|" },
		{ "a 'b  c' \"d e\"f", "a|b  c|d ef|" },
		{ "a '' \"\"", "a|||" },
		{ "a \\ b \\\\ \\'", "a| b|\\|'|" },
		{ "a '\\' \"\\\\ \\\" \\n\"", "a|\\|\\ \" \\n|" },
		{ "a $HOME `b` * ~ ; c | d & >e #f", "a|$HOME|`b`|*|~|;|c|||d|&|>e|#f|" },
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		const char *fault = NULL;
		char **words = d9__words_split(all[i].text, &fault), joined[256] = "";

		CU_ASSERT_PTR_NOT_NULL_FATAL(words);
		for (char **word = words; *word; word++) {
			strcat(joined, *word);
			strcat(joined, "|");
		}
		CU_ASSERT_STRING_EQUAL(joined, all[i].words);
		free(words);
	}
}

static void test_mistakes_in_words_are_told(void)
{
	static const char *const all[][2] = {
		{ "", "it names no command" },	       { "   ", "it names no command" },
		{ "'' a", "it names no command" },     { "a 'b", "the quotes are not closed" },
		{ "a \"b\\\"", "the quotes are not closed" }, { "a\\", "nothing stands behind the backslash at its end" },
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		const char *fault = NULL;

		CU_ASSERT_PTR_NULL(d9__words_split(all[i][0], &fault));
		CU_ASSERT_STRING_EQUAL(fault, all[i][1]);
	}
}

/* ---- dumps ---- */

static const struct d9__namespaces none;
static struct d9__on_dump_commands commands;
static struct d9__on_dump *on_dump;

static void begin(const char *command, const struct d9__namespaces *before, uint64_t limit_ns)
{
	const struct d9__on_dump_plan plan = { &commands, dir, before, limit_ns };

	strcpy(dir, "/tmp/dial9-hooks-XXXXXX");
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(dir));
	CU_ASSERT_FATAL(!chdir(dir));
	CU_ASSERT_FATAL(d9__on_dump_add(&commands, command));
	on_dump = d9__on_dump_begin(&plan);
	CU_ASSERT_PTR_NOT_NULL_FATAL(on_dump);
}

static void end(struct d9__on_dump_outcome *outcome)
{
	char remove_all[PATH_MAX + 16];

	d9__on_dump_end(on_dump, outcome);
	d9__on_dump_release(&commands);
	snprintf(remove_all, sizeof(remove_all), "rm -r %s", dir);
	CU_ASSERT_FATAL(!chdir("/") && !system(remove_all));
}

/* As a recorder writes it: at once. */
static void write_manifest(const char *place, int number, const char *state)
{
	char part[64], name[64];
	FILE *out;

	snprintf(part, sizeof(part), "%s/.part", place);
	snprintf(name, sizeof(name), "%s/dump.01ARZ3NDEKTSV4RRFFQ69G5F%02d.json", place, number);
	mkdir(place, 0700);
	out = fopen(part, "w");
	CU_ASSERT_PTR_NOT_NULL_FATAL(out);
	fprintf(out, "{\n  \"dump_id\": \"...\",\n  \"state\": \"%s\"\n}\n", state);
	fclose(out);
	CU_ASSERT_FATAL(!rename(part, name));
}

static bool is_there(const char *path)
{
	return !access(path, F_OK);
}

static int count_lines(const char *path)
{
	FILE *in = fopen(path, "r");
	int c, n = 0;

	while (in && (c = getc(in)) != EOF)
		n += c == '\n';
	if (in)
		fclose(in);
	return n;
}

static void test_each_finished_dump_of_a_new_process_is_handled_once(void)
{
	const struct d9__namespaces before = { (char *[]){ (char[]){ "aaaa-1" } }, 1 };
	struct d9__on_dump_outcome outcome;
	char last[PATH_MAX];
	FILE *log;

	begin("sh -c 'echo \"$@\" >>log' x one", &before, 30 * S);
	write_manifest("aaaa-1", 1, "closed");
	write_manifest("bbbb-1", 2, "open");
	write_manifest("bbbb-1", 3, "closed");
	while (!is_there("log"))
		usleep(1000);
	/* Another trigger joined it. */
	write_manifest("bbbb-1", 3, "closed");
	/* Others write other things. */
	CU_ASSERT_FATAL(!mkdir("bbbb-1/dump.01ARZ3NDEKTSV4RRFFQ69G5F04.json", 0700));
	CU_ASSERT_FATAL(!mkfifo("bbbb-1/dump.01ARZ3NDEKTSV4RRFFQ69G5F05.json", 0600));
	CU_ASSERT_FATAL(!symlink("dump.01ARZ3NDEKTSV4RRFFQ69G5F03.json", "bbbb-1/dump.01ARZ3NDEKTSV4RRFFQ69G5F06.json"));
	CU_ASSERT_FATAL(!link("bbbb-1/dump.01ARZ3NDEKTSV4RRFFQ69G5F03.json", "bbbb-1/dump.x.json"));
	write_manifest("cccc-1", 7, "failed");
	d9__on_dump_end(on_dump, &outcome);
	on_dump = NULL;
	CU_ASSERT_EQUAL(outcome.runs, 2);
	CU_ASSERT_EQUAL(outcome.failed, 0);
	CU_ASSERT_EQUAL(count_lines("log"), 2);
	log = fopen("log", "r");
	CU_ASSERT_FATAL(log && fgets(last, sizeof(last), log));
	fclose(log);
	CU_ASSERT_EQUAL(strncmp(last, "one /tmp/dial9-hooks-", 21), 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(last, "/bbbb-1/dump.01ARZ3NDEKTSV4RRFFQ69G5F03.json\n"));
	end(&outcome);
}

static void test_more_than_may_wait_are_left_out_and_told(void)
{
	struct d9__on_dump_outcome outcome;

	begin("sh -c 'echo >>log'", &none, 30 * S);
	CU_ASSERT_FATAL(!mkdir(".made", 0700));
	for (int i = 0; i < D9__ON_DUMP_WAITING + 4; i++)
		write_manifest(".made", i, "closed");
	CU_ASSERT_FATAL(!rename(".made", "aaaa-1"));
	d9__on_dump_end(on_dump, &outcome);
	on_dump = NULL;
	CU_ASSERT_EQUAL(outcome.left_out, 3);
	CU_ASSERT_EQUAL(outcome.runs, D9__ON_DUMP_WAITING + 1);
	CU_ASSERT_EQUAL(count_lines("log"), D9__ON_DUMP_WAITING + 1);
	d9__on_dump_tell(&outcome);
	CU_ASSERT_STRING_EQUAL(told, "--on-dump: nothing was run for 3 dumps, because too many waited");
	end(&outcome);
}

static bool lives(pid_t pid)
{
	char path[32], state = 'Z';
	FILE *in;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	in = fopen(path, "r");
	if (in && fscanf(in, "%*d (%*[^)]) %c", &state) != 1)
		state = 'Z';
	if (in)
		fclose(in);
	return state != 'Z';
}

static void test_one_that_takes_too_long_is_killed_with_what_it_started(void)
{
	struct d9__on_dump_outcome outcome;
	int pid = 0;

	/* On a busy machine it may be killed before it has started anything. */
	for (uint64_t limit_ns = S / 4; !pid; limit_ns *= 2) {
		FILE *in;

		begin("sh -c 'sleep 1000 & echo $! >pid; mv pid its_pid; wait'", &none, limit_ns);
		write_manifest("aaaa-1", 1, "closed");
		d9__on_dump_end(on_dump, &outcome);
		on_dump = NULL;
		in = fopen("its_pid", "r");
		CU_ASSERT_FATAL(!in || fscanf(in, "%d", &pid) == 1);
		if (in)
			fclose(in);
		CU_ASSERT_EQUAL(outcome.failed, 1);
		CU_ASSERT_PTR_NOT_NULL(strstr(outcome.last, "wait'' was killed after "));
		end(&outcome);
	}
	while (lives(pid))
		usleep(1000);
}

static void test_what_fails_keeps_nothing_else_from_running(void)
{
	struct d9__on_dump_outcome outcome;

	begin("./missing", &none, 30 * S);
	CU_ASSERT_FATAL(d9__on_dump_add(&commands, "sh -c 'kill -TERM $$'"));
	CU_ASSERT_FATAL(d9__on_dump_add(&commands, "sh -c 'echo >>log; exit 3'"));
	write_manifest("aaaa-1", 1, "closed");
	write_manifest("aaaa-1", 2, "closed");
	d9__on_dump_end(on_dump, &outcome);
	on_dump = NULL;
	CU_ASSERT_EQUAL(count_lines("log"), 2);
	CU_ASSERT_EQUAL(outcome.runs, 6);
	CU_ASSERT_EQUAL(outcome.failed, 6);
	d9__on_dump_tell(&outcome);
	CU_ASSERT_PTR_NOT_NULL(strstr(told, "--on-dump: 6 of 6 runs failed, the latest: 'sh -c 'echo >>log; exit 3'' exited with 3 for "));
	end(&outcome);
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "words", test_words_are_those_of_a_shell_that_expands_nothing },
		{ "mistakes in words", test_mistakes_in_words_are_told },
		{ "each once", test_each_finished_dump_of_a_new_process_is_handled_once },
		{ "too many", test_more_than_may_wait_are_left_out_and_told },
		{ "too long", test_one_that_takes_too_long_is_killed_with_what_it_started },
		{ "failures", test_what_fails_keeps_nothing_else_from_running },
		CU_TEST_INFO_NULL,
	};

	return d9_test_main("hooks", tests);
}
