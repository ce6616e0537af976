/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <dial9/reader.h>

#include "analyze/budget.h"
#include "analyze/processes.h"
#include "analyze/texts.h"
#include "base/array.h"
#include "base/spelling.h"
#include "cli/cmd.h"
#include "cli/diagram/task_life.h"
#include "cli/diagram/task_life_text.h"
#include "read/catalogue.h"
#include "read/inner_calls.h"
#include "read/span_fields.h"
#include "symbol/symbolizer.h"
#include "text/text.h"
#include "tool/args.h"
#include "tool/event_line.h"
#include "tool/progress.h"
#include "tool/symbol_options.h"
#include "tool/trace_input.h"

#define NAMES_MAX 64

enum { OPT_FROM = 256, OPT_TO, OPT_NO_SYMBOLS, OPT_SPAN, OPT_LIFE };

static const struct d9__opt opts[] = {
	{ 'f', "format", "F", "jsonl (JSON Lines, the default) or text" },
	{ 'e', "event", "NAME", "only events of this name; may be given several times" },
	{ 'w', "worker", "N", "only events of worker N" },
	{ 't', "task", "ID", "only events about task ID" },
	{ OPT_SPAN, "span", "ID", "only events of span ID" },
	{ OPT_LIFE, "life", NULL, "text: the life of --task or --span: new, wake, enter, exit, close" },
	{ OPT_FROM, "from", "TIME", "skip what happened earlier than TIME after the first event" },
	{ OPT_TO, "to", "TIME", "stop TIME after the first event" },
	{ 'n', "limit", "N", "stop after N lines" },
	{ OPT_NO_SYMBOLS, "no-symbols", NULL, "text: do not look functions up in the binaries" },
	{ 'v', "verbose", NULL, "text: name each binary that has no names to give, not only the first" },
	{ 0, NULL, NULL, NULL },
};

static const struct d9__usage usage = {
	.command = "events",
	.synopsis = "[OPTIONS] TRACE...",
	.text = "Print every event of a trace, one line each, in the order of their times.\n"
		"TIME takes a unit: 250ms, 1.5s, 2m.\n",
	.opts = opts,
};

struct options {
	bool text, jsonl, no_symbols, verbose;
	const char *names[NAMES_MAX];
	size_t n_names;
	bool has_worker, has_task, has_span, life;
	uint64_t worker, task, span, from_ns, to_ns, limit;
};

/* The columns of one schema that a filter looks at, found once. */
struct filter_shape {
	bool ready, wanted;
	const char *name;
	int worker, span; /* index of the field, or -1 */
	int tasks[3];
};

/* An id that was asked for, and whether the trace has it. */
struct sought {
	uint64_t id, nearest;
	uint64_t least; /* smaller ones are none */
	bool found, has_nearest;
};

struct filter {
	const struct options *options;
	struct sought task, span, worker;
	bool cut; /* a part was not read: missing events may be in it */
	bool has_origin;
	uint64_t origin_ns;
	bool (*open)[256]; /* by process and worker: the poll that runs is one of --task */
	const size_t *process_of_segment;
	struct filter_shape *shapes;
	size_t n_shapes;
};

/* ---- options ---- */

static bool set_format(const struct d9__args *args, struct options *options)
{
	options->text = !strcmp(args->value, "text");
	options->jsonl = !options->text;
	if (options->text || !strcmp(args->value, "jsonl") || !strcmp(args->value, "json"))
		return true;
	d9__cmd_fail("events", "--format wants jsonl or text, not '%s'", args->value);
	return false;
}

static bool add_name(const struct d9__args *args, struct options *options)
{
	if (options->n_names == NAMES_MAX) {
		d9__cmd_fail("events", "at most %d --event options", NAMES_MAX);
		return false;
	}
	options->names[options->n_names++] = args->value;
	return true;
}

static bool set_option(const struct d9__args *args, int key, struct options *options)
{
	switch (key) {
	case 'f':
		return set_format(args, options);
	case 'e':
		return add_name(args, options);
	case 'w':
		options->has_worker = true;
		return d9__args_u64(args, &options->worker);
	case 't':
		options->has_task = true;
		return d9__args_u64(args, &options->task);
	case OPT_SPAN:
		options->has_span = true;
		return d9__args_u64(args, &options->span);
	case OPT_LIFE:
		options->life = options->text = true;
		return true;
	case OPT_FROM:
		return d9__args_duration_ns(args, &options->from_ns);
	case OPT_TO:
		return d9__args_duration_ns(args, &options->to_ns);
	case 'n':
		return d9__args_u64(args, &options->limit);
	case 'v':
		options->verbose = true;
		return true;
	default:
		options->no_symbols = true;
		return true;
	}
}

/* ---- filter ---- */

static void make_shape(const struct options *options, const struct d9_schema *schema,
		       struct filter_shape *shape)
{
	const char *name = d9_schema_name(schema);

	shape->ready = true;
	shape->name = name;
	shape->wanted = !options->n_names;
	for (size_t i = 0; i < options->n_names; i++)
		shape->wanted |= !strcmp(options->names[i], name);
	shape->worker = d9_schema_find(schema, "worker_id");
	if (shape->worker < 0)
		shape->worker = d9_schema_find(schema, "target_worker");
	shape->span = d9_schema_find(schema, "span_id");
	shape->tasks[0] = d9_schema_find(schema, "task_id");
	shape->tasks[1] = d9_schema_find(schema, "woken_task_id");
	shape->tasks[2] = d9_schema_find(schema, "waker_task_id");
}

static const struct filter_shape *find_shape(struct filter *filter, const struct d9_schema *schema)
{
	uint32_t id = d9_schema_id(schema);

	while (id >= filter->n_shapes) {
		if (!d9__array_grow(filter->shapes, filter->n_shapes))
			return NULL;
		filter->shapes[filter->n_shapes++] = (struct filter_shape) { .ready = false };
	}
	if (!filter->shapes[id].ready)
		make_shape(filter->options, schema, &filter->shapes[id]);
	return &filter->shapes[id];
}

static uint64_t apart(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

/* True if |event| has the wanted id; notes which other ids there are. */
static bool has_id(const struct d9_event *event, int field, struct sought *sought)
{
	uint64_t n = 0;

	if (field < 0 || !d9__value_u64(&event->values[field], &n) || n < sought->least)
		return false;
	if (n == sought->id)
		return sought->found = true;
	if (!sought->has_nearest || apart(n, sought->id) < apart(sought->nearest, sought->id))
		sought->nearest = n;
	sought->has_nearest = true;
	return false;
}

/* True if |event| is about --task.  The end of a poll does not name its task: the start did. */
static bool has_task(struct filter *filter, const struct d9_event *event,
		     const struct filter_shape *shape)
{
	uint64_t worker;
	bool has = false, *open = filter->open[filter->process_of_segment[event->segment]];

	for (size_t i = 0; i < 3; i++)
		has |= has_id(event, shape->tasks[i], &filter->task);
	if ((event->kind != D9_EVENT_POLL_START && event->kind != D9_EVENT_POLL_END) ||
	    !d9__value_u64(&event->values[shape->worker], &worker) || worker > 255)
		return has;
	if (event->kind == D9_EVENT_POLL_END)
		has = open[worker];
	open[worker] = has && event->kind == D9_EVENT_POLL_START;
	return has;
}

/* True if |event| lies in --from and --to; sets |*past| once no later one can. */
static bool is_in_time(struct filter *filter, const struct d9_event *event, bool *past)
{
	const struct options *options = filter->options;
	uint64_t after_ns;

	if (!event->has_timestamp || !event->timestamp_ns)
		return !options->from_ns;
	if (!filter->has_origin) {
		filter->has_origin = true;
		filter->origin_ns = event->timestamp_ns;
	}
	after_ns = event->timestamp_ns - filter->origin_ns;
	*past = after_ns > options->to_ns;
	return !*past && after_ns >= options->from_ns;
}

/* 1 if |event| is wanted, 0 if not, -ENOMEM. */
static int choose(struct filter *filter, const struct d9_event *event, bool *past)
{
	const struct options *options = filter->options;
	const struct filter_shape *shape = find_shape(filter, event->schema);
	bool in_time, of_task, of_span, of_worker;

	if (!shape)
		return -ENOMEM;
	in_time = is_in_time(filter, event, past);
	/* Evaluate all three, because each also notes which ids the trace has. */
	of_task = !options->has_task || has_task(filter, event, shape);
	of_span = !options->has_span || has_id(event, shape->span, &filter->span);
	of_worker = !options->has_worker || has_id(event, shape->worker, &filter->worker);
	return in_time && shape->wanted && of_task && of_span && of_worker;
}

/* ---- the command ---- */

/* The trace's processes; addresses and ids are separate in each. */
struct trace {
	struct d9_reader *reader;
	struct d9__processes processes;
	struct d9__symbolizer **symbols; /* by process; NULL: addresses stay numbers */
	struct d9_span_fields *spans;
};

static int trace_open(struct trace *trace, char **paths, bool symbolise)
{
	int err, status = d9__traces_open("events", paths, &trace->reader);

	if (status)
		return status;
	err = d9__processes_find(&trace->processes, trace->reader);
	if (!err)
		err = d9_span_fields_new(&trace->spans);
	if (!err && symbolise) {
		trace->symbols = calloc(trace->processes.n, sizeof(struct d9__symbolizer *));
		err = trace->symbols ? 0 : -ENOMEM;
		for (size_t i = 0; !err && i < trace->processes.n; i++)
			err = d9__symbol_open(&trace->symbols[i]);
	}
	return err ? d9__cmd_fail("events", "%s", strerror(-err)) : 0;
}

static void trace_release(struct trace *trace)
{
	for (size_t i = 0; trace->symbols && i < trace->processes.n; i++)
		d9__symbolizer_close(trace->symbols[i]);
	free(trace->symbols);
	d9_span_fields_free(trace->spans);
	d9__processes_release(&trace->processes);
	d9_reader_free(trace->reader);
}

static struct d9__symbolizer *symbols_of(const struct trace *trace, const struct d9_event *event)
{
	return trace->symbols ? trace->symbols[trace->processes.of_segment[event->segment]] : NULL;
}

/* Modules are recorded a moment after the first events that need them: read them beforehand. */
static int learn_modules(const struct trace *trace, char **paths, struct d9__progress *progress)
{
	const struct d9_event *event;
	struct d9_reader *reader;
	int err = 0;

	if (d9__traces_open("events", paths, &reader))
		return D9__EXIT_USAGE;
	d9_reader_set_file_order(reader, true);
	/* Skip a segment that was written since: |trace| does not have it. */
	while (!err && (event = d9__traces_next(reader, progress, &err)))
		if (event->segment < trace->processes.n_segments)
			err = d9__symbol_learn(symbols_of(trace, event), reader, event);
	d9_reader_free(reader);
	return err == -ENOMEM ? d9__cmd_fail("events", "out of memory") : 0;
}

/* Set the symbols of the process of |event|, and its label if the trace has several processes. */
static void set_process(struct d9__event_lines *lines, const struct trace *trace,
			const struct d9_event *event)
{
	size_t process = trace->processes.of_segment[event->segment];

	lines->symbols = symbols_of(trace, event);
	if (trace->processes.n > 1)
		lines->process = d9__process_label(&trace->processes.items[process]);
}

/* |name| is that of a built-in event, whether the trace has some or not. */
static bool is_built_in(const char *name)
{
	const char *known;
	bool prefix;

	for (size_t i = 0; (known = d9__catalogue_name(i, &prefix)); i++)
		if (prefix ? !strncmp(name, known, strlen(known)) : !strcmp(name, known))
			return true;
	return false;
}

/*
 * Return the known name nearest to |name|, of the trace's schemas and the built-in ones; NULL: none
 * is near.
 */
static const char *find_near(const struct filter *filter, const char *name)
{
	struct d9__spelling nearest = { .word = name };
	const char *known;
	bool prefix;

	for (size_t i = 0; i < filter->n_shapes; i++)
		if (filter->shapes[i].ready)
			d9__spelling_try(&nearest, filter->shapes[i].name);
	for (size_t i = 0; (known = d9__catalogue_name(i, &prefix)); i++)
		d9__spelling_try(&nearest, known);
	return nearest.name;
}

static bool has_shape(const struct filter *filter, const char *name)
{
	for (size_t i = 0; i < filter->n_shapes; i++)
		if (filter->shapes[i].ready && !strcmp(filter->shapes[i].name, name))
			return true;
	return false;
}

/* Print a line for each event name that is unknown; 0 or an exit status. */
static int check_names(const struct filter *filter)
{
	int status = 0;

	for (size_t i = 0; i < filter->options->n_names; i++) {
		const char *name = filter->options->names[i], *near;

		if (is_built_in(name) || has_shape(filter, name))
			continue;
		near = find_near(filter, name);
		status = near ? d9__cmd_fail("events", "no event '%s' in this trace; is %s meant? dial9 info "
						       "lists what it has",
					     name, near)
			      : d9__cmd_fail("events", "no event '%s' in this trace; dial9 info lists what it has",
					     name);
	}
	return status;
}

static int check_id(const struct sought *sought, const char *what)
{
	if (sought->found)
		return 0;
	if (sought->has_nearest)
		return d9__cmd_fail("events", "no %s %" PRIu64 " in this trace; the nearest is %" PRIu64, what,
				    sought->id, sought->nearest);
	return d9__cmd_fail("events", "no %s %" PRIu64 " in this trace, which has none", what, sought->id);
}

/*
 * Check that the trace, as far as it was read, has the wanted names and ids.  0 or an exit status.
 */
static int check_found(const struct filter *filter)
{
	const struct options *options = filter->options;
	int status = 0;

	if (filter->cut)
		return 0;
	if (options->has_task)
		status = check_id(&filter->task, "task");
	if (options->has_span && !status)
		status = check_id(&filter->span, "span");
	if (options->has_worker && !status)
		status = check_id(&filter->worker, "worker");
	return status ? status : check_names(filter);
}

/* Print the events.  |*missing| becomes an exit status if the trace lacks a wanted name or id. */
static int print_events(const struct trace *trace, const struct options *options,
			struct d9__event_lines *lines, struct d9__progress *progress, bool learn,
			int *missing)
{
	struct filter filter = { .options = options,
				 .task = { .id = options->task, .least = 1 },
				 .span = { .id = options->span, .least = 1 },
				 .worker = { .id = options->worker },
				 .process_of_segment = trace->processes.of_segment };
	const struct d9_event *event;
	uint64_t left = options->limit;
	bool past = false;
	int err = 0;

	filter.open = calloc(trace->processes.n + 1, sizeof(*filter.open));
	if (!filter.open)
		return -ENOMEM;
	while (left && !past && !lines->out->err &&
	       (event = d9__traces_next(trace->reader, progress, &err))) {
		set_process(lines, trace, event);
		err = d9_span_fields_take(trace->spans,
					  trace->processes.of_segment[event->segment], event);
		if (!err && learn)
			err = d9__symbolizer_learn(lines->symbols, event);
		event = err ? event : d9__inner_calls_written(event);
		if (!event)
			continue;
		/* Text counts from the first event of the trace, wanted or not. */
		if (!err && (err = choose(&filter, event, &past)) == 1) {
			lines->has_origin = filter.has_origin;
			lines->origin_ns = filter.origin_ns;
			err = options->text ? d9__event_lines_text(lines, event)
					    : d9__event_lines_json(lines, event);
			left--;
		}
		if (err)
			break;
	}
	filter.cut = !left || past || lines->out->err || err;
	d9__progress_clear(progress);
	*missing = check_found(&filter);
	free(filter.shapes);
	free(filter.open);
	return err;
}

/*
 * One line stands for all problems, because after an update nearly all libraries have the same one.
 */
static void tell_problems(const struct trace *trace, bool each)
{
	const char *problem, *first = NULL;
	struct d9__texts told = { 0 };
	uint32_t number;
	size_t n = 0;

	for (size_t i = 0; trace->symbols && i < trace->processes.n; i++)
		for (size_t k = 0; (problem = d9__symbolizer_problem(trace->symbols[i], k)); k++) {
			/* Several processes have the same. */
			if (d9__texts_find(&told, problem, strlen(problem), &number) ||
			    d9__texts_number(&told, problem, strlen(problem), &number))
				continue;
			if (each)
				d9__cmd_fail("events", "%s", problem);
			else if (!n++)
				first = problem;
		}
	if (n == 1)
		d9__cmd_fail("events", "%s", first);
	else if (n)
		d9__cmd_fail("events", "%s; %zu more cannot be used either, see --verbose", first, n - 1);
	d9__texts_release(&told);
}

static int print_trace(const struct trace *trace, const struct options *options,
		       struct d9__text_out *out, struct d9__progress *progress, bool learn)
{
	struct d9__event_lines lines;
	int err, status, missing = 0;

	/* Lines that scroll by on the same terminal are progress enough. */
	d9__progress_clear(progress);
	progress->on = progress->on && !isatty(STDOUT_FILENO);
	d9__event_lines_init(&lines, out, NULL);
	lines.spans = trace->spans;
	for (size_t i = 0; i < trace->processes.n; i++) {
		size_t width = strlen(d9__process_label(&trace->processes.items[i]));

		if (width > lines.process_width)
			lines.process_width = width;
	}
	err = print_events(trace, options, &lines, progress, learn, &missing);
	status = d9__text_finish(out, "events");
	d9__budget_leave_out(D9__KEPT_SPANS, d9__span_fields_left_out(trace->spans));
	if (!status)
		status = d9__traces_close("events", trace->reader, err);
	if (!status)
		status = missing;
	tell_problems(trace, options->verbose);
	d9__event_lines_release(&lines);
	return status;
}

static int run(char **paths, const struct options *options, struct d9__text_out *out)
{
	bool symbolise = options->text && !options->no_symbols, live = d9__traces_have_pipe(paths);
	struct d9__progress progress;
	struct trace trace = { 0 };
	int status;

	d9__progress_init(&progress);
	status = trace_open(&trace, paths, symbolise);
	if (!status && symbolise && !live)
		status = learn_modules(&trace, paths, &progress);
	if (!status)
		status = print_trace(&trace, options, out, &progress, symbolise && live);
	trace_release(&trace);
	return status;
}

/*
 * Return the first option that would leave out a part of a life, or show it in another form; NULL:
 * none.
 */
static const char *against_life(const struct options *options)
{
	return options->jsonl	  ? "format jsonl" :
	       options->n_names	  ? "event" :
	       options->has_worker ? "worker" :
	       options->from_ns	  ? "from" :
	       options->to_ns != UINT64_MAX ? "to" :
	       options->limit != UINT64_MAX ? "limit" : NULL;
}

static int print_life(char **paths, const struct options *options, struct d9__text_out *out)
{
	struct d9__task_life life = { .is_span = options->has_span,
				 .id = options->has_span ? options->span : options->task };
	const char *other = against_life(options);
	int status, written = D9__EXIT_OK;

	if (options->has_task == options->has_span)
		return d9__cmd_fail("events", "--life of what? give one --task ID or --span ID");
	if (other)
		return d9__cmd_fail("events", "--life shows all of a task or span: not with --%s", other);
	status = d9__task_life_read(&life, "events", paths);
	if (life.name) {
		d9__task_life_text(&life, out);
		written = d9__text_finish(out, "events");
	}
	d9__task_life_release(&life);
	return written ? written : status;
}

int d9__cmd_events(int argc, char **argv)
{
	struct d9__args args = { .usage = &usage, .argc = argc, .argv = argv };
	struct options options = { .to_ns = UINT64_MAX, .limit = UINT64_MAX };
	static struct d9__text_out out;
	int key;

	while ((key = d9__args_next(&args)) > 0)
		if (!set_option(&args, key, &options))
			return D9__EXIT_USAGE;
	if (key < 0)
		return d9__args_exit(key);
	if (options.from_ns > options.to_ns)
		return d9__cmd_fail("events", "--to is earlier than --from");
	d9__text_init(&out, STDOUT_FILENO);
	if (options.life)
		return print_life(argv + args.first, &options, &out);
	return run(argv + args.first, &options, &out);
}
