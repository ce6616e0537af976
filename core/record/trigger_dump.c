/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "record/trigger_dump.h"

#include <stdbool.h>
#include <string.h>

#include <dial9/error.h>

#include "base/time.h"
#include "drain/dump_manifest.h"
#include "ring/emit_inl.h"
#include "ring/event_types.h"
#include "ring/names.h"
#include "ring/note.h"

#define HOUR_NS	 UINT64_C(3600000000000)
#define RETRY_NS D9__SECOND_NS

static struct {
	bool is_open;	   /* its window is */
	bool is_unsettled; /* that is over, and its manifest not final */
	uint64_t close_ns; /* when its window closes */
	uint64_t alone_ns; /* until then others join it */
	struct d9__dump dump;
	struct d9__dump_job *job; /* in flight mode, unless it cannot be written now */
	uint64_t retry_ns;	  /* then it, or what is unsettled, is tried again */
	uint64_t loss_ns;	  /* when the number of lost events was seen to grow last */
	struct d9__manifest manifest;
	uint64_t recent_ns[D9__TRIGGER_MOST]; /* when the latest dumps began; 0: there was none */
	uint32_t n_dumps;
	uint64_t suppressed; /* by `at most`, since the latest dump */
} run;

/* How many dumps began in the hour before |ns|. */
static uint32_t in_the_last_hour(uint64_t ns)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < D9__TRIGGER_MOST; i++)
		n += run.recent_ns[i] && ns - run.recent_ns[i] < HOUR_NS;
	return n;
}

static void write_event(const struct d9__trigger_firing *firing)
{
	struct d9__slot *own = d9__slot_self();
	const struct d9__trigger *trigger = firing->trigger;
	const uint32_t names[] = { d9__name_intern(trigger->name, strlen(trigger->name)),
				   d9__name_intern(run.dump.id, strlen(run.dump.id)) };
	uint32_t ids[2];
	uint8_t *p = own ? d9__emit_begin_named(own, D9__EVENT_DUMP_TRIGGER, firing->ns,
						   4 * D9__VARINT_MAX + 8, names, ids, 2) :
			   NULL;

	if (!p)
		return;
	p = d9__wire_put_u32(p, ids[0]);
	p = d9__varint_put(p, firing->value);
	p = d9__varint_put(p, trigger->threshold);
	p = d9__wire_put_u32(p, ids[1]);
	p = d9__varint_put(p, firing->task);
	d9__emit_end(own, d9__varint_put(p, firing->callback));
}

static void write_manifest(const struct d9__dump_maker *maker, bool closed)
{
	int err = d9__dump_manifest_write(&run.manifest, &run.dump, maker->own, closed);

	if (err)
		d9__note(D9_LOG_WARNING, "dump %s: its manifest cannot be written: %s",
			 run.dump.id, d9_strerror(err));
}

/* In flight mode; elsewhere the segments are there when the window closes. */
static void begin_writing(const struct d9__dump_maker *maker, uint64_t now_ns)
{
	run.retry_ns = now_ns + RETRY_NS;
	maker->prepare();
	if (maker->flight)
		run.job = d9__dump_begin(&run.dump, maker);
	if (run.dump.err)
		d9__note(D9_LOG_WARNING, "dump %s cannot be written: %s", run.dump.id,
			 d9_strerror(run.dump.err));
}

/*
 * On a full device the manifest cannot be written, and less than all was: both are written again
 * once there is room.
 */
static void settle(const struct d9__dump_maker *maker, uint64_t now_ns)
{
	int err = d9__dump_manifest_settle(&run.manifest, &run.dump, maker);

	if (err && !run.is_unsettled)
		d9__note(D9_LOG_WARNING, "dump %s cannot be finished: %s; trying again",
			 run.dump.id, d9_strerror(err));
	run.is_unsettled = err != 0;
	run.retry_ns = now_ns + RETRY_NS;
	if (!err)
		d9__note(run.dump.err ? D9_LOG_WARNING : D9_LOG_INFO, "dump %s: %s", run.dump.id,
			 run.dump.err ? d9_strerror(run.dump.err) : "done");
}

/* Another dump begins, or the recorder ends. */
static void end_settling(const struct d9__dump_maker *maker, uint64_t now_ns)
{
	if (run.is_unsettled)
		settle(maker, now_ns);
	run.is_unsettled = false;
}

static void begin_dump(const struct d9__trigger_firing *firing, const struct d9__dump_maker *maker)
{
	const struct d9__trigger *trigger = firing->trigger;
	uint64_t every_ns = trigger->every_ns > trigger->then_ns ? trigger->every_ns :
								   trigger->then_ns;

	end_settling(maker, firing->ns);
	run.dump = (struct d9__dump){
		.asked_ns = firing->ns,
		.last_ns = trigger->last_ns,
		.by = "trigger",
		.complete = true,
	};
	if (!run.dump.last_ns)
		run.dump.last_ns = 1; /* 0 is all that there is */
	d9__dump_name(&run.dump);
	run.close_ns = firing->ns + trigger->then_ns;
	run.alone_ns = firing->ns + every_ns;
	run.recent_ns[run.n_dumps++ % D9__TRIGGER_MOST] = firing->ns;
	run.is_open = true;
	d9__dump_manifest_begin(&run.manifest, trigger, firing->ns, run.suppressed);
	run.manifest.flight = maker->flight;
	d9__dump_manifest_add(&run.manifest, trigger, firing->ns, firing->value);
	run.suppressed = 0;
	d9__note(D9_LOG_INFO, "trigger %s fired: dump %s", trigger->name, run.dump.id);
	write_event(firing);
	begin_writing(maker, firing->ns);
	write_manifest(maker, false);
}

void d9__trigger_dump_fired(const struct d9__trigger_firing *firing,
			    const struct d9__dump_maker *maker)
{
	const struct d9__trigger *trigger = firing->trigger;

	if (run.dump.id[0] && firing->ns < run.alone_ns) {
		d9__dump_manifest_add(&run.manifest, trigger, firing->ns, firing->value);
		write_event(firing);
		/* Behind the window it is written already. */
		if (!run.is_open && !run.is_unsettled)
			write_manifest(maker, true);
		return;
	}
	if (in_the_last_hour(firing->ns) >= trigger->at_most) {
		if (!run.suppressed++)
			d9__note(D9_LOG_WARNING, "trigger %s fired, and there were %u dumps in the "
				 "last hour: none is made",
				 trigger->name, trigger->at_most);
		return;
	}
	begin_dump(firing, maker);
}

static void close_dump(const struct d9__dump_maker *maker, uint64_t now_ns)
{
	/* The last chance of one that could not be written so far. */
	if (run.dump.err && !run.job)
		begin_writing(maker, now_ns);
	run.is_open = false;
	run.dump.to_ns = run.close_ns < now_ns ? run.close_ns : now_ns;
	if (run.job) {
		d9__dump_end(run.job, maker);
		run.job = NULL;
		run.manifest.written = true;
	} else if (!maker->flight) {
		run.dump.complete = !run.loss_ns || run.loss_ns < d9__dump_from(&run.dump);
	}
	settle(maker, now_ns);
}

void d9__trigger_dump_lost(uint64_t now_ns)
{
	run.loss_ns = now_ns;
}

void d9__trigger_dump_go_on(const struct d9__dump_maker *maker, uint64_t now_ns)
{
	if (run.is_open && now_ns >= run.close_ns)
		close_dump(maker, now_ns);
	else if (run.job)
		d9__dump_go_on(run.job, maker);
	else if (run.is_open && run.dump.err && now_ns >= run.retry_ns)
		begin_writing(maker, now_ns);
	else if (run.is_unsettled && now_ns >= run.retry_ns)
		settle(maker, now_ns);
}

uint64_t d9__trigger_dump_period_ns(void)
{
	return run.is_open ? D9__TRIGGER_WHILE_NS : run.is_unsettled ? RETRY_NS : UINT64_MAX;
}

void d9__trigger_dump_end(const struct d9__dump_maker *maker, uint64_t now_ns)
{
	if (run.is_open)
		close_dump(maker, now_ns);
	end_settling(maker, now_ns);
	run.dump.id[0] = '\0';
}

void d9__trigger_dump_fork_child(void)
{
	memset(&run, 0, sizeof(run));
}
