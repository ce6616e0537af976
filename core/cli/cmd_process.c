/* SPDX-License-Identifier: Apache-2.0 */
/* Stages over sealed segments: each is claimed, worked on beside its place, and replaced at once.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <dial9/error.h>

#include "cli/cmd.h"
#include "cli/cmd_symbolize.h"
#include "cli/sealed.h"
#include "stage/claim.h"
#include "stage/program.h"
#include "stage/stages.h"
#include "text/units.h"
#include "tool/args.h"

#define PAUSE_SEC 1 /* before programs are asked again */

enum key {
	KEY_STAGE = 256,
	KEY_TIMEOUT,
	KEY_LIMIT,
	KEY_ON_ERROR,
};

static const struct d9__opt opts[] = {
	{ KEY_STAGE, "stage", "STAGE", "what to do; may be repeated [symbolize]" },
	{ KEY_ON_ERROR, "on-stage-error", "WHAT",
	  "ship (goes on as it was), keep or drop the segment" },
	{ KEY_TIMEOUT, "stage-timeout", "DURATION", "that a program may take for a segment [30s]" },
	{ KEY_LIMIT, "stage-limit", "SIZE",
	  "of memory a program may use, and write; 0: no limit [512M]" },
	{ 0, NULL, NULL, NULL },
};

static const struct d9__usage usage = {
	.command = "process",
	.synopsis = "[OPTIONS] TRACE...",
	.text = "Run stages over sealed segments, also those of dumps, and replace each at once.\n"
		"STAGE is one of\n"
		"  symbolize              write functions and lines, as dial9 symbolize does\n"
		"  redact:NAME[,NAME...]  drop event types (TYPE), empty fields (TYPE.FIELD),\n"
		"                         drop pairs of metadata (TYPE.FIELD.KEY); * is any text\n"
		"  scrub                  leave times, structure and functions, see dial9 scrub\n"
		"  'CMD ARG...'           a program: a segment on standard input, another on\n"
		"                         standard output, what it is in $DIAL9_SEGMENT\n"
		"Exit status: 0 done; 1 a stage failed, and a line tells which; 2 bad usage, or a\n"
		"segment that cannot be read or replaced.\n",
	.opts = opts,
};

struct process {
	struct d9__stages stages;
	struct d9__sealed segments; /* that are left to do */
	size_t replaced, same, dropped, kept, skipped;
	int status;
};

static void tell(void *context, const char *path, const char *stage, const char *what)
{
	(void)context;
	if (stage)
		d9__cmd_fail("process", "%s: stage '%s': %s", path, stage, what);
	else
		d9__cmd_fail("process", "%s: %s", path, what);
}

/* ---- one of them ---- */

static void refuse(struct process *process, const char *path, int err)
{
	if (err == -EAGAIN) {
		process->skipped++;
		return;
	}
	if (err == -EPERM)
		d9__cmd_fail("process", "%s: its directory is not yours alone", path);
	else if (err == -EINVAL)
		d9__cmd_fail("process", "%s: it is no file of yours", path);
	else
		d9__cmd_fail("process", "%s: %s", path, d9_strerror(err));
	process->status = D9__EXIT_USAGE;
}

/* Print why the claim failed, with |err|, or count it in |*done|. */
static void count(struct process *process, const struct d9__claim *claim, int err, size_t *done)
{
	if (err)
		refuse(process, claim->path, err);
	else
		(*done)++;
}

/* False: it asks for another time. */
static bool run_one(struct process *process, const char *path, bool last)
{
	struct d9__claim claim;
	int fd = -1, err = d9__claim_open(&claim, path);
	enum d9__stages_end end;

	if (err) {
		refuse(process, path, err);
		return true;
	}
	end = d9__stages_run(&process->stages, &claim, last, &fd);
	if (end == D9__STAGES_REPLACED)
		count(process, &claim, d9__claim_replace(&claim, fd), &process->replaced);
	else if (end == D9__STAGES_DROPPED)
		count(process, &claim, d9__claim_remove(&claim), &process->dropped);
	process->same += end == D9__STAGES_SAME;
	process->kept += end == D9__STAGES_KEPT;
	process->skipped += end == D9__STAGES_GONE;
	if (fd >= 0)
		close(fd);
	d9__claim_release(&claim);
	return end != D9__STAGES_AGAIN;
}

/* Run the stages on the segments that are left; those that are busy stay in the list. */
static void run_round(struct process *process, bool last)
{
	struct d9__folder *segments = &process->segments.files;
	size_t left = 0;

	for (size_t i = 0; i < segments->n; i++) {
		if (run_one(process, segments->paths[i], last))
			free(segments->paths[i]);
		else
			segments->paths[left++] = segments->paths[i];
	}
	segments->n = left;
}

/* ---- the command ---- */

static void print_part(size_t n, const char *what)
{
	if (n)
		printf(", %s %s", d9__units_count(n).text, what);
}

static void sum_up(const struct process *process)
{
	size_t all = process->replaced + process->same + process->dropped + process->kept +
		     process->skipped;
	const char *glob;

	for (size_t i = 0;
	     all > process->skipped && (glob = d9__stages_unmatched(&process->stages, i)) != NULL;
	     i++)
		d9__cmd_fail("process", "redact: nothing there is called '%s'", glob);
	printf("%s segment%s: %s rewritten", d9__units_count(all).text, all == 1 ? "" : "s",
	       d9__units_count(process->replaced).text);
	print_part(process->same, "unchanged");
	print_part(process->dropped, "dropped");
	print_part(process->kept, "kept because a stage failed");
	print_part(process->skipped, "in use by another process, or gone");
	putchar('\n');
}

static void run_all(struct process *process)
{
	d9__program_guard();
	for (unsigned tries = 1; process->segments.files.n; tries++) {
		if (tries > 1)
			nanosleep(&(struct timespec) { .tv_sec = PAUSE_SEC }, NULL);
		run_round(process, tries == D9__STAGES_TRIES);
	}
	sum_up(process);
	if (!process->status && process->stages.failures)
		process->status = D9__EXIT_FINDING;
}

static bool take_on_error(const char *value, enum d9__stage_error *out)
{
	static const char *const words[] = { [D9__STAGE_ERROR_SHIP] = "ship",
					     [D9__STAGE_ERROR_KEEP] = "keep",
					     [D9__STAGE_ERROR_DROP] = "drop" };

	for (int i = D9__STAGE_ERROR_SHIP; i <= D9__STAGE_ERROR_DROP; i++)
		if (!strcmp(value, words[i])) {
			*out = (enum d9__stage_error)i;
			return true;
		}
	d9__cmd_fail("process", "--on-stage-error is ship, keep or drop, not '%s'", value);
	return false;
}

static bool take_timeout(const struct d9__args *args, uint64_t *out)
{
	if (!d9__args_duration_ns(args, out))
		return false;
	if (*out)
		return true;
	d9__cmd_fail("process", "--stage-timeout is more than 0");
	return false;
}

static bool take_option(const struct d9__args *args, int key, struct d9__stages *stages)
{
	char why[512];
	int err;

	switch (key) {
	case KEY_TIMEOUT:
		return take_timeout(args, &stages->timeout_ns);
	case KEY_LIMIT:
		return d9__args_bytes(args, &stages->limit_bytes);
	case KEY_ON_ERROR:
		return take_on_error(args->value, &stages->on_error);
	default:
		err = d9__stages_add(stages, args->value, why, sizeof(why));
		if (err)
			d9__cmd_fail("process", "--stage: %s",
				     err == -ENOMEM ? d9_strerror(err) : why);
		return !err;
	}
}

static int run(struct process *process, char **paths)
{
	char why[512];
	int status = D9__EXIT_OK;

	if (!*paths)
		return d9__cmd_fail("process",
				    "name a directory, segments or a dump's manifest; see dial9 help process");
	if (process->stages.tables)
		return d9__cmd_fail("process", "parquet is a stage of dial9 ship; here it is: dial9 export --format parquet");
	if (!process->stages.n && d9__stages_add(&process->stages, "symbolize", why, sizeof(why)))
		return d9__cmd_fail("process", "out of memory");
	process->stages.symbolize = d9__symbolize_to_stdout;
	process->stages.tell = tell;
	for (; !status && *paths; paths++)
		status = d9__sealed_add(&process->segments, "process", *paths);
	if (process->segments.missing)
		process->status = D9__EXIT_USAGE;
	if (!status)
		run_all(process);
	return status ? status : process->status;
}

int d9__cmd_process(int argc, char **argv)
{
	struct d9__args args = { .usage = &usage, .argc = argc, .argv = argv };
	struct process process = { 0 };
	int key, status = D9__EXIT_USAGE;

	d9__stages_init(&process.stages);
	while ((key = d9__args_next(&args)) > 0)
		if (!take_option(&args, key, &process.stages))
			break;
	if (key < 0)
		status = d9__args_exit(key);
	else if (!key)
		status = run(&process, argv + args.first);
	d9__sealed_release(&process.segments);
	d9__stages_release(&process.stages);
	return status;
}
