/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <dial9/reader.h>

#include "analyze/report.h"
#include "cli/args.h"
#include "cli/cmd.h"
#include "cli/elf_symbols.h"
#include "cli/progress.h"
#include "cli/text.h"
#include "cli/trace_input.h"
#include "cli/unwritten.h"

#define DEFAULT_TOP   10

enum key {
	KEY_COLOR = 256,
	KEY_WIDTH,
	KEY_NO_SYMBOLS,
};

enum color {
	COLOR_AUTO,
	COLOR_ALWAYS,
	COLOR_NEVER,
};

struct options {
	bool json, no_symbols;
	enum color color;
	struct d9__report_style style;
};

static const struct d9__opt opts[] = {
	{ 'j', "json", NULL, "print one JSON object" },
	{ 'n', "top", "N", "rows of long tables (10)" },
	{ KEY_COLOR, "color", "WHEN", "auto, always or never (auto)" },
	{ KEY_WIDTH, "width", "N", "columns (the terminal's, else 80)" },
	{ KEY_NO_SYMBOLS, "no-symbols", NULL, "do not look for names in binaries" },
	{ 0, NULL, NULL, NULL },
};

static const struct d9__usage usage = {
	.command = "report",
	.synopsis = "[OPTIONS] TRACE...",
	.text = "Tell what is wrong in a trace, worst first, and what its loops did.\n"
		"Findings do not change the exit status.\n",
	.opts = opts,
};

static bool parse_color(const char *text, enum color *out)
{
	static const char *const names[] = { "auto", "always", "never" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(text, names[i]))
			continue;
		*out = (enum color)i;
		return true;
	}
	d9__cmd_fail("report", "--color takes auto, always or never, not '%s'", text);
	return false;
}

static bool parse_number(const struct d9__args *args, uint64_t min, uint64_t max, unsigned *out)
{
	uint64_t n;

	if (!d9__args_u64(args, &n))
		return false;
	if (n < min || n > max) {
		d9__cmd_fail("report", "--%s takes %llu to %llu", args->name,
			     (unsigned long long)min, (unsigned long long)max);
		return false;
	}
	*out = (unsigned)n;
	return true;
}

static bool take_option(const struct d9__args *args, int key, struct options *options)
{
	switch (key) {
	case 'j':
		options->json = true;
		return true;
	case 'n':
		return parse_number(args, 1, UINT32_MAX, &options->style.top);
	case KEY_COLOR:
		return parse_color(args->value, &options->color);
	case KEY_WIDTH:
		return parse_number(args, D9__WIDTH_MIN, D9__WIDTH_MAX, &options->style.width);
	default:
		options->no_symbols = true;
		return true;
	}
}

static bool find_color(enum color color)
{
	const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");

	if (color != COLOR_AUTO)
		return color == COLOR_ALWAYS;
	if (no_color && *no_color)
		return false;
	return isatty(STDOUT_FILENO) && term && strcmp(term, "dumb");
}

static void complete(struct options *options)
{
	struct d9__report_style *style = &options->style;

	setlocale(LC_CTYPE, "");
	if (!style->width)
		style->width = d9__text_columns();
	if (!style->top)
		style->top = DEFAULT_TOP;
	style->color = find_color(options->color);
	style->utf8 = !strcmp(nl_langinfo(CODESET), "UTF-8");
}

/* ---- symbols ---- */

static struct d9_text text_of(const struct d9_event *event, unsigned k)
{
	const struct d9_value *value = d9_event_known(event, k);

	if (!value || !value->present || value->unresolved)
		return (struct d9_text){ "", 0 };
	return value->u.text;
}

static int add_module(struct d9__symbols *symbols, const struct d9_event *event)
{
	struct d9_text path = text_of(event, 3), build_id = text_of(event, 4);
	struct d9__module module = { .base = d9_event_known_u64(event, 0, 0),
				     .start = d9_event_known_u64(event, 1, 0),
				     .size = d9_event_known_u64(event, 2, 0),
				     .path = path.data,
				     .build_id = build_id.data,
				     .path_len = path.len,
				     .build_id_len = build_id.len };

	return d9__symbols_module_add(symbols, &module);
}

static int add_symbol(struct d9__symbols *symbols, const struct d9_event *event)
{
	struct d9_text name = text_of(event, 2), file = text_of(event, 4);

	if (d9_event_known_u64(event, 3, 0) != 0)
		return 0;
	return d9__symbols_row_add(symbols, d9_event_known_u64(event, 0, 0), name.data, name.len,
				   file.data, file.len, (unsigned)d9_event_known_u64(event, 5, 0));
}

static int feed_symbols(struct d9__symbols *symbols, const struct d9_event *event)
{
	if (!symbols)
		return 0;
	if (event->kind == D9_EVENT_MODULE)
		return add_module(symbols, event);
	return event->kind == D9_EVENT_SYMBOL ? add_symbol(symbols, event) : 0;
}

/* struct d9__namer: by module and offset in the binaries, else by address in the trace's symbols. */
static bool find_name(void *context, struct d9__place *place)
{
	struct d9__symbol symbol;

	if (!d9__symbols_name(context, place->text, place->len, place->is_return, &symbol) &&
	    !(place->address &&
	      d9__symbols_address(context, place->address, place->is_return, &symbol)))
		return false;
	place->function = symbol.function;
	place->file = symbol.file;
	place->line = symbol.line;
	return true;
}

/* ---- the pass ---- */

/* One process of the trace. */
struct process {
	struct d9__symbols *symbols; /* NULL with --no-symbols */
	struct d9__analysis analysis;
	struct d9__findings findings;
};

struct trace {
	struct d9_reader *reader;
	struct d9__processes ids;
	struct process *items; /* as many as |ids| has */
	struct d9__report *reports;
};

static int trace_init(struct trace *trace, bool symbols)
{
	int err = d9__processes_find(&trace->ids, trace->reader);

	if (err)
		return err;
	trace->items = calloc(trace->ids.n, sizeof(*trace->items));
	trace->reports = calloc(trace->ids.n, sizeof(*trace->reports));
	if (!trace->items || !trace->reports)
		return -ENOMEM;
	for (size_t i = 0; i < trace->ids.n && !err; i++) {
		trace->items[i].analysis.processes = &trace->ids;
		trace->items[i].analysis.process = i;
		err = symbols ? d9__symbols_new(&trace->items[i].symbols) : 0;
	}
	return err;
}

static void trace_release(struct trace *trace)
{
	for (size_t i = 0; trace->items && i < trace->ids.n; i++) {
		if (trace->reports)
			d9__report_release(&trace->reports[i]);
		d9__findings_release(&trace->items[i].findings);
		d9__analysis_release(&trace->items[i].analysis);
		d9__symbols_free(trace->items[i].symbols);
	}
	free(trace->items);
	free(trace->reports);
	d9__processes_release(&trace->ids);
	d9_reader_free(trace->reader);
}

static int read_events(struct trace *trace)
{
	struct d9__progress progress;
	const struct d9_event *event;
	struct process *process;
	int err = 0;

	d9__progress_init(&progress);
	while (!err && (event = d9__traces_next(trace->reader, &progress, &err))) {
		process = &trace->items[trace->ids.of_segment[event->segment]];
		err = d9__analysis_event(&process->analysis, event);
		if (!err)
			err = feed_symbols(process->symbols, event);
	}
	d9__progress_clear(&progress);
	return err;
}

static int diagnose(struct trace *trace, size_t i)
{
	struct process *process = &trace->items[i];
	int err = d9__analysis_finish(&process->analysis, trace->reader);

	if (!err && process->symbols)
		err = d9__analysis_name(&process->analysis,
					&(struct d9__namer){ find_name, process->symbols });
	if (!err)
		err = d9__findings_make(&process->findings, &process->analysis);
	return err ? err
		   : d9__report_init(&trace->reports[i], &process->analysis, &process->findings);
}

static int analyse(struct trace *trace, char **paths, bool symbols)
{
	struct d9__unwritten unwritten;
	int err = trace_init(trace, symbols);

	if (!err)
		err = read_events(trace);
	if (!err && trace->ids.n) {
		unwritten = d9__unwritten(paths);
		trace->items[0].analysis.unwritten = unwritten.all;
		trace->items[0].analysis.unwritten_ends = unwritten.ends;
	}
	for (size_t i = 0; i < trace->ids.n && !err; i++)
		err = diagnose(trace, i);
	return err;
}

/* Write out what is buffered.  A reader that went away is no failure. */
static int finish_output(void)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return 0;
	if (errno == EPIPE)
		return 0;
	return d9__cmd_fail("report", "cannot write: %s", strerror(errno));
}

static int report(char **paths, const struct options *options)
{
	struct trace trace = { 0 };
	int err, status = d9__traces_open("report", paths, &trace.reader), written;

	if (status)
		return status;
	err = analyse(&trace, paths, !options->no_symbols);
	if (!err && options->json)
		err = d9__report_json(trace.reports, trace.ids.n, stdout);
	else if (!err)
		err = d9__report_text(trace.reports, trace.ids.n, &options->style, stdout);
	written = finish_output();
	status = d9__traces_close("report", trace.reader, err);
	trace_release(&trace);
	return written ? written : status;
}

int d9__cmd_report(int argc, char **argv)
{
	struct d9__args args = { .usage = &usage, .argc = argc, .argv = argv };
	struct options options = { .color = COLOR_AUTO };
	int key;

	while ((key = d9__args_next(&args)) > 0)
		if (!take_option(&args, key, &options))
			return D9__EXIT_USAGE;
	if (key < 0)
		return d9__args_exit(key);
	complete(&options);
	signal(SIGPIPE, SIG_IGN);
	return report(argv + args.first, &options);
}
