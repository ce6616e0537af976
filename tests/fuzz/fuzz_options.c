/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any text as what a person may set: lines "DIAL9_NAME=VALUE" are the environment of a recorder,
 * all others the arguments of a command.  No crash, nothing out of its range, and the numbers are
 * those that the text says.
 */
#include "config.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "base/environment.h"
#include "base/options.h"
#include "base/trigger_text.h"
#include "base/utf8.h"
#include "cli/cmd.h"
#include "fuzz/fuzz.h"
#include "record/levels.h"
#include "text/text.h"
#include "tool/args.h"

#define LINES_MAX 128

struct lines {
	char *text;
	char *variables[LINES_MAX + 1], *arguments[LINES_MAX + 2];
	size_t n_variables;
	int n_arguments;
};

static const struct lines *current;

char *__wrap_d9__environment_get(const char *name);

/* Where a command complains. */
int d9__cmd_fail(const char *command, const char *format, ...)
{
	char message[8192];
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(message, sizeof(message), format, args);
	va_end(args);
	fuzz_require(command && n > 0, "a complaint has a text");
	return D9__EXIT_USAGE;
}

static void split(struct lines *lines, const uint8_t *data, size_t size)
{
	static char command[] = "dial9";
	char *save = NULL;

	*lines = (struct lines){ .text = malloc(size + 1), .arguments = { command } };
	fuzz_require(lines->text != NULL, "there is memory");
	memcpy(lines->text, data, size);
	lines->text[size] = '\0';
	lines->n_arguments = 1;
	for (char *line = strtok_r(lines->text, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save)) {
		if (!strncmp(line, "DIAL9_", 6) && lines->n_variables < LINES_MAX)
			lines->variables[lines->n_variables++] = line;
		else if (lines->n_arguments <= LINES_MAX)
			lines->arguments[lines->n_arguments++] = line;
	}
}

/* ---- the environment ---- */

/* Instead of d9__environment_get(). */
char *__wrap_d9__environment_get(const char *name)
{
	size_t len = strlen(name);

	for (size_t i = 0; i < current->n_variables; i++)
		if (!strncmp(current->variables[i], name, len) && current->variables[i][len] == '=')
			return current->variables[i] + len + 1;
	return NULL;
}

static void count_warning(void *arg, enum d9_log_level level, const char *message)
{
	fuzz_require(level == D9_LOG_WARNING && strlen(message) < 256, "a warning is a short one");
	++*(size_t *)arg;
}

static void check_ranges(const struct d9_options *options)
{
	static const struct {
		enum d9__option id;
		uint64_t min, max;
	} ranges[] = {
		{ D9__OPTION_ENABLED, 0, 1 },
		{ D9__OPTION_WRITER, 0, D9_WRITER_NULL },
		{ D9__OPTION_COMPRESS, 0, D9_COMPRESS_GZIP },
		{ D9__OPTION_CLOCK, 0, D9_CLOCK_MONOTONIC },
		{ D9__OPTION_RING, 0, D9_RING_DISK },
		{ D9__OPTION_RING_MB, 1, 128 },
		{ D9__OPTION_ROTATION_MS, 100, UINT64_C(31536000000) },
		{ D9__OPTION_MAX_TOTAL_BYTES, 64 << 10, INT64_MAX },
		{ D9__OPTION_MAX_FILE_BYTES, 16 << 10, INT64_MAX },
		{ D9__OPTION_USAGE_INTERVAL_MS, 1, 3600000 },
		{ D9__OPTION_SCHED_WAIT_RATE, 1, 1000000 },
		{ D9__OPTION_LOG_BRIDGE, 0, D9_LOG_BRIDGE_DEBUG },
	};

	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
		uint64_t number = d9__options_number(options, ranges[i].id);

		fuzz_require(number >= ranges[i].min && number <= ranges[i].max,
			     "an option keeps to its range");
	}
}

/* Texts go into the trace: UTF-8, without blanks around them. */
static void check_texts(const struct d9_options *options)
{
	for (int id = D9__OPTION_NUMBERS; id < D9__OPTION_COUNT; id++) {
		const char *text = d9__options_text(options, (enum d9__option)id);
		size_t len = text ? strlen(text) : 0, n;

		fuzz_require(!text || len, "a text is not empty");
		for (size_t i = 0; i < len; i += n)
			fuzz_require((n = d9__utf8_len(text + i, len - i)) > 0, "a text is UTF-8");
	}
}

static void check_environment(void)
{
	struct d9_options api = { 0 }, once = { 0 }, twice = { 0 };
	size_t warnings = 0;

	fuzz_require(d9_options_set_log(&api, count_warning, &warnings) == 0, "a log can be set");
	fuzz_require(d9__options_resolve(&once, &api) == 0, "nothing in the environment is fatal");
	fuzz_require(warnings <= current->n_variables + 1, "a variable is complained of once");
	check_ranges(&once);
	check_texts(&once);

	/* What came out is what goes in: every value is one that a program could have set. */
	once.no_environment = true;
	once.set = ~UINT64_C(0) >> (64 - D9__OPTION_NUMBERS);
	fuzz_require(d9__options_resolve(&twice, &once) == 0, "resolved options can be resolved");
	fuzz_require(!memcmp(once.number, twice.number, sizeof(once.number)),
		     "resolving twice changes nothing");
	d9__options_release(&once);
	d9__options_release(&twice);
	d9__options_release(&api);
}

/* ---- arguments ---- */

/* Return the value of |text| by the C library's arithmetic, or -1. */
static long double by_strtold(const char *text, const char *const *names,
			      const long double *factors)
{
	size_t digits = strspn(text, "0123456789."), i = 0;
	char *end;
	long double value = strtold(text, &end);

	if (!digits || end != text + digits)
		return -1;
	while (names[i] && strcmp(names[i], end) != 0)
		i++;
	return names[i] ? value * factors[i] : -1;
}

static void check_close(uint64_t got, long double wanted)
{
	/* Each decimal is rounded down. */
	fuzz_require(wanted >= 0 && fabsl((long double)got - wanted) <= 20 + wanted * 1e-15L,
		     "a number is what its text says");
}

static void check_numbers(const char *text)
{
	static const char *const times[] = { "", "ns", "us", "ms", "s", "m", "h", NULL };
	static const long double ns[] = { 1e9L, 1, 1e3L, 1e6L, 1e9L, 6e10L, 36e11L };
	static const char *const sizes[] = { "", "K", "M", "G", "KiB", "MiB", "GiB", NULL };
	static const long double bytes[] = { 1, 0x1p10L, 0x1p20L, 0x1p30L,
					     0x1p10L, 0x1p20L, 0x1p30L };
	uint64_t number;

	if (d9__parse_u64(text, &number))
		fuzz_require(number == strtoull(text, NULL, 10), "a whole number is its digits");
	if (d9__parse_duration_ns(text, &number))
		check_close(number, by_strtold(text, times, ns));
	if (d9__parse_bytes(text, &number))
		check_close(number, by_strtold(text, sizes, bytes));
}

static void take_value(const struct d9__args *args, int key)
{
	uint64_t number;

	if (key == 'u')
		(void)d9__args_u64(args, &number);
	else if (key == 'd')
		(void)d9__args_duration_ns(args, &number);
	else if (key == 'b')
		(void)d9__args_bytes(args, &number);
}

static void check_arguments(bool stop_at_operand)
{
	static const struct d9__opt opts[] = {
		{ 'u', "units", "N", "a whole number" },
		{ 'd', "duration", "TIME", "a time" },
		{ 'b', "bytes", "SIZE", "a size" },
		{ 'q', "quiet", NULL, "a flag" },
		{ 300, "long-only", NULL, "a flag without a letter" },
		{ 301, "long-value", "X", "a value without a letter" },
		{ 0, NULL, NULL, NULL },
	};
	const struct d9__usage usage = { "fuzz", "[OPTIONS]", "What is fuzzed.\n", opts,
					 stop_at_operand };
	/* A copy: getopt_long() puts the operands behind the options. */
	char *argv[LINES_MAX + 2];
	struct d9__args args = { .usage = &usage, .argc = current->n_arguments, .argv = argv };
	size_t steps = 0, most = 1;
	int key;

	memcpy(argv, current->arguments, sizeof(argv));
	for (int i = 0; i < args.argc; i++)
		most += strlen(argv[i]) + 1;
	while ((key = d9__args_next(&args)) > 0) {
		fuzz_require(++steps <= most, "a command line ends");
		fuzz_require(args.name[0] != '\0', "an option has a name");
		take_value(&args, key);
	}
	if (key == D9__ARGS_END)
		fuzz_require(args.first >= 1 && args.first <= args.argc, "operands are arguments");
	fuzz_require(key == D9__ARGS_END || d9__args_exit(key) == (key == D9__ARGS_HELP ? 0 : 2),
		     "help is fine and errors are not");
}

/* Texts of triggers: what is wrong is in the text, what is right fits its place. */
static void check_triggers(const char *list)
{
	size_t size = strlen(list), len;
	struct d9__trigger_fault fault;
	struct d9__trigger trigger;
	const char *all = list, *one;
	uint32_t before;

	while (d9__trigger_next(&list, &one, &len)) {
		fuzz_require(d9__trigger_line(all, one, &before) == 1 && before <= one - all, "an argument is one line");
		if (!d9__trigger_parse(one, len, &trigger, &fault)) {
			fuzz_require(fault.column > 0 && fault.column <= len + 1, "a mistake is in the text");
			continue;
		}
		fuzz_require(strlen(trigger.name) < D9__TRIGGER_NAME, "a name fits");
		fuzz_require(trigger.for_ns <= UINT64_C(3600000000000), "a condition holds for an hour at most");
		fuzz_require(!trigger.for_ns || d9__level_is(trigger.kind), "only levels last");
		for (unsigned i = 0; i < trigger.n_matches; i++)
			d9__trigger_glob(trigger.matches[i].glob, all, size);
		for (const char *pair = trigger.pairs; *pair; pair += strlen(pair) + 1)
			fuzz_require(pair < trigger.pairs + D9__TRIGGER_PAIRS && strchr(pair, '='), "pairs fit");
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	FILE *shown = stdout, *nowhere = fopen("/dev/null", "w");
	struct lines lines;

	fuzz_require(nowhere != NULL, "help can be thrown away");
	split(&lines, data, size);
	current = &lines;
	check_environment();
	for (int i = 1; i < lines.n_arguments; i++) {
		check_numbers(lines.arguments[i]);
		check_triggers(lines.arguments[i]);
	}
	stdout = nowhere;
	check_arguments(false);
	check_arguments(true);
	stdout = shown;
	fclose(nowhere);
	free(lines.text);
	return 0;
}
