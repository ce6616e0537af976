/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <string.h>

#include "cli/status_json.h"
#include "cli/status_store.h"
#include "watch/open_calls_now.h"

static void put_key(struct d9__text_out *out, const char *key)
{
	d9__text_json(out, key, strlen(key));
	d9__text_char(out, ':');
}

/* After a comma. */
static void put_u64(struct d9__text_out *out, const char *key, uint64_t n)
{
	d9__text_char(out, ',');
	put_key(out, key);
	d9__text_u64(out, n);
}

static void put_text(struct d9__text_out *out, const char *key, const char *text)
{
	d9__text_char(out, ',');
	put_key(out, key);
	d9__text_json(out, text, strlen(text));
}

/* Write the time since |then_ns|, or null if that is 0. */
static void put_age(struct d9__text_out *out, const char *key,
		    const struct d9__recorder_seen *recorder, uint64_t then_ns)
{
	d9__text_char(out, ',');
	put_key(out, key);
	if (then_ns)
		d9__text_u64(out, d9__recorder_age_ns(recorder, then_ns));
	else
		d9__text_string(out, "null");
}

static void put_problems(struct d9__text_out *out, unsigned problems)
{
	d9__text_string(out, ",\"problems\":[");
	for (unsigned bit = 1, n = 0; bit <= D9__PROBLEM_LOSSY; bit <<= 1) {
		const char *name = d9__problem_name(problems & bit);

		if (!(problems & bit))
			continue;
		if (n++)
			d9__text_char(out, ',');
		d9__text_json(out, name, strlen(name));
	}
	d9__text_char(out, ']');
}

static void put_events(struct d9__text_out *out, const struct d9__recorder_seen *recorder)
{
	d9__text_string(out, ",\"events\":{\"recorded\":");
	d9__text_u64(out, recorder->look.recorded);
	put_u64(out, "written", recorder->look.health.events_written);
	put_u64(out, "waiting", recorder->look.waiting);
	d9__text_string(out, ",\"per_second\":");
	d9__text_f64(out, recorder->per_second);
	d9__text_string(out, "},\"lost\":{\"total\":");
	d9__text_u64(out, recorder->lost);
	for (int cause = 0; cause < D9__LOSS_CAUSES; cause++)
		put_u64(out, d9__loss_names[cause], recorder->look.lost[cause]);
	d9__text_char(out, '}');
}

static void put_error(struct d9__text_out *out, const struct d9__recorder_seen *recorder)
{
	const struct d9__ring_health *health = &recorder->look.health;

	d9__text_string(out, ",\"error\":");
	if (!health->error) {
		d9__text_string(out, "null");
		return;
	}
	d9__text_string(out, "{\"errno\":");
	d9__text_i64(out, health->error);
	put_text(out, "message", strerror(health->error));
	put_text(out, "operation", health->error_op);
	put_age(out, "age_ns", recorder, health->error_ns);
	put_u64(out, "count", health->error_count);
	d9__text_char(out, '}');
}

static void put_writer(struct d9__text_out *out, const struct d9__recorder_seen *recorder)
{
	const struct d9__ring_health *health = &recorder->look.health;

	d9__text_string(out, ",\"writer\":{\"segment\":");
	if (health->segment[0])
		d9__text_json(out, health->segment, strlen(health->segment));
	else
		d9__text_string(out, "null");
	put_u64(out, "sealed_segments", health->segments);
	put_u64(out, "retained_bytes", health->retained_bytes);
	put_u64(out, "budget_bytes", health->budget_bytes);
	put_u64(out, "bytes_recorded", health->bytes_recorded);
	put_u64(out, "bytes_written", health->bytes_written);
	put_age(out, "last_success_age_ns", recorder, health->last_success_ns);
	d9__text_char(out, '}');
}

static void put_memory(struct d9__text_out *out, const struct d9__recorder_seen *recorder)
{
	static const char *const kinds[] = { "auto", "shm", "memfd", "memory", "disk" };

	d9__text_string(out, ",\"ring\":{\"path\":");
	d9__text_json(out, recorder->ring, strlen(recorder->ring));
	put_text(out, "kind", kinds[recorder->view.header.kind]);
	put_u64(out, "chunks", recorder->look.chunks);
	put_u64(out, "chunks_max", recorder->view.header.chunks_max);
	put_u64(out, "chunks_in_use", recorder->look.chunks_in_use);
	put_u64(out, "full_high", recorder->look.health.full_high);
	put_u64(out, "slots_in_use", recorder->look.slots_in_use);
	d9__text_char(out, '}');
}

static void put_clock(struct d9__text_out *out, const struct d9__ring_health *health)
{
	d9__text_string(out, ",\"clock\":{\"kind\":");
	d9__text_string(out, health->clock_kind == D9__CLOCK_TICKS ? "\"ticks\"" : "\"monotonic\"");
	put_text(out, "reason", health->clock_reason);
	put_u64(out, "steps", health->clock_steps);
	put_u64(out, "bracket_ns", health->clock_bracket_ns);
	d9__text_string(out, ",\"ns_per_tick\":");
	d9__text_f64(out, health->ns_per_tick);
	d9__text_char(out, '}');
}

static void put_share(struct d9__text_out *out, const char *key, bool known, double share)
{
	d9__text_char(out, ',');
	put_key(out, key);
	if (known)
		d9__text_f64(out, share);
	else
		d9__text_string(out, "null");
}

static void put_shares(struct d9__text_out *out, struct d9__loop_now now)
{
	put_share(out, "awake", now.known, now.awake);
	put_share(out, "cpu", now.known, now.cpu);
	put_share(out, "inside_library", now.known, now.inside_library);
}

static void put_workers(struct d9__text_out *out, const struct d9__recorder_seen *recorder)
{
	static const char *const states[] = { "unknown", "running", "polling", "parked" };

	d9__text_string(out, ",\"workers\":[");
	for (uint32_t i = 0; i < recorder->look.n_workers; i++) {
		const struct d9__ring_worker *worker = &recorder->look.workers[i];

		d9__text_string(out, i ? ",{\"id\":" : "{\"id\":");
		d9__text_u64(out, worker->id);
		put_u64(out, "tid", worker->tid);
		put_text(out, "state", states[worker->state]);
		put_age(out, "last_event_age_ns", recorder, worker->last_ns);
		put_shares(out, d9__recorder_loop(recorder, i));
		d9__text_char(out, '}');
	}
	d9__text_char(out, ']');
}

/* Callbacks that run for long. */
static void put_running(struct d9__text_out *out, const struct d9__recorder_seen *recorder)
{
	struct d9__open_calls_now running[D9__RING_OPEN_MAX];
	unsigned n = d9__open_calls_now_named(recorder, running);

	d9__text_string(out, ",\"running\":[");
	for (unsigned i = 0; i < n; i++) {
		const struct d9__ring_open *call = running[i].call;

		d9__text_string(out, i ? ",{\"worker\":" : "{\"worker\":");
		d9__text_u64(out, call->worker);
		put_u64(out, "tid", call->tid);
		put_u64(out, "task", call->task);
		put_text(out, "callback", running[i].name);
		put_text(out, "inside", running[i].inside);
		put_u64(out, "for_ns", running[i].for_ns);
		put_text(out, "syscall", call->syscall);
		d9__text_string(out, call->known && call->running ? ",\"computing\":true" : ",\"computing\":false");
		d9__text_string(out, call->around ? ",\"runs_loop\":true" : ",\"runs_loop\":false");
		d9__text_string(out, call->outside ? ",\"outside\":true}" : ",\"outside\":false}");
	}
	d9__text_char(out, ']');
}

/* Write the process's own facts: program, loop.LIBRARY.*, runtime.NAME. */
static void put_facts(struct d9__text_out *out, const char *facts)
{
	bool first = true;

	d9__text_string(out, ",\"facts\":{");
	while (*facts) {
		size_t line = strcspn(facts, "\n"), key = strcspn(facts, "=\n");

		if (key < line) {
			if (!first)
				d9__text_char(out, ',');
			first = false;
			d9__text_json(out, facts, key);
			d9__text_char(out, ':');
			d9__text_json(out, facts + key + 1, line - key - 1);
		}
		facts += line + (facts[line] == '\n');
	}
	d9__text_char(out, '}');
}

/*
 * Write the store of the trace: null for none, else the names and the backlog, null if that cannot
 * be read.
 */
static void put_store(struct d9__text_out *out, const struct d9__recorder_seen *recorder)
{
	const struct d9__ring_header *header = &recorder->view.header;
	long waiting = d9__status_store_waiting(recorder);

	d9__text_string(out, ",\"store\":");
	if (!header->s3_bucket[0]) {
		d9__text_string(out, "null");
		return;
	}
	d9__text_string(out, "{\"bucket\":");
	d9__text_json(out, header->s3_bucket, strlen(header->s3_bucket));
	put_text(out, "prefix", header->s3_prefix);
	d9__text_string(out, ",\"segments_waiting\":");
	if (waiting < 0)
		d9__text_string(out, "null}");
	else {
		d9__text_u64(out, (uint64_t)waiting);
		d9__text_char(out, '}');
	}
}

static void put_recorder(struct d9__text_out *out, const struct d9__recorder_seen *recorder)
{
	const struct d9__ring_header *header = &recorder->view.header;
	const struct d9__ring_health *health = &recorder->look.health;

	d9__text_string(out, "{\"pid\":");
	d9__text_i64(out, recorder->view.pid);
	put_text(out, "program", d9__recorder_program(recorder));
	put_text(out, "service", header->service);
	put_text(out, "trace_dir", header->trace_dir);
	put_text(out, "boot_id", header->boot_id);
	put_text(out, "mode", recorder->look.flight ? "flight" : "continuous");
	put_text(out, "state", d9__recorder_state_word(recorder));
	d9__text_string(out, recorder->problems ? ",\"healthy\":false" : ",\"healthy\":true");
	put_problems(out, recorder->problems);
	put_age(out, "state_age_ns", recorder, health->state_since_ns);
	put_age(out, "tick_age_ns", recorder, health->tick_ns);
	put_events(out, recorder);
	put_error(out, recorder);
	put_writer(out, recorder);
	put_store(out, recorder);
	put_memory(out, recorder);
	put_clock(out, health);
	put_workers(out, recorder);
	put_running(out, recorder);
	put_facts(out, health->facts);
	d9__text_char(out, '}');
}

static void put_other(struct d9__text_out *out, const struct d9__other_ring *ring)
{
	d9__text_string(out, "{\"path\":");
	d9__text_json(out, ring->path, strlen(ring->path));
	put_u64(out, "layout", ring->header.layout);
	put_u64(out, "bytes", ring->bytes);
	put_u64(out, "pid", ring->header.pid);
	put_text(out, "service", ring->header.service);
	put_text(out, "trace_dir", ring->header.trace_dir);
	put_text(out, "boot_id", ring->header.boot_id);
	d9__text_char(out, '}');
}

void d9__status_json(struct d9__text_out *out, const struct d9__recorders *recorders)
{
	d9__text_string(out, "{\"recorders\":[");
	for (size_t i = 0; i < recorders->n; i++) {
		if (i)
			d9__text_char(out, ',');
		put_recorder(out, &recorders->list[i]);
	}
	d9__text_string(out, "],\"other_versions\":[");
	for (size_t i = 0; i < recorders->n_others; i++) {
		if (i)
			d9__text_char(out, ',');
		put_other(out, &recorders->others[i]);
	}
	d9__text_string(out, "],\"left_out\":{\"rings\":");
	d9__text_u64(out, recorders->rings_left_out);
	put_u64(out, "processes", recorders->processes_left_out);
	d9__text_string(out, "}}\n");
}
