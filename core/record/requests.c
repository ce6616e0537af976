/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <dial9/error.h>

#include "drain/dump.h"
#include "drain/health.h"
#include "record/dump_request.h"
#include "record/flush_self.h"
#include "record/pace.h"
#include "record/requests.h"
#include "record/triggers.h"
#include "ring/clock.h"
#include "ring/gate.h"
#include "ring/note.h"
#include "ring/ring_file.h"
#include "segment/dump_tasks.h"

static struct d9__flush_self *const self = &d9__flush_self;

/* Requests that stand in the control words are served; who waits for them is woken. */
static void acknowledge(_Atomic(uint32_t) *done, uint32_t number)
{
	atomic_store_explicit(done, number, memory_order_release);
	syscall(SYS_futex, done, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

/* While a dump is made: clocks go on, and in continuous mode so does everything. */
static void keep_up(void)
{
	static uint64_t last_ns;
	uint64_t now_ns = d9__clock_mono_ns();

	if (now_ns - last_ns < D9__PACE_LOOK_NS)
		return;
	last_ns = now_ns;
	d9__clock_tick(NULL);
	d9__flush_grow_ring(now_ns);
	if (!self->flight && !self->writer.retry_ns) {
		d9__drain_full(&self->drain, now_ns);
		d9__flush_commit(now_ns);
	}
}

static int announce_and_seal(struct d9__dump_tasks *tasks, uint64_t ns)
{
	uint64_t now_ns = d9__clock_mono_ns();
	int err = d9__flush_announce(tasks, ns, now_ns);

	d9__flush_rotate(now_ns);
	return err;
}

static void prepare_dump(void)
{
	uint64_t now_ns = d9__clock_mono_ns();

	d9__flush_retry_now(now_ns);
	d9__flush_have_place(now_ns);
}

static void seal(void)
{
	uint64_t now_ns = d9__clock_mono_ns();

	if (d9__flush_have_place(now_ns))
		d9__flush_rotate(now_ns);
}

static struct d9__dump_maker maker_now(void)
{
	return (struct d9__dump_maker){
		.own = &self->writer,
		.options = d9__flush.options,
		.loss_ns = self->loss_ns,
		.state = self->state,
		.flight = self->flight,
		.keep_up = keep_up,
		.prepare = prepare_dump,
		.seal = seal,
		.announce = announce_and_seal,
	};
}

static void make_dump(struct d9__dump *dump)
{
	uint64_t now_ns = d9__clock_mono_ns();
	struct d9__dump_tasks tasks = { .failed = false };
	struct d9__dump_maker maker = maker_now();

	if (self->dormant && !d9__gate_bits()) {
		dump->complete = true;
		return;
	}
	prepare_dump();
	if (self->flight) {
		d9__dump_ring(dump, &maker);
		return;
	}
	if (!d9__flush_have_place(now_ns)) {
		dump->err = d9__flush_last_error();
		snprintf(dump->path, sizeof(dump->path), "%s", d9__flush.trace_dir);
		return;
	}
	/* First: what begins later is told in the segments themselves. */
	d9__dump_tasks_list(&tasks, d9__dump_from(dump));
	d9__flush_rotate(now_ns);
	/* Not known when: each segment tells of its own. */
	maker.loss_ns = d9__health_lost() ? UINT64_MAX : 0;
	d9__dump_segments(dump, &maker, &tasks);
	d9__dump_tasks_release(&tasks);
}

static void dump(struct d9__dump *dump)
{
	make_dump(dump);
	d9__note(dump->err ? D9_LOG_WARNING : D9_LOG_INFO, "dump asked for by %s: %s", dump->by,
		 dump->err ? d9_strerror(dump->err) : "done");
}

static void dump_for_command(void)
{
	static struct d9__dump job;
	struct d9__ring_control *control = d9__ring.control;
	struct d9__ring_dump *out = &control->dump;

	job = (struct d9__dump){ .by = "dial9 dump", .asked_ns = d9__clock_mono_ns(),
				 .last_ns = control->dump_last_ns };
	snprintf(job.dir, sizeof(job.dir), "%.*s", D9__RING_DIR - 1, control->dump_dir);
	if (job.dir[0] && job.dir[0] != '/')
		job.err = -EINVAL;
	else
		dump(&job);
	*out = (struct d9__ring_dump){
		.err = job.err,
		.complete = job.complete,
		.segments = job.segments,
		.events = job.events,
		.bytes = job.bytes,
		.from_ns = job.from_ns,
		.to_ns = job.to_ns,
	};
	memcpy(out->id, job.id, sizeof(job.id));
	if (strlen(job.path) < sizeof(out->path))
		strcpy(out->path, job.path);
}

/* 0, or why nothing is sealed. */
static int rotate_for_command(uint64_t now_ns)
{
	if (self->flight)
		return -ENOTSUP;
	if (self->dormant && !d9__gate_bits())
		return 0;
	d9__flush_retry_now(now_ns);
	if (d9__flush_have_place(now_ns))
		d9__flush_rotate(now_ns);
	return self->writer.retry_ns ? d9__flush_last_error() : 0;
}

/* A process that records nothing has nothing to keep. */
void d9__requests_look_at_triggers(uint64_t now_ns)
{
	struct d9__dump_maker maker = maker_now();

	if (!self->dormant)
		d9__triggers_look(&self->open, &maker, now_ns);
}

void d9__requests_settle_triggers(void)
{
	struct d9__dump_maker maker = maker_now();

	if (!self->dormant)
		d9__triggers_settle(&maker);
}

void d9__requests_end_triggers(uint64_t now_ns)
{
	struct d9__dump_maker maker = maker_now();

	d9__triggers_end(&maker, now_ns);
}

void d9__requests_serve_dumps(void)
{
	struct d9__dump_request *request;

	while ((request = d9__dump_request_next())) {
		dump(d9__dump_request_dump(request));
		d9__dump_request_done(request);
	}
}

/*
 * Serve a request from a copy, because the process that asks can write to the shared memory at any
 * time.
 */
static void serve_trigger_request(void)
{
	struct d9__ring_trigger *shared = d9__ring.trigger;
	uint32_t requested = atomic_load_explicit(&shared->requested, memory_order_acquire);
	char text[D9__RING_TEXT], answer[D9__RING_ANSWER] = "";
	uint32_t number = shared->number;
	uint64_t fired = 0;

	if (requested == atomic_load_explicit(&shared->done, memory_order_relaxed))
		return;
	memcpy(text, shared->text, sizeof(text));
	text[sizeof(text) - 1] = '\0';
	shared->err = d9__triggers_request(shared->what, text, &number, &fired, answer, sizeof(answer));
	shared->shown = number;
	shared->fired = fired;
	memcpy(shared->answer, answer, sizeof(answer));
	acknowledge(&shared->done, requested);
}

void d9__requests_follow(uint64_t now_ns)
{
	struct d9__ring_control *control = d9__ring.control;
	uint32_t wanted = atomic_load_explicit(&control->wanted, memory_order_acquire);
	uint32_t rotates = atomic_load_explicit(&control->rotate_requested, memory_order_acquire);
	uint32_t dumps = atomic_load_explicit(&control->dump_requested, memory_order_acquire);

	if (wanted != atomic_load_explicit(&control->wanted_done, memory_order_relaxed)) {
		d9__note(D9_LOG_INFO, "switched by dial9 %s", (wanted & 0xff) == 1 ? "enable" : "disable");
		if ((wanted & 0xff) == 1)
			d9__gate_set(d9__flush.gate_bits);
		else if ((wanted & 0xff) == 2)
			d9__gate_set(0);
		acknowledge(&control->wanted_done, wanted);
	}
	if (rotates != atomic_load_explicit(&control->rotate_done, memory_order_relaxed)) {
		int err = rotate_for_command(now_ns);

		d9__note(err ? D9_LOG_WARNING : D9_LOG_INFO, "asked to seal the segment: %s", err ? d9_strerror(err) : "done");
		atomic_store_explicit(&control->rotate_err, err, memory_order_relaxed);
		acknowledge(&control->rotate_done, rotates);
	}
	serve_trigger_request();
	if (dumps != atomic_load_explicit(&control->dump_done, memory_order_relaxed)) {
		dump_for_command();
		acknowledge(&control->dump_done, dumps);
	}
	d9__requests_serve_dumps();
}

/* Once a second; where segments live shorter, often enough for each to get its events. */
