/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <dial9/reader.h>

#include "base/array.h"
#include "cli/run/record_result.h"
#include "record/recorder.h"

/* At 2.6 bytes an event and 20 M events/s, about two seconds. */
#define COUNT_MAX_BYTES (UINT64_C(64) << 20)

static bool is_directory(int dir_fd, const char *name)
{
	struct stat st;

	return name[0] != '.' && !fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) &&
	       S_ISDIR(st.st_mode);
}

static int add_name(struct d9__namespaces *namespaces, const char *name)
{
	if (!d9__array_grow(namespaces->names, namespaces->n))
		return -ENOMEM;
	namespaces->names[namespaces->n] = strdup(name);
	return namespaces->names[namespaces->n++] ? 0 : -ENOMEM;
}

int d9__namespaces_list(const char *dir, struct d9__namespaces *out)
{
	struct d9__namespaces found = { 0 };
	const struct dirent *entry;
	DIR *stream = opendir(dir);
	int err = 0;

	if (!stream && errno != ENOENT)
		return -errno;
	while (stream && !err && (entry = readdir(stream)))
		if (is_directory(dirfd(stream), entry->d_name))
			err = add_name(&found, entry->d_name);
	if (stream)
		closedir(stream);
	if (err)
		d9__namespaces_release(&found);
	else
		*out = found;
	return err;
}

void d9__namespaces_release(struct d9__namespaces *namespaces)
{
	for (size_t i = 0; i < namespaces->n; i++)
		free(namespaces->names[i]);
	free(namespaces->names);
	*namespaces = (struct d9__namespaces) { 0 };
}

bool d9__namespaces_hold(const struct d9__namespaces *namespaces, const char *name)
{
	for (size_t i = 0; i < namespaces->n; i++)
		if (!strcmp(namespaces->names[i], name))
			return true;
	return false;
}

static uint64_t size_of_files(const char *dir)
{
	const struct dirent *entry;
	DIR *stream = opendir(dir);
	uint64_t bytes = 0;
	struct stat st;

	while (stream && (entry = readdir(stream)))
		if (!fstatat(dirfd(stream), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) &&
		    S_ISREG(st.st_mode))
			bytes += (uint64_t)st.st_size;
	if (stream)
		closedir(stream);
	return bytes;
}

/* A recorder holds the lock of its directory for the life of its process. */
static bool is_living(const char *dir)
{
	char *path;
	bool held;
	int fd;

	if (asprintf(&path, "%s/.lock", dir) < 0)
		return false;
	/*
	 * O_NONBLOCK: the directory's owner may have put a pipe there, and opening it would block.
	 */
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	free(path);
	if (fd < 0)
		return false;
	held = flock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;
	close(fd);
	return held;
}

/* True for an event that the recorder writes about itself, whether a loop runs or not. */
static bool is_recorders_own(const struct d9_event *event)
{
	switch (event->kind) {
	case D9_EVENT_CLOCK_SYNC:
	case D9_EVENT_SEGMENT_METADATA:
	case D9_EVENT_QUEUE_SAMPLE:
	case D9_EVENT_RESOURCE_USAGE:
	case D9_EVENT_RECORDER_LOSS:
	case D9_EVENT_RECORDER_HEALTH:
	case D9_EVENT_RECORDER_LOG:
	case D9_EVENT_MODULE:
	case D9_EVENT_LOOP_TASKS:
	case D9_EVENT_PROCESS_STATE:
		return true;
	default:
		return false;
	}
}

static void copy_text(char *out, size_t size, const struct d9_text *text, size_t from, size_t len)
{
	snprintf(out, size, "%.*s", (int)len, text->data + from);
}

/* If |pair| is loop.LIBRARY|what|, take LIBRARY. */
static bool is_of_library(const struct d9_text *key, const char *what, char library[32])
{
	size_t end = strlen(what);

	if (key->len <= 5 + end || memcmp(key->data, "loop.", 5) != 0 ||
	    memcmp(key->data + key->len - end, what, end) != 0)
		return false;
	copy_text(library, 32, key, 5, key->len - 5 - end);
	return true;
}

static struct d9__refusal *find_refusal(struct d9__record_result *result, const char *library)
{
	for (size_t i = 0; i < result->n_refusals; i++)
		if (!strcmp(result->refusals[i].library, library))
			return &result->refusals[i];
	return NULL;
}

static void take_reason(struct d9__record_result *result, const char library[32],
			const struct d9_text *reason)
{
	struct d9__refusal *refusal = find_refusal(result, library);

	if (!refusal && result->n_refusals < D9__REFUSALS_MAX)
		refusal = &result->refusals[result->n_refusals++];
	if (!refusal)
		return;
	memcpy(refusal->library, library, sizeof(refusal->library));
	copy_text(refusal->reason, sizeof(refusal->reason), reason, 0, reason->len);
}

static void take_version(struct d9__record_result *result, const char library[32],
			 const struct d9_text *version)
{
	struct d9__refusal *refusal = find_refusal(result, library);

	if (refusal)
		copy_text(refusal->version, sizeof(refusal->version), version, 0, version->len);
}

static bool is_key(const struct d9_text *key, const char *name)
{
	return key->len == strlen(name) && !memcmp(key->data, name, key->len);
}

/* "off: why" */
static void take_source(char *why, size_t size, const struct d9_text *state)
{
	static const char off[] = "off: ";
	size_t len = strlen(off);

	why[0] = '\0';
	if (state->len > len && !memcmp(state->data, off, len))
		copy_text(why, size, state, len, state->len - len);
}

static void take_facts(const struct d9_event *event, struct d9__record_result *result)
{
	const struct d9_value *entries = d9_event_field(event, "entries");
	const struct d9_text *pair, *end;
	char library[32];

	if (!entries || entries->type != D9_FIELD_STRING_MAP)
		return;
	end = entries->u.string_map.pairs + 2 * entries->u.string_map.n;
	for (pair = entries->u.string_map.pairs; pair < end; pair += 2) {
		if (is_of_library(pair, ".refused", library))
			take_reason(result, library, pair + 1);
		if (is_key(pair, "source.cpu"))
			take_source(result->no_samples, sizeof(result->no_samples), pair + 1);
		if (is_key(pair, "source.memory"))
			take_source(result->no_allocations, sizeof(result->no_allocations), pair + 1);
		if (is_key(pair, "cpu.backend"))
			result->backend_asked = pair[1].len != 4 || memcmp(pair[1].data, "auto", 4) != 0;
		if (is_key(pair, "ring.fallback"))
			copy_text(result->ring_fallback, sizeof(result->ring_fallback), pair + 1, 0,
				  pair[1].len);
		if (is_key(pair, "recorder.ended"))
			copy_text(result->ended, sizeof(result->ended), pair + 1, 0, pair[1].len);
	}
	/* It may stand in front of the reason. */
	for (pair = entries->u.string_map.pairs; pair < end; pair += 2)
		if (is_of_library(pair, ".version", library))
			take_version(result, library, pair + 1);
}

static int count_events(const char *path, struct d9__record_result *result)
{
	const struct d9_event *event;
	struct d9_reader *reader;
	int err = d9_reader_new(&reader);

	if (err)
		return err;
	err = d9_reader_add(reader, path);
	d9_reader_set_memory_limit(reader, COUNT_MAX_BYTES);
	d9_reader_set_file_order(reader, true);
	while (!err && (err = d9_reader_next(reader, &event)) == 1) {
		result->events++;
		result->active = result->active || !is_recorders_own(event);
		if (event->kind == D9_EVENT_SEGMENT_METADATA)
			take_facts(event, result);
		err = 0;
	}
	d9_reader_free(reader);
	/* A process without a segment yet is one that recorded nothing. */
	return err == -ENOMEM ? err : 0;
}

/* Takes |path| over. */
static int add_process(struct d9__record_result *result, char *path)
{
	/* Make room for the NULL behind it, too. */
	if (!d9__array_grow(result->paths, result->processes) ||
	    !d9__array_grow(result->paths, result->processes + 1)) {
		free(path);
		return -ENOMEM;
	}
	result->paths[result->processes++] = path;
	result->paths[result->processes] = NULL;
	result->living += is_living(path);
	result->bytes += size_of_files(path);
	result->counted = result->counted && result->bytes <= COUNT_MAX_BYTES;
	return result->counted ? count_events(path, result) : 0;
}

void d9__failure_take(const char *dir, struct d9__failure *out)
{
	char text[128] = "", *path;

	*out = (struct d9__failure){ .err = 0 };
	if (asprintf(&path, "%s/" D9__CAUSE_LINK, dir) < 0)
		return;
	if (readlink(path, text, sizeof(text) - 1) > 0)
		sscanf(text, "%d %63[^\n]", &out->err, out->service);
	unlink(path);
	free(path);
}

int d9__record_result_collect(const char *dir, const struct d9__namespaces *before,
			      struct d9__record_result *out)
{
	struct d9__record_result result = { .counted = true };
	struct d9__namespaces after = { 0 };
	int err = d9__namespaces_list(dir, &after);

	if (err)
		return err;
	for (size_t i = 0; !err && i < after.n; i++) {
		char *path;

		if (d9__namespaces_hold(before, after.names[i]))
			continue;
		err = asprintf(&path, "%s/%s", dir, after.names[i]) < 0
			      ? -ENOMEM
			      : add_process(&result, path);
	}
	result.alone = after.n == result.processes;
	d9__namespaces_release(&after);
	if (err)
		d9__record_result_release(&result);
	else
		*out = result;
	return err;
}

void d9__record_result_release(struct d9__record_result *result)
{
	for (size_t i = 0; i < result->processes; i++)
		free(result->paths[i]);
	free(result->paths);
	result->paths = NULL;
}
