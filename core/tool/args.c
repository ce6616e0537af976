/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <ctype.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "tool/args.h"

#include "base/options.h"
#include "base/spelling.h"
#include "text/fail.h"

#define D9__OPTS_MAX 32

/* The width of the help, and the column of an option's description. */
#define HELP_WIDTH  80
#define HELP_INDENT 27

enum { KEY_HELP = 0x4000 };

static bool may_be_left_out(const struct d9__opt *opt)
{
	return opt->value && opt->value[0] == '[';
}

/* |text| behind |column| columns, broken at spaces, each line below the first. */
static void print_beside(const char *text, size_t column)
{
	size_t len;

	while (column + strlen(text) > HELP_WIDTH) {
		const char *space = memrchr(text, ' ', HELP_WIDTH - column + 1);

		len = space ? (size_t)(space - text) : strcspn(text, " ");
		printf("%.*s\n%*s", (int)len, text, HELP_INDENT, "");
		column = HELP_INDENT;
		text += len + strspn(text + len, " ");
	}
	puts(text);
}

static void print_opt(const struct d9__opt *opt)
{
	char left[64] = "    ";
	int n = 4;

	if (opt->key < 256)
		n = snprintf(left, sizeof(left), "-%c, ", opt->key);
	n += snprintf(left + n, sizeof(left) - (size_t)n, "--%s", opt->name);
	if (opt->value)
		snprintf(left + n, sizeof(left) - (size_t)n, "%s%s", may_be_left_out(opt) ? "" : " ", opt->value);
	n = printf("  %-23s  ", left);
	print_beside(opt->help, (size_t)n);
}

static void print_help(const struct d9__usage *usage)
{
	printf("usage: dial9 %s %s\n\n%s\n", usage->command, usage->synopsis, usage->text);
	for (const struct d9__opt *opt = usage->opts; opt->name; opt++)
		print_opt(opt);
	printf("  -h, --help               print this\n\nManual: man dial9-%s\n", usage->command);
}

/* " (is --name meant?)", or "; DIAL9_MODE=... sets that", or nothing. */
static void guess(const struct d9__usage *usage, const char *word, char *buf, size_t size)
{
	char name[64], variable[80] = "DIAL9_";
	struct d9__spelling nearest = { .word = name };
	size_t n = strlen(variable);

	buf[0] = '\0';
	snprintf(name, sizeof(name), "%.*s", (int)strcspn(word + 2, "="), word + 2);
	for (const struct d9__opt *opt = usage->opts; opt->name; opt++)
		d9__spelling_try(&nearest, opt->name);
	for (const char *c = name; *c; c++)
		variable[n++] = *c == '-' ? '_' : (char)toupper((unsigned char)*c);
	variable[n] = '\0';
	if (d9__options_knows(variable, n))
		snprintf(buf, size, "; the variable %s sets that", variable);
	else if (nearest.name)
		snprintf(buf, size, " (is --%s meant?)", nearest.name);
}

static int report_bad_option(const struct d9__args *args, int result)
{
	const char *command = args->usage->command, *word = args->argv[optind - 1];
	char near[128];

	/* optopt: the letter of a short option; 0 or a key for a long one. */
	if (result == ':')
		d9__cmd_fail(command, "%s needs a value; see dial9 %s --help", word, command);
	else if (optopt && optopt < 256 && strncmp(word, "--", 2) != 0)
		d9__cmd_fail(command, "unknown option '-%c'; see dial9 %s --help", optopt, command);
	else if (optopt)
		d9__cmd_fail(command, "%s takes no value; see dial9 %s --help", word, command);
	else {
		guess(args->usage, word, near, sizeof(near));
		d9__cmd_fail(command, "unknown option '%s'%s; see dial9 %s --help", word, near, command);
	}
	return D9__ARGS_ERROR;
}

/* Fill getopt_long()'s two tables from ours. */
static void fill_tables(const struct d9__usage *usage, char *shorts, struct option *longs)
{
	size_t n = 0;

	*shorts++ = usage->stop_at_operand ? '+' : ':';
	if (usage->stop_at_operand)
		*shorts++ = ':';
	*shorts++ = 'h';
	for (const struct d9__opt *opt = usage->opts; opt->name && n < D9__OPTS_MAX; opt++) {
		longs[n++] = (struct option){ opt->name,
					      may_be_left_out(opt) ? optional_argument :
					      opt->value ? required_argument : no_argument, NULL, opt->key };
		if (opt->key >= 256)
			continue;
		*shorts++ = (char)opt->key;
		if (opt->value)
			*shorts++ = ':';
	}
	*shorts = '\0';
	longs[n++] = (struct option){ "help", no_argument, NULL, KEY_HELP };
	longs[n] = (struct option){ NULL, 0, NULL, 0 };
}

static const char *name_of_key(const struct d9__usage *usage, int key)
{
	for (const struct d9__opt *opt = usage->opts; opt->name; opt++)
		if (opt->key == key)
			return opt->name;
	return "";
}

int d9__args_next(struct d9__args *args)
{
	struct option longs[D9__OPTS_MAX + 2];
	char shorts[2 * D9__OPTS_MAX + 4];
	int result;

	if (!args->started)
		optind = 0; /* glibc: start over, reading '+' and POSIXLY_CORRECT anew */
	args->started = true;
	opterr = 0;
	fill_tables(args->usage, shorts, longs);
	result = getopt_long(args->argc, args->argv, shorts, longs, NULL);
	if (result == -1) {
		args->first = optind;
		return D9__ARGS_END;
	}
	if (result == 'h' || result == KEY_HELP) {
		print_help(args->usage);
		return D9__ARGS_HELP;
	}
	if (result == '?' || result == ':')
		return report_bad_option(args, result);
	args->value = optarg;
	args->name = name_of_key(args->usage, result);
	return result;
}

int d9__args_exit(int result)
{
	return result == D9__ARGS_HELP ? D9__EXIT_OK : D9__EXIT_USAGE;
}

static bool complain(const struct d9__args *args, const char *wanted)
{
	d9__cmd_fail(args->usage->command, "--%s wants %s, not '%s'", args->name, wanted,
		     args->value);
	return false;
}

bool d9__args_u64(const struct d9__args *args, uint64_t *out)
{
	return d9__parse_u64(args->value, out) || complain(args, "a whole number");
}

bool d9__args_duration_ns(const struct d9__args *args, uint64_t *out_ns)
{
	return d9__parse_duration_ns(args->value, out_ns) ||
	       complain(args, "a time such as 250ms or 1.5s");
}

bool d9__args_bytes(const struct d9__args *args, uint64_t *out_bytes)
{
	return d9__parse_bytes(args->value, out_bytes) || complain(args, "a size such as 64K or 10M");
}
