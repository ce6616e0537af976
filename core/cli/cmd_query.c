/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stddef.h>

#include "cli/cmd.h"
#include "tool/args.h"

#ifdef HAVE_SQLITE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/time.h"
#include "query/query.h"
#include "query/query_shell.h"
#endif

enum key {
	KEY_TIMEOUT = 256,
	KEY_MEMORY,
	KEY_NO_SYMBOLS,
	KEY_SCHEMA,
	KEY_ATTACH,
};

static const struct d9__opt opts[] = {
	{ 'f', "format", "F", "table (the default), csv, jsonl (JSON Lines) or json" },
	{ 'o', "output", "FILE", "write all tables into the SQLite database FILE" },
	{ KEY_ATTACH, "attach", "NAME=TRACE",
	  "another trace: its tables are NAME.polls and so on" },
	{ KEY_SCHEMA, "schema", NULL,
	  "print all tables with what their columns mean; needs no TRACE" },
	{ KEY_TIMEOUT, "timeout", "TIME", "stop a statement that takes longer (1m; 0: never)" },
	{ KEY_MEMORY, "memory", "SIZE", "most memory of SQLite (1G; 0: no limit)" },
	{ KEY_NO_SYMBOLS, "no-symbols", NULL, "do not look functions up in the binaries" },
	{ 'v', "verbose", NULL, "tell how long reading took" },
	{ 0, NULL, NULL, NULL },
};

static const struct d9__usage usage = {
	.command = "query",
	.synopsis = "[OPTIONS] TRACE [SQL]",
	.text = "Ask a trace in SQL: polls, parks, wakes, tasks, spans, samples, findings, ...\n"
		"Without SQL it is read from standard input, on a terminal with a prompt.  Only\n"
		"what is asked of is read from the trace.\n"
		"  dial9 query TRACE 'SELECT name, count(*), max(ms) FROM calls GROUP BY name'\n",
	.opts = opts,
};

#ifdef HAVE_SQLITE

#define DEFAULT_TIMEOUT_NS (60 * D9__SECOND_NS)
#define DEFAULT_MEMORY	   ((uint64_t)1 << 30)

struct arguments {
	struct d9__query_options options;
	struct d9__query_attached attached[D9__QUERY_TRACES - 1];
	const char *output;
	bool schema;
};

static bool set_format(const struct d9__args *args, struct d9__query_options *options)
{
	options->format = d9__query_format_find(args->value);
	if (options->format != D9__QUERY_FORMATS)
		return true;
	d9__cmd_fail("query", "--format wants table, csv, jsonl or json, not '%s'", args->value);
	return false;
}

/* A word that SQL takes without quotes, and that is no schema of its own. */
static bool is_name(const char *name)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_",
			  more[] = "0123456789";
	size_t first = strspn(name, letters), len = first;

	while (name[len] && (strchr(letters, name[len]) || strchr(more, name[len])))
		len++;
	return first && !name[len] && strcasecmp(name, "main") != 0 &&
	       strcasecmp(name, "temp") != 0;
}

/* Take "NAME=TRACE". */
static bool take_attached(const struct d9__args *args, struct arguments *arguments)
{
	struct d9__query_options *options = &arguments->options;
	struct d9__query_attached *attached = &arguments->attached[options->n_attached];
	char *equal = strchr(args->value, '=');

	if (options->n_attached == D9__QUERY_TRACES - 1) {
		d9__cmd_fail("query", "--attach takes %d traces", D9__QUERY_TRACES - 1);
		return false;
	}
	attached->name = equal ? strndup(args->value, (size_t)(equal - args->value)) : NULL;
	if (!attached->name || !is_name(attached->name) || !equal[1]) {
		d9__cmd_fail("query",
			     "--attach wants NAME=TRACE, where NAME is a word of SQL, not '%s'",
			     args->value);
		return false;
	}
	for (size_t i = 0; i < options->n_attached; i++)
		if (!strcasecmp(options->attached[i].name, attached->name)) {
			d9__cmd_fail("query", "--attach %s=... is there twice", attached->name);
			return false;
		}
	attached->paths[0] = equal + 1;
	options->attached = arguments->attached;
	options->n_attached++;
	return true;
}

static void release(struct arguments *arguments)
{
	for (size_t i = 0; i < sizeof(arguments->attached) / sizeof(arguments->attached[0]); i++)
		free(arguments->attached[i].name);
}

static bool take_option(const struct d9__args *args, int key, struct arguments *arguments)
{
	switch (key) {
	case 'f':
		return set_format(args, &arguments->options);
	case 'o':
		arguments->output = args->value;
		return true;
	case KEY_SCHEMA:
		arguments->schema = true;
		return true;
	case KEY_TIMEOUT:
		return d9__args_duration_ns(args, &arguments->options.timeout_ns);
	case KEY_MEMORY:
		return d9__args_bytes(args, &arguments->options.memory_bytes);
	case 'v':
		arguments->options.verbose = true;
		return true;
	case KEY_ATTACH:
		return take_attached(args, arguments);
	default:
		arguments->options.no_symbols = true;
		return true;
	}
}

static int print_schema(void)
{
	static struct d9__text_out out;

	d9__text_init(&out, STDOUT_FILENO);
	d9__query_put_schema(&out, NULL);
	return d9__text_finish(&out, "query");
}

static int ask(struct d9__query *query, const char *sql)
{
	static struct d9__text_out out;
	int status, written;

	d9__text_init(&out, STDOUT_FILENO);
	if (!d9__query_command(sql, &out, &status))
		status = d9__query_run(query, sql, &out);
	written = d9__text_finish(&out, "query");
	return status ? status : written;
}

/* Fill a file of another name, and rename it at the end, so that the output is never half a database. */
static int write_database(struct d9__query *query, struct arguments *arguments, char **paths,
			  const char *sql)
{
	char *unfinished;
	int status, fd;

	if (asprintf(&unfinished, "%s.XXXXXX", arguments->output) < 0)
		return d9__cmd_fail("query", "out of memory");
	fd = mkstemp(unfinished);
	if (fd < 0) {
		status = d9__cmd_fail("query", "cannot write %s: %s", arguments->output,
				      strerror(errno));
		free(unfinished);
		return status;
	}
	close(fd);
	status = d9__query_open(query, &arguments->options, paths, unfinished);
	if (!status)
		status = d9__query_fill(query);
	if (!status && sql)
		status = ask(query, sql);
	d9__query_close(query);
	if (!status && rename(unfinished, arguments->output))
		status = d9__cmd_fail("query", "cannot write %s: %s", arguments->output,
				      strerror(errno));
	if (status)
		unlink(unfinished);
	free(unfinished);
	return status ? status : query->status;
}

static int run(struct arguments *arguments, char *trace, const char *sql)
{
	char *paths[] = { trace, NULL };
	struct d9__query query;
	int status;

	if (arguments->output && arguments->options.n_attached)
		return d9__cmd_fail("query", "--output writes one TRACE: without --attach");
	if (arguments->output)
		return write_database(&query, arguments, paths, sql);
	if (!sql && !strcmp(trace, "-"))
		return d9__cmd_fail("query",
				    "standard input is the trace: give SQL as an argument");
	status = d9__query_open(&query, &arguments->options, paths, NULL);
	if (!status)
		status = sql ? ask(&query, sql) : d9__query_shell(&query, &arguments->options);
	d9__query_close(&query);
	return status ? status : query.status;
}

/* With the |n| arguments behind the options. */
static int run_all(struct arguments *arguments, int n, char **argv)
{
	if (arguments->schema)
		return n ? d9__cmd_fail("query", "--schema takes no TRACE") : print_schema();
	if (n < 1)
		return d9__cmd_fail("query", "which TRACE? see dial9 query --help");
	if (n > 2)
		return d9__cmd_fail(
			"query",
			"one TRACE and one SQL, in quotes; of several segments give the directory");
	if (n > 1 && !argv[1][strspn(argv[1], " \t\n;")])
		return d9__cmd_fail("query", "the SQL is empty; see dial9 query --help");
	return run(arguments, argv[0], n > 1 ? argv[1] : NULL);
}

int d9__cmd_query(int argc, char **argv)
{
	struct d9__args args = { .usage = &usage, .argc = argc, .argv = argv };
	struct arguments arguments = { .options = { .command = "query",
						    .timeout_ns = DEFAULT_TIMEOUT_NS,
						    .memory_bytes = DEFAULT_MEMORY } };
	int key, status = 0;

	while (!status && (key = d9__args_next(&args)) > 0)
		if (!take_option(&args, key, &arguments))
			status = D9__EXIT_USAGE;
	if (!status)
		status = key < 0 ? d9__args_exit(key)
				 : run_all(&arguments, argc - args.first, argv + args.first);
	release(&arguments);
	return status;
}
#else
int d9__cmd_query(int argc, char **argv)
{
	struct d9__args args = { .usage = &usage, .argc = argc, .argv = argv };
	int key;

	while ((key = d9__args_next(&args)) > 0)
		continue;
	if (key < 0)
		return d9__args_exit(key);
	return d9__cmd_fail(
		"query",
		"this dial9 was built without SQLite: install libsqlite3-dev and build it again");
}
#endif
