/* SPDX-License-Identifier: Apache-2.0 */
/* One segment as rows of the fleet's tables. */
#include "config.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "export/export_partitions.h"
#include "export/export_sink.h"
#include "fleet/segment_tables.h"
#include "ship/tables.h"
#include "text/fail.h"
#include "tool/progress.h"
#include "tool/symbol_options.h"
#include "tool/trace_input.h"

_Static_assert(D9__TABLES_ALL == D9__SEGMENT_TABLES, "dial9 ship takes all that are written here");

struct partition {
	const struct d9__partitions *options;
	struct d9_reader *reader;
	struct d9__processes processes;
	struct d9__analysis analysis;
	struct d9__symbolizer *symbols;
	struct d9__segment_contents segment;
	char *service, *instance, *boot_id; /* of the key */
};

/* ---- files ---- */

int d9__export_folders(const char *path)
{
	char *folder = strdup(path);
	int err = folder ? 0 : -ENOMEM;

	for (char *slash = folder; !err && (slash = strchr(slash + 1, '/'));) {
		*slash = '\0';
		if (mkdir(folder, 0777) && errno != EEXIST)
			err = -errno;
		*slash = '/';
	}
	free(folder);
	return err;
}

int d9__export_explain(const char *path, int err)
{
	return d9__cmd_fail("export", "cannot write %s: %s", path, strerror(-err));
}

static int write_to_sink(void *sink, const void *bytes, size_t len)
{
	return d9__export_sink_write(sink, bytes, len);
}

static int write_table(const struct partition *partition, const struct d9__segment_table *table)
{
	char path[PATH_MAX];
	size_t len = (size_t)snprintf(path, sizeof(path), "%s/", partition->options->folder);
	struct d9__sink *sink;
	int err = len >= sizeof(path) ? -ENAMETOOLONG :
					d9__segment_place_path(&partition->segment.place, table->name, path + len,
							       sizeof(path) - len);

	if (err < 0)
		return d9__export_explain(partition->options->folder, err);
	err = d9__export_folders(path);
	if (!err)
		err = d9__export_sink_open(path, false, &sink);
	if (err)
		return d9__export_explain(path, err);
	err = d9__segment_table_write(table, &partition->segment, write_to_sink, sink);
	if (err)
		d9__export_sink_abandon(sink);
	else
		err = d9__export_sink_commit(sink);
	return err ? d9__export_explain(path, err) : 0;
}

/* ---- the segment ---- */

/* The part of the key |key| that is called |name|, as in "service=web/", in new memory; NULL: there is none. */
static char *key_part(const char *key, const char *name)
{
	size_t len = strlen(name);

	for (const char *part = key; part; part = strchr(part, '/')) {
		part += *part == '/';
		if (!strncmp(part, name, len) && part[len] == '=')
			return strndup(part + len + 1, strcspn(part + len + 1, "/"));
	}
	return NULL;
}

/*
 * Take service, host and such from the key in the store, because the rows belong to the same
 * service; and what the segment itself lacks.
 */
static void take_place(struct partition *partition)
{
	const struct d9__analysis *a = &partition->analysis;
	struct d9__fleet_place *place = &partition->segment.place;
	const char *key = partition->options->key, *slash = strrchr(a->segments[0].path, '/');
	const char *host = d9__metadata_value(&a->metadata, "host"), *boot_id = d9__metadata_value(&a->metadata, "boot_id");

	partition->service = key_part(key, "service");
	partition->instance = key_part(key, "instance");
	partition->boot_id = key_part(key, "boot");
	place->key = key ? key : slash ? slash + 1 : a->segments[0].path;
	place->service = partition->service ? partition->service : d9__metadata_value(&a->metadata, "service");
	place->host = host ? host : partition->instance;
	place->boot_id = boot_id ? boot_id : partition->boot_id;
	place->epoch_s = a->anchor_wall_ns / 1000000000;
}

/* From the clock of the recorded process to UTC, by the segment's first anchor.  0, or an exit status after a line. */
static int find_anchor(char **paths, uint64_t *to_wall_ns)
{
	struct d9_reader *reader = NULL;
	const struct d9_event *event;
	bool found = false;
	int err, status = d9__traces_open("export", paths, &reader);

	while (!status && !found && (err = d9_reader_next(reader, &event)) == 1) {
		uint64_t wall_ns = event->kind == D9_EVENT_CLOCK_SYNC ? d9_event_known_u64(event, 0, 0) : 0;

		found = wall_ns && event->timestamp_ns;
		if (found)
			*to_wall_ns = wall_ns - event->timestamp_ns;
	}
	d9_reader_free(reader);
	if (status || found)
		return status;
	return d9__cmd_fail("export", "%s: no clock anchor (ClockSyncEvent): rows of a fleet need a time of day", *paths);
}

static int open_segment(struct partition *partition, char **paths)
{
	int status;

	if (*paths && d9__traces_have_pipe(paths))
		return d9__cmd_fail("export", "--partitions reads its segment twice: give a file, not a pipe");
	status = d9__traces_open("export", paths, &partition->reader);
	if (status)
		return status;
	if (d9_reader_segments(partition->reader) != 1)
		return d9__cmd_fail("export", "--partitions takes one segment, not %zu", d9_reader_segments(partition->reader));
	if (d9__processes_find(&partition->processes, partition->reader) || d9__symbol_open(&partition->symbols))
		return d9__cmd_fail("export", "out of memory");
	partition->analysis.processes = &partition->processes;
	return 0;
}

static int read_events(struct partition *partition)
{
	struct d9__progress progress;
	const struct d9_event *event;
	int err = 0;

	d9__progress_init(&progress);
	while (!err && (event = d9__traces_next(partition->reader, &progress, &err))) {
		err = d9__analysis_event(&partition->analysis, event);
		if (!err)
			err = d9__symbol_learn(partition->symbols, partition->reader, event);
		if (!err)
			err = d9__segment_rows_event(&partition->segment.rows, event);
	}
	d9__progress_clear(&progress);
	if (!err)
		err = d9__analysis_finish(&partition->analysis, partition->reader);
	if (!err)
		err = d9__segment_rows_finish(&partition->segment.rows);
	return err;
}

static int name_all(struct partition *partition)
{
	const struct d9__namer namer = d9__symbol_namer(partition->symbols);
	int err = d9__analysis_name(&partition->analysis, &namer);

	return err ? err : d9__segment_stacks_make(&partition->segment.stacks, &partition->segment.rows, partition->symbols);
}

static void release(struct partition *partition)
{
	d9__segment_stacks_release(&partition->segment.stacks);
	d9__segment_rows_release(&partition->segment.rows);
	d9__analysis_release(&partition->analysis);
	d9__symbolizer_close(partition->symbols);
	d9__processes_release(&partition->processes);
	d9_reader_free(partition->reader);
	free(partition->service);
	free(partition->instance);
	free(partition->boot_id);
}

/* Read it, and write its tables. */
static int export(struct partition *partition)
{
	int err = read_events(partition), status = 0;

	if (!err)
		err = name_all(partition);
	if (!err) {
		take_place(partition);
		for (size_t i = 0; i < D9__SEGMENT_TABLES && !status; i++)
			status = write_table(partition, &d9__segment_tables[i]);
	}
	err = d9__traces_close("export", partition->reader, err);
	return status ? status : err;
}

int d9__export_partitions(char **paths, const struct d9__partitions *options)
{
	struct partition partition = { .options = options };
	uint64_t to_wall_ns = 0;
	int status = open_segment(&partition, paths);

	if (!status)
		status = find_anchor(paths, &to_wall_ns);
	if (!status) {
		d9__segment_rows_begin(&partition.segment.rows, &partition.analysis, to_wall_ns, options->slow_ns);
		status = export(&partition);
	}
	release(&partition);
	return status;
}
