/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/budget.h"
#include "analyze/hot_threads.h"
#include "analyze/own_frames.h"
#include "analyze/processes.h"
#include "findings/checks.h"
#include "query/query_events.h"
#include "query/query_load.h"
#include "read/stack_role.h"
#include "report/report.h"
#include "text/fail.h"
#include "tool/progress.h"
#include "tool/symbol_options.h"
#include "tool/trace_input.h"

#define BIT(table) (UINT32_C(1) << D9__QUERY_##table)

/* Tables in which names of functions are. */
#define NAMED (BIT(CALLBACKS) | BIT(SPANS) | BIT(FRAMES) | BIT(FINDINGS) | BIT(EVIDENCE))

struct load {
	struct d9_reader *reader;
	struct d9__processes ids;
	struct d9__query_process *items;
	struct d9__findings *findings; /* of each */
	size_t n;
	struct d9__query_rows rows;
	struct d9__query_stacks stacks;
	struct d9__event_lines lines;
	struct d9__text_out *out;
};

static int open_processes(struct load *load, bool symbols)
{
	int err = d9__processes_find(&load->ids, load->reader);

	if (err)
		return err;
	load->n = load->ids.n;
	load->items = calloc(load->n, sizeof(*load->items));
	load->findings = calloc(load->n, sizeof(*load->findings));
	load->out = calloc(1, sizeof(*load->out));
	if (!load->items || !load->findings || !load->out)
		return -ENOMEM;
	/* Lines go nowhere: each is taken out of the buffer. */
	load->out->fd = -1;
	d9__event_lines_init(&load->lines, load->out, NULL);
	for (size_t i = 0; i < load->n && !err; i++) {
		struct d9__query_process *process = &load->items[i];

		process->rows = &load->rows;
		process->stacks = &load->stacks;
		process->lines = &load->lines;
		process->number = i;
		process->n_processes = load->n;
		process->analysis.processes = &load->ids;
		process->analysis.process = i;
		d9__query_process_begin(process);
		err = symbols ? d9__symbol_open(&process->symbols) : 0;
	}
	return err;
}

static int read_events(struct load *load)
{
	struct d9__progress progress;
	const struct d9_event *event;
	int err = 0;

	d9__progress_init(&progress);
	while (!err && !load->rows.err &&
	       (event = d9__traces_next(load->reader, &progress, &err))) {
		struct d9__query_process *process =
			&load->items[load->ids.of_segment[event->segment]];

		err = d9__query_event(process, event);
		if (!err)
			err = d9__symbol_learn(process->symbols, load->reader, event);
	}
	d9__progress_clear(&progress);
	return err;
}

/* ---- tables that are known at the end ---- */

static void put_process(struct load *load, const struct d9__query_process *process)
{
	const struct d9__analysis *a = &process->analysis;
	struct d9__query_row row = d9__query_row(&load->rows, D9__QUERY_PROCESSES);

	d9__query_u64(&row, process->number);
	d9__query_string(&row, d9__metadata_value(&a->metadata, "boot_id"));
	d9__query_string(&row, load->ids.items[process->number].folder);
	d9__query_u64(&row, d9__analysis_start_ns(a));
	d9__query_u64(&row, d9__analysis_end_ns(a));
	d9__query_known(&row, a->has_wall, a->anchor_wall_ns - a->anchor_ns);
	d9__query_u64(&row, a->events);
	d9__query_u64(&row, a->losses.events);
	d9__query_row_done(&row);
}

static void put_segments(struct load *load, const struct d9__query_process *process)
{
	for (size_t i = 0; i < process->analysis.n_segments; i++) {
		struct d9__segment_row row = d9__segment_row(&process->analysis, i);

		d9__query_put(&load->rows, D9__QUERY_SEGMENTS, &row);
	}
}

static void put_metadata(struct load *load, const struct d9__query_process *process)
{
	for (size_t i = 0; i < process->analysis.metadata.n; i++) {
		struct d9__query_row row = d9__query_row(&load->rows, D9__QUERY_METADATA);

		d9__query_u64(&row, process->number);
		d9__query_string(&row, process->analysis.metadata.items[i].key);
		d9__query_string(&row, process->analysis.metadata.items[i].value);
		d9__query_row_done(&row);
	}
}

static void put_workers(struct load *load, const struct d9__query_process *process)
{
	const struct d9__analysis *a = &process->analysis;
	struct d9__worker_row row;

	for (size_t i = 0; i < a->timeline.n; i++) {
		d9__worker_row(&row, a, a->timeline.items[i]);
		d9__query_put(&load->rows, D9__QUERY_WORKERS, &row);
	}
}

static void put_callbacks(struct load *load, const struct d9__query_process *process)
{
	const struct d9__analysis *a = &process->analysis;
	struct d9__callback_row row;

	for (size_t i = 0; i < a->callbacks.n; i++) {
		d9__callback_row(&row, a, a->callbacks.items[i]);
		d9__query_put(&load->rows, D9__QUERY_CALLBACKS, &row);
	}
}

static void put_threads(struct load *load, const struct d9__query_process *process)
{
	const struct d9__analysis *a = &process->analysis;
	struct d9__thread_row row;
	void *thread;

	for (size_t place = 0; (place = d9__table_next(&a->samples.threads, place, &thread));) {
		row = d9__thread_row(a, thread);
		d9__query_put(&load->rows, D9__QUERY_THREADS, &row);
	}
	for (size_t i = 0; i < a->timeline.n; i++) {
		row = d9__thread_row_of(a, a->timeline.items[i]);
		if (row.tid)
			d9__query_put(&load->rows, D9__QUERY_THREADS, &row);
	}
}

/* SQL's name_of(PROCESS, LOCATION): what the callback at LOCATION is called. */
static void name_of(sqlite3_context *context, int n, sqlite3_value **args)
{
	struct load *load = sqlite3_user_data(context);
	struct d9__callbacks *callbacks =
		&load->items[sqlite3_value_int64(args[0])].analysis.callbacks;
	const char *location = (const char *)sqlite3_value_text(args[1]);
	const struct d9__callback *callback =
		location ? d9__callbacks_at(callbacks, location,
					    (size_t)sqlite3_value_bytes(args[1]))
			 : NULL;
	size_t len = 0;
	const char *name = callback ? d9__callback_name(callback, &len) : NULL;

	(void)n;
	sqlite3_result_text(context, name, (int)len, SQLITE_TRANSIENT);
}

/* Spans that are functions were told by their places: names are known at the end. */
static void name_spans(struct load *load)
{
	sqlite3 *db = load->rows.db;
	sqlite3_stmt *update = NULL;
	int err = sqlite3_create_function_v2(db, "name_of", 2, SQLITE_UTF8, load, name_of, NULL,
					     NULL, NULL);

	if (!err)
		err = d9__query_prepare(
			&load->rows, &update,
			"UPDATE \"%w\".spans SET name = name_of(process, name) WHERE callback");
	if (!err && sqlite3_step(update) != SQLITE_DONE)
		err = sqlite3_errcode(db);
	sqlite3_finalize(update);
	sqlite3_create_function_v2(db, "name_of", 2, SQLITE_UTF8, NULL, NULL, NULL, NULL, NULL);
	if (err && !load->rows.err)
		load->rows.err = err;
}

/* Put |finding| with the number |*number|, and its effects. */
static void put_finding(struct load *load, const struct d9__query_process *process,
			const struct d9__finding *finding, uint64_t number, uint64_t cause)
{
	struct d9__query_row row = d9__query_row(&load->rows, D9__QUERY_FINDINGS);

	if (!d9__query_wants(&load->rows, D9__QUERY_FINDINGS))
		return;
	d9__query_u64(&row, number);
	d9__query_u64(&row, process->number);
	d9__query_known(&row, cause, cause);
	d9__query_string(&row, d9__severity_name(finding->severity));
	d9__query_string(&row, finding->check);
	d9__query_string(&row, finding->name);
	d9__query_string(&row, finding->message);
	d9__query_string(&row, finding->source);
	d9__query_known(&row, finding->task, finding->task);
	d9__query_string(&row, finding->advice);
	d9__query_row_done(&row);
}

static void put_evidence(struct load *load, const struct d9__query_process *process,
			 const struct d9__finding *finding, uint64_t number)
{
	if (!d9__query_wants(&load->rows, D9__QUERY_EVIDENCE))
		return;
	for (size_t i = 0; i < finding->n_evidence; i++) {
		const struct d9__evidence *evidence = &finding->evidence[i];
		struct d9__query_row row = d9__query_row(&load->rows, D9__QUERY_EVIDENCE);

		d9__query_u64(&row, number);
		d9__query_string(&row, evidence->text);
		d9__query_known(&row, evidence->at_ns, evidence->at_ns);
		d9__query_known(&row, evidence->duration_ns, evidence->duration_ns);
		d9__query_known(&row, evidence->has_worker, evidence->worker);
		d9__query_known(&row, evidence->task, evidence->task);
		d9__query_known(&row, evidence->callback,
				evidence->callback
					? d9__callback_id(&process->analysis, evidence->callback)
					: 0);
		d9__query_row_done(&row);
	}
}

/*
 * Return the process whose next finding is the worst; |next| has how many of each were put.
 * |load->n|: none is left.
 */
static size_t worst(const struct load *load, const size_t *next)
{
	size_t found = load->n;

	for (size_t i = 0; i < load->n; i++)
		if (next[i] < load->findings[i].n &&
		    (found == load->n ||
		     d9__findings_compare(load->findings[i].items[next[i]],
					  load->findings[found].items[next[found]]) < 0))
			found = i;
	return found;
}

/* In the order, and by the numbers, of dial9 report. */
static int put_findings(struct load *load)
{
	size_t *next = calloc(load->n + 1, sizeof(*next)), all = 0;
	uint64_t number = 0;

	if (!next)
		return -ENOMEM;
	for (size_t i = 0; i < load->n; i++)
		all += load->findings[i].n;
	for (size_t i; (i = worst(load, next)) < load->n; next[i]++) {
		const struct d9__finding *finding = load->findings[i].items[next[i]];

		put_finding(load, &load->items[i], finding, ++number, 0);
		put_evidence(load, &load->items[i], finding, number);
		for (size_t j = 0; j < finding->n_effects; j++) {
			put_finding(load, &load->items[i], finding->effects[j], ++all, number);
			put_evidence(load, &load->items[i], finding->effects[j], all);
		}
	}
	free(next);
	return 0;
}

static unsigned put_frames(struct load *load, size_t stack, unsigned depth, uint64_t address,
			   const struct d9__frames *frames)
{
	for (size_t i = 0; i < frames->n; i++) {
		const struct d9__symbol *symbol = &frames->items[i];
		struct d9__query_row row = d9__query_row(&load->rows, D9__QUERY_FRAMES);

		d9__query_u64(&row, stack);
		d9__query_u64(&row, depth++);
		d9__query_string(&row, symbol->function);
		d9__query_string(&row, symbol->path ? symbol->path : symbol->file);
		d9__query_known(&row, symbol->line, symbol->line);
		d9__query_string(&row, symbol->module);
		d9__query_hex(&row, address);
		d9__query_row_done(&row);
	}
	return depth;
}

#define STACK_MAX (D9__TEXT_MAX / sizeof(uint64_t))

/* Of stack |i|, which begins with its process, the functions at |address|, the |j|th; else
 * |unnamed|. */
static struct d9__frames frames_at(const struct load *load, size_t i, size_t j,
				   const uint64_t *addresses, const struct d9__symbol *unnamed)
{
	struct d9__symbolizer *symbols = load->items[addresses[0] >> 1].symbols;
	bool running =
		load->stacks.met[i].running && d9__address_is_executing(addresses + 1, j - 1);
	struct d9__frames frames = { .items = unnamed, .n = 1 };

	if (symbols)
		d9__symbolizer_resolve(symbols, addresses[j], load->stacks.met[i].ns,
				       running ? D9__EXECUTING : D9__RETURN, &frames);
	return frames;
}

/* The recorder's frames are no part of a stack, as in the report. */
static void put_stack(struct load *load, size_t i, const uint64_t *addresses, size_t n)
{
	static enum d9__frame_class classes[STACK_MAX];
	static bool hidden[STACK_MAX];
	char place[24] = "";
	const struct d9__symbol unnamed = { .function = place };
	unsigned depth = 0;

	for (size_t j = 1; j < n; j++) {
		struct d9__frames frames = frames_at(load, i, j, addresses, &unnamed);

		classes[j - 1] =
			d9__frame_class_of(frames.items[0].module, frames.items[0].function);
	}
	d9__own_frames_hide(classes, n - 1, d9__own_frames(classes, n - 1), hidden);
	for (size_t j = 1; j < n; j++) {
		struct d9__frames frames;

		if (hidden[j - 1])
			continue;
		snprintf(place, sizeof(place), "0x%llx", (unsigned long long)addresses[j]);
		frames = frames_at(load, i, j, addresses, &unnamed);
		depth = put_frames(load, i, depth, addresses[j], &frames);
	}
}

static void put_stacks(struct load *load)
{
	static const struct d9__symbol left_out = { .function = "(left out)" };
	const struct d9__frames others = { .items = &left_out, .n = 1 };
	const struct d9__texts *keys = &load->stacks.keys;
	uint64_t addresses[STACK_MAX];

	for (size_t i = 0; i < load->stacks.n; i++) {
		size_t n = keys->lens[i] / sizeof(addresses[0]);

		memcpy(addresses, keys->items[i], n * sizeof(addresses[0]));
		if (keys->full && keys->others_number == i)
			put_frames(load, i, 0, 0, &others);
		else if (n)
			put_stack(load, i, addresses, n);
	}
}

static int finish_process(struct load *load, size_t i)
{
	struct d9__query_process *process = &load->items[i];
	const struct d9__namer namer = d9__symbol_namer(process->symbols);
	int err = d9__query_process_finish(process, load->reader);

	if (!err && process->symbols)
		err = d9__analysis_name(&process->analysis, &namer);
	if (!err && (d9__query_wants(&load->rows, D9__QUERY_FINDINGS) ||
		     d9__query_wants(&load->rows, D9__QUERY_EVIDENCE)))
		err = d9__findings_make(&load->findings[i], &process->analysis);
	return err;
}

static const struct {
	enum d9__query_table table;
	void (*put)(struct load *load, const struct d9__query_process *process);
} at_end[] = {
	{ D9__QUERY_PROCESSES, put_process },	{ D9__QUERY_SEGMENTS, put_segments },
	{ D9__QUERY_METADATA, put_metadata },	{ D9__QUERY_WORKERS, put_workers },
	{ D9__QUERY_CALLBACKS, put_callbacks }, { D9__QUERY_THREADS, put_threads },
};

static int finish(struct load *load)
{
	int err = 0;

	for (size_t i = 0; i < load->n && !err; i++) {
		err = finish_process(load, i);
		for (size_t j = 0; j < sizeof(at_end) / sizeof(at_end[0]) && !err; j++)
			if (d9__query_wants(&load->rows, at_end[j].table))
				at_end[j].put(load, &load->items[i]);
	}
	if (!err && (d9__query_wants(&load->rows, D9__QUERY_FINDINGS) ||
		     d9__query_wants(&load->rows, D9__QUERY_EVIDENCE)))
		err = put_findings(load);
	if (!err && d9__query_wants(&load->rows, D9__QUERY_FRAMES))
		put_stacks(load);
	if (!err && d9__query_wants(&load->rows, D9__QUERY_SPANS))
		name_spans(load);
	return err;
}

static void release(struct load *load)
{
	for (size_t i = 0; i < load->n; i++) {
		if (load->findings)
			d9__findings_release(&load->findings[i]);
		if (load->items)
			d9__query_process_release(&load->items[i]);
	}
	free(load->items);
	free(load->findings);
	free(load->stacks.met);
	d9__texts_release(&load->stacks.keys);
	if (load->out)
		d9__event_lines_release(&load->lines);
	free(load->out);
	d9__processes_release(&load->ids);
	d9_reader_free(load->reader);
}

int d9__query_load(const char *command, const struct d9__query_target *target, char **paths,
		   bool no_symbols, uint64_t *rows)
{
	struct load load = { .stacks.keys.kind = D9__KEPT_STACKS };
	sqlite3_int64 before = sqlite3_total_changes64(target->db);
	int status = d9__traces_open(command, paths, &load.reader), err;

	if (status)
		return status;
	d9__query_rows_begin(&load.rows, target);
	err = open_processes(&load, (target->wanted & NAMED) && !no_symbols);
	if (!err && !load.rows.err)
		err = read_events(&load);
	if (!err && !load.rows.err)
		err = finish(&load);
	status = d9__traces_close(command, load.reader, err);
	err = d9__query_rows_end(&load.rows);
	if (err)
		status = d9__cmd_fail(command, "cannot keep the tables: %s", sqlite3_errstr(err));
	/* A damaged trace still has the tables of the events before the damage. */
	release(&load);
	*rows = err ? 0 : (uint64_t)(sqlite3_total_changes64(target->db) - before);
	return status;
}
