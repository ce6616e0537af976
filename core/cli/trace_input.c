/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "cli/trace_input.h"

#include "analyze/processes.h"
#include "cli/cmd.h"
#include "cli/progress.h"

/* What a person can do about |err| of an input. */
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

int d9__traces_open(const char *command, char **paths, struct d9_reader **out)
{
	struct d9_reader *reader;
	int err;

	if (!*paths)
		return d9__cmd_fail(command, "which TRACE? see dial9 %s --help", command);
	if (d9_reader_new(&reader))
		return d9__cmd_fail(command, "out of memory");
	for (; *paths; paths++) {
		const char *advice;

		err = d9_reader_add(reader, *paths);
		if (!err)
			continue;
		advice = advise(err);
		d9__cmd_fail(command, "%s%s%s", d9_reader_message(reader), advice ? "; " : "",
			     advice ? advice : "");
		d9_reader_free(reader);
		return D9__EXIT_USAGE;
	}
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

int d9__traces_close(const char *command, struct d9_reader *reader, int err)
{
	struct d9_segment_info info;
	int status = D9__EXIT_OK;

	const char *message = d9_reader_message(reader);

	/* Where the reader has nothing to say, the command itself failed. */
	if (err < 0)
		status = d9__cmd_fail(command, "%s", *message ? message
						  : err == -ENOMEM ? "out of memory" : strerror(-err));
	for (size_t i = 0; i < d9_reader_segments(reader); i++) {
		if (d9_reader_segment(reader, i, &info) || (!info.err && !info.truncated))
			continue;
		if (info.err && info.err != -ENODATA)
			status = d9__cmd_fail(command, "%s; everything before it was used",
					      info.message);
		else if (!info.active)
			d9__cmd_fail(command,
				     "%s: ends in the middle of a frame at byte %" PRIu64
				     "; everything before it was used",
				     info.path, info.err_offset);
	}
	return status;
}
