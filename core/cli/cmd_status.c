/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/time.h"
#include "cli/cmd.h"
#include "cli/status_json.h"
#include "cli/status_log.h"
#include "cli/status_store.h"
#include "text/text.h"
#include "tool/args.h"
#include "watch/dir_fault.h"
#include "watch/open_calls_now.h"
#include "watch/recorders.h"

#define LABEL_WIDTH 14
#define PROGRAM_WIDTH 15
#define DEAD_SHOWN 2
#define WORKERS_SHOWN 32

static const struct d9__opt opts[] = {
	{ 'd', "dir", "DIR", "only recorders that write below DIR" },
	{ 'j', "json", NULL, "one JSON object" },
	{ 'l', "log", NULL, "what the recorder of PID noted: its own log" },
	{ 0, NULL, NULL, NULL },
};

static const struct d9__usage usage = {
	.command = "status",
	.synopsis = "[OPTIONS] [PID]",
	.text = "State of the recorders on this machine: yours, as root all, or that of PID.\n"
		"Exit status 1: one is dead, hung, suspended, paused or blind, or has lost\n"
		"events.\n",
	.opts = opts,
};

/* ---- words ---- */

#define SHORT_LEN 24

/* "12s", "3m", "2h", "5d" */
static const char *short_time(uint64_t ns, char buf[SHORT_LEN])
{
	uint64_t s = ns / D9__SECOND_NS;

	if (s < 100)
		snprintf(buf, SHORT_LEN, "%" PRIu64 "s", s);
	else if (s < 100 * 60)
		snprintf(buf, SHORT_LEN, "%" PRIu64 "m", s / 60);
	else if (s < 100 * 3600)
		snprintf(buf, SHORT_LEN, "%" PRIu64 "h", s / 3600);
	else
		snprintf(buf, SHORT_LEN, "%" PRIu64 "d", s / 86400);
	return buf;
}

/* "9999", "12.3k", "4.56M" */
static const char *short_count(double n, char buf[SHORT_LEN])
{
	static const char units[] = "kMGT";
	int unit = -1;

	if (n < 9999.5) {
		snprintf(buf, SHORT_LEN, "%.0f", n);
		return buf;
	}
	do {
		n /= 1000;
		unit++;
	} while (n >= 999.5 && unit < 3);
	snprintf(buf, SHORT_LEN, "%.*f%c", n < 9.995 ? 2 : n < 99.95 ? 1 : 0, n, units[unit]);
	return buf;
}

static void put_escaped(struct d9__text_out *out, const char *text)
{
	d9__text_escaped(out, text, strlen(text));
}

/*
 * Return the directory to recover from, which is the trace directory unless the recorder had none.
 */
static const char *trace_dir(const struct d9__recorder_seen *recorder)
{
	return recorder->view.header.trace_dir[0] ? recorder->view.header.trace_dir : "DIR";
}

/* ---- what is wrong ---- */

static void put_lost(struct d9__text_out *out, const struct d9__recorder_seen *recorder)
{
	const char *between = "";

	for (int cause = 0; cause < D9__LOSS_CAUSES; cause++) {
		if (!recorder->look.lost[cause])
			continue;
		d9__text_printf(out, "%s%s %" PRIu64, between, d9__loss_names[cause],
				recorder->look.lost[cause]);
		between = ", ";
	}
}

static void put_error(struct d9__text_out *out, const struct d9__recorder_seen *recorder)
{
	const struct d9__ring_health *health = &recorder->look.health;
	char age[D9__DURATION_LEN];

	put_escaped(out, health->error_op[0] ? health->error_op : "write");
	d9__text_printf(out, ": %s, %s ago, %" PRIu64 " in all", strerror(health->error),
			d9__duration_text(d9__recorder_age_ns(recorder, health->error_ns), age),
			health->error_count);
}

static void put_dead(struct d9__text_out *out, const struct d9__recorder_seen *recorder)
{
	char count[SHORT_LEN];

	d9__text_printf(out, "%s with %s events in its ring; save them: dial9 recover ",
			d9__ring_view_replaced(&recorder->view) ? "became another program (exec)" : "ended",
			short_count((double)recorder->look.waiting, count));
	put_escaped(out, trace_dir(recorder));
}

static void put_blind(struct d9__text_out *out, const struct d9__recorder_seen *recorder)
{
	const struct d9__ring_worker *worker = &recorder->look.workers[recorder->blind];
	char age[SHORT_LEN];

	d9__text_printf(out, "worker %u (thread %u) works, and nothing of it was recorded for %s",
			worker->id, worker->tid,
			short_time(d9__recorder_age_ns(recorder, worker->last_ns), age));
}

static void put_problem(struct d9__text_out *out, const struct d9__recorder_seen *recorder,
			unsigned problem)
{
	char age[D9__DURATION_LEN], fault[D9__DIR_FAULT_LEN];

	switch (problem) {
	case D9__PROBLEM_DEAD:
		put_dead(out, recorder);
		break;
	case D9__PROBLEM_HUNG:
		d9__text_printf(out, "its background thread has not run for %s",
				d9__duration_text(d9__recorder_age_ns(recorder,
								      recorder->look.health.tick_ns),
						  age));
		break;
	case D9__PROBLEM_SUSPENDED:
		d9__text_printf(out, "stopped by a signal or a debugger; go on: kill -CONT %d",
				(int)recorder->view.pid);
		break;
	case D9__PROBLEM_PAUSED:
		put_error(out, recorder);
		put_escaped(out, d9__dir_fault(fault, recorder->view.pid, recorder->view.header.trace_dir,
					       recorder->view.header.boot_id, D9__DIR_TRACE,
					       -recorder->look.health.error));
		break;
	case D9__PROBLEM_BLIND:
		put_blind(out, recorder);
		break;
	default:
		put_lost(out, recorder);
	}
}

static void put_problems(struct d9__text_out *out, const struct d9__recorder_seen *recorder,
			 const char *indent)
{
	for (unsigned bit = 1; bit <= D9__PROBLEM_LOSSY; bit <<= 1) {
		if (!(recorder->problems & bit))
			continue;
		d9__text_printf(out, "%s%s: ", indent, d9__problem_name(bit));
		put_problem(out, recorder, bit);
		d9__text_char(out, '\n');
	}
}

/* Write the facts loop.LIBRARY.|what| that are not empty. */
static void put_complaints(struct d9__text_out *out, const struct d9__recorder_seen *recorder,
			   const char *what, const char *indent)
{
	const char *line = recorder->look.health.facts;
	size_t end = strlen(what) + 1;

	for (; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		size_t len = strcspn(line, "\n"), key = strcspn(line, "=\n");
		size_t name = key - end;

		if (key + 1 >= len || key < end + 6 || strncmp(line, "loop.", 5) != 0 ||
		    line[name] != '.' || strncmp(line + name + 1, what, end - 1) != 0)
			continue;
		d9__text_printf(out, "%s%s: ", indent, what);
		d9__text_escaped(out, line + 5, name - 5);
		d9__text_string(out, ": ");
		d9__text_escaped(out, line + key + 1, len - key - 1);
		d9__text_char(out, '\n');
	}
}

/* Write the hooks that the loop libraries lack. */
static void put_degraded(struct d9__text_out *out, const struct d9__recorder_seen *recorder,
			 const char *indent)
{
	put_complaints(out, recorder, "refused", indent);
	put_complaints(out, recorder, "degraded", indent);
}

/* Callbacks that run for long, a line each. */
static void put_running(struct d9__text_out *out, const struct d9__recorder_seen *recorder, const char *indent)
{
	struct d9__open_calls_now running[D9__RING_OPEN_MAX];
	unsigned n = d9__open_calls_now_named(recorder, running);
	char line[D9__RUNNING_LEN];

	for (unsigned i = 0; i < n; i++) {
		d9__open_calls_now_text(&running[i], line);
		d9__text_printf(out, "%s%s: ", indent,
				recorder->owner == D9__OWNER_DEAD ? "ran when it ended" : "running now");
		put_escaped(out, line);
		d9__text_char(out, '\n');
	}
}

/* A line for each loop that goes round inside its library. */
static void put_inside(struct d9__text_out *out, const struct d9__recorder_seen *recorder,
		       const char *indent)
{
	for (uint32_t i = 0; i < recorder->look.n_workers && i < WORKERS_SHOWN; i++) {
		double share = d9__recorder_loop(recorder, i).inside_library;

		if (share > 0)
			d9__text_printf(out, "%sworker %u: inside %s %.0f %%, in no callback\n",
					indent, recorder->look.workers[i].id,
					d9__recorder_library(recorder), 100 * share);
	}
}

/* Write the store of its trace, and how much waits for a shipper. */
static void put_store(struct d9__text_out *out, const struct d9__recorder_seen *recorder, const char *label)
{
	char text[D9__STATUS_STORE_LEN];

	if (!d9__status_store(recorder, text))
		return;
	d9__text_string(out, label);
	put_escaped(out, text);
	d9__text_char(out, '\n');
}

/* ---- the table ---- */

static void put_row(struct d9__text_out *out, const struct d9__recorder_seen *recorder)
{
	const struct d9__ring_health *health = &recorder->look.health;
	char age[SHORT_LEN], events[SHORT_LEN], rate[SHORT_LEN], lost[SHORT_LEN], disk[D9__SIZE_LEN];
	uint64_t since = health->state_since_ns;
	size_t used;

	/* Since when it does not run. */
	if (recorder->problems & (D9__PROBLEM_DEAD | D9__PROBLEM_HUNG | D9__PROBLEM_SUSPENDED))
		since = health->tick_ns;
	d9__text_printf(out, "%7d ", (int)recorder->view.pid);
	used = d9__text_fitting(out, d9__recorder_program(recorder), PROGRAM_WIDTH);
	d9__text_printf(out, "%*s %-9s %4s %5u %7s %6s %6s  %s\n",
			(int)(PROGRAM_WIDTH - used), "", d9__recorder_state_word(recorder),
			short_time(d9__recorder_age_ns(recorder, since), age),
			recorder->look.n_workers,
			short_count((double)recorder->look.recorded, events),
			short_count(recorder->per_second, rate),
			short_count((double)recorder->lost, lost),
			d9__size_text(health->retained_bytes, disk));
	put_running(out, recorder, "        ");
	put_inside(out, recorder, "        ");
	put_problems(out, recorder, "        ");
	put_degraded(out, recorder, "        ");
	put_store(out, recorder, "        store: ");
}

/* Write the sums of the dead processes that are not listed one by one. */
static void put_rest(struct d9__text_out *out, const struct d9__recorders *recorders, size_t shown)
{
	char size[D9__SIZE_LEN];
	uint64_t bytes = 0;

	for (size_t i = shown; i < recorders->n; i++)
		bytes += d9__ring_view_taken(&recorders->list[i].view);
	if (shown < recorders->n)
		d9__text_printf(out,
				"and %zu more that are dead, %s of memory; save their events: %s\n",
				recorders->n - shown, d9__size_text(bytes, size), d9__recorders_recover_all());
}

static void put_others(struct d9__text_out *out, const struct d9__recorders *recorders)
{
	const struct d9__other_ring *first = recorders->others;
	size_t n = recorders->n_others;
	char size[D9__SIZE_LEN];
	uint64_t bytes = 0;

	if (!n)
		return;
	for (size_t i = 0; i < n; i++)
		bytes += first[i].bytes;
	d9__text_printf(out, "%zu ring%s of another version of dial9, %s, left by %s that ended; recover %s with that "
			     "version, or remove %s: ",
			n, n > 1 ? "s" : "", d9__size_text(bytes, size), n > 1 ? "processes" : "a process",
			n > 1 ? "them" : "it", n > 1 ? "them" : "it");
	put_escaped(out, first->path);
	if (n > 1)
		d9__text_string(out, " ...; all of them: dial9 status --json");
	d9__text_char(out, '\n');
}

static void put_left_out(struct d9__text_out *out, const struct d9__recorders *recorders)
{
	if (recorders->rings_left_out)
		d9__text_printf(out, "left out: %zu more rings\n", recorders->rings_left_out);
	if (recorders->processes_left_out)
		d9__text_printf(out, "left out: %zu process%s with too much that may be a ring; one of them: dial9 status PID\n",
				recorders->processes_left_out, recorders->processes_left_out > 1 ? "es" : "");
}

static void put_table(struct d9__text_out *out, const struct d9__recorders *recorders)
{
	unsigned dead = 0;
	size_t shown = 0;

	if (!recorders->n) {
		d9__text_string(out, recorders->failed || recorders->n_others ? "" : "no recorder\n");
		put_others(out, recorders);
		return;
	}
	d9__text_string(out, "    PID PROGRAM         STATE      FOR LOOPS  EVENTS    /S     LOST  "
			     "DISK\n");
	for (; shown < recorders->n; shown++) {
		dead += recorders->list[shown].owner == D9__OWNER_DEAD;
		if (dead > DEAD_SHOWN)
			break;
		put_row(out, &recorders->list[shown]);
	}
	put_rest(out, recorders, shown);
	put_others(out, recorders);
}

static void put_all(struct d9__text_out *out, const struct d9__recorders *recorders)
{
	put_table(out, recorders);
	put_left_out(out, recorders);
}

/* ---- one of them ---- */

static void put_label(struct d9__text_out *out, const char *label)
{
	d9__text_printf(out, "  %-*s", LABEL_WIDTH - 2, label);
}

static void put_state(struct d9__text_out *out, const struct d9__recorder_seen *recorder)
{
	const struct d9__ring_health *health = &recorder->look.health;
	char since[SHORT_LEN], tick[D9__DURATION_LEN];

	put_label(out, "state");
	d9__text_printf(out, "%s, unchanged for %s, last sign of life %s ago\n",
			d9__recorder_state_word(recorder),
			short_time(d9__recorder_age_ns(recorder, health->state_since_ns), since),
			d9__duration_text(d9__recorder_age_ns(recorder, health->tick_ns), tick));
}

static void put_events(struct d9__text_out *out, const struct d9__recorder_seen *recorder)
{
	put_label(out, "events");
	d9__text_printf(out,
			"%" PRIu64 " recorded, %.0f a second, %" PRIu64 " of them %s\n",
			recorder->look.recorded, recorder->per_second, recorder->look.waiting,
			recorder->look.flight ? "in the ring" : "not yet written");
	put_label(out, "lost");
	if (recorder->lost)
		put_lost(out, recorder);
	else
		d9__text_string(out, "none");
	d9__text_char(out, '\n');
}

/*
 * Write how much was not compressed, because the program wants the CPUs, if any was: recorder.raw.
 */
static void put_raw(struct d9__text_out *out, const struct d9__recorder_seen *recorder)
{
	size_t len;
	const char *state = d9__recorder_fact(recorder, "recorder.raw", &len), *bytes;
	char size[D9__SIZE_LEN];

	if (!state)
		return;
	put_label(out, "raw");
	d9__text_escaped(out, state, len);
	bytes = d9__recorder_fact(recorder, "recorder.raw_bytes", &len);
	d9__text_printf(out, "; %s or more so far, to be compressed later\n",
			d9__size_text(bytes ? strtoull(bytes, NULL, 10) : 0, size));
}

static void put_disk(struct d9__text_out *out, const struct d9__recorder_seen *recorder)
{
	const struct d9__ring_health *health = &recorder->look.health;
	char retained[D9__SIZE_LEN], budget[D9__SIZE_LEN];

	put_label(out, "disk");
	d9__text_printf(out, "%s of at most %s\n", d9__size_text(health->retained_bytes, retained),
			d9__size_text(health->budget_bytes, budget));
	put_raw(out, recorder);
	put_label(out, "directory");
	put_escaped(out, recorder->view.header.trace_dir);
	d9__text_char(out, '/');
	put_escaped(out, recorder->view.header.boot_id);
	d9__text_char(out, '\n');
	put_label(out, "segment");
	put_escaped(out, health->segment[0] ? health->segment : "none is open");
	d9__text_char(out, '\n');
	put_label(out, "last error");
	if (health->error)
		put_error(out, recorder);
	else
		d9__text_string(out, "none");
	d9__text_char(out, '\n');
}

static void put_ring(struct d9__text_out *out, const struct d9__recorder_seen *recorder)
{
	const struct d9__ring_health *health = &recorder->look.health;
	char size[D9__SIZE_LEN];
	size_t len;
	const char *why = d9__recorder_fact(recorder, "ring.fallback", &len);

	put_label(out, "ring");
	put_escaped(out, recorder->ring);
	if (why) {
		d9__text_string(out, "; ");
		d9__text_escaped(out, why, len);
	}
	d9__text_char(out, '\n');
	put_label(out, "");
	d9__text_printf(out, "%s, %u of %u chunks in use, at most %u waited to be written\n",
			d9__size_text(recorder->view.size, size), recorder->look.chunks_in_use,
			recorder->look.chunks, health->full_high);
	put_label(out, "clock");
	d9__text_string(out, health->clock_kind == D9__CLOCK_TICKS ? "processor ticks"
								  : "clock_gettime()");
	if (health->clock_reason[0]) {
		d9__text_string(out, ": ");
		put_escaped(out, health->clock_reason);
	}
	d9__text_printf(out, ", %" PRIu64 " steps\n", health->clock_steps);
}

/* "; 47 % awake, 12 % CPU", and what of that is inside the library. */
static void put_shares(struct d9__text_out *out, const struct d9__recorder_seen *recorder,
		       uint32_t i)
{
	struct d9__loop_now now = d9__recorder_loop(recorder, i);

	if (!now.known)
		return;
	d9__text_printf(out, "; %.0f %% awake, %.0f %% CPU", 100 * now.awake, 100 * now.cpu);
	if (now.inside_library > 0)
		d9__text_printf(out, ": inside %s %.0f %%", d9__recorder_library(recorder),
				100 * now.inside_library);
}

static void put_workers(struct d9__text_out *out, const struct d9__recorder_seen *recorder)
{
	static const char *const states[] = { "unknown", "between callbacks", "in a callback",
					      "asleep" };
	char age[D9__DURATION_LEN];

	put_label(out, "loops");
	for (uint32_t i = 0; i < recorder->look.n_workers && i < WORKERS_SHOWN; i++) {
		const struct d9__ring_worker *worker = &recorder->look.workers[i];

		if (i)
			put_label(out, "");
		d9__text_printf(
			out, "worker %u, thread %u: %s since %s", worker->id, worker->tid,
			d9__recorder_loop(recorder, i).inside_library > 0 ? "in its library"
									  : states[worker->state],
			d9__duration_text(d9__recorder_age_ns(recorder, worker->last_ns), age));
		put_shares(out, recorder, i);
		d9__text_char(out, '\n');
	}
	if (recorder->look.n_workers > WORKERS_SHOWN) {
		put_label(out, "");
		d9__text_printf(out, "and %u more (--json has all)\n",
				recorder->look.n_workers - WORKERS_SHOWN);
	}
	if (!recorder->look.n_workers)
		d9__text_string(out, "none has run yet\n");
}

/*
 * Write whether stacks are sampled, or why not (source.cpu).  The other sources are written only if
 * they were asked for.
 */
static void put_samples(struct d9__text_out *out, const struct d9__recorder_seen *recorder)
{
	static const struct {
		const char *key, *label;
	} asked[] = { { "source.offcpu", "off the CPU" },
		      { "source.kernel_names", "kernel names" },
		      { "source.memory", "allocations" } };
	size_t len;
	const char *state = d9__recorder_fact(recorder, "source.cpu", &len);

	put_label(out, "samples");
	d9__text_wrapped(out, state ? state : "of no thread", state ? len : strlen("of no thread"), LABEL_WIDTH);
	for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); i++) {
		state = d9__recorder_fact(recorder, asked[i].key, &len);
		if (!state)
			continue;
		put_label(out, asked[i].label);
		d9__text_wrapped(out, state, len, LABEL_WIDTH);
	}
}

/* Whether calls that block are timed, or why not: source.blocking. */
static void put_blocking(struct d9__text_out *out, const struct d9__recorder_seen *recorder)
{
	size_t len;
	const char *state = d9__recorder_fact(recorder, "source.blocking", &len);

	if (!state)
		return;
	put_label(out, "blocking");
	d9__text_wrapped(out, state, len, LABEL_WIDTH);
}

/* Write whether results of I/O are counted, or why not (source.io), and how many so far. */
static void put_io(struct d9__text_out *out, const struct d9__recorder_seen *recorder)
{
	size_t len, n_calls, n_events;
	const char *state = d9__recorder_fact(recorder, "source.io", &len);
	const char *calls = d9__recorder_fact(recorder, "io.calls", &n_calls);
	const char *events = d9__recorder_fact(recorder, "io.events", &n_events);
	char text[256];

	if (!state)
		return;
	put_label(out, "I/O");
	if (calls && events && len == 2 && *calls != '0')
		len = (size_t)snprintf(text, sizeof(text),
				       "on; %.*s calls counted, told in %.*s events",
				       (int)n_calls, calls, (int)n_events, events);
	else
		len = (size_t)snprintf(text, sizeof(text), "%.*s", (int)len, state);
	d9__text_wrapped(out, text, len < sizeof(text) ? len : sizeof(text) - 1, LABEL_WIDTH);
}

/*
 * Write the hooks that took hold of each loop library, from loop.LIBRARY.version and .capabilities.
 */
static void put_hooks(struct d9__text_out *out, const struct d9__recorder_seen *recorder)
{
	static const char suffix[] = ".capabilities=";
	const char *line = recorder->look.health.facts;

	for (; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		size_t len = strcspn(line, "\n"), key = strcspn(line, "=\n"), version_len;
		size_t name = key + 1 - (sizeof(suffix) - 1);
		const char *version;
		char version_key[96];

		if (key >= len || key < sizeof(suffix) + 5 || key > 64 ||
		    strncmp(line, "loop.", 5) != 0 ||
		    strncmp(line + name, suffix, sizeof(suffix) - 1) != 0)
			continue;
		snprintf(version_key, sizeof(version_key), "%.*s.version", (int)name, line);
		version = d9__recorder_fact(recorder, version_key, &version_len);
		put_label(out, "hooks");
		d9__text_escaped(out, line + 5, name - 5);
		d9__text_char(out, ' ');
		if (version)
			d9__text_escaped(out, version, version_len);
		d9__text_char(out, '\n');
		put_label(out, "");
		d9__text_wrapped(out, line + key + 1, len - key - 1, LABEL_WIDTH);
	}
}

/* Write how many lines the recorder's own log has, and the command that shows them. */
static void put_log(struct d9__text_out *out, const struct d9__recorder_seen *recorder)
{
	struct d9__log_counts counts;
	struct d9__notes notes;

	d9__status_log_read(recorder, &notes, &counts);
	put_label(out, "log");
	d9__status_log_counts_text(out, &counts);
	d9__text_printf(out, "; read it: dial9 status --log %d\n", (int)recorder->view.pid);
}

static void put_details(struct d9__text_out *out, const struct d9__recorder_seen *recorder)
{
	d9__text_printf(out, "process %d, ", (int)recorder->view.pid);
	put_escaped(out, d9__recorder_program(recorder));
	d9__text_string(out, "\n");
	put_running(out, recorder, "  ");
	put_problems(out, recorder, "  ");
	put_degraded(out, recorder, "  ");
	put_label(out, "service");
	put_escaped(out, recorder->view.header.service);
	d9__text_char(out, '\n');
	put_state(out, recorder);
	put_events(out, recorder);
	put_disk(out, recorder);
	put_store(out, recorder, "  store       ");
	put_ring(out, recorder);
	put_workers(out, recorder);
	put_samples(out, recorder);
	put_blocking(out, recorder);
	put_io(out, recorder);
	put_hooks(out, recorder);
	put_log(out, recorder);
}

/* ---- the command ---- */

static int conclude(const struct d9__recorders *recorders, bool one)
{
	if (recorders->failed)
		return one ? D9__EXIT_FINDING : D9__EXIT_USAGE;
	for (size_t i = 0; i < recorders->n; i++)
		if (recorders->list[i].problems)
			return D9__EXIT_FINDING;
	return recorders->n_others ? D9__EXIT_FINDING : D9__EXIT_OK;
}

static void put_one(struct d9__text_out *out, const struct d9__recorder_seen *recorder, bool json, bool log)
{
	if (log && json)
		d9__status_log_json(out, recorder);
	else if (log)
		d9__status_log_text(out, recorder);
	else
		put_details(out, recorder);
}

static int run(pid_t pid, const char *dir, bool json, bool log)
{
	static struct d9__text_out out;
	struct d9__recorders recorders;
	int status, err = d9__recorders_find(&recorders, "status", pid, dir);

	if (err) {
		d9__recorders_release(&recorders);
		return d9__cmd_fail("status", "%s", strerror(-err));
	}
	d9__recorders_look(&recorders, "status");
	d9__text_init(&out, STDOUT_FILENO);
	if (recorders.n && (log || (pid && !json)))
		put_one(&out, &recorders.list[0], json, log);
	else if (json)
		d9__status_json(&out, &recorders);
	else
		put_all(&out, &recorders);
	status = d9__text_finish(&out, "status");
	if (!status)
		status = conclude(&recorders, pid != 0);
	d9__recorders_release(&recorders);
	return status;
}

int d9__cmd_status(int argc, char **argv)
{
	struct d9__args args = { .usage = &usage, .argc = argc, .argv = argv };
	const char *dir = NULL;
	uint64_t pid = 0;
	bool json = false, log = false;
	int key;

	while ((key = d9__args_next(&args)) > 0) {
		if (key == 'd')
			dir = args.value;
		else if (key == 'l')
			log = true;
		else
			json = true;
	}
	if (key < 0)
		return d9__args_exit(key);
	if (argc - args.first > 1)
		return d9__cmd_fail("status", "only one PID; see dial9 status --help");
	if (args.first < argc &&
	    (!d9__parse_u64(argv[args.first], &pid) || !pid || pid > INT_MAX))
		return d9__cmd_fail("status", "'%s' is no process id", argv[args.first]);
	if (log && !pid)
		return d9__cmd_fail("status", "--log shows the log of one recorder: dial9 status --log PID");
	return run((pid_t)pid, dir, json, log);
}
