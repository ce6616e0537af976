/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cmd.h"
#include "cli/run/record_cause.h"
#include "cli/run/record_line.h"
#include "text/text.h"

#define BEGINNING_BYTES (64 << 10)

/*
 * Return the limit of file sizes as a half sentence, if it is less than the beginning of a trace
 * takes; else "".
 */
static const char *explain_limit(void)
{
	static char text[128];
	char size[D9__SIZE_LEN];
	struct rlimit limit;

	if (getrlimit(RLIMIT_FSIZE, &limit) || limit.rlim_cur >= BEGINNING_BYTES)
		return "";
	snprintf(text, sizeof(text), ", for files may not be larger than %s "
		 "here (ulimit -f)", d9__size_text(limit.rlim_cur, size));
	return text;
}

static void explain_cause(FILE *out, const struct d9__record_line *line)
{
	struct d9__record_command command = { .argv = line->argv, .dir = line->dir->path, .wait_status = line->wait_status };

	d9__record_end_text(line->wait_status, command.end, sizeof(command.end));
	fprintf(out, "nothing was recorded: ");
	if (line->profile_only)
		d9__record_cause_of_profile(out, &command);
	else
		d9__record_cause(out, &command, line->follows);
}

static void explain_nothing(FILE *out, const struct d9__record_line *line)
{
	if (line->follower)
		fprintf(out, "nothing is recorded yet: process %ld went on in the background; if it has a loop, its trace "
			"will be in %s", (long)line->follower, line->dir->path);
	else if (line->gone)
		fprintf(out, "nothing is in %s: it was moved or removed while %s ran; what was recorded is where it is now",
			line->dir->path, line->argv[0]);
	else if (line->failure.err)
		fprintf(out, "nothing was recorded: no recorder could be started in %s: %s; it needs a thread, a few "
			"MiB of memory and a descriptor (ulimit -a, limits of its cgroup)",
			line->failure.service, strerror(line->failure.err));
	else if (explain_limit()[0])
		fprintf(out, "nothing was recorded: its trace could not be written%s", explain_limit());
	else
		explain_cause(out, line);
}

/* Return the process's own folder if other processes share the trace directory. */
static const char *where_is(const struct d9__record_line *line)
{
	const struct d9__record_result *result = line->result;

	return result->processes == 1 && !result->alone ? result->paths[0] : line->dir->path;
}

/* "libev 4.33: why; glib 2.50.0: why" */
static void print_refusals(FILE *out, const struct d9__record_result *result)
{
	for (size_t i = 0; i < result->n_refusals; i++) {
		const struct d9__refusal *refusal = &result->refusals[i];

		fprintf(out, "%s%s%s%s: %s", i ? "; " : "", refusal->library,
			refusal->version[0] ? " " : "", refusal->version, refusal->reason);
	}
}

/* Where a container is read-only, or its shared memory tiny. */
static void print_fallbacks(FILE *out, const struct d9__record_line *line)
{
	const char *why = line->result->ring_fallback;

	if (line->dir->why_not)
		fprintf(out, ", not in " D9__RECORD_DIR " (%s)", line->dir->why_not);
	if (why[0])
		fprintf(out, ", with the ring in memory of the program (%s), where a kill loses what is not written yet%s", why,
			strncmp(why, "/dev/shm", 8) != 0 ? "" : "; DIAL9_RING=disk keeps it in the trace directory");
}

static void print_result(FILE *out, const struct d9__record_line *line)
{
	const struct d9__record_result *result = line->result;
	const char *where = where_is(line);
	char size[D9__SIZE_LEN], amount[64];

	if (result->counted)
		snprintf(amount, sizeof(amount), "%" PRIu64 " events", result->events);
	else
		snprintf(amount, sizeof(amount), "%s of events",
			 d9__size_text(result->bytes, size));
	fprintf(out, "recorded %s", amount);
	if (result->processes > 1)
		fprintf(out, " of %zu processes", result->processes);
	fprintf(out, "%s in %s", line->recovered ? ", recovered" : "", where);
	print_fallbacks(out, line);
	if (result->n_refusals) {
		fprintf(out, ", but nothing of ");
		print_refusals(out, result);
	}
	if (result->no_samples[0] && result->backend_asked)
		fprintf(out, ", but no stacks: %s", result->no_samples);
	if (result->no_allocations[0])
		fprintf(out, ", but no allocations: %s", result->no_allocations);
	if (result->ended[0])
		fprintf(out, "; recording%s ended %s", result->processes > 1 ? " of one" : "", result->ended);
	fprintf(out, "; see: dial9 report %s", where);
}

/* Print that processes still record in the background, so the trace is not complete yet. */
static void print_living(FILE *out, const struct d9__record_line *line)
{
	const struct d9__record_result *result = line->result;
	const char *where = result->processes == 1 ? result->paths[0] : line->dir->path;

	fprintf(out,
		"%zu background process%s still being recorded, in %s; if a signal ends %s: dial9 recover %s",
		result->living, result->living == 1 ? " is" : "es are", where,
		result->living == 1 ? "it" : "one", line->dir->path);
}

/* A recorder started, and left no event of a loop. */
static void explain_empty(FILE *out, const struct d9__record_line *line)
{
	char end[D9__RECORD_END_LEN];

	if (line->profile_only && !line->result->no_samples[0] && !line->result->ended[0]) {
		explain_cause(out, line);
		return;
	}
	d9__record_end_text(line->wait_status, end, sizeof(end));
	fprintf(out, "nothing was recorded: ");
	if (line->profile_only && line->result->no_samples[0]) {
		fprintf(out, "no stacks: %s", line->result->no_samples);
	} else if (line->result->ended[0]) {
		fprintf(out, "recording ended %s, and nothing had happened before", line->result->ended);
	} else if (line->result->n_refusals) {
		print_refusals(out, line->result);
		fprintf(out, "; see: dial9 doctor -- %s", line->argv[0]);
	} else if (WIFSIGNALED(line->wait_status)) {
		fprintf(out, "%s %s before its trace was written for the first time, about a second after recording began%s",
			line->argv[0], end, explain_limit());
	} else {
		fprintf(out, "a recorder ran in %s%s%s, but no loop did while it was switched on%s", line->argv[0],
			end[0] ? ", which " : "", end, explain_limit());
	}
}

/* The reason was told for each. */
static void print_unwritten(FILE *out, const struct d9__record_line *line)
{
	fprintf(out, "nothing is in %s yet: what %zu process%s recorded is kept in /dev/shm; "
		"once there can be written: dial9 recover %s", line->dir->path, line->unwritten,
		line->unwritten == 1 ? "" : "es", line->dir->path);
}

static void explain_no_dump(FILE *out, const struct d9__record_line *line)
{
	fprintf(out, "nothing was dumped: a recorder ran in %s, in memory only, and %s", line->argv[0],
		line->triggers ? "no trigger fired" :
				 "no dump was requested; while it runs: dial9 dump PID, or by itself: --trigger 'poll > 50ms'");
}

/* Print the counts of stored segments.  Their files are gone, so their events are not counted. */
static void print_stored(FILE *out, const struct d9__record_line *line)
{
	char size[D9__SIZE_LEN];

	fprintf(out, "recorded%s; %zu segment%s (%s) stored in %s", line->recovered ? ", recovered" : "", line->shipped.stored,
		line->shipped.stored == 1 ? "" : "s", d9__size_text(line->shipped.bytes, size), line->shipped.to);
}

/* Print the segments and dumps that were not stored, and the command that sends them. */
static void print_left(FILE *out, const struct d9__record_line *line)
{
	size_t segments = line->shipped.left, dumps = line->shipped.dumps_left;

	if (!segments && !dumps) {
		if (line->shipped.stored)
			fprintf(out, "; nothing is left in %s", line->dir->path);
		return;
	}
	fprintf(out, "; left: ");
	if (segments)
		fprintf(out, "%zu segment%s", segments, segments == 1 ? "" : "s");
	if (dumps)
		fprintf(out, "%s%zu dump%s", segments ? " and " : "", dumps, dumps == 1 ? "" : "s");
	fprintf(out, " in %s; send them: dial9 ship --once --to %s %s", line->dir->path, line->shipped.to, line->dir->path);
}

static void print(FILE *out, const struct d9__record_line *line)
{
	if (line->shipped.stored && !line->result->living)
		print_stored(out, line);
	else if (!line->result->living && line->unwritten && d9__record_result_is_empty(line->result))
		print_unwritten(out, line);
	else if (line->start_disabled && !line->result->living && d9__record_result_is_empty(line->result))
		fprintf(out, "nothing was recorded: it began switched off; while it runs: dial9 enable PID");
	else if (!line->result->processes && line->only_dumps && !line->follower && !line->gone)
		explain_no_dump(out, line);
	else if (!line->result->processes)
		explain_nothing(out, line);
	else if (line->result->living)
		print_living(out, line);
	else if (d9__record_result_is_empty(line->result))
		explain_empty(out, line);
	else
		print_result(out, line);
	print_left(out, line);
}

/* One line, whatever is in the names. */
void d9__record_line(const struct d9__record_line *line)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	if (out)
		print(out, line);
	if (!out || fclose(out))
		d9__cmd_fail("record", "out of memory");
	else
		d9__cmd_fail(NULL, "%s", text);
	free(text);
}
