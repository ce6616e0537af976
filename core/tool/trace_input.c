/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool/trace_input.h"

#include "analyze/analysis.h"
#include "analyze/budget.h"
#include "analyze/kept_dump.h"
#include "analyze/processes.h"
#include "read/reader_state.h"
#include "text/fail.h"
#include "tool/progress.h"
#include "watch/left_rings.h"

#define READER_BASE	((uint64_t)40 << 20)
/*
 * Refuse a file that is packed better than this, because no trace is; ten million events take a
 * third of the base.
 */
#define UNPACKED_BASE	((uint64_t)256 << 20)
#define UNPACKED_FACTOR 32
/* Limit a pipe to this, because its length is unknown and it need not end. */
#define PIPE_BYTES	((uint64_t)64 << 20)

/* Return advice to the user about |err| of an input. */
static const char *advise(int err)
{
	switch (err) {
	case -EBADMSG:
	case -ENODATA:
		return "give a file that dial9 wrote, or the directory that holds trace.*.bin* files";
	case -EPROTONOSUPPORT:
		return "use a newer dial9";
	case -EACCES:
		return "traces belong to the user who recorded them";
	default:
		return NULL;
	}
}

/* Print the line of d9_reader_message(), and advice. */
static void tell(const char *command, const struct d9_reader *reader, char *path, int err)
{
	const char *advice = advise(err);
	struct d9__left_rings left = { 0 };

	if (err == -ENODATA)
		left = d9__left_rings((char *[]) { path, NULL });
	if (left.all)
		d9__cmd_fail(command, "%s; what was recorded is still in the ring of a process: dial9 recover %s, if it has ended",
			     d9_reader_message(reader), path);
	else if (left.living)
		d9__cmd_fail(command,
			     "%s; a program is recording into it and has written none yet: dial9 "
			     "status tells how far it is",
			     d9_reader_message(reader));
	else
		d9__cmd_fail(command, "%s%s%s", d9_reader_message(reader), advice ? "; " : "", advice ? advice : "");
}

/* Bound the memory by the size of the input, because a few bytes may claim anything. */
static void limit(struct d9_reader *reader, bool has_pipe)
{
	uint64_t done, total;

	d9_reader_progress(reader, &done, &total);
	if (has_pipe)
		total += PIPE_BYTES;
	d9__reader_bound(reader, READER_BASE + total, has_pipe ? 0 : UNPACKED_BASE + UNPACKED_FACTOR * total);
	d9__budget_start(total);
}

/* ---- dumps ---- */

static const char *file_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static int refuse_empty(const char *command, const struct d9__kept_dump *dump, const char *path)
{
	if (dump->n_segments)
		return d9__cmd_fail(command, "%s: none of the segments that it lists is beside it", path);
	if (dump->state == D9__KEPT_FAILED)
		return d9__cmd_fail(command, "%s: this dump failed: %s", path, dump->error ? dump->error : "no reason is told");
	return d9__cmd_fail(command, "%s: this dump has no segments%s", path,
			    dump->state == D9__KEPT_OPEN ? " yet: it lists them when its window closes" : "");
}

int d9__dump_open(const char *command, const char *path, struct d9__kept_dump *dump)
{
	char *why;
	int err = d9__kept_dump_load(dump, path, true, &why), status = 0;

	if (err)
		status = d9__cmd_fail(command, "%s: no manifest of a dump: %s", path, why ? why : strerror(-err));
	else if (dump->n_missing == dump->n_segments)
		status = refuse_empty(command, dump, path);
	free(why);
	if (status)
		d9__kept_dump_release(dump);
	return status;
}

/* Count the segment |path| of the dump as missing; it is told with the rest of the damage. */
static int add_missing(struct d9_reader *reader, const struct d9__kept_dump *dump, const char *path)
{
	char *what;
	int err;

	if (asprintf(&what, "not there, and %s lists it", file_name(dump->path)) < 0)
		return -ENOMEM;
	err = d9__reader_add_missing(reader, path, what);
	free(what);
	return err;
}

/* Count the segments of the dump that its manifest has no place for as missing. */
static int add_unlisted(struct d9_reader *reader, const struct d9__kept_dump *dump)
{
	char what[96];

	if (!dump->n_unlisted)
		return 0;
	snprintf(what, sizeof(what), "the dump has %" PRIu64 " more segments, which this does not list", dump->n_unlisted);
	return d9__reader_add_missing(reader, dump->path, what);
}

/* Add the segments that the manifest |path| lists, and no others. */
static int add_dump(const char *command, struct d9_reader *reader, const char *path)
{
	struct d9__kept_dump dump;
	int status = d9__dump_open(command, path, &dump), err = 0;

	if (status)
		return status;
	for (size_t i = 0; i < dump.n_segments && !err; i++) {
		err = dump.segments[i].missing ? -ENOENT : d9__reader_add_listed(reader, dump.segments[i].path);
		if (err == -ENOENT)
			err = add_missing(reader, &dump, dump.segments[i].path);
	}
	if (!err)
		err = add_unlisted(reader, &dump);
	d9__kept_dump_release(&dump);
	return err ? d9__cmd_fail(command, "%s", err == -ENOMEM ? "out of memory" : d9_reader_message(reader)) : 0;
}

/* ---- traces ---- */

static int add_trace(const char *command, struct d9_reader *reader, char *path)
{
	int err;

	if (d9__kept_dump_is(path))
		return add_dump(command, reader, path);
	err = d9_reader_add(reader, path);
	if (!err)
		return 0;
	tell(command, reader, path, err);
	return D9__EXIT_USAGE;
}

int d9__traces_open(const char *command, char **paths, struct d9_reader **out)
{
	bool has_pipe = d9__traces_have_pipe(paths);
	struct d9_reader *reader;
	int status = 0;

	if (!*paths)
		return d9__cmd_fail(command, "which TRACE? see dial9 %s --help", command);
	if (d9_reader_new(&reader))
		return d9__cmd_fail(command, "out of memory");
	for (; *paths && !status; paths++)
		status = add_trace(command, reader, *paths);
	if (status) {
		d9_reader_free(reader);
		return status;
	}
	limit(reader, has_pipe);
	*out = reader;
	return 0;
}

bool d9__traces_have_pipe(char **paths)
{
	for (; *paths; paths++)
		if (d9__path_is_pipe(*paths))
			return true;
	return false;
}

int d9__traces_refuse_several(const char *command, const struct d9__processes *processes)
{
	if (processes->n <= 1)
		return 0;
	return d9__cmd_fail(command,
			    "%zu processes wrote this, and one file holds one: give them one by one, first %s, last %s",
			    processes->n, processes->items[0].folder, processes->items[processes->n - 1].folder);
}

const struct d9_event *d9__traces_next(struct d9_reader *reader, struct d9__progress *progress,
				       int *err)
{
	const struct d9_event *event;
	uint64_t done, total;

	if (d9__progress_due(progress)) {
		d9_reader_progress(reader, &done, &total);
		d9__progress_draw(progress, done, total);
	}
	*err = d9_reader_next(reader, &event);
	if (*err == 1) {
		*err = 0;
		return event;
	}
	return NULL;
}

void d9__traces_more_short(const char *command, size_t n)
{
	if (n > D9__SHORT_TOLD)
		d9__cmd_fail(command, "and %zu more segments that are damaged or end in the middle of a frame",
			     n - D9__SHORT_TOLD);
}

/*
 * True if the segment |info| has less than it should.  |told|: print the fault; |*status| is set if
 * it is damage.
 */
static bool is_short(const char *command, const struct d9_segment_info *info, bool told, int *status)
{
	bool damaged = d9__segment_is_damaged(info->err);

	if (damaged)
		*status = D9__EXIT_USAGE;
	else if (info->active || (!info->err && !info->truncated))
		return false;
	if (info->err == -ENOENT && told)
		d9__cmd_fail(command, "%s", info->message);
	else if (damaged && told)
		d9__cmd_fail(command, "%s; everything before it was used", info->message);
	else if (d9__segment_is_unreadable(info->truncated, info->active, info->events) && told)
		d9__cmd_fail(command, "%s: cut before its first event; nothing in it can be read",
			     info->path);
	else if (told)
		d9__cmd_fail(command, "%s: ends in the middle of a frame at byte %" PRIu64
			     "; everything before it was used", info->path, info->err_offset);
	return true;
}

int d9__traces_close(const char *command, struct d9_reader *reader, int err)
{
	struct d9_segment_info info;
	int status = D9__EXIT_OK;
	size_t n = 0;

	const char *message = d9_reader_message(reader);
	char *left_out = d9__budget_left_out();

	/* Where the reader has nothing to say, the command itself failed. */
	if (err < 0)
		status = d9__cmd_fail(command, "%s", *message ? message
						  : err == -ENOMEM ? "out of memory" : strerror(-err));
	if (left_out)
		d9__cmd_fail(command, "this would take too much memory, and was left out: %s", left_out);
	free(left_out);
	for (size_t i = 0; i < d9_reader_segments(reader); i++)
		if (!d9_reader_segment(reader, i, &info))
			n += is_short(command, &info, n < D9__SHORT_TOLD, &status);
	d9__traces_more_short(command, n);
	return status;
}
