/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "query/query_schema.h"

const struct d9__query_table_text d9__query_tables[D9__QUERY_TABLES] = {
	[D9__QUERY_PROCESSES] = { "processes",
		"CREATE TABLE processes ( -- who wrote the trace\n"
		"  process INTEGER PRIMARY KEY, -- its number, from 0, in all tables\n"
		"  boot_id TEXT,\n"
		"  folder TEXT, -- of its first segment\n"
		"  start_ns INTEGER, -- its first and last loop event, ns of CLOCK_MONOTONIC\n"
		"  end_ns INTEGER,\n"
		"  wall_offset_ns INTEGER, -- UTC minus CLOCK_MONOTONIC; NULL: no clock anchor\n"
		"  events INTEGER,\n"
		"  lost_events INTEGER -- above 0: all other tables lack something\n"
		")", 8, NULL },
	[D9__QUERY_SEGMENTS] = { .name = "segments", .about = "files of the trace",
		.shared = d9__segment_columns,
		.order = (const char *const[]){ "process", "path", "container", "stored_bytes",
			"unpacked_bytes", "events", "first_ns", "last_ns", "active", "error",
			NULL } },
	[D9__QUERY_METADATA] = { "metadata",
		"CREATE TABLE metadata ( -- what the recorder and the program said of themselves\n"
		"  process INTEGER,\n"
		"  key TEXT,\n"
		"  value TEXT\n"
		")", 3, NULL },
	[D9__QUERY_WORKERS] = { .name = "workers", .about = "threads that run a loop",
		.shared = d9__worker_columns,
		.order = (const char *const[]){ "process", "worker", "name", "tid", "calls",
			"poll_ns", "parks", "parked_ns", "awake_ns", "cpu_ns", NULL } },
	[D9__QUERY_CALLBACKS] = { .name = "callbacks", .shared = d9__callback_columns,
		.about = "functions that loops call, one row per place of registration" },
	[D9__QUERY_TASKS] = { .name = "tasks", .shared = d9__task_columns,
		.about = "registrations: events, watchers, sources", .key = "process, task" },
	[D9__QUERY_RUNS] = { "runs",
		"CREATE TABLE runs ( -- of callbacks: calls of a loop, and of its library in them\n"
		"  run INTEGER PRIMARY KEY, -- in the order of their starts\n"
		"  process INTEGER,\n"
		"  worker INTEGER, -- that ran it\n"
		"  task INTEGER, -- that was run\n"
		"  callback INTEGER, -- callbacks.callback\n"
		"  caller INTEGER, -- runs.run of its library's callback; NULL: the loop called it\n"
		"  poll INTEGER, -- polls.poll that it began in; NULL: none\n"
		"  start_ns INTEGER, -- ns of CLOCK_MONOTONIC\n"
		"  duration_ns INTEGER, -- without loops and runs in it; NULL: the trace ends first\n"
		"  delay_ns INTEGER, -- from ready to running, ns; NULL: no wake was seen\n"
		"  blocked_ns INTEGER, -- asleep inside, ns; NULL: not measured, as under 1 ms\n"
		"  ready_ns INTEGER, -- inside, ready without a CPU, ns; NULL likewise\n"
		"  on_cpu_samples INTEGER,\n"
		"  off_cpu_samples INTEGER,\n"
		"  sampled_cpu_ns INTEGER, -- that the on-CPU ones stand for; NULL: not told\n"
		"  open_ended INTEGER -- 1: ended by the next poll or park\n"
		")", 16,
		"CREATE INDEX runs_by_start ON runs(process, worker, start_ns);"
		"CREATE INDEX runs_by_callback ON runs(callback, duration_ns)" },
	[D9__QUERY_POLLS] = { "polls",
		"CREATE TABLE polls ( -- calls of a loop; a loop inside cuts one into several\n"
		"  poll INTEGER PRIMARY KEY,\n"
		"  process INTEGER,\n"
		"  worker INTEGER, -- that ran it\n"
		"  task INTEGER, -- that was run\n"
		"  callback INTEGER, -- callbacks.callback\n"
		"  start_ns INTEGER, -- ns of CLOCK_MONOTONIC\n"
		"  duration_ns INTEGER, -- NULL: the trace ends first\n"
		"  delay_ns INTEGER, -- from ready to running, ns; NULL: no wake was seen\n"
		"  local_queue INTEGER, -- callbacks that were ready, this one included; 255 means 255 or more\n"
		"  blocked_ns INTEGER, -- asleep inside, ns; NULL: not measured, as in calls under 1 ms\n"
		"  ready_ns INTEGER, -- inside, ready without a CPU, ns; NULL likewise\n"
		"  on_cpu_samples INTEGER,\n"
		"  off_cpu_samples INTEGER,\n"
		"  sampled_cpu_ns INTEGER, -- that the on-CPU ones stand for; NULL: not told\n"
		"  resumed INTEGER, -- 1: goes on with a call before, which ran a loop itself\n"
		"  open_ended INTEGER -- 1: ended by the next poll or park, so of doubtful length\n"
		")", 16,
		"CREATE INDEX polls_by_start ON polls(process, worker, start_ns);"
		"CREATE INDEX polls_by_callback ON polls(callback, duration_ns)" },
	[D9__QUERY_PARKS] = { "parks",
		"CREATE TABLE parks ( -- waits of loops for events\n"
		"  process INTEGER,\n"
		"  worker INTEGER,\n"
		"  start_ns INTEGER,\n"
		"  duration_ns INTEGER,\n"
		"  kernel_wait_ns INTEGER -- ready at its end, without a CPU; NULL: not measured\n"
		")", 5,
		"CREATE INDEX parks_by_start ON parks(process, worker, start_ns)" },
	[D9__QUERY_WAKES] = { "wakes",
		"CREATE TABLE wakes ( -- a task became ready\n"
		"  process INTEGER,\n"
		"  time_ns INTEGER,\n"
		"  task INTEGER, -- that became ready\n"
		"  waker_task INTEGER, -- whose call did it; NULL: none\n"
		"  waker_worker INTEGER, -- that it ran on; NULL: a thread without a loop, or not known\n"
		"  reason TEXT -- fd, timer, signal, active, cross_thread, deferred, ...; NULL: not told\n"
		")", 6, "CREATE INDEX wakes_by_task ON wakes(process, task, time_ns)" },
	[D9__QUERY_SPANS] = { .name = "spans", .about = "the program's own pieces of work",
		.shared = d9__span_columns,
		.index = "CREATE INDEX spans_by_name ON spans(name, first_ns)" },
	[D9__QUERY_THREADS] = { .name = "threads", .shared = d9__thread_columns,
		.about = "that run a loop, or of which a sample was taken", .key = "process, tid" },
	[D9__QUERY_SAMPLES] = { .name = "samples", .about = "stack samples of threads",
		.shared = d9__sample_columns,
		.index = "CREATE INDEX samples_by_stack ON samples(stack)" },
	[D9__QUERY_FRAMES] = { "frames",
		"CREATE TABLE frames ( -- without the recorder's; inlined functions have rows\n"
		"  stack INTEGER,\n"
		"  depth INTEGER, -- 0: innermost\n"
		"  function TEXT, -- else module+0xoffset\n"
		"  file TEXT, -- NULL: not known\n"
		"  line INTEGER,\n"
		"  module TEXT, -- NULL: not known\n"
		"  address TEXT, -- in the recorded process, in hex\n"
		"  PRIMARY KEY (stack, depth)\n"
		") WITHOUT ROWID", 7, NULL },
	[D9__QUERY_BLOCKING] = { .name = "blocking", .shared = d9__blocking_columns,
		.about = "calls inside callbacks that blocked for long" },
	[D9__QUERY_ALLOCATIONS] = { "allocations",
		"CREATE TABLE allocations ( -- sampled: one for about each rate_bytes bytes\n"
		"  process INTEGER,\n"
		"  time_ns INTEGER,\n"
		"  tid INTEGER,\n"
		"  address TEXT, -- in hex\n"
		"  size INTEGER, -- bytes asked for\n"
		"  rate_bytes INTEGER, -- it stands for about max(size, rate_bytes) bytes\n"
		"  task INTEGER, -- whose call allocated it, or NULL\n"
		"  stack INTEGER, -- frames.stack, or NULL\n"
		"  freed_ns INTEGER, -- NULL: it lives at the end, or frees were not recorded\n"
		"  PRIMARY KEY (process, address, time_ns)\n"
		") WITHOUT ROWID", 9, NULL },
	[D9__QUERY_DUMPS] = { "dumps",
		"CREATE TABLE dumps ( -- where idle tasks were armed\n"
		"  process INTEGER,\n"
		"  time_ns INTEGER, -- of the arming\n"
		"  task INTEGER,\n"
		"  kept INTEGER, -- 1: it stayed armed\n"
		"  stack INTEGER -- frames.stack, or NULL\n"
		")", 5, NULL },
	[D9__QUERY_EVENTS] = { "events",
		"CREATE TABLE events ( -- every event as it is in the trace\n"
		"  process INTEGER,\n"
		"  time_ns INTEGER, -- NULL: it has none\n"
		"  name TEXT, -- of its type\n"
		"  fields TEXT -- JSON object as of dial9-events(1), for json_extract(fields, '$.FIELD'); NULL: over 64 KiB\n"
		")", 4, "CREATE INDEX events_by_name ON events(name, time_ns)" },
	[D9__QUERY_FINDINGS] = { "findings",
		"CREATE TABLE findings ( -- what dial9 report finds, worst first\n"
		"  finding INTEGER PRIMARY KEY, -- its number in dial9 report; effects come last\n"
		"  process INTEGER,\n"
		"  effect_of INTEGER, -- findings.finding of its cause; NULL: it is one itself\n"
		"  severity TEXT, -- critical, warning, info\n"
		"  check_id TEXT, -- as in dial9-report(1)\n"
		"  name TEXT, -- what it is about\n"
		"  message TEXT,\n"
		"  source TEXT, -- file.c:12, or NULL\n"
		"  task INTEGER, -- an example, or NULL\n"
		"  advice TEXT\n"
		")", 10, NULL },
	[D9__QUERY_EVIDENCE] = { "evidence",
		"CREATE TABLE evidence ( -- of findings\n"
		"  finding INTEGER,\n"
		"  text TEXT,\n"
		"  time_ns INTEGER, -- NULL: not told, as what follows\n"
		"  duration_ns INTEGER,\n"
		"  worker INTEGER,\n"
		"  task INTEGER,\n"
		"  callback INTEGER\n"
		")", 7, NULL },
};

const struct d9__query_view d9__query_views[] = {
	{ "calls",
		"CREATE VIEW calls AS -- runs with names, times since the start in s, lengths in ms\n"
		"  SELECT r.run, r.poll, r.process, r.worker, r.task, c.name, c.site, c.kind,\n"
		"    (r.start_ns - s.start_ns) / 1e9 AS at_s, r.duration_ns / 1e6 AS ms, r.delay_ns / 1e6 AS delay_ms,\n"
		"    r.blocked_ns / 1e6 AS blocked_ms, r.ready_ns / 1e6 AS ready_ms, r.on_cpu_samples AS samples,\n"
		"    r.sampled_cpu_ns\n"
		"  FROM runs r JOIN callbacks c USING (callback) JOIN processes s ON s.process = r.process" },
	{ "stacks",
		"CREATE VIEW stacks AS -- one row per stack: outermost;...;innermost\n"
		"  SELECT stack, group_concat(function, ';') AS folded\n"
		"  FROM (SELECT stack, function FROM frames ORDER BY stack, depth DESC) GROUP BY stack" },
	{ NULL, NULL },
};

static void put_column(FILE *out, const struct d9__column *column, bool last)
{
	const char *meaning = column->meaning ? column->meaning : "";

	fprintf(out, "  %s %s%s%s%s%s\n", column->sql,
		column->unit >= D9__AS_DIGITS ? "TEXT" : "INTEGER",
		column->unit == D9__AS_KEY ? " PRIMARY KEY" : "", last ? "" : ",",
		*meaning ? " -- " : "", meaning);
}

/* Return the column that comes |n|th in |table|; NULL: it has not so many. */
static const struct d9__column *column_at(const struct d9__query_table_text *table, size_t n)
{
	const struct d9__column *column = table->shared;

	if (table->order && !table->order[n])
		return NULL;
	for (; d9__column_is(column); column++)
		if (column->sql &&
		    (table->order ? !strcmp(column->sql, table->order[n]) : n-- == 0))
			return column;
	return NULL;
}

char *d9__query_table_sql(enum d9__query_table number)
{
	const struct d9__query_table_text *table = &d9__query_tables[number];
	const struct d9__column *column;
	char *text = NULL;
	size_t size;
	FILE *out;

	if (table->sql)
		return strdup(table->sql);
	out = open_memstream(&text, &size);
	if (!out)
		return NULL;
	fprintf(out, "CREATE TABLE %s ( -- %s\n", table->name, table->about);
	for (size_t i = 0; (column = column_at(table, i)); i++)
		put_column(out, column, !table->key && !column_at(table, i + 1));
	fprintf(out, "%s%s%s)%s", table->key ? "  PRIMARY KEY (" : "", table->key ? table->key : "",
		table->key ? ")\n" : "", table->key ? " WITHOUT ROWID" : "");
	if (fclose(out)) {
		free(text);
		return NULL;
	}
	return text;
}

enum d9__query_table d9__query_table_find(const char *name)
{
	unsigned i = 0;

	while (i < D9__QUERY_TABLES && strcasecmp(d9__query_tables[i].name, name) != 0)
		i++;
	return i;
}
