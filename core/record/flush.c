/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One tick: anchor; full chunks; once a second prefixes of quiet threads, losses, health; side
 * rings; sources; metadata and modules that changed; rotation; control words.
 *
 * How long after the last one is a matter of pace.h, and so is what is done between two of them: a
 * look at open calls, and sources that are asked more often.  Without events for a while, sources
 * rest and nothing is written, health included: a process at rest is woken once a second and
 * touches no disk.  The first events after that are noticed at the next tick, or as soon as some
 * chunks are full.
 *
 * In flight mode a tick takes the anchor and the samples, and leaves the chunks alone.
 */
#include "config.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <dial9/error.h>

#include "base/descriptors.h"
#include "base/mapped.h"
#include "base/options.h"
#include "base/sandbox.h"
#include "base/sanitized.h"
#include "base/test_point.h"
#include "base/thread.h"
#include "base/time.h"
#include "drain/dead_peers.h"
#include "drain/description.h"
#include "drain/drain.h"
#include "drain/flight.h"
#include "drain/health.h"
#include "drain/side_event.h"
#include "record/burns.h"
#include "record/dump_request.h"
#include "record/flush.h"
#include "record/flush_self.h"
#include "record/flush_wait.h"
#include "record/jit_copy.h"
#include "record/last_thread.h"
#include "record/open_calls.h"
#include "record/pace.h"
#include "record/process_state.h"
#include "record/requests.h"
#include "record/sampling.h"
#include "record/source.h"
#include "record/system_facts.h"
#include "record/triggers.h"
#include "record/usage.h"
#include "ring/chunk.h"
#include "ring/clock.h"
#include "ring/gate.h"
#include "ring/note.h"
#include "ring/ring_file.h"
#include "ring/slot.h"
#include "segment/dump_tasks.h"
#include "segment/metadata.h"
#include "segment/modules.h"
#include "segment/note_event.h"

#define ATTACHING    (2 * D9__MS_NS) /* more than it takes */
#define STACK_BYTES  (256u << 10)
#define SPARE_CHUNKS 4
#define DISABLED_OWN UINT32_MAX
#define HAND_OVER_TRIES 500 /* of 1 ms */

struct d9__flush d9__flush = { .state = D9_RECORDER_STOPPED };

struct d9__flush_self d9__flush_self;

static struct d9__flush_self *const self = &d9__flush_self;

/* ---- manners ---- */

/*
 * Root, working directory and umask are the program's alone: setns() of a mount namespace refuses who shares them
 * with another thread.  Ours stay what they were at the start, and no directory is held busy.
 */
static void leave_file_system(void)
{
	if (!unshare(CLONE_FS) && chdir("/"))
		return; /* stays where it is, which does no harm */
}

static void isolate_thread(void)
{
	int ring = d9__ring.fd, moved;

	leave_file_system();
	moved = d9__descriptors_take(ring);
	if (moved >= 0)
		d9__ring_adopt_fd(moved);
	d9__flush.ring_fd = moved >= 0 ? ring : -1;
	/* release: the ring's descriptor in the program's table is not needed any more */
	atomic_store_explicit(&d9__flush.moved, 1, memory_order_release);
}

/*
 * Give way to the program, but not in the first second: one that ends sooner waits for what this
 * thread has to do, and on a busy machine a thread that yields takes its time.
 */
static void step_back(void)
{
	id_t id = (id_t)syscall(SYS_gettid);

	if (self->stepped_back)
		return;
	self->nice_before = getpriority(PRIO_PROCESS, id);
	if (self->nice_before < 10)
		setpriority(PRIO_PROCESS, id, 10);
	self->stepped_back = true;
}

/* The program waits for the end: where the system lets this thread, it gives way no longer. */
static void step_forward(void)
{
	if (self->stepped_back && self->nice_before < 10)
		setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), self->nice_before);
}

/* ---- state ---- */

static void update_state(void)
{
	bool on = d9__gate_bits() != 0;

	/* In flight mode it keeps what it records, whether or not a directory can be had. */
	d9__flush_set_state(self->writer.retry_ns && !self->flight ? D9_RECORDER_PAUSED :
		  !on ? D9_RECORDER_DISABLED :
		  self->flight ? D9_RECORDER_FLIGHT : D9_RECORDER_RECORDING);
}

bool d9__flush_may_pass(int err)
{
	return err == -ENOSPC || err == -EDQUOT;
}

/* The start failed: said once, and nothing is tried again. */
static bool is_stillborn(void)
{
	int err = atomic_load_explicit(&d9__flush.open_result, memory_order_relaxed);

	if (self->dormant || !d9__flush.awaited || !err || d9__flush_may_pass(err))
		return false;
	d9__log(D9_LOG_ERROR, "cannot open %s: %s; not recording", d9__flush.trace_dir, d9_strerror(err));
	return true;
}

/* ---- a tick ---- */

static void refresh_segment(uint64_t now_ns)
{
	if (d9__writer_refresh(&self->writer, now_ns))
		d9__drain_failed(&self->drain);
}

/* Where tasks began may be among what was lost. */
static void announce_again(uint64_t now_ns)
{
	struct d9__dump_tasks all = { .failed = false };
	uint64_t lost = d9__health_lost();

	if (lost == self->lost_before || now_ns < self->announced_ns + D9__SECOND_NS)
		return;
	self->lost_before = lost;
	self->announced_ns = now_ns;
	d9__dump_tasks_list(&all, 0);
	d9__flush_announce(&all, now_ns, now_ns);
	d9__dump_tasks_release(&all);
}

static void take_prefixes(uint64_t now_ns, bool active)
{
	uint64_t every_ns = self->writer.ret.rotation_ns / 4;

	if (every_ns > D9__SECOND_NS)
		every_ns = D9__SECOND_NS;
	if (now_ns - self->prefixes_ns < every_ns)
		return;
	self->prefixes_ns = now_ns;
	d9__drain_prefixes(&self->drain, now_ns, active ? every_ns : 0);
}

/* Only beside a segment that holds events: without any, the copy would be all that is left in the directory. */
static void copy_jit_map(void)
{
	if (self->writer.has_dir && self->writer.seg.open && self->writer.seg.has.real)
		d9__jit_copy_refresh(&self->jit, self->writer.ns.dir_fd);
}

static void note_health(uint64_t now_ns)
{
	d9__health_event(&self->note, &self->writer, self->state, now_ns);
	if (d9__writer_note(&self->writer, &self->note, false, now_ns))
		self->writer.seg.complete = false;
}

static void look_at_pressure(uint64_t now_ns)
{
	uint64_t ran_ns, waited_ns;
	bool on = d9__stopped_schedule(&self->stopped, &ran_ns, &waited_ns)
			  ? d9__pressure_judge(&self->pressure, now_ns, ran_ns, waited_ns)
			  : d9__pressure_unknown(&self->pressure);

	d9__writer_press(&self->writer, on, now_ns);
}

static void once_a_second(uint64_t now_ns, bool active)
{
	struct d9__slot *own;

	if (now_ns - self->second_ns < D9__SECOND_NS)
		return;
	self->second_ns = now_ns;
	step_back();
	d9__notes_settle(false);
	if (++self->seconds % 10 == 0)
		d9__slot_reclaim_dead(now_ns);
	if (active && d9__usage_is_on() && (own = d9__slot_self()))
		d9__process_state_write(&self->process, own, now_ns);
	if (self->flight)
		return;
	look_at_pressure(now_ns);
	d9__drain_losses(&self->drain, now_ns);
	if (active)
		copy_jit_map();
	if (active && d9__gate_bits())
		note_health(now_ns);
}

/* Whether the process used a tenth of a processor since the latest tick: threads compute that
 * record nothing. */
static bool computes(uint64_t now_ns)
{
	uint64_t before_ns = self->used_ns, wall_ns = now_ns - self->used_at_ns;
	struct timespec used;

	if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used))
		return false;
	self->used_ns = d9__timespec_ns(&used);
	self->used_at_ns = now_ns;
	return self->used_ns - before_ns > wall_ns / 10;
}

/* Sources speak while the program does, or computes, and once more when it falls silent. */
static void run_sources(uint64_t now_ns, bool active)
{
	struct d9__slot *slot;

	self->source_ns = UINT64_MAX;
	if ((!active && !computes(now_ns)) || (d9__flush.early && !self->heard) ||
	    !d9__gate_open(D9__GATE_LOOP | D9__GATE_EVENT))
		return;
	slot = d9__slot_self();
	if (slot)
		self->source_ns = d9__sources_run(slot, now_ns, D9__PACE_TICK_NS);
	/* A tick that comes anyway is enough. */
	if (!active)
		self->source_ns = UINT64_MAX;
}

/* Callbacks that have not returned: they write nothing, so this thread tells of them. */
static void look_at_open_calls(uint64_t now_ns)
{
	struct d9__slot *slot;

	if (!d9__gate_open(D9__GATE_LOOP)) {
		self->open.n = 0;
		self->open.youngest_ns = self->open.age_ns = UINT64_MAX;
	} else {
		d9__open_calls_look(&self->open, now_ns);
	}
	if (self->open.n)
		d9__open_call_run();
	if (self->open.n && (slot = d9__slot_self()))
		d9__open_calls_tell(&self->open, slot, now_ns);
}

static void publish_health(int state, uint64_t now_ns)
{
	struct d9__ring_health *health = d9__health_begin(&self->writer, state, now_ns);

	d9__open_calls_publish(&self->open, health);
	d9__health_end(health);
}

/* Between ticks: a call that is open since the look before may hang, and some sources are due. */
static void look(uint64_t now_ns)
{
	look_at_open_calls(now_ns);
	d9__pace_open_calls(&self->pace, self->open.age_ns, false);
	run_sources(now_ns, d9__pace_active(&self->pace, now_ns));
	/* If the process is killed in such a call, recovery tells of it up to here. */
	if (self->open.n)
		publish_health(self->state, now_ns);
	self->looked_ns = d9__clock_mono_ns();
}

/* Write events from side rings and losses from counters into chunks, because a dump takes only those. */
static void fly(uint64_t now_ns, bool active)
{
	struct d9__slot *own = d9__slot_self();
	uint64_t loss_ns = 0;

	if (own) {
		d9__side_take_all(own);
		loss_ns = d9__flight_losses(&self->drain, own, now_ns);
	}
	if (loss_ns)
		self->loss_ns = loss_ns;
	d9__writer_follow_user(&self->writer);
	d9__modules_scan();
	once_a_second(now_ns, active);
}

static uint32_t own_slot(void)
{
	struct d9__slot *slot = d9__self.slot;

	return (uintptr_t)slot < D9__SLOT_SENTINELS ? DISABLED_OWN : d9__slot_index(slot);
}

static void choose_period(uint64_t now_ns)
{
	bool active = d9__pace_active(&self->pace, now_ns);
	uint64_t triggers_ns = d9__triggers_period_ns(&self->open, active);
	uint64_t samples_ns = d9__flush_wait_most(active);

	d9__pace_choose(&self->pace, now_ns, self->writer.ret.rotation_ns);
	if (self->pace.period_ns > triggers_ns)
		self->pace.period_ns = triggers_ns;
	if (self->pace.period_ns > samples_ns)
		self->pace.period_ns = samples_ns;
}

/* True if the ring was not emptied and another tick should follow at once. */
static bool tick(void)
{
	uint64_t now_ns, events;
	bool active, wanted, worked = false;

	d9__clock_tick(NULL);
	now_ns = d9__clock_mono_ns();
	events = d9__drain_activity(&self->drain, own_slot()) + d9__side_activity();
	self->heard |= events != 0;
	d9__pace_events(&self->pace, now_ns, events);
	active = d9__pace_active(&self->pace, now_ns);
	run_sources(now_ns, active);
	look_at_open_calls(now_ns);
	d9__pace_open_calls(&self->pace, self->open.age_ns, self->open.youngest_ns != UINT64_MAX);
	if (d9__gate_open(D9__GATE_LOOP))
		d9__burns_look(&self->open, now_ns);
	/* A callback that hangs is what its owner wants to know of: the recorder goes on saying that it lives. */
	active |= self->open.n != 0;
	d9__flush_grow_ring(now_ns);
	d9__slot_seal_idle(SPARE_CHUNKS);
	if (self->writer.retry_ns && !self->flight)
		d9__drain_paused(&self->drain);
	/* A process that records nothing makes no directory. */
	wanted = !self->dormant || d9__gate_bits();
	if (wanted && self->flight) {
		self->dormant = false;
		fly(now_ns, active);
	} else if (wanted && d9__flush_have_place(now_ns)) {
		self->dormant = false;
		d9__flush_move_side_rings();
		worked = d9__drain_full(&self->drain, now_ns);
		take_prefixes(now_ns, active);
		once_a_second(now_ns, active);
		announce_again(now_ns);
		refresh_segment(now_ns);
		d9__flush_commit(now_ns);
		if (d9__writer_aged(&self->writer, now_ns))
			d9__flush_rotate(now_ns);
	}
	d9__requests_look_at_triggers(now_ns);
	d9__requests_follow(now_ns);
	d9__ticks_run();
	d9__last_thread_look();
	d9__description_refresh(&self->description, &self->note);
	d9__dead_peers_next(&self->dead, &self->writer, d9__flush.trace_dir, now_ns);
	update_state();
	d9__writer_publish(&self->writer);
	publish_health(self->state, now_ns);
	choose_period(now_ns);
	self->looked_ns = d9__clock_mono_ns();
	self->tick_ns = self->looked_ns + self->pace.period_ns;
	return worked && d9__chunk_full_count() >= 16 && !self->writer.retry_ns;
}

/* ---- the end ---- */

/* The last chance for what a full disk kept back; a directory that could not be made is given up. */
static bool have_place_at_last(uint64_t now_ns)
{
	if (d9__flush_have_place(now_ns))
		return true;
	if (!self->writer.has_dir)
		return false;
	d9__flush_retry_now(now_ns);
	return d9__flush_have_place(now_ns);
}

/* A thread that is stopped while it hands a chunk over gets a turn to go on; all it had recorded before is in there. */
static void drain_rest(uint64_t now_ns)
{
	const struct timespec pause = { 0, D9__MS_NS };

	if (!have_place_at_last(now_ns))
		return;
	for (int tries = 0; tries < HAND_OVER_TRIES && !self->writer.retry_ns; tries++) {
		while (d9__drain_full(&self->drain, now_ns) && !self->writer.retry_ns)
			;
		if (!self->writer.retry_ns)
			d9__flush_drain(now_ns);
		if (!d9__chunk_any_sealed())
			break;
		nanosleep(&pause, NULL);
	}
}

static bool is_left(void)
{
	return self->writer.retry_ns || (!self->stillborn && d9__chunk_any_sealed());
}

/*
 * Leave in the ring what could not be written, as if the process had been killed, for a recovery that can write.
 * A later recorder that uses the ring writes the events of chunks that are open still; of sealed ones it has only
 * the count of what was lost.
 */
static void leave_unwritten(void)
{
	if (!self->drain.last)
		d9__drain_give_up(&self->drain);
	d9__description_refresh(&self->description, &self->note);
	if (self->heard)
		d9__dead_peers_prune(); /* of one that is started again and again, not every ring is kept */
	atomic_store_explicit(&d9__flush.unwritten, self->heard, memory_order_relaxed);
}

/* Sample CPU time and queues once more, because use since the last sample counts; no segment is begun for that alone. */
static void sample_at_last(uint64_t now_ns)
{
	bool on = atomic_load_explicit(&d9__flush.on_to_the_end, memory_order_relaxed) && !self->writer.retry_ns;
	struct d9__slot *own = on && self->writer.seg.open ? d9__slot_self() : NULL;

	if (!own)
		return;
	d9__usage_sample(own, now_ns);
	if (d9__usage_is_wanted())
		d9__process_state_write_last(&self->process, own, now_ns);
	d9__sources_end(own, now_ns);
	d9__slot_give_back();
	drain_rest(now_ns);
}

static void finish(void)
{
	uint64_t now_ns = d9__clock_mono_ns();
	bool left;

	d9__flush_set_state(D9_RECORDER_STOPPING);
	d9__note(D9_LOG_INFO, "stopping");
	step_forward();
	self->writer.ending = true;
	self->drain.last = atomic_load_explicit(&d9__flush.last, memory_order_relaxed);
	/* Metadata that changed since the last tick: what a hook could not do, for example. */
	d9__ticks_run();
	d9__requests_settle_triggers();
	/* Also of a recorder that is stopped before its first tick, which would have taken a slot. */
	if (d9__side_exists())
		d9__side_take_all(d9__slot_self());
	if (atomic_load_explicit(&d9__flush.on_to_the_end, memory_order_relaxed))
		d9__open_calls_tell_inner(&self->open);
	d9__slot_give_back();
	/* Never enabled: no directory for nothing, and no look at those of dead peers. */
	self->heard |= d9__drain_activity(&self->drain, UINT32_MAX) != 0;
	d9__requests_serve_dumps();
	if (self->flight) {
		d9__requests_end_triggers(now_ns);
		d9__drain_forget(&self->drain);
	} else if (!self->stillborn && (!self->dormant || self->heard)) {
		drain_rest(now_ns);
	}
	/* Once more, in a new segment: who ends does not wait. */
	if (self->writer.retry_ns && !self->flight)
		drain_rest(now_ns);
	sample_at_last(now_ns);
	if (!self->stillborn && !self->dormant && !self->flight && !self->writer.retry_ns) {
		self->announced_ns = 0;
		announce_again(now_ns);
		refresh_segment(now_ns);
	}
	/* Why something is missing, if it is, and nothing was written since. */
	if (self->writer.seg.open && self->writer.error_ns)
		note_health(now_ns);
	copy_jit_map();
	d9__notes_settle(true);
	if (!self->writer.retry_ns)
		d9__flush_commit_with(true, now_ns);
	left = is_left() && !self->flight;
	d9__writer_rotate(&self->writer, now_ns);
	/* The segments of a dump are sealed now. */
	if (!self->flight)
		d9__requests_end_triggers(now_ns);
	if (left)
		leave_unwritten();
	d9__dead_peers_end(&self->dead, &self->writer, d9__flush.trace_dir, now_ns);
	d9__writer_close(&self->writer, now_ns);
	if (left && self->writer.retry_ns && self->heard)
		atomic_store_explicit(&d9__flush.end_err, d9__flush_last_error(), memory_order_relaxed);
	publish_health(D9_RECORDER_STOPPED, now_ns);
	d9__drain_release(&self->drain);
	d9__builder_release(&self->note);
	d9__open_calls_release(&self->open);
	d9__process_state_end(&self->process);
	d9__stopped_end(&self->stopped);
	if (d9__descriptors_give_up_ring(d9__ring.path[0]))
		d9__ring_adopt_fd(-1);
}

/* When the next tick is due. */
static uint64_t tick_due_ns(void)
{
	uint64_t due = atomic_load_explicit(&d9__sampling.due_ns, memory_order_relaxed);

	return due && due < self->tick_ns ? due : self->tick_ns;
}

/* From |now_ns| to the next tick, or to what is to be done before it. */
static uint64_t wait_ns(uint64_t now_ns)
{
	uint64_t due_ns = tick_due_ns();

	if (self->pace.look_ns && self->looked_ns + self->pace.look_ns < due_ns)
		due_ns = self->looked_ns + self->pace.look_ns;
	if (self->source_ns < due_ns)
		due_ns = self->source_ns;
	return due_ns > now_ns ? due_ns - now_ns : 0;
}

/* Before the program has a loop, or while nothing is recorded, it is not told. */
static void tell_stop(const struct d9__stop *stop)
{
	struct d9__slot *own;

	if ((d9__flush.early && !self->heard) || !d9__gate_open(D9__GATE_LOOP | D9__GATE_EVENT))
		return;
	own = d9__slot_self();
	if (own)
		d9__stopped_write(own, stop);
}

static void wait_once(uint32_t seen)
{
	uint64_t begun_ns = d9__clock_mono_ns();
	uint64_t due_ns = begun_ns + d9__flush_wait_long(seen, wait_ns(begun_ns));
	struct d9__stop stop;

	if (d9__stopped_look(&self->stopped, &self->process, begun_ns, due_ns, &stop))
		tell_stop(&stop);
}

/* Until a tick is due, or wanted since |seen|. */
static void wait_for_tick(uint32_t seen)
{
	uint64_t now_ns;

	for (;;) {
		wait_once(seen);
		now_ns = d9__clock_mono_ns();
		if (now_ns >= tick_due_ns() || d9__flush_wait_seen() != seen ||
		    atomic_load_explicit(&d9__flush.stop, memory_order_acquire))
			return;
		look(now_ns);
	}
}

/* ---- the thread ---- */

static void become_known(void)
{
	atomic_store_explicit(&d9__thread_flush, (uintptr_t)pthread_self(), memory_order_relaxed);
	atomic_store_explicit(&d9__flush.tid, (int)syscall(SYS_gettid), memory_order_relaxed);
}

/* True: this thread ends now, and the next one finds all as it is. */
static bool steps_aside(void)
{
	int asked = D9__ASIDE_ASKED;

	if (atomic_load_explicit(&d9__flush.aside, memory_order_acquire) != D9__ASIDE_ASKED)
		return false;
	step_forward();
	self->stepped_back = false;
	d9__slot_give_back();
	if (!d9__descriptors_send())
		return false;
	/* Not after the end, when the program's next thread may have it. */
	atomic_store_explicit(&d9__thread_flush, 0, memory_order_relaxed);
	/* acq_rel: pairs with the acquire of who waits, and the next thread's start; fails if that has given up */
	if (atomic_compare_exchange_strong_explicit(&d9__flush.aside, &asked, D9__ASIDE_GONE, memory_order_acq_rel,
						    memory_order_relaxed)) {
		syscall(SYS_futex, &d9__flush.aside, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
		return true;
	}
	become_known();
	return false;
}

static void *run(void)
{
	bool again = false;
	uint32_t seen;

	while (!self->stillborn && !atomic_load_explicit(&d9__flush.stop, memory_order_acquire)) {
		seen = d9__flush_wait_seen();
		if (!again)
			wait_for_tick(seen);
		D9__TEST_POINT(TICK);
		if (steps_aside())
			return NULL;
		again = tick();
	}
	finish();
	d9__flush_set_state(D9_RECORDER_STOPPED);
	/* release: pairs with the acquire of the thread that waits for our end */
	atomic_store_explicit(&d9__flush.ended, 1, memory_order_release);
	syscall(SYS_futex, &d9__flush.ended, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
	return NULL;
}

static void *flush_main(void *arg)
{
	uint32_t seen;

	(void)arg;
	become_known();
	isolate_thread();
	self->stepped_back = self->heard = false;
	self->flight = d9__flush.flight;
	self->sealed = d9__chunk_sealed_count();
	self->loss_ns = self->announced_ns = 0;
	self->lost_before = d9__health_lost(); /* by recorders before this one */
	self->jit = (struct d9__jit_copy){ 0 };
	self->process = (struct d9__process_state){ .told_ns = 0 };
	self->log = (struct d9__note_teller){ .next = d9__notes_told() };
	self->second_ns = d9__clock_mono_ns();
	d9__pace_begin(&self->pace, self->second_ns);
	self->source_ns = UINT64_MAX;
	d9__writer_init(&self->writer, d9__flush.options, d9__flush.boot_id, &d9__flush.counters);
	self->pressure = (struct d9__pressure) {
		.mode = (enum d9__pressure_mode)d9__options_number(d9__flush.options,
								   D9__OPTION_PRESSURE),
	};
	d9__writer_press(&self->writer, !self->flight && d9__pressure_unknown(&self->pressure),
			 self->second_ns);
	self->writer.lead_in = self->flight ? NULL : &d9__living_tasks_lead_in; /* dumps tell what is in them */
	self->dormant = d9__flush.start_disabled;
	if (!self->dormant)
		d9__flush_open_directory();
	self->stillborn = is_stillborn();
	d9__drain_init(&self->drain, &self->writer);
	/* Until here who starts the recorder waits. */
	seen = d9__flush_wait_seen();
	update_state();
	/*
	 * Whoever attaches the first loop redirects calls now, and for that wants the lock of the address
	 * space and the linker's, as what follows here does: the two would wait for each other in turns.
	 */
	d9__flush_wait(seen, ATTACHING);
	/* The first event asks for it anyway; in a burst there is no time for that. */
	if (!self->dormant)
		d9__ring_grow_to(D9__CHUNKS_FIRST + 1);
	d9__modules_scan();
	d9__system_facts_tell();
	/* A process that is killed now is described by this; what follows takes some hundred us. */
	d9__description_refresh(&self->description, &self->note);
	d9__open_calls_begin(&self->open);
	d9__process_state_begin(&self->process);
	d9__dead_peers_begin(&self->dead, d9__flush_wants_directory() && self->writer.collect);
	publish_health(self->state, self->second_ns);
	d9__stopped_begin(&self->stopped);
	return run();
}

/* Descriptors of the thread before are closed: open anew all that has a name. */
static void open_again(void)
{
	uint64_t now_ns = d9__clock_mono_ns();

	d9__open_calls_release(&self->open);
	d9__process_state_end(&self->process);
	if (self->writer.seg.open) {
		d9__writer_abandon(&self->writer, -EBADF, now_ns);
		d9__drain_failed(&self->drain);
	}
	if (self->writer.has_dir)
		d9__namespace_close(&self->writer.ns);
	self->writer.has_dir = false;
	self->writer.retry_ns = now_ns;
	d9__ring_open_again();
	d9__open_calls_begin(&self->open);
	d9__process_state_begin(&self->process);
	d9__stopped_begin(&self->stopped);
}

static void *flush_again(void *arg)
{
	int err;

	(void)arg;
	become_known();
	leave_file_system();
	err = d9__descriptors_receive();
	if (err == -ENOENT)
		d9__ring_adopt_fd(-1);
	/* Before it is looked whether a descriptor of ours is left over. */
	if (!err)
		d9__stopped_begin(&self->stopped);
	/* release: as in isolate_thread() */
	atomic_store_explicit(&d9__flush.moved, err && err != -ENOENT ? err : 1, memory_order_release);
	if (err && err != -ENOENT)
		return NULL;
	if (err)
		open_again();
	return run();
}

/* By who starts it: the C library allocates. */
static void find_stack(pthread_t thread)
{
	pthread_attr_t attr;
	void *stack = NULL;

	if (pthread_getattr_np(thread, &attr))
		return;
	if (!pthread_attr_getstack(&attr, &stack, &d9__flush.stack_bytes)) {
		d9__flush.stack = (uintptr_t)stack;
		d9__mapped_unlock(stack, d9__flush.stack_bytes);
	}
	pthread_attr_destroy(&attr);
}

static int start(pthread_t *thread, void *(*fn)(void *))
{
	const struct timespec pause = { 0, 20000 };
	int err;

	atomic_store_explicit(&d9__flush.moved, 0, memory_order_relaxed);
	err = d9__thread_start(thread, "dial9-flush", fn, D9__SANITIZED ? 0 : STACK_BYTES);
	if (!err)
		find_stack(*thread);
	/* A few system calls on the other thread; the program must not see a descriptor of ours. */
	while (!err && !atomic_load_explicit(&d9__flush.moved, memory_order_acquire))
		nanosleep(&pause, NULL);
	return err;
}

int d9__flush_start(pthread_t *thread)
{
	/* Here, where it can be told of: the thread could only go without. */
	int err = d9__drain_reserve(&self->drain);

	if (err)
		return err;
	d9__dump_requests_clear();
	d9__chunk_set_waker(d9__flush_wake_once);
	d9__chunk_set_recycling(d9__flush.flight);
	d9__ring_let_threads_grow(true);
	atomic_store_explicit(&d9__ring.header->flight, d9__flush.flight, memory_order_relaxed);
	err = start(thread, flush_main);
	if (!err && d9__flush.ring_fd >= 0)
		close(d9__flush.ring_fd);
	return err;
}

int d9__flush_start_again(pthread_t *thread)
{
	int err;

	atomic_store_explicit(&d9__flush.aside, D9__ASIDE_NO, memory_order_relaxed);
	err = start(thread, flush_again);
	if (!err && (err = atomic_load_explicit(&d9__flush.moved, memory_order_relaxed)) < 0)
		pthread_join(*thread, NULL);
	if (err < 0)
		atomic_store_explicit(&d9__flush.aside, D9__ASIDE_GONE, memory_order_relaxed);
	return err < 0 ? err : 0;
}

void d9__flush_fork_child(void)
{
	if (!d9__sandbox_is_shut() && d9__descriptors_fork_child()) {
		if ((self->writer.seg.open || self->writer.seg.unfinished) && self->writer.seg.fd >= 0)
			close(self->writer.seg.fd);
		if (self->writer.has_dir) {
			close(self->writer.ns.lock_fd);
			close(self->writer.ns.dir_fd);
			close(self->writer.ns.parent_fd);
		}
		d9__open_calls_release(&self->open);
		d9__process_state_end(&self->process);
		d9__stopped_end(&self->stopped);
	}
	/* Memory of the parent's thread is in an unknown state: forgotten, not freed. */
	memset(self, 0, sizeof(*self));
	d9__dump_requests_fork_child();
	d9__triggers_fork_child();
	d9__flush_wait_fork_child();
	memset(&d9__flush, 0, sizeof(d9__flush));
	atomic_store_explicit(&d9__thread_flush, 0, memory_order_relaxed);
	atomic_store_explicit(&d9__flush.state, D9_RECORDER_STOPPED, memory_order_relaxed);
}
