/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <dial9/reader.h>

#include "analyze/analysis.h"
#include "cli/cmd.h"
#include "cli/dump_list.h"
#include "cli/info_json.h"
#include "cli/trace_facts.h"
#include "text/text.h"
#include "tool/args.h"
#include "tool/progress.h"
#include "tool/trace_input.h"

#define WIDTH_MAX 40

static const struct d9__opt opts[] = {
	{ 'j', "json", NULL, "print one JSON object" },
	{ 0, NULL, NULL, NULL },
};

static const struct d9__usage usage = {
	.command = "info",
	.synopsis = "[OPTIONS] TRACE...",
	.text = "Tell what a trace holds: segments, time, events by type, loss, hooks, metadata,\n"
		"the recorder's log, health.\n",
	.opts = opts,
};

/* Widen the left column for |name|, but no further than most names need. */
static size_t widen(size_t width, const char *name)
{
	size_t len = strlen(name);

	return len > width && len <= WIDTH_MAX ? len : width;
}

/* "name   text" in the left column of a section. */
static void put_name(struct d9__text_out *out, const char *name, size_t width)
{
	size_t used;

	d9__text_string(out, "  ");
	for (used = d9__text_fitting(out, name, SIZE_MAX); used < width; used++)
		d9__text_char(out, ' ');
	d9__text_string(out, "  ");
}

/* Leave out the path, which the message begins with and which was printed above. */
static void put_damage(struct d9__text_out *out, const struct d9_segment_info *info)
{
	size_t len = strlen(info->path);
	const char *message = info->message;

	if (!strncmp(message, info->path, len) && !strncmp(message + len, ": ", 2))
		message += len + 2;
	d9__text_string(out, "damaged: ");
	d9__text_escaped(out, message, strlen(message));
}

static void put_state(struct d9__text_out *out, const struct d9_segment_info *info)
{
	if (info->err == -ENOENT)
		d9__text_string(out, "not there");
	else if (d9__segment_is_damaged(info->err) && info->message)
		put_damage(out, info);
	else if (info->active)
		d9__text_string(out, "being written, or its process was killed");
	else if (d9__segment_is_unreadable(info->truncated, info->active, info->events))
		d9__text_string(out, "cut before its first event, nothing can be read");
	else if (info->truncated)
		d9__text_printf(out, "cut in the middle of a frame at byte %" PRIu64,
				info->err_offset);
	else
		d9__text_string(out, "complete");
}

/* Write the faults of the segment that the format forbids but readers tolerate. */
static void put_warnings(struct d9__text_out *out, const struct d9_segment_info *info)
{
	const struct {
		uint64_t n;
		const char *one, *many;
	} warnings[] = {
		{ info->repeated_keys, "key of a map is there twice, the last one counts",
		  "keys of maps are there twice, the last ones count" },
		{ info->unresolved, "pooled value is not defined", "pooled values are not defined" },
		{ info->unusable, "event lacks a field that its name demands",
		  "events lack fields that their names demand" },
	};

	for (size_t i = 0; i < sizeof(warnings) / sizeof(warnings[0]); i++)
		if (warnings[i].n)
			d9__text_printf(out, "    warning: %" PRIu64 " %s\n", warnings[i].n,
					warnings[i].n == 1 ? warnings[i].one : warnings[i].many);
}

static void put_segment(struct d9__text_out *out, const struct d9_segment_info *info,
			uint64_t origin_ns)
{
	char stored[D9__SIZE_LEN], unpacked[D9__SIZE_LEN], from[D9__DURATION_LEN],
		length[D9__DURATION_LEN];
	uint64_t after_ns = info->first_ns > origin_ns ? info->first_ns - origin_ns : 0;

	d9__text_string(out, "  ");
	d9__text_escaped(out, info->path, strlen(info->path));
	d9__text_printf(out,
			"\n    %s, %s stored, %s unpacked, %" PRIu64 " batch%s, %" PRIu64
			" event%s\n    from %s, %s long, ",
			info->container, d9__size_text(info->stored_bytes, stored),
			d9__size_text(info->unpacked_bytes, unpacked), info->batches,
			info->batches == 1 ? "" : "es", info->events, info->events == 1 ? "" : "s",
			d9__duration_text(after_ns, from),
			d9__duration_text(info->last_ns - info->first_ns, length));
	put_state(out, info);
	d9__text_char(out, '\n');
	put_warnings(out, info);
}

static void put_segments(struct d9__text_out *out, const struct d9_reader *reader,
			 const struct d9__trace_facts *facts)
{
	uint64_t origin_ns = UINT64_MAX;
	struct d9_segment_info info;

	for (size_t i = 0; i < facts->n_processes; i++)
		if (facts->processes[i].first_ns && facts->processes[i].first_ns < origin_ns)
			origin_ns = facts->processes[i].first_ns;
	d9__text_string(out, "segments\n");
	for (size_t i = 0; i < d9_reader_segments(reader); i++)
		if (!d9_reader_segment(reader, i, &info))
			put_segment(out, &info, origin_ns);
}

static void put_tallies(struct d9__text_out *out, const char *title, const char *none,
			const struct d9__tallies *tallies)
{
	size_t width = 0;

	for (size_t i = 0; i < tallies->n; i++)
		width = widen(width, tallies->items[i].name);
	d9__text_printf(out, "%s\n", title);
	for (size_t i = 0; i < tallies->n; i++) {
		put_name(out, tallies->items[i].name, width);
		d9__text_printf(out, "%" PRIu64 "\n", tallies->items[i].n);
	}
	if (!tallies->n)
		d9__text_printf(out, "  %s\n", none);
}

static void put_metadata(struct d9__text_out *out, const struct d9__process *process)
{
	size_t width = 0;

	for (size_t i = 0; i < process->n_metadata; i++)
		width = widen(width, process->metadata[i].key);
	d9__text_string(out, process->n_metadata ? "metadata\n" : "metadata\n  none\n");
	for (size_t i = 0; i < process->n_metadata; i++) {
		const char *value = process->metadata[i].value;

		put_name(out, process->metadata[i].key, width);
		d9__text_escaped(out, value, strlen(value));
		d9__text_char(out, '\n');
	}
}

static bool ends_with(const char *text, const char *suffix)
{
	size_t len = strlen(text), tail = strlen(suffix);

	return len > tail && !strcmp(text + len - tail, suffix);
}

/* Write which hooks of each loop library took hold and which are missing. */
static void put_hooks(struct d9__text_out *out, const struct d9__process *process)
{
	bool any = false;

	d9__text_string(out, "hooks\n");
	for (size_t i = 0; i < process->n_metadata; i++) {
		const char *key = process->metadata[i].key, *value = process->metadata[i].value;

		char name[128];

		if (strncmp(key, "loop.", 5) || (!ends_with(key, ".capabilities") && !ends_with(key, ".degraded")))
			continue;
		any = true;
		snprintf(name, sizeof(name), "%.*s %s", (int)(strrchr(key, '.') - key - 5), key + 5,
			 ends_with(key, ".degraded") ? "lacks" : "sees");
		put_name(out, name, strlen("libevent lacks"));
		d9__text_escaped(out, value, strlen(value));
		d9__text_string(out, *value ? "\n" : "none\n");
	}
	if (!any)
		d9__text_string(out, "  the trace does not say which hooks took hold\n");
}

static void put_log(struct d9__text_out *out, const struct d9__process *process)
{
	const struct d9__log *log = &process->log;
	char after[D9__DURATION_LEN];

	if (!log->n)
		return;
	put_tallies(out, "the recorder's log, lines by level", "none", &log->levels);
	d9__text_string(out, "the latest of them (all: dial9 events -e RecorderLogEvent)\n");
	for (size_t i = 0; i < log->n; i++) {
		const struct d9__log_line *line = &log->last[i];

		d9__text_printf(out, "  %9s  ", d9__duration_text(line->ns > process->first_ns ? line->ns - process->first_ns : 0, after));
		d9__text_escaped(out, line->level, strlen(line->level));
		d9__text_string(out, ": ");
		d9__text_escaped(out, line->text, strlen(line->text));
		if (line->times > 1)
			d9__text_printf(out, " (%" PRIu64 " times)", line->times);
		d9__text_char(out, '\n');
	}
}

static void put_process(struct d9__text_out *out, const struct d9__process *process)
{
	char length[D9__DURATION_LEN], wall[D9__WALL_LEN];
	uint64_t wall_ns = d9__process_wall_start_ns(process);

	d9__text_string(out, "\nprocess ");
	d9__text_escaped(out, process->directory, strlen(process->directory));
	d9__text_printf(out, "\n  %" PRIu64 " events in %s, from %s\n", process->events,
			d9__duration_text(process->last_ns - process->first_ns, length),
			wall_ns ? d9__wall_text(wall_ns, wall) : "an unknown time of day");
	put_tallies(out, "lost events by cause", "none", &process->loss);
	put_hooks(out, process);
	put_metadata(out, process);
	put_log(out, process);
	d9__text_string(out, "health, as last recorded\n ");
	d9__text_string(out, process->health_text ? process->health_text : " none");
	d9__text_char(out, '\n');
}

static void put_dumps(struct d9__text_out *out, const struct d9__dump_list *list)
{
	const struct d9__kept_dump *latest = &list->dumps[list->n - 1];

	d9__text_printf(out, "dumps\n  %zu by triggers (dial9 dumps lists them), the latest by ", list->n);
	d9__text_escaped(out, latest->trigger, strlen(latest->trigger));
	d9__text_string(out, ": ");
	d9__text_escaped(out, latest->path, strlen(latest->path));
	d9__text_char(out, '\n');
}

static void put_text(struct d9__text_out *out, const struct d9_reader *reader,
		     const struct d9__trace_facts *facts, const struct d9__dump_list *dumps)
{
	put_segments(out, reader, facts);
	if (dumps->n)
		put_dumps(out, dumps);
	put_tallies(out, "events by type", "none", &facts->types);
	for (size_t i = 0; i < facts->n_processes; i++)
		put_process(out, &facts->processes[i]);
}

/* Find the dumps below |paths|.  Their faults are left to the command that lists them. */
static int find_dumps(struct d9__dump_list *list, char **paths)
{
	struct stat st;
	int err = 0;

	for (; *paths && err != -ENOMEM; paths++)
		if (!stat(*paths, &st) && S_ISDIR(st.st_mode))
			err = d9__dump_list_add(list, *paths);
	return err == -ENOMEM ? err : 0;
}

static int run(char **paths, bool json, struct d9__text_out *out)
{
	struct d9__dump_list dumps = { 0 };
	struct d9__trace_facts facts;
	struct d9__progress progress;
	const struct d9_event *event;
	struct d9_reader *reader;
	int err, status = d9__traces_open("info", paths, &reader);

	if (status)
		return status;
	d9__progress_init(&progress);
	d9_reader_set_file_order(reader, true);
	err = d9__trace_facts_init(&facts, reader);
	while (!err && (event = d9__traces_next(reader, &progress, &err)))
		err = d9__trace_facts_add(&facts, event);
	if (!err)
		err = find_dumps(&dumps, paths);
	d9__trace_facts_finish(&facts);
	d9__progress_clear(&progress);
	if (json)
		d9__info_json(out, reader, &facts, &dumps);
	else
		put_text(out, reader, &facts, &dumps);
	status = d9__text_finish(out, "info");
	if (!status)
		status = d9__traces_close("info", reader, err);
	d9__trace_facts_release(&facts);
	d9__dump_list_release(&dumps);
	d9_reader_free(reader);
	return status;
}

int d9__cmd_info(int argc, char **argv)
{
	struct d9__args args = { .usage = &usage, .argc = argc, .argv = argv };
	static struct d9__text_out out;
	bool json = false;
	int key;

	while ((key = d9__args_next(&args)) > 0)
		json = true;
	if (key < 0)
		return d9__args_exit(key);
	d9__text_init(&out, STDOUT_FILENO);
	return run(argv + args.first, json, &out);
}
