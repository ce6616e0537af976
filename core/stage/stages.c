/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <dial9/error.h>

#include "base/time.h"
#include "stage/frames.h"
#include "stage/packed_output.h"
#include "stage/program.h"
#include "stage/program_facts.h"
#include "stage/redact.h"
#include "stage/scrub.h"
#include "stage/stages.h"
#include "stage/words.h"

#define REDACT		   "redact:"
#define STATUS_AGAIN	   75 /* EX_TEMPFAIL of sysexits.h */
#define SYMBOLIZE_PATIENCE 10 /* times a program's: large binaries take long the first time */

/* One segment on its way. */
struct way {
	struct d9__stages *stages;
	const struct d9__claim *claim;
	enum d9__container_kind kind;
	bool last;
	int at; /* the segment so far: the claim's descriptor, or a replacement */
	char why[512];
};

/* The result of one stage. */
enum step { STEP_DONE, STEP_FAILED, STEP_AGAIN };

void d9__stages_init(struct d9__stages *stages)
{
	*stages = (struct d9__stages) { .timeout_ns = 30 * D9__SECOND_NS,
					.limit_bytes = UINT64_C(512) << 20 };
}

/* ---- what stages there are ---- */

static bool is_in(const char *dir, size_t len, const char *name)
{
	char *path;
	bool found;

	if (asprintf(&path, "%.*s/%s", (int)len, len ? dir : ".", name) < 0)
		return false;
	found = !access(path, X_OK);
	free(path);
	return found;
}

static bool can_start(const char *name)
{
	const char *path = getenv("PATH");

	if (strchr(name, '/'))
		return !access(name, X_OK);
	for (path = path ? path : "/usr/bin:/bin"; path;
	     path = strchr(path, ':') ? strchr(path, ':') + 1 : NULL)
		if (is_in(path, strcspn(path, ":"), name))
			return true;
	return false;
}

static int parse(struct d9__stage *stage, char *why, size_t why_size)
{
	const char *fault;
	int err;

	if (!strcmp(stage->text, "symbolize")) {
		stage->kind = D9__STAGE_SYMBOLIZE;
		return 0;
	}
	if (!strcmp(stage->text, "scrub")) {
		stage->kind = D9__STAGE_REDACT;
		snprintf(why, why_size, "out of memory");
		return d9__redact_rules_scrub(&stage->rules);
	}
	if (!strncmp(stage->text, REDACT, strlen(REDACT)) || !strcmp(stage->text, "redact")) {
		stage->kind = D9__STAGE_REDACT;
		err = stage->text[strlen("redact")]
			      ? d9__redact_rules_parse(&stage->rules, stage->text + strlen(REDACT))
			      : -EINVAL;
		snprintf(why, why_size,
			 "redact takes names: redact:TYPE[.FIELD[.KEY]],..., %d at most",
			 D9__REDACT_GLOBS_MAX);
		return err;
	}
	stage->kind = D9__STAGE_PROGRAM;
	stage->argv = d9__words_split(stage->text, &fault);
	err = stage->argv ? 0 : -EINVAL;
	if (err)
		snprintf(why, why_size, "'%s': %s", stage->text, fault);
	else if (!can_start(stage->argv[0])) {
		snprintf(why, why_size,
			 "no program '%s'; besides programs there are symbolize, redact:NAMES and scrub",
			 stage->argv[0]);
		err = -EINVAL;
	}
	return err;
}

static void release_stage(struct d9__stage *stage)
{
	d9__redact_rules_release(&stage->rules);
	free(stage->argv);
}

int d9__stages_add(struct d9__stages *stages, const char *text, char *why, size_t why_size)
{
	struct d9__stage *stage = &stages->items[stages->n];
	int err;

	if (!strcmp(text, "parquet")) {
		stages->tables = true;
		return 0;
	}
	if (stages->n == D9__STAGES_MAX) {
		snprintf(why, why_size, "there can be %d stages", D9__STAGES_MAX);
		return -EINVAL;
	}
	*stage = (struct d9__stage) { .text = text };
	err = parse(stage, why, why_size);
	if (err)
		release_stage(stage);
	else
		stages->n++;
	return err;
}

const char *d9__stages_unmatched(const struct d9__stages *stages, size_t i)
{
	for (size_t s = 0; s < stages->n; s++)
		for (size_t g = 0; stages->items[s].runs && g < stages->items[s].rules.n; g++)
			if (!stages->items[s].rules.matched[g] && !i--)
				return stages->items[s].rules.globs[g];
	return NULL;
}

void d9__stages_release(struct d9__stages *stages)
{
	while (stages->n)
		release_stage(&stages->items[--stages->n]);
}

/* ---- what a replacement has to be ---- */

/*
 * Read the segment to its end.  0 with the number of its events; else |why| tells what is wrong
 * with it.
 */
static int look(int fd, uint64_t *events, enum d9__container_kind *kind, char *why, size_t why_size)
{
	struct d9__frames_in in;
	struct d9__frame frame;
	int err = d9__frames_open(&in, fd);

	*events = 0;
	*kind = in.container.kind;
	while (!err && (err = d9__frames_next(&in, &frame)) == 1) {
		*events += frame.kind == D9__FRAME_EVENT;
		err = 0;
	}
	if (err)
		snprintf(why, why_size, "%s", *in.message ? in.message : d9_strerror(err));
	d9__frames_release(&in);
	return err;
}

static bool is_same(int a, int b)
{
	char of_a[8192], of_b[8192];
	ssize_t n, m;

	for (off_t at = 0;; at += n) {
		n = pread(a, of_a, sizeof(of_a), at);
		m = pread(b, of_b, sizeof(of_b), at);
		if (n != m || n < 0 || memcmp(of_a, of_b, (size_t)n))
			return false;
		if (!n)
			return true;
	}
}

/* |*fd| once more, packed as the segment was. */
static int pack_again(const struct way *way, int *fd)
{
	int packed = d9__claim_unnamed(way->claim);
	int err = packed < 0 ? packed : d9__packed_output_copy(*fd, packed, way->kind);

	if (err && packed >= 0)
		close(packed);
	if (!err) {
		close(*fd);
		*fd = packed;
	}
	return err;
}

static void move_on(struct way *way, int to)
{
	if (way->at != way->claim->fd)
		close(way->at);
	way->at = to;
}

/* Take |to|, which a stage has written, for the segment from now on. */
static enum step accept(struct way *way, int to, uint64_t *events)
{
	enum d9__container_kind kind;
	char why[300];
	int err = look(to, events, &kind, why, sizeof(why));

	if (err == -ENODATA) {
		snprintf(way->why, sizeof(way->why), "it wrote nothing");
	} else if (err) {
		snprintf(way->why, sizeof(way->why), "what it wrote is no whole trace: %s", why);
	} else if (kind != way->kind) {
		err = pack_again(way, &to);
		snprintf(way->why, sizeof(way->why), "what it wrote cannot be packed: %s",
			 d9_strerror(err));
	}
	if (err || is_same(way->at, to))
		close(to);
	else
		move_on(way, to);
	return err ? STEP_FAILED : STEP_DONE;
}

/* ---- one stage ---- */

static enum step redact(struct way *way, struct d9__stage *stage, int to)
{
	char why[300];

	if (stage->rules.scrub)
		d9__scrub_begin(stage->rules.scrub, way->claim->path);
	if (!d9__redact(&stage->rules, way->at, to, why, sizeof(why)))
		return STEP_DONE;
	snprintf(way->why, sizeof(way->why), "%s", why);
	return STEP_FAILED;
}

static double seconds(uint64_t ns)
{
	return (double)ns / (double)D9__SECOND_NS;
}

/* Write into |way->why| how the program ended, with its output. */
static enum step judge_end(struct way *way, const struct d9__program *program,
			   const struct d9__program_end *end)
{
	char how[256] = "";
	int status = end->status;

	if (end->timed_out)
		snprintf(how, sizeof(how), "it did not end within %g s and was killed",
			 seconds(program->timeout_ns));
	else if (end->too_much)
		snprintf(how, sizeof(how), "it wrote more than %" PRIu64 " MiB and was killed",
			 program->limit_bytes >> 20);
	else if (end->write_err)
		snprintf(how, sizeof(how), "what it wrote cannot be kept: %s",
			 d9_strerror(end->write_err));
	else if (WIFSIGNALED(status))
		snprintf(how, sizeof(how), "signal %d ended it (%s)", WTERMSIG(status),
			 strsignal(WTERMSIG(status)));
	else if (WEXITSTATUS(status))
		snprintf(how, sizeof(how), "exit status %d", WEXITSTATUS(status));
	else if (end->held)
		snprintf(how, sizeof(how), "processes that it left behind had its output open");
	if (!*how)
		return STEP_DONE;
	snprintf(way->why, sizeof(way->why), "%s%s%s", how, *end->said ? ": " : "", end->said);
	if (end->timed_out || end->too_much || end->write_err || !WIFEXITED(status) ||
	    WEXITSTATUS(status) != STATUS_AGAIN)
		return STEP_FAILED;
	if (!way->last)
		return STEP_AGAIN;
	snprintf(way->why, sizeof(way->why), "it asked %d times to be tried again",
		 D9__STAGES_TRIES);
	return STEP_FAILED;
}

static enum step run_program(struct way *way, const struct d9__stage *stage,
			     const struct d9__program *program, int from, int to)
{
	struct d9__program_end end;
	int err = d9__program_run(program, from, to, &end);
	enum step step;

	if (err) {
		snprintf(way->why, sizeof(way->why), "it cannot be started: %s", d9_strerror(err));
		return STEP_FAILED;
	}
	step = judge_end(way, program, &end);
	if (step == STEP_DONE && end.left)
		way->stages->tell(way->stages->context, way->claim->path, stage->text,
				  "it left processes behind, which were killed");
	return step;
}

/* Run symbolize on the segment's own path, because it looks for files beside it. */
static enum step symbolize(struct way *way, const struct d9__stage *stage, int to)
{
	char unnamed[64];
	struct d9__program program = { .call = way->stages->symbolize,
				       .path = way->claim->path,
				       .timeout_ns = SYMBOLIZE_PATIENCE * way->stages->timeout_ns,
				       .pulse = way->stages->pulse,
				       .context = way->stages->context };

	snprintf(unnamed, sizeof(unnamed), "/proc/self/fd/%d", way->at);
	if (way->at != way->claim->fd)
		program.path = unnamed;
	return run_program(way, stage, &program, -1, to);
}

static enum step own_program(struct way *way, const struct d9__stage *stage, int to)
{
	struct d9__program program = { .argv = stage->argv,
				       .facts = d9__program_facts(way->at, way->claim->path),
				       .timeout_ns = way->stages->timeout_ns,
				       .pulse = way->stages->pulse,
				       .context = way->stages->context,
				       .limit_bytes = way->stages->limit_bytes };
	enum step step = STEP_FAILED;

	if (program.facts)
		step = run_program(way, stage, &program, way->at, to);
	else
		snprintf(way->why, sizeof(way->why), "out of memory");
	free(program.facts);
	return step;
}

static enum step run_stage(struct way *way, struct d9__stage *stage, uint64_t *events)
{
	int to = d9__claim_unnamed(way->claim);
	enum step step = STEP_FAILED;

	if (to < 0) {
		snprintf(way->why, sizeof(way->why), "a file for what it makes: %s",
			 d9_strerror(to));
		return STEP_FAILED;
	}
	switch (stage->kind) {
	case D9__STAGE_SYMBOLIZE:
		step = symbolize(way, stage, to);
		break;
	case D9__STAGE_REDACT:
		step = redact(way, stage, to);
		break;
	case D9__STAGE_PROGRAM:
		step = own_program(way, stage, to);
		break;
	}
	if (step == STEP_DONE)
		return accept(way, to, events);
	close(to);
	return step;
}

/* ---- all of them ---- */

static bool redacts(const struct d9__stages *stages, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (stages->items[i].kind == D9__STAGE_REDACT)
			return true;
	return false;
}

/* The treatment of the segment when stage |i| fails. */
static enum d9__stage_error policy(const struct d9__stages *stages, size_t i)
{
	enum d9__stage_error on_error = stages->on_error;

	if (on_error == D9__STAGE_ERROR_UNSET)
		on_error = redacts(stages, i + 1) ? D9__STAGE_ERROR_KEEP : D9__STAGE_ERROR_SHIP;
	if (on_error == D9__STAGE_ERROR_SHIP && stages->items[i].kind == D9__STAGE_REDACT)
		on_error = D9__STAGE_ERROR_KEEP;
	return on_error;
}

static void tell(struct way *way, const char *stage, const char *then)
{
	struct d9__stages *stages = way->stages;
	char line[600];

	stages->failures++;
	snprintf(line, sizeof(line), "%s; %s", way->why, then);
	stages->tell(stages->context, way->claim->path, stage, line);
}

/* Stage |i| failed.  SAME: the segment goes on. */
static enum d9__stages_end fail(struct way *way, size_t i)
{
	const char *stage = way->stages->items[i].text;

	if (!d9__claim_holds(way->claim))
		return D9__STAGES_GONE;
	switch (policy(way->stages, i)) {
	case D9__STAGE_ERROR_KEEP:
		tell(way, stage, "left as it is");
		return D9__STAGES_KEPT;
	case D9__STAGE_ERROR_DROP:
		tell(way, stage, "dropped");
		return D9__STAGES_DROPPED;
	default:
		tell(way, stage, "goes on without it");
		return D9__STAGES_SAME;
	}
}

/* Refuse a damaged segment without running a stage.  It does not leave if it should be redacted. */
static enum d9__stages_end refuse(struct way *way)
{
	if (!d9__claim_holds(way->claim))
		return D9__STAGES_GONE;
	tell(way, NULL, "left as it is");
	return redacts(way->stages, way->stages->n) ? D9__STAGES_KEPT : D9__STAGES_SAME;
}

/* Run stage |i|.  Drop a segment without events, as recorders do. */
static enum d9__stages_end run_next(struct way *way, size_t i)
{
	uint64_t events = 1;

	switch (run_stage(way, &way->stages->items[i], &events)) {
	case STEP_DONE:
		way->stages->items[i].runs++;
		return events ? D9__STAGES_SAME : D9__STAGES_DROPPED;
	case STEP_AGAIN:
		return D9__STAGES_AGAIN;
	default:
		return fail(way, i);
	}
}

enum d9__stages_end d9__stages_run(struct d9__stages *stages, const struct d9__claim *claim,
				   bool last, int *fd)
{
	struct way way = { .stages = stages, .claim = claim, .last = last, .at = claim->fd };
	enum d9__stages_end end = D9__STAGES_SAME;
	uint64_t events;

	/* Without stages the content does not matter. */
	if (stages->n && look(claim->fd, &events, &way.kind, way.why, sizeof(way.why)))
		return refuse(&way);
	for (size_t i = 0; end == D9__STAGES_SAME && i < stages->n; i++)
		end = run_next(&way, i);
	if (end == D9__STAGES_SAME && way.at != claim->fd) {
		*fd = way.at;
		return D9__STAGES_REPLACED;
	}
	move_on(&way, claim->fd);
	return end == D9__STAGES_SAME && !d9__claim_holds(claim) ? D9__STAGES_GONE : end;
}
