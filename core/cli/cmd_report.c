/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <langinfo.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <dial9/reader.h>

#include "analyze/budget.h"
#include "analyze/kept_dump.h"
#include "cli/cmd.h"
#include "cli/pager.h"
#include "cli/report_page.h"
#include "findings/checks.h"
#include "report/report.h"
#include "symbol/address_set.h"
#include "symbol/symbolizer.h"
#include "text/json.h"
#include "text/text.h"
#include "tool/args.h"
#include "tool/progress.h"
#include "tool/read_ahead.h"
#include "tool/symbol_options.h"
#include "tool/trace_input.h"
#include "watch/left_rings.h"

#define DEFAULT_TOP   10
#define DEFAULT_LINES 24
#define LINES_MIN     12 /* less is no screen to put a report on */

enum key {
	KEY_COLOR = 256,
	KEY_WIDTH,
	KEY_NO_SYMBOLS,
	KEY_SECTION,
	KEY_FINDING,
	KEY_EXIT_CODE,
	KEY_NO_PAGER,
	KEY_SYMBOLS,
	KEY_HTML,
	KEY_FORCE,
};

enum color {
	COLOR_AUTO,
	COLOR_ALWAYS,
	COLOR_NEVER,
};

struct options {
	bool json, html, symbols, no_symbols, exit_code, no_pager;
	enum color color;
	struct d9__report_style style;
	struct d9__report_page page;
};

static const struct d9__opt opts[] = {
	{ 'v', "verbose", NULL, "everything: all findings with their evidence, all tables" },
	{ KEY_SECTION, "section", "NAME", "this part of it; may be given several times" },
	{ KEY_FINDING, "finding", "N", "finding N alone, with its evidence" },
	{ 'j', "json", NULL, "print one JSON object" },
	{ KEY_SYMBOLS, "symbols", NULL, "for --json: also the functions at all addresses in stacks" },
	{ KEY_HTML, "html", NULL, "write the trace, the report and the viewer as one file that a browser opens" },
	{ 'o', "output", "FILE", "for --html: write to FILE, - for standard output; needed" },
	{ KEY_FORCE, "force", NULL, "for --html: also above 100 MiB" },
	{ 'n', "top", "N", "rows of long tables (10)" },
	{ KEY_COLOR, "color", "WHEN", "auto, always or never (auto)" },
	{ KEY_WIDTH, "width", "N", "columns (the terminal's, else 80)" },
	{ KEY_NO_SYMBOLS, "no-symbols", NULL, "do not look for names in binaries" },
	{ KEY_EXIT_CODE, "exit-code", NULL, "exit with 1 if a finding is a warning or critical" },
	{ KEY_NO_PAGER, "no-pager", NULL, "do not start a pager on a terminal" },
	{ 0, NULL, NULL, NULL },
};

static const struct d9__usage usage = {
	.command = "report",
	.synopsis = "[OPTIONS] TRACE...",
	.text = "Tell on one screen what is wrong in a trace, worst first, and what to do.\n"
		"More of it: -v, --finding N, or --section data, findings, workers, callbacks,\n"
		"time, longest, wakes, timers, queues, tasks, process, blocking, samples, idle,\n"
		"memory, spans, events\n"
		"Exit status: 0 fine, whatever was found; 1 with --exit-code, if something is\n"
		"wrong; 2 bad usage or a damaged trace.\n",
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

static bool add_section(const char *name, struct d9__report_style *style)
{
	unsigned bit = d9__report_section(name);
	char known[256] = "";

	style->sections |= bit;
	if (bit)
		return true;
	for (size_t i = 0; d9__report_section_name(i); i++)
		snprintf(known + strlen(known), sizeof(known) - strlen(known), "%s%s", i ? ", " : "",
			 d9__report_section_name(i));
	d9__cmd_fail("report", "no section '%s'; there are %s", name, known);
	return false;
}

static bool set_finding(const struct d9__args *args, struct d9__report_style *style)
{
	unsigned n;

	if (!parse_number(args, 1, UINT32_MAX, &n))
		return false;
	style->finding = n;
	return true;
}

static bool take_option(const struct d9__args *args, int key, struct options *options)
{
	switch (key) {
	case 'j':
		options->json = true;
		return true;
	case 'v':
		options->style.full = true;
		return true;
	case KEY_SECTION:
		return add_section(args->value, &options->style);
	case KEY_FINDING:
		return set_finding(args, &options->style);
	case KEY_EXIT_CODE:
		options->exit_code = true;
		return true;
	case KEY_NO_PAGER:
		options->no_pager = true;
		return true;
	case KEY_SYMBOLS:
		options->symbols = true;
		return true;
	case KEY_HTML:
		options->html = true;
		return true;
	case 'o':
		options->page.output = args->value;
		return true;
	case KEY_FORCE:
		options->page.force = true;
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

static unsigned lines_of_screen(void)
{
	struct winsize size;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || size.ws_row == 0)
		return DEFAULT_LINES;
	return size.ws_row > LINES_MIN ? size.ws_row : LINES_MIN;
}

static void complete(struct options *options)
{
	struct d9__report_style *style = &options->style;

	setlocale(LC_CTYPE, "");
	if (!style->width)
		style->width = d9__text_columns();
	style->lines = lines_of_screen();
	if (!style->top)
		style->top = DEFAULT_TOP;
	style->color = find_color(options->color);
	style->utf8 = !strcmp(nl_langinfo(CODESET), "UTF-8");
}

/* ---- the pass ---- */

/* One process of the trace. */
struct process {
	struct d9__symbolizer *symbols; /* NULL with --no-symbols */
	struct d9__address_set addresses;
	struct d9__analysis analysis;
	struct d9__findings findings;
};

struct trace {
	struct d9_reader *reader;
	struct d9__processes ids;
	struct process *items;
	struct d9__report *reports;
	size_t n; /* of both: processes that are kept */
	struct d9__report_more more;
	bool addresses; /* are gathered, for a page or a script that names frames itself */
	char *dump_id;	/* of the only operand, if it is a manifest; else NULL */
};

/* The least memory that one process takes. */
#define PROCESS_BYTES (sizeof(struct process) + ((size_t)16 << 10))

static int trace_init(struct trace *trace, bool symbols)
{
	int err = d9__processes_find(&trace->ids, trace->reader);

	if (err)
		return err;
	for (size_t i = 0; i < trace->ids.n; i++)
		trace->n += d9__budget_take(D9__KEPT_PROCESSES, PROCESS_BYTES);
	trace->items = calloc(trace->n, sizeof(*trace->items));
	trace->reports = calloc(trace->n, sizeof(*trace->reports));
	if (!trace->items || !trace->reports)
		return -ENOMEM;
	for (size_t i = 0; i < trace->n && !err; i++) {
		trace->items[i].analysis.processes = &trace->ids;
		trace->items[i].analysis.process = i;
		err = symbols ? d9__symbol_open(&trace->items[i].symbols) : 0;
	}
	return err;
}

static void trace_release(struct trace *trace)
{
	for (size_t i = 0; trace->items && i < trace->n; i++) {
		if (trace->reports)
			d9__report_release(&trace->reports[i]);
		d9__findings_release(&trace->items[i].findings);
		d9__analysis_release(&trace->items[i].analysis);
		d9__symbolizer_close(trace->items[i].symbols);
		d9__address_set_release(&trace->items[i].addresses);
	}
	free(trace->items);
	free(trace->reports);
	free(trace->dump_id);
	d9__processes_release(&trace->ids);
	d9_reader_free(trace->reader);
}

static int read_events(struct trace *trace)
{
	struct d9__read_ahead *ahead = NULL;
	struct d9__progress progress;
	const struct d9_event *event;
	int err = d9__read_ahead_begin(&ahead, trace->reader);

	d9__progress_init(&progress);
	while (!err && (event = d9__read_ahead_next(ahead, &progress, &err))) {
		size_t i = trace->ids.of_segment[event->segment];
		struct process *process = &trace->items[i];

		if (i >= trace->n)
			continue;
		err = d9__analysis_event(&process->analysis, event);
		if (!err)
			err = d9__symbol_learn(process->symbols, trace->reader, event);
		if (!err && trace->addresses)
			err = d9__address_set_learn(&process->addresses, process->symbols, event);
	}
	d9__read_ahead_end(ahead);
	d9__progress_clear(&progress);
	return err;
}

/* True if another process than |i| ran loops. */
static bool others_have_loops(const struct trace *trace, size_t i)
{
	for (size_t j = 0; j < trace->n; j++)
		if (j != i && d9__analysis_has_any(&trace->items[j].analysis))
			return true;
	return false;
}

static int diagnose(struct trace *trace, size_t i)
{
	struct process *process = &trace->items[i];
	const struct d9__namer namer = d9__symbol_namer(process->symbols);
	int err = d9__analysis_finish(&process->analysis, trace->reader);

	if (!err && trace->dump_id)
		d9__fired_put_first(&process->analysis.fired, trace->dump_id);
	if (!err && process->symbols)
		err = d9__analysis_name(&process->analysis, &namer);
	if (!err)
		err = d9__findings_make(&process->findings, &process->analysis);
	return err ? err
		   : d9__report_init(&trace->reports[i], &process->analysis, &process->findings);
}

/* Find the dump that the report is about, if the only operand is a manifest. */
static int find_dump(struct trace *trace, char **paths)
{
	struct d9__kept_dump dump;
	char *why = NULL;
	int err;

	if (paths[1] || !d9__kept_dump_is(paths[0]))
		return 0;
	err = d9__kept_dump_load(&dump, paths[0], true, &why);
	if (!err && !(trace->dump_id = strdup(dump.id)))
		err = -ENOMEM;
	d9__kept_dump_release(&dump);
	free(why);
	/* It was a manifest when its segments were opened. */
	return err == -ENOMEM ? err : 0;
}

static int analyse(struct trace *trace, char **paths, bool symbols)
{
	struct d9__left_rings unwritten;
	int err = trace_init(trace, symbols);

	if (!err)
		err = find_dump(trace, paths);
	if (!err)
		err = read_events(trace);
	if (!err && trace->n) {
		unwritten = d9__left_rings(paths);
		trace->items[0].analysis.unwritten = unwritten.all;
		trace->items[0].analysis.unwritten_ends = unwritten.ends;
	}
	for (size_t i = 0; i < trace->n && !err; i++) {
		trace->items[i].analysis.beside = others_have_loops(trace, i);
		err = diagnose(trace, i);
	}
	return err;
}

/*
 * Flush standard output.  A closed pipe is not an error, because its reader may have seen enough.
 */
static int finish_output(void)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return 0;
	if (errno == EPIPE)
		return 0;
	return d9__cmd_fail("report", "cannot write: %s", strerror(errno));
}

/* |paths| as a shell takes them, in new memory; NULL: out of memory. */
static char *quote(char **paths)
{
	static const char harmless[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
				       "_-./:@%+=,";
	size_t size;
	char *text = NULL;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	for (char **path = paths; *path; path++) {
		bool quoted = !**path || (*path)[strspn(*path, harmless)];

		fputs(path == paths ? "" : " ", out);
		fputs(quoted ? "'" : "", out);
		for (const char *c = *path; *c; c++)
			*c == '\'' ? fputs("'\\''", out) : putc(*c, out);
		fputs(quoted ? "'" : "", out);
	}
	return fclose(out) ? (free(text), NULL) : text;
}

/* ---- functions at addresses ---- */

static void put_symbols_of(const struct process *process, struct d9__json *json)
{
	struct d9__frames frames;
	char key[2 + 16 + 1];

	d9__json_open(json, NULL, '{');
	d9__json_u64(json, "process", process->analysis.process);
	d9__json_open(json, "frames", '{');
	for (size_t i = 0; i < process->addresses.n; i++) {
		const struct d9__address *item = &process->addresses.items[i];

		d9__symbolizer_resolve(process->symbols, item->address, item->ns, item->role,
				       &frames);
		if (!frames.known)
			continue;
		snprintf(key, sizeof(key), "0x%" PRIx64, item->address);
		d9__json_open(json, key, '[');
		for (size_t k = 0; k < frames.n; k++) {
			d9__json_open(json, NULL, '{');
			d9__json_string(json, "function", frames.items[k].function);
			d9__json_string(json, "file", frames.items[k].file);
			d9__json_u64(json, "line", frames.items[k].line);
			d9__json_close(json, '}');
		}
		d9__json_close(json, ']');
	}
	d9__json_close(json, '}');
	d9__json_close(json, '}');
}

static void put_symbols(void *context, struct d9__json *json)
{
	const struct trace *trace = context;

	d9__json_open(json, "symbols", '[');
	for (size_t i = 0; i < trace->n; i++)
		if (trace->items[i].symbols)
			put_symbols_of(&trace->items[i], json);
	d9__json_close(json, ']');
}

static size_t count_findings(const struct trace *trace, enum d9__severity up_to)
{
	size_t n = 0;

	for (size_t i = 0; i < trace->n; i++)
		for (unsigned severity = 0; severity <= (unsigned)up_to; severity++)
			n += trace->items[i].findings.by_severity[severity];
	return n;
}

static int print_text(const struct trace *trace, const struct options *options)
{
	struct d9__pager pager;
	bool paged = !options->no_pager && d9__pager_begin(&pager);
	int err = d9__report_text(trace->reports, trace->n, &options->style, stdout);

	if (paged && !d9__pager_end(&pager))
		err = d9__report_text(trace->reports, trace->n, &options->style, stdout);
	return err;
}

static int print(const struct trace *trace, const struct options *options)
{
	size_t n = count_findings(trace, D9__INFO);

	if (options->json)
		return d9__report_json(trace->reports, trace->n, trace->addresses ? &trace->more : NULL, stdout);
	if (options->style.finding <= n)
		return print_text(trace, options);
	if (n)
		d9__cmd_fail("report", "no finding %zu: there are 1 to %zu", options->style.finding, n);
	else
		d9__cmd_fail("report", "no finding %zu: nothing was found", options->style.finding);
	return -ERANGE;
}

static int report(char **paths, struct options *options)
{
	struct trace trace = { .more = { put_symbols, &trace }, .addresses = options->symbols || options->html };
	int err, status = d9__traces_open("report", paths, &trace.reader), written, printed = 0, page = 0;
	char *traces;

	if (status)
		return status;
	traces = quote(paths);
	options->style.traces = traces;
	err = traces ? analyse(&trace, paths, !options->no_symbols) : -ENOMEM;
	if (!err && options->html)
		page = d9__report_page(&options->page, paths, trace.reader, trace.reports, trace.n, &trace.more);
	else if (!err)
		printed = print(&trace, options);
	if (printed != -ERANGE)
		err = err ? err : printed;
	written = finish_output();
	status = d9__traces_close("report", trace.reader, err);
	if (printed == -ERANGE || page)
		status = D9__EXIT_USAGE;
	else if (!status && options->exit_code && count_findings(&trace, D9__WARNING))
		status = D9__EXIT_FINDING;
	trace_release(&trace);
	free(traces);
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
	if (options.json && options.style.sections)
		return d9__cmd_fail("report", "--section is of the text: --json has all of them");
	if (options.html != !!options.page.output)
		return d9__cmd_fail("report", options.html ? "where to? give -o FILE, - for standard output"
							   : "-o is for --html; text goes to standard output");
	if (options.symbols && !options.json)
		return d9__cmd_fail("report", "--symbols is for --json; text names what it shows");
	complete(&options);
	signal(SIGPIPE, SIG_IGN);
	return report(argv + args.first, &options);
}
