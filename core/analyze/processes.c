/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "analyze/budget.h"
#include "analyze/processes.h"
#include "analyze/texts.h"
#include "base/array.h"
#include "base/utf8.h"

/* The metadata stand at the beginning of a segment: behind so many events they are not looked for. */
#define EVENTS_BEFORE_METADATA 64

#define UNKNOWN D9__NO_SEGMENT

/* For the beginning of a segment. */
#define MEMORY_BYTES ((uint64_t)32 << 20)

bool d9__path_is_pipe(const char *path)
{
	struct stat st;

	return !strcmp(path, "-") || (!stat(path, &st) && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode));
}

/* A trace that comes through a pipe has no neighbours. */
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
		d9_reader_set_memory_limit(reader, MEMORY_BYTES);
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

/* To find processes by the texts that tell them: the process of each number, UNKNOWN if it has none yet. */
struct finder {
	struct d9__texts boot_ids, folders;
	size_t *of_boot_id, *of_folder;
	bool *is_shared; /* the folder is that of several processes */
};

static void release_finder(struct finder *finder)
{
	d9__texts_release(&finder->boot_ids);
	d9__texts_release(&finder->folders);
	free(finder->of_boot_id);
	free(finder->of_folder);
	free(finder->is_shared);
}

/* For |n| segments. */
static int init_finder(struct finder *finder, size_t n)
{
	*finder = (struct finder){ .of_boot_id = calloc(n + 1, sizeof(*finder->of_boot_id)),
				   .of_folder = calloc(n + 1, sizeof(*finder->of_folder)),
				   .is_shared = calloc(n + 1, sizeof(*finder->is_shared)) };
	finder->boot_ids.kind = finder->folders.kind = D9__KEPT_PROCESSES;
	if (!finder->of_boot_id || !finder->of_folder || !finder->is_shared)
		return -ENOMEM;
	for (size_t i = 0; i <= n; i++)
		finder->of_boot_id[i] = finder->of_folder[i] = UNKNOWN;
	return 0;
}

/* Takes both texts. */
static int add_process(struct d9__processes *processes, char *boot_id, char *folder)
{
	if (!d9__array_grow(processes->items, processes->n)) {
		free(boot_id);
		free(folder);
		return -ENOMEM;
	}
	processes->items[processes->n++] = (struct d9__trace_process){ boot_id, folder, UNKNOWN };
	return 0;
}

/* By its boot id, or if that is NULL, by its folder.  Takes both texts. */
static int place_segment(struct d9__processes *processes, struct finder *finder, size_t segment, char *boot_id,
			 char *folder)
{
	uint32_t place = 0, id = 0;
	size_t *found;
	int err = d9__texts_number(&finder->folders, folder, strlen(folder), &place);

	if (!err && boot_id)
		err = d9__texts_number(&finder->boot_ids, boot_id, strlen(boot_id), &id);
	found = boot_id ? &finder->of_boot_id[id] : &finder->of_folder[place];
	if (err || *found != UNKNOWN) {
		free(boot_id);
		free(folder);
	} else {
		*found = processes->n;
		if (finder->of_folder[place] == UNKNOWN)
			finder->of_folder[place] = *found;
		else if (boot_id)
			finder->is_shared[place] = true;
		err = add_process(processes, boot_id, folder);
	}
	if (!err)
		processes->of_segment[segment] = *found;
	return err;
}

/* With |told|, the segments that tell their boot id; then the others, which join their folder's. */
static int place_segments(struct d9__processes *processes, struct finder *finder, const struct d9_reader *reader,
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
		err = place_segment(processes, finder, i, boot_ids[i], folder);
		boot_ids[i] = NULL;
	}
	return err;
}

static void chain_segments(struct d9__processes *processes)
{
	for (size_t i = processes->n_segments; i-- > 0;) {
		struct d9__trace_process *process = &processes->items[processes->of_segment[i]];

		processes->next[i] = process->first;
		process->first = i;
	}
}

/* Where a folder holds several processes, name their first files instead. */
static int tell_apart(struct d9__processes *processes, const struct finder *finder, const struct d9_reader *reader)
{
	struct d9_segment_info info;

	for (size_t i = 0; i < processes->n; i++) {
		struct d9__trace_process *process = &processes->items[i];
		uint32_t place;

		if (!d9__texts_find(&finder->folders, process->folder, strlen(process->folder), &place) ||
		    !finder->is_shared[place] || d9_reader_segment(reader, process->first, &info))
			continue;
		free(process->folder);
		process->folder = strdup(info.path);
		if (!process->folder)
			return -ENOMEM;
	}
	return 0;
}

/* |boot_ids|: of each segment, or NULL. */
static int find_processes(struct d9__processes *processes, const struct d9_reader *reader, char **boot_ids)
{
	struct finder finder;
	int err = init_finder(&finder, processes->n_segments);

	if (!err)
		err = place_segments(processes, &finder, reader, boot_ids, true);
	if (!err)
		err = place_segments(processes, &finder, reader, boot_ids, false);
	if (!err) {
		chain_segments(processes);
		err = tell_apart(processes, &finder, reader);
	}
	release_finder(&finder);
	return err;
}

int d9__processes_find(struct d9__processes *processes, const struct d9_reader *reader)
{
	size_t n = d9_reader_segments(reader);
	char **boot_ids = calloc(n + 1, sizeof(*boot_ids));
	struct d9_segment_info info;
	int err = 0;

	processes->of_segment = malloc((n + 1) * sizeof(*processes->of_segment));
	processes->next = malloc((n + 1) * sizeof(*processes->next));
	processes->n_segments = n;
	if (!boot_ids || !processes->of_segment || !processes->next) {
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
		err = find_processes(processes, reader, boot_ids);
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
	free(processes->next);
	*processes = (struct d9__processes){ 0 };
}

const char *d9__process_label(const struct d9__trace_process *process)
{
	return process->boot_id ? process->boot_id : process->folder;
}
