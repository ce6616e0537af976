/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "analyze/processes.h"
#include "format/utf8.h"

/* The metadata stand at the beginning of a segment; behind that many events nobody looks. */
#define EVENTS_BEFORE_METADATA 64

#define UNKNOWN SIZE_MAX

bool d9__path_is_pipe(const char *path)
{
	struct stat st;

	return !strcmp(path, "-") || (!stat(path, &st) && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode));
}

/* What comes through a pipe has no neighbours. */
static char *folder_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	if (d9__path_is_pipe(path))
		return strdup(path);
	return slash ? strndup(path, slash > path ? (size_t)(slash - path) : 1) : strdup(".");
}

/* The value of |key|, of several the last; NULL if it has none. */
static const struct d9_text *find(const struct d9_value *entries, const char *key)
{
	const struct d9_text *found = NULL;

	for (size_t i = 0; i < entries->u.string_map.n; i++) {
		const struct d9_text *pair = &entries->u.string_map.pairs[2 * i];

		if (pair[0].len == strlen(key) && !memcmp(pair[0].data, key, pair[0].len) &&
		    pair[1].len > 0)
			found = &pair[1];
	}
	return found;
}

/* Dumps of one process overlap, so each stands for itself, as if it were a process of its own. */
static int take_boot_id(const struct d9_event *event, char **out)
{
	const struct d9_value *entries = d9_event_known(event, D9_SEGMENT_METADATA_ENTRIES);
	const struct d9_text *boot_id, *dump;

	if (!entries || !entries->present || entries->type != D9_FIELD_STRING_MAP)
		return 0;
	boot_id = find(entries, "boot_id");
	dump = find(entries, "dump.id");
	if (!boot_id)
		return 0;
	if (dump)
		return asprintf(out, "%.*s, dump %.*s", d9__precision(boot_id->len), boot_id->data,
				d9__precision(dump->len), dump->data) < 0 ? (*out = NULL, -ENOMEM) : 0;
	*out = strndup(boot_id->data, boot_id->len);
	return *out ? 0 : -ENOMEM;
}

/* |*out| stays NULL if the segment |path| does not tell, or cannot be read. */
static int read_boot_id(const char *path, char **out)
{
	const struct d9_event *event;
	struct d9_reader *reader;
	int err;

	if (d9__path_is_pipe(path))
		return 0;
	err = d9_reader_new(&reader);
	if (err)
		return err;
	if (!d9_reader_add(reader, path)) {
		d9_reader_set_file_order(reader, true);
		for (unsigned i = 0; i < EVENTS_BEFORE_METADATA && !err && !*out; i++) {
			if (d9_reader_next(reader, &event) != 1)
				break;
			if (event->kind == D9_EVENT_SEGMENT_METADATA)
				err = take_boot_id(event, out);
		}
	}
	d9_reader_free(reader);
	return err;
}

/* The process of |boot_id|, or if that is NULL, of |folder|; UNKNOWN if it is new. */
static size_t look_up(const struct d9__processes *processes, const char *boot_id,
		      const char *folder)
{
	for (size_t i = 0; i < processes->n; i++) {
		const struct d9__trace_process *process = &processes->items[i];

		if (boot_id ? process->boot_id && !strcmp(process->boot_id, boot_id)
			    : !strcmp(process->folder, folder))
			return i;
	}
	return UNKNOWN;
}

/* Takes both texts. */
static int place_segment(struct d9__processes *processes, size_t segment, char *boot_id,
			 char *folder)
{
	size_t found = look_up(processes, boot_id, folder);
	struct d9__trace_process *items;

	processes->of_segment[segment] = found;
	if (found != UNKNOWN)
		goto out;
	items = reallocarray(processes->items, processes->n + 1, sizeof(*items));
	if (!items)
		goto out;
	items[processes->n] = (struct d9__trace_process){ boot_id, folder };
	processes->items = items;
	processes->of_segment[segment] = processes->n++;
	return 0;
out:
	free(boot_id);
	free(folder);
	return found == UNKNOWN ? -ENOMEM : 0;
}

/* With |told|, the segments that tell their boot id; then the others, which join their folder's. */
static int place_segments(struct d9__processes *processes, const struct d9_reader *reader,
			  char **boot_ids, bool told)
{
	struct d9_segment_info info;
	int err = 0;

	for (size_t i = 0; i < processes->n_segments && !err; i++) {
		char *folder;

		if (processes->of_segment[i] != UNKNOWN || (told && !boot_ids[i]))
			continue;
		if (d9_reader_segment(reader, i, &info))
			return -EINVAL;
		folder = folder_of(info.path);
		if (!folder)
			return -ENOMEM;
		err = place_segment(processes, i, boot_ids[i], folder);
		boot_ids[i] = NULL;
	}
	return err;
}

/* Where a folder holds several processes, name their first files instead. */
static int tell_apart(struct d9__processes *processes, const struct d9_reader *reader)
{
	size_t n = processes->n, segment = 0;
	bool *shared = calloc(n + 1, sizeof(*shared));
	struct d9_segment_info info;
	int err = shared ? 0 : -ENOMEM;

	for (size_t i = 0; !err && i < n; i++)
		for (size_t j = 0; j < n; j++)
			shared[i] |= i != j && !strcmp(processes->items[i].folder,
						       processes->items[j].folder);
	for (size_t i = 0; !err && i < n; i++, segment = 0) {
		while (segment < processes->n_segments && processes->of_segment[segment] != i)
			segment++;
		if (!shared[i] || d9_reader_segment(reader, segment, &info))
			continue;
		free(processes->items[i].folder);
		processes->items[i].folder = strdup(info.path);
		err = processes->items[i].folder ? 0 : -ENOMEM;
	}
	free(shared);
	return err;
}

int d9__processes_find(struct d9__processes *processes, const struct d9_reader *reader)
{
	size_t n = d9_reader_segments(reader);
	char **boot_ids = calloc(n + 1, sizeof(*boot_ids));
	struct d9_segment_info info;
	int err = 0;

	processes->of_segment = malloc((n + 1) * sizeof(*processes->of_segment));
	processes->n_segments = n;
	if (!boot_ids || !processes->of_segment) {
		err = -ENOMEM;
		goto out;
	}
	for (size_t i = 0; i < n && !err; i++) {
		processes->of_segment[i] = UNKNOWN;
		err = d9_reader_segment(reader, i, &info);
		if (!err && n > 1)
			err = read_boot_id(info.path, &boot_ids[i]);
	}
	if (!err)
		err = place_segments(processes, reader, boot_ids, true);
	if (!err)
		err = place_segments(processes, reader, boot_ids, false);
	if (!err)
		err = tell_apart(processes, reader);
out:
	for (size_t i = 0; boot_ids && i < n; i++)
		free(boot_ids[i]);
	free(boot_ids);
	return err;
}

void d9__processes_release(struct d9__processes *processes)
{
	for (size_t i = 0; i < processes->n; i++) {
		free(processes->items[i].boot_id);
		free(processes->items[i].folder);
	}
	free(processes->items);
	free(processes->of_segment);
	*processes = (struct d9__processes){ 0 };
}

const char *d9__process_label(const struct d9__trace_process *process)
{
	return process->boot_id ? process->boot_id : process->folder;
}
