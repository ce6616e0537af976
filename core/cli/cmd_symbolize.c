/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `dial9 symbolize` reads a trace twice.  The first pass learns where modules were mapped, because
 * they are recorded a moment after the first events that need them.  The second gathers each
 * segment's addresses, appends their names to the segment, and replaces the places where tasks were
 * registered by names.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <dial9/reader.h>

#include "analyze/budget.h"
#include "analyze/processes.h"
#include "base/directory.h"
#include "cli/cmd.h"
#include "cli/cmd_symbolize.h"
#include "cli/symbolize/spawn_names.h"
#include "cli/symbolize/symbolize_output.h"
#include "cli/symbolize/symbolize_summary.h"
#include "symbol/address_set.h"
#include "symbol/row_batch.h"
#include "symbol/symbolizer.h"
#include "tool/args.h"
#include "tool/progress.h"
#include "tool/symbol_options.h"
#include "tool/trace_input.h"

#define DEBUG_DIRS_MAX 16

enum key {
	KEY_DEBUG_DIR = 256,
	KEY_DEBUGINFOD,
	KEY_NO_NETWORK,
};

static const struct d9__opt opts[] = {
	{ 'o', "output", "FILE", "write copies: a file for one segment, else a directory [in place]" },
	{ KEY_DEBUG_DIR, "debug-dir", "DIR", "look for debug files here, too; may be repeated" },
	{ KEY_DEBUGINFOD, "debuginfod", NULL, "ask the servers in $DEBUGINFOD_URLS for the rest" },
	{ KEY_NO_NETWORK, "no-network", NULL, "ask no server; the default" },
	{ 0, NULL, NULL, NULL },
};

static const struct d9__usage usage = {
	.command = "symbolize",
	.synopsis = "[OPTIONS] TRACE...",
	.text = "Write functions and lines into a trace, so that it can be read where the\n"
		"binaries are not.\n"
		"Rows for all addresses in stacks and of callbacks are put behind each segment;\n"
		"spawn_loc gets names.\n",
	.opts = opts,
};

struct options {
	const char *output; /* NULL: in place */
	const char *debug_dirs[DEBUG_DIRS_MAX + 1];
	size_t n_debug_dirs;
	bool debuginfod;
};

struct trace {
	const struct options *options;
	struct d9_reader *modules, *reader; /* the same trace twice */
	struct d9__processes processes;
	struct d9__symbolizer **symbolizers; /* by process */
	struct d9__symbolize_summary summary;
	struct d9__spawn_names names;
	struct d9__progress progress;
	int status;
};

static bool take_option(const struct d9__args *args, int key, struct options *options)
{
	switch (key) {
	case 'o':
		options->output = args->value;
		return true;
	case KEY_DEBUG_DIR:
		if (options->n_debug_dirs == DEBUG_DIRS_MAX) {
			d9__cmd_fail("symbolize", "--debug-dir can be given %d times", DEBUG_DIRS_MAX);
			return false;
		}
		options->debug_dirs[options->n_debug_dirs++] = args->value;
		return true;
	default:
		options->debuginfod = key == KEY_DEBUGINFOD;
		return true;
	}
}

/* ---- the first pass ---- */

static int open_symbolizers(struct trace *trace)
{
	struct d9__symbolizer_options options = d9__symbol_options();
	int err = 0;

	options.places.dirs = trace->options->debug_dirs;
	options.places.debuginfod = trace->options->debuginfod;

	trace->symbolizers = calloc(trace->processes.n + 1, sizeof(struct d9__symbolizer *));
	if (!trace->symbolizers)
		return -ENOMEM;
	for (size_t i = 0; !err && i < trace->processes.n; i++)
		err = d9__symbolizer_open(&options, &trace->symbolizers[i]);
	return err;
}

static struct d9__symbolizer *symbolizer_of(const struct trace *trace, size_t segment)
{
	return trace->symbolizers[trace->processes.of_segment[segment]];
}

static int learn_modules(struct trace *trace)
{
	const struct d9_event *event;
	int err = 0;

	d9_reader_set_file_order(trace->modules, true);
	/* Skip a segment that was written since: |reader| does not have it. */
	while (!err && (event = d9__traces_next(trace->modules, &trace->progress, &err)))
		if (event->segment < trace->processes.n_segments)
			err = d9__symbol_learn(symbolizer_of(trace, event->segment), trace->modules, event);
	return err;
}

/* ---- one segment ---- */

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* True if the copies of |process| can have a folder of the same name as the original's. */
static bool is_name_free(const struct d9__processes *processes, size_t process)
{
	const char *name = base_name(processes->items[process].folder);

	for (size_t i = 0; i < processes->n; i++)
		if (i != process && !strcmp(base_name(processes->items[i].folder), name))
			return false;
	return *name && strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

/* Return the path for the copy of |path|, in new memory; NULL: out of memory. */
static char *output_path(const struct trace *trace, const char *path, size_t segment)
{
	size_t process = trace->processes.of_segment[segment];
	const char *output = trace->options->output;
	char *out = NULL;
	int n;

	if (!output || trace->processes.n_segments == 1)
		return strdup(output ? output : path);
	if (trace->processes.n == 1)
		n = asprintf(&out, "%s/%s", output, base_name(path));
	else if (is_name_free(&trace->processes, process))
		n = asprintf(&out, "%s/%s/%s", output, base_name(trace->processes.items[process].folder), base_name(path));
	else
		n = asprintf(&out, "%s/process-%zu/%s", output, process + 1, base_name(path));
	return n < 0 ? NULL : out;
}

/*
 * Make the directory of |path| if it is missing.  Refuse it, with -EPERM, if another user can
 * change names in it.
 */
static int prepare_directory(const struct trace *trace, const char *path)
{
	bool is_copy = trace->options->output && trace->processes.n_segments > 1;
	const char *slash = strrchr(path, '/');
	char *dir = slash ? strndup(path, (size_t)(slash - path) + !(slash - path)) : strdup(".");
	int fd;

	if (!dir)
		return -ENOMEM;
	/* One file that was named goes where it was named, as with export. */
	fd = trace->options->output && !is_copy ? 0 : d9__directory_open(dir, is_copy ? D9__DIRECTORY_MAKE : 0);
	free(dir);
	if (fd > 0)
		close(fd);
	return fd < 0 ? fd : 0;
}

static int explain_output(const char *path, int err)
{
	if (err == -ENOTTY)
		return d9__cmd_fail("symbolize", "a trace is not for a terminal; give a file with -o");
	if (err == -EPERM)
		return d9__cmd_fail("symbolize", "%s: its directory is not yours alone; give another with -o", path);
	return d9__cmd_fail("symbolize", "%s: %s", path, strerror(-err));
}

static int add_rows(struct trace *trace, struct d9__address_set *set, size_t segment, bool all,
		    struct d9__row_batch *rows)
{
	struct d9__symbolizer *symbolizer = symbolizer_of(trace, segment);
	struct d9__frames frames;
	int err = 0;

	d9__address_set_sort(set);
	for (size_t i = 0; !err && i < set->n; i++) {
		const struct d9__address *item = &set->items[i];

		if (!item->met && !all)
			continue;
		d9__symbolizer_resolve(symbolizer, item->address, item->ns, item->role, &frames);
		if (item->met)
			err = d9__symbolize_summary_count(&trace->summary, &frames);
		/*
		 * Leave the row of an address that no event has if its function is not found now.
		 */
		if (!err && (item->met || frames.known) && (all || !item->has_row))
			err = d9__row_batch_add(rows, item->address, &frames);
	}
	return err;
}

/* |set| are the addresses of the segment |segment|, which was read to its end. */
static int finish_segment(struct trace *trace, size_t segment, struct d9__address_set *set, bool has_rows)
{
	struct d9__row_batch rows = { 0 };
	struct d9_segment_info info;
	struct d9__symbolize_tail tail = { 0 };
	char *output;
	int err = d9_reader_segment(trace->reader, segment, &info);

	/* A missing segment was already told when the trace was read. */
	if (info.err == -ENOENT)
		return 0;
	if (err || info.err || info.truncated || info.active) {
		d9__symbolize_summary_leave_out(&trace->summary, &info);
		return 0;
	}
	output = output_path(trace, info.path, segment);
	if (!output)
		return -ENOMEM;
	if (has_rows)
		err = d9__symbolize_find_tail(info.path, &tail);
	if (!err)
		err = add_rows(trace, set, segment, tail.found, &rows);
	if (!err)
		err = d9__spawn_names_find(&trace->names, symbolizer_of(trace, segment), tail.found || !has_rows, &rows);
	if (!err && (rows.len || trace->options->output || tail.found)) {
		err = prepare_directory(trace, output);
		if (!err)
			err = d9__symbolize_write(info.path, &tail, &trace->names, &rows, output);
		if (err && err != -EPIPE)
			trace->status = explain_output(output, err);
	}
	d9__row_batch_release(&rows);
	free(output);
	return err;
}

static int write_segments(struct trace *trace)
{
	struct d9__address_set set = { 0 };
	const struct d9_event *event;
	size_t segment = 0;
	bool has_rows = false;
	int err = 0;

	d9_reader_set_file_order(trace->reader, true);
	while (!err && segment < trace->processes.n_segments) {
		event = d9__traces_next(trace->reader, &trace->progress, &err);
		for (; !err && segment < (event ? event->segment : trace->processes.n_segments); segment++) {
			err = finish_segment(trace, segment, &set, has_rows);
			d9__address_set_release(&set);
			d9__spawn_names_next(&trace->names);
			has_rows = false;
		}
		if (err || !event)
			break;
		has_rows = has_rows || (event->kind == D9_EVENT_SYMBOL && !event->timestamp_ns);
		err = d9__address_set_learn(&set, symbolizer_of(trace, event->segment), event);
		if (!err)
			err = d9__spawn_names_learn(&trace->names, event);
	}
	d9__address_set_release(&set);
	return err;
}

/* ---- the command ---- */

static int open_trace(struct trace *trace, char **paths)
{
	int status;

	if (d9__traces_have_pipe(paths))
		return d9__cmd_fail("symbolize", "a pipe cannot be read twice; give a file or a directory");
	status = d9__traces_open("symbolize", paths, &trace->modules);
	if (!status)
		status = d9__traces_open("symbolize", paths, &trace->reader);
	if (!status && (d9__processes_find(&trace->processes, trace->reader) || open_symbolizers(trace)))
		status = d9__cmd_fail("symbolize", "out of memory");
	return status;
}

static void close_trace(struct trace *trace)
{
	for (size_t i = 0; trace->symbolizers && i < trace->processes.n; i++)
		d9__symbolizer_close(trace->symbolizers[i]);
	free(trace->symbolizers);
	d9__processes_release(&trace->processes);
	d9_reader_free(trace->modules);
	d9_reader_free(trace->reader);
	d9__symbolize_summary_release(&trace->summary);
	d9__spawn_names_release(&trace->names);
}

static int run(char **paths, const struct options *options)
{
	struct trace trace = { .options = options };
	int err, status = open_trace(&trace, paths);
	FILE *out = options->output && !strcmp(options->output, "-") ? stderr : stdout;

	if (!status) {
		d9__progress_init(&trace.progress);
		err = learn_modules(&trace);
		if (!err)
			err = write_segments(&trace);
		d9__progress_clear(&trace.progress);
		status = d9__traces_close("symbolize", trace.reader, trace.status ? 0 : err);
		status = trace.status ? trace.status : status;
		if (!err)
			d9__symbolize_summary_print(&trace.summary, trace.symbolizers, trace.processes.n, out);
	}
	close_trace(&trace);
	return status;
}

int d9__cmd_symbolize(int argc, char **argv)
{
	struct d9__args args = { .usage = &usage, .argc = argc, .argv = argv };
	struct options options = { 0 };
	int key;

	while ((key = d9__args_next(&args)) > 0)
		if (!take_option(&args, key, &options))
			return D9__EXIT_USAGE;
	if (key < 0)
		return d9__args_exit(key);
	return run(argv + args.first, &options);
}

int d9__symbolize_to_stdout(const char *path)
{
	char name[] = "symbolize", output[] = "-o", out[] = "-";
	char *argv[] = { name, output, out, (char *)path, NULL };

	return d9__cmd_symbolize(4, argv);
}
