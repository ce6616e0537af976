/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/hot.h"
#include "analyze/stalls.h"
#include "analyze/timeline.h"
#include "base/array.h"
#include "base/u64.h"

/* A task that became ready so long before or after its worker woke did so with that. */
#define ROUND_SLACK_NS D9__MS_NS

/* A wait of this length was a sleep: to look at descriptors takes less. */
#define SLEPT_NS (20 * D9__US_NS)

/* CPU times are written in steps of so much. */
#define CPU_STEP_NS 4096

/* Different callbacks told apart in d9__worker_between(). */
#define BETWEEN_CALLBACKS 16

void d9__timeline_release(struct d9__timeline *timeline)
{
	for (size_t i = 0; i < timeline->n; i++) {
		struct d9__worker *worker = timeline->items[i];

		d9__histogram_release(&worker->calls);
		d9__histogram_release(&worker->own_calls);
		d9__histogram_release(&worker->waits);
		d9__hot_free(worker->beside.hot);
		free(worker->stale);
		d9__returns_release(&worker->returns);
		d9__outside_calls_release(&worker->outside_calls);
		d9__time_period_release(&worker->period);
		d9__replay_release(&worker->replay);
		for (size_t j = 0; j < D9__WORKER_STALLS; j++)
			d9__stall_unref(worker->stalls[j]);
		free(worker);
	}
	free(timeline->items);
	d9__table_release(&timeline->by_id);
	timeline->n = 0;
	timeline->items = NULL;
}

static struct d9__worker *add_worker(struct d9__timeline *timeline, uint64_t id)
{
	struct d9__worker *worker = calloc(1, sizeof(*worker));

	if (!worker || !d9__array_grow(timeline->items, timeline->n) ||
	    d9__table_add(&timeline->by_id, id, worker)) {
		free(worker);
		return NULL;
	}
	worker->id = id;
	worker->beside.location = "";
	worker->number = (unsigned)timeline->n;
	timeline->items[timeline->n++] = worker;
	return worker;
}

struct d9__worker *d9__timeline_worker(struct d9__timeline *timeline, uint64_t id)
{
	struct d9__worker *worker = d9__table_find(&timeline->by_id, id);

	if (!worker && timeline->n == D9__WORKERS_MAX)
		return timeline->items[D9__WORKERS_MAX - 1];
	return worker ? worker : add_worker(timeline, id);
}

/* Inside a library's callback, the user's function if most of the time went there. */
static const struct d9__callback *named_by(const struct d9__piece *piece)
{
	const struct d9__callback *callback = piece->task->callback;

	if (callback->internal && 2 * piece->inner.ns >= piece->end_ns - piece->start_ns &&
	    piece->inner.callback)
		return piece->inner.callback;
	return callback;
}

/*
 * Of calls before the first wait, or where an unpark was lost, the loop's own time tells nothing,
 * either.
 */
static void stayed(const struct d9__worker *worker, struct d9__callback *callback, uint64_t ns)
{
	if (worker->unpark.valid)
		d9__callback_stayed(callback, worker->number, ns);
}

void d9__piece_leave_users(struct d9__worker *worker, uint64_t ns)
{
	struct d9__piece *piece = &worker->piece;
	uint64_t stay_ns = ns - piece->users.since_ns;

	piece->users.ns += stay_ns;
	piece->users.told_ns += piece->told_ns - piece->users.told_since_ns;
	stayed(worker, piece->users.callback, stay_ns);
}

static int end_piece(struct d9__timeline *timeline, struct d9__worker *worker, uint64_t ns,
		     bool open_ended)
{
	struct d9__piece *piece = &worker->piece;
	size_t i = worker->n_recent++ % D9__WORKER_RECENT;

	piece->open = false;
	timeline->n_open--;
	timeline->open_sum -= worker->number;
	piece->task->running--;
	piece->open_ended = open_ended;
	piece->end_ns = ns;
	if (piece->users.open)
		d9__piece_leave_users(worker, ns);
	stayed(worker, piece->task->callback,
	       ns - piece->start_ns - d9__u64_min(ns - piece->start_ns, piece->users.ns));
	worker->open_ended += open_ended;
	worker->poll_ns += ns - piece->start_ns;
	worker->recent[i].start_ns = piece->start_ns;
	worker->recent[i].end_ns = ns;
	worker->recent[i].task = piece->task->id;
	worker->recent[i].taken_ns = 0;
	worker->recent[i].excused_ns = d9__kernel_backlog_call(&worker->natural, ns - piece->start_ns);
	worker->recent[i].callback = named_by(piece);
	worker->recent[i].depth = piece->task->call.depth;
	return timeline->on_piece ? timeline->on_piece(timeline->context, worker, piece) : 0;
}

const struct d9__worker *d9__timeline_only_open(const struct d9__timeline *timeline)
{
	return timeline->n_open == 1 ? timeline->items[timeline->open_sum] : NULL;
}

int d9__timeline_close(struct d9__timeline *timeline, struct d9__worker *worker, uint64_t ns)
{
	return worker->piece.open ? end_piece(timeline, worker, ns, true) : 0;
}

/* The loop called nothing from its unpark or its last call up to |ns|. */
static void end_gap(struct d9__worker *worker, uint64_t ns)
{
	uint64_t from_ns =
		worker->piece.end_ns > worker->unpark.ns ? worker->piece.end_ns : worker->unpark.ns;

	if (!worker->unpark.valid || ns <= from_ns || ns - from_ns <= worker->gap.ns)
		return;
	worker->gap.from_ns = from_ns;
	worker->gap.ns = ns - from_ns;
}

int d9__timeline_poll_start(struct d9__timeline *timeline, struct d9__worker *worker, uint64_t ns,
			    struct d9__traced_task *task, bool resumed, unsigned local_queue)
{
	int err = d9__timeline_close(timeline, worker, ns);

	end_gap(worker, ns);
	if (!resumed && !task->callback->each_round)
		d9__returns_call(&worker->returns, task->reason, task->next_delay_ns);
	d9__time_period_begin(&worker->period);
	if (worker->piece.task)
		worker->piece.task->pieces--;
	worker->piece = (struct d9__piece) { .number = ++timeline->pieces,
					     .run = task->next_run,
					     .delay_ns = task->next_delay_ns,
					     .task = task,
					     .start_ns = ns,
					     .open = true,
					     .resumed = resumed };
	if (resumed && task->call.users_open) {
		worker->piece.users.open = task->call.users_open;
		worker->piece.users.since_ns = ns;
		worker->piece.users.callback = task->call.user;
		worker->piece.users.run = task->call.user_run;
	}
	timeline->n_open++;
	timeline->open_sum += worker->number;
	task->running++;
	task->pieces++;
	worker->polls++;
	worker->resumptions += resumed;
	worker->local_sum += local_queue;
	if (local_queue > worker->local_max)
		worker->local_max = local_queue;
	d9__starved_call(&worker->starved, task, ns, local_queue);
	return err;
}

/*
 * Instead of what ran in the loop that |task|'s call ran, the call itself is remembered, and that the loop's waits were
 * over for |taken_ns| before the thread had a CPU.  How deep loops lay in it.
 */
static unsigned swallow(struct d9__worker *worker, const struct d9__traced_task *task, uint64_t from_ns, uint64_t to_ns,
			uint64_t taken_ns)
{
	unsigned depth = 0;
	uint64_t n = worker->n_recent;

	for (uint64_t i = 0; i < n && i < D9__WORKER_RECENT; i++) {
		size_t at = (n - 1 - i) % D9__WORKER_RECENT;

		if (worker->recent[at].start_ns < from_ns)
			break;
		if (worker->recent[at].depth > depth)
			depth = worker->recent[at].depth;
		worker->recent[at].end_ns = worker->recent[at].start_ns;
		worker->recent[at].taken_ns = worker->recent[at].excused_ns = 0;
	}
	n = worker->n_recent++ % D9__WORKER_RECENT;
	memset(&worker->recent[n], 0, sizeof(worker->recent[n]));
	worker->recent[n].start_ns = from_ns;
	worker->recent[n].end_ns = to_ns;
	worker->recent[n].taken_ns = taken_ns < to_ns - from_ns ? taken_ns : to_ns - from_ns;
	worker->recent[n].task = task->id;
	worker->recent[n].callback = task->call.looper;
	worker->recent[n].depth = depth + 1;
	return depth + 1;
}

void d9__timeline_nested(struct d9__worker *worker, struct d9__traced_task *task, uint64_t ns)
{
	struct d9__call *call = &task->call;
	uint64_t gap_ns = ns - task->last_end_ns, told_ns, taken_ns;
	unsigned depth;

	if (call->worker != worker || ns <= task->last_end_ns)
		return;
	told_ns = worker->poll_ns - call->left.poll_ns + worker->nested_ns - call->left.nested_ns;
	worker->nested_ns += told_ns < gap_ns ? gap_ns - told_ns : 0;
	call->nested_ns += gap_ns;
	call->nested_parked_ns += worker->parked_ns - call->left.parked_ns;
	taken_ns = worker->wait_sum_ns - call->left.taken_ns;
	call->nested_taken_ns += taken_ns;
	call->nested_calls += worker->polls - call->left.polls;
	call->looper = call->users_open ? call->user : task->callback;
	depth = swallow(worker, task, task->last_end_ns, ns, taken_ns);
	if (depth > call->depth)
		call->depth = depth;
}

int d9__timeline_poll_end(struct d9__timeline *timeline, struct d9__worker *worker, uint64_t ns)
{
	return worker->piece.open ? end_piece(timeline, worker, ns, false) : 0;
}

void d9__timeline_taken(struct d9__worker *worker, uint64_t task, uint64_t taken_ns)
{
	size_t at = (worker->n_recent - 1) % D9__WORKER_RECENT;
	uint64_t whole_ns;

	worker->unpark.taken_ns += taken_ns;
	if (worker->n_recent == 0 || worker->recent[at].task != task)
		return;
	whole_ns = worker->recent[at].end_ns - worker->recent[at].start_ns;
	worker->recent[at].taken_ns = taken_ns < whole_ns ? taken_ns : whole_ns;
	worker->recent[at].excused_ns =
		d9__kernel_backlog_taken(&worker->natural, whole_ns, worker->recent[at].excused_ns,
				  worker->recent[at].taken_ns);
}

uint64_t d9__worker_busy_ns(const struct d9__worker *worker)
{
	return worker->poll_ns + worker->nested_ns;
}

/*
 * Of the |wall_ns| since the worker woke it did not sleep for |own_ns|, as readings tell: how long
 * it was asleep outside of its loop.  Where the recorder told when it had left it, that is the rest
 * of these times.  Else a thread that slept before it entered its loop again spent most of it
 * neither in callbacks, nor in prepare() and check(), nor on the CPU or ready for one; nor does one
 * that waits by a poll(2) of its own.
 */
static uint64_t slept_ns(const struct d9__worker *worker, uint64_t wall_ns, uint64_t own_ns)
{
	uint64_t inside_ns =
		d9__worker_busy_ns(worker) - worker->unpark.poll_ns + worker->unpark.sources_ns;
	uint64_t outside_ns = worker->loop_time.outside_told_ns;

	if (!worker->cpu_seen)
		return 0;
	if (outside_ns)
		return d9__u64_min(outside_ns, d9__u64_minus(wall_ns, own_ns));
	if (wall_ns < D9__MS_NS || 2 * inside_ns >= wall_ns || 2 * own_ns >= wall_ns)
		return 0;
	return wall_ns - (inside_ns > own_ns ? inside_ns : own_ns);
}

/* A worker id that goes on under another thread: what lies between belongs to neither. */
static bool is_handover(uint32_t a, uint32_t b)
{
	return a && b && a != b;
}

/*
 * Readings grow, but for what those at unparks are rounded down; what lies between those of two threads belongs to
 * neither.
 */
static void note_cpu(struct d9__worker *worker, uint64_t cpu_ns, uint32_t tid)
{
	bool same = worker->cpu.valid && !is_handover(worker->cpu.tid, tid);

	worker->cpu_seen |= cpu_ns > 0;
	if (same && cpu_ns <= worker->cpu.ns)
		return;
	if (same)
		worker->cpu_ns += cpu_ns - worker->cpu.ns;
	worker->cpu.valid = true;
	worker->cpu.ns = cpu_ns;
	worker->cpu.tid = tid;
}

/* CPU time since the worker woke; from the highest reading, as those at unparks are rounded down. */
static uint64_t grown_ns(const struct d9__worker *worker, uint64_t cpu_ns)
{
	if (!worker->cpu_seen)
		return UINT64_MAX;
	return cpu_ns > worker->unpark.cpu_high_ns ? cpu_ns - worker->unpark.cpu_high_ns : 0;
}

/* Nothing is known of how long the worker was awake. */
static void forget_period(struct d9__worker *worker)
{
	struct d9__account none = { .on_cpu_ns = 0 };

	worker->unpark.ready_ns = 0;
	d9__time_period_end(&worker->period, &none, 0, UINT64_MAX);
}

/* A wait that was too short for a sleep, up to |ns|: the loop looked at its descriptors, on the
 * CPU. */
static void account_look(struct d9__worker *worker, uint64_t ns)
{
	uint64_t look_ns = ns - worker->park.ns;

	worker->looks_ns += look_ns;
	worker->looked_ns += look_ns;
	d9__loop_time_awake(&worker->loop_time,
			    &(struct d9__loop_awake) {
				    .from_ns = worker->park.ns, .to_ns = ns, .own_ns = look_ns });
}

/* Where the time of a wait that is over went: |wait_ns| is UINT64_MAX if it was not measured. */
static void account_park(struct d9__worker *worker, uint64_t ns, uint64_t cpu_ns, uint64_t wait_ns)
{
	uint64_t left_ns = ns - worker->park.ns, ready_ns = wait_ns == UINT64_MAX ? 0 : wait_ns, used_ns = 0;

	if (ready_ns > left_ns)
		ready_ns = left_ns;
	left_ns -= ready_ns;
	if (worker->cpu.valid && worker->cpu.tid == worker->park.tid && cpu_ns > worker->cpu.ns)
		used_ns = cpu_ns - worker->cpu.ns;
	if (used_ns > left_ns)
		used_ns = left_ns;
	worker->time.ready_ns += ready_ns;
	worker->time.on_cpu_ns += used_ns;
	worker->waiting_ns += left_ns - used_ns;
	if (ns - worker->park.ns < SLEPT_NS)
		account_look(worker, ns);
	else
		d9__loop_time_waited(&worker->loop_time, worker->park.ns, ns, used_ns, ready_ns);
}

/*
 * The process stood still for |ns| in callbacks of |worker|: in the longest of those that it
 * remembers.
 */
static void take_stopped(struct d9__worker *worker, uint64_t ns)
{
	size_t longest = D9__WORKER_RECENT;
	struct d9__callback_on *on;
	uint64_t longest_ns = 0;

	for (size_t i = 0; ns && i < D9__WORKER_RECENT && i < worker->n_recent; i++) {
		uint64_t call_ns = worker->recent[i].end_ns - worker->recent[i].start_ns;

		if (call_ns <= longest_ns || call_ns < ns)
			continue;
		longest_ns = call_ns;
		longest = i;
	}
	if (longest == D9__WORKER_RECENT)
		return;
	worker->recent[longest].taken_ns =
		d9__u64_min(longest_ns, worker->recent[longest].taken_ns + ns);
	on = d9__callback_on(worker->recent[longest].callback, worker->number);
	if (!on)
		return;
	on->ns -= d9__u64_min(on->ns, ns);
	on->time.blocked_ns -= d9__u64_min(on->time.blocked_ns, ns);
}

/* In waits that are over the thread was ready for |ns| that seemed to be asleep. */
static void ready_in_waits(struct d9__worker *worker, uint64_t ns)
{
	ns = d9__u64_min(worker->waiting_ns, d9__loop_time_ready(&worker->loop_time, ns));
	worker->waiting_ns -= ns;
	worker->time.ready_ns += ns;
	d9__rounds_ready(worker, ns);
}

/*
 * The recorder told how long the thread was ready without a CPU up to the end of the time awake
 * that is over: of that |most_ns| at most were in it, and the rest in waits before.  Returns the
 * former.
 */
static uint64_t ready_awake(struct d9__worker *worker, uint64_t most_ns)
{
	uint64_t ns = d9__u64_min(worker->unpark.ready_ns, most_ns);

	if (worker->unpark.ready_ns > ns)
		ready_in_waits(worker, worker->unpark.ready_ns - ns);
	worker->unpark.ready_ns = 0;
	return ns;
}

void d9__timeline_ready(struct d9__worker *worker, uint64_t wait_ns)
{
	worker->wait_sum_ns += wait_ns;
	worker->run_queue_ns += wait_ns;
	if (worker->unpark.valid)
		worker->unpark.ready_ns += wait_ns;
	else
		ready_in_waits(worker, wait_ns);
}

void d9__timeline_source(struct d9__worker *worker, uint64_t ns)
{
	worker->unpark.sources_ns += ns;
}

void d9__timeline_stopped(struct d9__timeline *timeline, uint64_t from_ns, uint64_t to_ns)
{
	for (size_t i = 0; i < timeline->n; i++) {
		struct d9__worker *worker = timeline->items[i];

		take_stopped(worker, d9__loop_time_stopped(&worker->loop_time, from_ns, to_ns));
		if (worker->slept.until_ns > from_ns && worker->slept.from_ns < to_ns)
			worker->slept.taken_ns +=
				d9__u64_min(to_ns, worker->slept.until_ns) -
				(from_ns > worker->slept.from_ns ? from_ns : worker->slept.from_ns);
	}
}

/* The awake time |awake|, as far as it is filled in, ended at |ns|. */
static void account_awake(struct d9__worker *worker, uint64_t ns, struct d9__loop_awake awake)
{
	awake.from_ns = worker->unpark.ns;
	awake.to_ns = ns;
	awake.calls_ns = worker->poll_ns - worker->unpark.pieces_ns;
	awake.gap_from_ns = worker->gap.from_ns;
	awake.gap_ns = worker->cpu_seen ? worker->gap.ns : 0;
	take_stopped(worker, d9__loop_time_awake(&worker->loop_time, &awake));
}

/*
 * The thread used |grown_ns| more of CPU since its last reading, and was awake for |wall_ns| of
 * that: the rest it used in waits.  Readings are rounded, one up and one down.  Short looks at
 * descriptors are counted already.
 */
static void account_burnt(struct d9__worker *worker, uint64_t grown_ns, uint64_t wall_ns)
{
	uint64_t more_ns = grown_ns > wall_ns + 2 * CPU_STEP_NS ? grown_ns - wall_ns : 0;
	uint64_t looks_ns = d9__u64_min(more_ns, worker->looks_ns);

	worker->looks_ns -= looks_ns;
	if (more_ns > looks_ns)
		d9__loop_time_burnt(&worker->loop_time, more_ns - looks_ns);
}

static int end_active(struct d9__worker *worker, uint64_t ns, uint64_t cpu_ns)
{
	uint64_t used_ns = cpu_ns > worker->unpark.cpu_ns ? cpu_ns - worker->unpark.cpu_ns : 0;
	uint64_t wall_ns = ns - worker->unpark.ns,
		 told_ns = used_ns + d9__time_period_off_cpu(&worker->period),
		 ready_ns = ready_awake(worker,
					worker->cpu_seen ? d9__u64_minus(wall_ns, told_ns) : 0),
		 asleep_ns = slept_ns(worker, wall_ns, told_ns + ready_ns),
		 before_ns = worker->time.on_cpu_ns + worker->time.blocked_ns;
	uint64_t grown = grown_ns(worker, cpu_ns);
	const struct d9__loop_time *time = &worker->loop_time;
	struct d9__loop_awake awake = { .read_ns = worker->period.read_ns,
					.slept_ns = asleep_ns,
					.ready_ns = ready_ns };
	double ratio = 1;
	int err = 0;

	if (time->outside_told_n && worker->cpu_seen)
		err = d9__returns_measure(&worker->returns, time->outside_told_n,
					  time->outside_told_ns, asleep_ns,
					  time->outside_longest_ns, time->outside_longest_at_ns);
	/* It slept for the rest, in a wait that the program itself has around its loop. */
	wall_ns -= asleep_ns;
	worker->parked_ns += asleep_ns;
	worker->waiting_ns += asleep_ns;
	d9__time_period_ready(&worker->period, ready_ns);
	d9__time_period_end(&worker->period, &worker->time, wall_ns, grown);
	awake.own_ns = worker->time.on_cpu_ns + worker->time.blocked_ns - before_ns;
	if (!worker->cpu_seen)
		awake.own_ns = wall_ns;
	account_awake(worker, ns, awake);
	if (worker->cpu_seen)
		account_burnt(worker, grown, wall_ns);
	if (wall_ns && used_ns < wall_ns)
		ratio = (double)used_ns / (double)wall_ns;
	worker->active_periods++;
	worker->active_ns += wall_ns;
	worker->ratio_sum += ratio;
	worker->long_periods += wall_ns > D9__MS_NS;
	worker->starved_periods += wall_ns > D9__MS_NS && ratio < 0.5;
	if (!worker->cpu_seen)
		return err;
	for (size_t i = 0; i < D9__WORKER_STALLS; i++) {
		struct d9__stall *stall = worker->stalls[i];

		if (stall && !stall->cpu_known && stall->start_ns >= worker->unpark.ns)
			d9__stall_set_cpu(stall, wall_ns, used_ns);
	}
	return err;
}

/* It is awake since its unpark: did callbacks keep it from looking at its descriptors? */
static void note_round(struct d9__worker *worker, uint64_t ns)
{
	uint64_t wall_ns = ns - worker->unpark.ns, calls = worker->polls - worker->unpark.polls,
		 own_ns;
	struct d9__between between;

	if (wall_ns < D9__LONG_ROUND_NS || wall_ns <= worker->round.ns || calls < D9__WORKER_RECENT / 4 ||
	    2 * (d9__worker_busy_ns(worker) - worker->unpark.poll_ns) < wall_ns)
		return;
	between = d9__worker_between(worker, worker->unpark.ns, ns);
	/* Time that the kernel took is no part of it. */
	own_ns = d9__u64_minus(wall_ns, worker->unpark.taken_ns + worker->unpark.ready_ns);
	/* Long calls are told for themselves. */
	if (8 * between.longest_ns > own_ns || own_ns < D9__LONG_ROUND_NS ||
	    own_ns <= worker->round.ns)
		return;
	worker->round.ns = own_ns;
	worker->round.from_ns = worker->unpark.ns;
	worker->round.calls = calls;
	worker->round.between = between;
}

uint64_t d9__timeline_off_cpu(const struct d9__worker *worker, uint64_t ns, uint64_t cpu_ns, uint32_t tid,
			      uint64_t *from_ns)
{
	uint64_t on_ns = cpu_ns - worker->unpark.cpu_ns + worker->unpark.told_ns;

	*from_ns = worker->unpark.ns;
	if (!worker->unpark.valid || !worker->cpu_seen || cpu_ns < worker->unpark.cpu_ns ||
	    is_handover(worker->unpark.tid, tid) || ns - worker->unpark.ns < D9__MS_NS)
		return 0;
	return on_ns < ns - worker->unpark.ns ? ns - worker->unpark.ns - on_ns : 0;
}

int d9__timeline_park(struct d9__timeline *timeline, struct d9__worker *worker, uint64_t ns,
		      uint64_t cpu_ns, uint32_t tid)
{
	int err = d9__timeline_close(timeline, worker, ns);

	note_cpu(worker, cpu_ns, tid);
	if (worker->unpark.valid && is_handover(worker->unpark.tid, tid)) {
		worker->handovers++;
		forget_period(worker);
	} else if (worker->unpark.valid) {
		note_round(worker, ns);
		end_gap(worker, ns);
		err = end_active(worker, ns, cpu_ns) < 0 ? -ENOMEM : err;
	} else {
		forget_period(worker);
	}
	worker->unpark.valid = false;
	worker->park.valid = true;
	worker->wait_samples = 0;
	worker->park.ns = ns;
	worker->park.tid = tid;
	if (tid)
		worker->tid = tid;
	return err;
}

static void add_wait(struct d9__worker *worker, uint64_t ns, uint64_t wait_ns)
{
	worker->wait_measured++;
	if (wait_ns == 0)
		return;
	if (wait_ns > worker->waits.max)
		worker->wait_max_at_ns = ns;
	worker->wait_sum_ns += wait_ns;
	worker->waits_over_100ns += wait_ns > 100;
	worker->waits_over_1ms += wait_ns > D9__MS_NS;
}

/*
 * Code that runs in a wait is no callback: a signal handler, or a program that drives GLib itself, between query and
 * check.  Looking at descriptors takes less than this.
 */
#define BUSY_WAIT_NS (2 * D9__MS_NS)

static void note_busy_wait(struct d9__worker *worker, uint64_t ns, uint64_t cpu_ns)
{
	uint64_t wall_ns = ns - worker->park.ns, used_ns;

	if (!worker->cpu.valid || worker->cpu.tid != worker->park.tid || cpu_ns <= worker->cpu.ns)
		return;
	used_ns = cpu_ns - worker->cpu.ns;
	if (used_ns > wall_ns)
		used_ns = wall_ns;
	if (used_ns < BUSY_WAIT_NS)
		return;
	worker->busy_waits.n++;
	worker->busy_waits.ns += used_ns;
	if (used_ns > worker->busy_waits.max_ns) {
		worker->busy_waits.max_ns = used_ns;
		worker->busy_waits.max_at_ns = worker->park.ns;
	}
}

int d9__timeline_unpark(struct d9__timeline *timeline, struct d9__worker *worker, uint64_t ns,
			uint64_t cpu_ns, uint64_t wait_ns, uint32_t tid)
{
	int err = 0;

	(void)timeline;
	if (worker->park.valid && !is_handover(worker->park.tid, tid)) {
		note_busy_wait(worker, ns, cpu_ns);
		account_park(worker, ns, cpu_ns, wait_ns);
	}
	note_cpu(worker, cpu_ns, tid);
	if (!worker->park.valid && !worker->unpark.valid && !worker->polls)
		worker->entered_ns = ns;
	if (worker->park.valid && is_handover(worker->park.tid, tid)) {
		worker->handovers++;
	} else if (worker->park.valid) {
		worker->parks++;
		worker->parked_ns += ns - worker->park.ns;
		err = d9__rounds_unpark(worker, ns, ns - worker->park.ns);
		/* A thread that is put aside while it only looks does not sleep. */
		if (ns - worker->park.ns >= SLEPT_NS + (wait_ns == UINT64_MAX ? 0 : wait_ns)) {
			d9__replay_slept(worker, worker->park.ns, ns);
			d9__returns_slept(&worker->returns);
		}
		d9__kernel_backlog_round(&worker->natural, worker->park.ns, ns,
				  wait_ns != UINT64_MAX ? wait_ns : 0);
		worker->slept.from_ns = worker->park.ns;
		worker->slept.until_ns = ns;
		worker->slept.taken_ns = wait_ns == UINT64_MAX ? 0 : wait_ns;
		if (wait_ns != UINT64_MAX) {
			add_wait(worker, ns, wait_ns);
			err = !err && wait_ns ? d9__histogram_add(&worker->waits, wait_ns) : err;
		}
	}
	worker->park.valid = false;
	worker->unpark.valid = true;
	worker->gap.ns = 0;
	worker->unpark_before_ns = worker->unpark.ns;
	worker->unpark.ns = ns;
	worker->unpark.cpu_ns = cpu_ns;
	worker->unpark.cpu_high_ns = worker->cpu.ns;
	worker->unpark.poll_ns = d9__worker_busy_ns(worker);
	worker->unpark.pieces_ns = worker->poll_ns;
	worker->unpark.polls = worker->polls;
	worker->unpark.told_ns = worker->unpark.taken_ns = 0;
	worker->unpark.ready_ns = worker->unpark.sources_ns = 0;
	worker->unpark.tid = tid;
	if (tid)
		worker->tid = tid;
	return err;
}

uint64_t d9__worker_last_used_ns(const struct d9__worker *worker, uint64_t wall_ns)
{
	bool hung = worker->piece.open || worker->piece.open_ended;

	if (!worker->cpu_seen || (hung && !worker->sign.running) || worker->unpark.told_ns > wall_ns)
		return 0;
	return wall_ns - worker->unpark.told_ns;
}

uint64_t d9__worker_burns(const struct d9__worker *worker, uint64_t from_ns)
{
	if (worker->library.until_ns <= from_ns)
		return 0;
	return d9__u64_min(worker->library.cpu_ns, worker->library.until_ns - from_ns);
}

uint64_t d9__worker_awake_until(const struct d9__worker *worker, uint64_t ns)
{
	uint64_t end_ns = worker->piece.open ? ns : worker->piece.end_ns;

	if (worker->outside.ns > end_ns)
		end_ns = worker->outside.ns;
	if (!worker->piece.open && worker->library.until_ns > end_ns)
		end_ns = worker->library.until_ns;
	return end_ns;
}

/*
 * The account of the worker's last round, which no park ended: it goes on until the trace ends at
 * |ns| in a callback, or the last one ended; or the loop stood still for longer, outside of
 * callbacks.
 */
static void account_last(struct d9__worker *worker, uint64_t ns)
{
	const struct d9__piece *piece = &worker->piece;
	uint64_t end_ns = d9__worker_awake_until(worker, ns);

	if (end_ns <= worker->unpark.ns)
		return;
	if (piece->open) {
		uint64_t open_ns = end_ns - piece->start_ns;

		worker->unpark.pieces_ns -= open_ns;
		d9__callback_stayed(piece->task->callback, worker->number,
				    open_ns - d9__u64_min(open_ns, piece->users.ns));
	}
	account_awake(worker, end_ns,
		      (struct d9__loop_awake) { .own_ns = end_ns - worker->unpark.ns,
						.unread = worker->cpu_seen });
}

/*
 * The trace ends at |ns|, and no park ended the worker's last round: it went on until its last callback did, or
 * goes on still.
 */
static void end_last_period(struct d9__worker *worker, uint64_t ns)
{
	uint64_t end_ns = worker->piece.open ? ns : worker->piece.end_ns;

	note_round(worker, ns);
	account_last(worker, ns);
	if (end_ns <= worker->unpark.ns)
		return;
	worker->active_ns += end_ns - worker->unpark.ns;
	d9__time_period_end(&worker->period, &worker->time, end_ns - worker->unpark.ns, UINT64_MAX);
	worker->cpu_ns += d9__worker_last_used_ns(worker, end_ns - worker->unpark.ns);
}

void d9__worker_goes_on(struct d9__worker *worker, uint64_t ns, uint32_t tid, bool waits)
{
	worker->park.valid = waits;
	worker->unpark.valid = !waits;
	worker->park.ns = worker->unpark.ns = ns;
	worker->park.tid = worker->unpark.tid = worker->tid = tid;
	worker->unpark.cpu_ns = worker->unpark.cpu_high_ns = UINT64_MAX;
	worker->cpu_seen = true;
}

/* The trace ends at |ns|, and no unpark ended the worker's last wait. */
static void end_last_park(struct d9__worker *worker, uint64_t ns)
{
	uint64_t left_ns = ns > worker->park.ns ? ns - worker->park.ns : 0;

	worker->parks++;
	worker->parked_ns += left_ns;
	worker->waiting_ns += left_ns;
	worker->park.valid = false;
	d9__loop_time_waited(&worker->loop_time, worker->park.ns, worker->park.ns + left_ns, 0, 0);
	d9__loop_time_burnt(&worker->loop_time, d9__worker_burns(worker, worker->park.ns));
}

int d9__timeline_finish(struct d9__timeline *timeline, uint64_t ns)
{
	int err = 0;

	for (size_t i = 0; i < timeline->n; i++) {
		struct d9__worker *worker = timeline->items[i];

		ready_awake(worker, 0);
		if (d9__rounds_finish(worker, ns) < 0)
			err = -ENOMEM;
		d9__starved_finish(&worker->starved);
		if (worker->unpark.valid && ns > worker->unpark.ns)
			end_last_period(worker, ns);
		if (worker->park.valid)
			end_last_park(worker, ns);
		d9__loop_time_finish(&worker->loop_time);
	}
	return err;
}

double d9__worker_utilisation(const struct d9__worker *worker)
{
	uint64_t all_ns = worker->active_ns + worker->parked_ns;

	return all_ns ? (double)worker->active_ns / (double)all_ns : 0;
}

double d9__worker_cpu_ratio(const struct d9__worker *worker)
{
	if (!worker->cpu_seen || worker->active_periods == 0)
		return -1;
	return worker->ratio_sum / (double)worker->active_periods;
}

double d9__worker_on_cpu(const struct d9__worker *worker)
{
	uint64_t all_ns = worker->active_ns + worker->parked_ns;

	if (!worker->cpu_seen || all_ns == 0)
		return -1;
	/* The two clocks are not read in the same moment. */
	return worker->cpu_ns < all_ns ? (double)worker->cpu_ns / (double)all_ns : 1;
}

double d9__worker_busy(const struct d9__worker *worker)
{
	uint64_t all_ns = worker->active_ns + worker->parked_ns, busy_ns = d9__worker_busy_ns(worker);

	return busy_ns < all_ns ? (double)busy_ns / (double)all_ns : all_ns ? 1 : 0;
}

bool d9__worker_was_missed(const struct d9__worker *worker)
{
	const struct d9__loop_time *time = &worker->loop_time;

	return time->outside_n &&
	       (time->outside_ns + time->outside_asleep_ns) / time->outside_n >= D9__FRAME_NS &&
	       d9__returns_are_late(&worker->returns);
}

void d9__worker_add_stall(struct d9__worker *worker, struct d9__stall *stall)
{
	size_t i = worker->n_stalls++ % D9__WORKER_STALLS;

	d9__stall_unref(worker->stalls[i]);
	worker->stalls[i] = d9__stall_ref(stall);
}

/* Sums per callback, as many as fit. */
struct sums {
	struct {
		const struct d9__callback *callback;
		uint64_t ns, calls;
	} items[BETWEEN_CALLBACKS];
	size_t n;
};

static void add_to_sums(struct sums *sums, const struct d9__callback *callback, uint64_t ns)
{
	size_t i = 0;

	while (i < sums->n && sums->items[i].callback != callback)
		i++;
	if (i == BETWEEN_CALLBACKS)
		return;
	if (i == sums->n) {
		sums->n++;
		sums->items[i].callback = callback;
		sums->items[i].ns = sums->items[i].calls = 0;
	}
	sums->items[i].ns += ns;
	sums->items[i].calls++;
}

/*
 * Part of recent call |at| between two moments; false: none.  What the kernel took is taken to be spread evenly
 * over it.
 */
static bool clip(const struct d9__worker *worker, size_t at, uint64_t from_ns, uint64_t to_ns,
		 uint64_t *ns, uint64_t *taken_ns)
{
	uint64_t start = worker->recent[at].start_ns, end = worker->recent[at].end_ns;
	uint64_t whole = end - start;

	if (start < from_ns)
		start = from_ns;
	if (end > to_ns)
		end = to_ns;
	if (start >= end)
		return false;
	*taken_ns = (uint64_t)((double)worker->recent[at].taken_ns * (double)(end - start) /
			       (double)whole);
	*ns = end - start - *taken_ns;
	return true;
}

/* Count the calls of |out->one_task|, which has most if any has. */
static void count_one(const struct d9__worker *worker, uint64_t from_ns, uint64_t to_ns,
		      struct d9__between *out)
{
	uint64_t n = worker->n_recent, ns, taken_ns;

	for (uint64_t i = 0; i < n && i < D9__WORKER_RECENT; i++) {
		size_t at = (n - 1 - i) % D9__WORKER_RECENT;

		if (worker->recent[at].end_ns <= from_ns)
			break;
		if (worker->recent[at].task != out->one_task ||
		    !clip(worker, at, from_ns, to_ns, &ns, &taken_ns))
			continue;
		out->one = worker->recent[at].callback;
		out->one_calls++;
		out->one_ns += ns;
	}
	if (2 * out->one_calls <= out->calls)
		out->one = NULL;
}

/* More calls than are remembered: if all of them ran since the worker woke, their sums are known all the same. */
static void count_round(const struct d9__worker *worker, uint64_t from_ns, struct d9__between *out)
{
	uint64_t woke_ns = worker->unpark.ns;

	if (!worker->unpark.valid || from_ns + ROUND_SLACK_NS < woke_ns || woke_ns + ROUND_SLACK_NS < from_ns)
		return;
	out->round_calls = worker->polls - worker->unpark.polls;
	out->round_ns = d9__worker_busy_ns(worker) - worker->unpark.poll_ns;
}

struct d9__between d9__worker_between(const struct d9__worker *worker, uint64_t from_ns,
				      uint64_t to_ns)
{
	struct d9__between out = { .known = true, .covered_ns = to_ns - from_ns };
	struct sums sums = { .n = 0 };
	uint64_t n = worker->n_recent, votes = 0, ns, taken_ns;

	for (uint64_t i = 0; i < n && i < D9__WORKER_RECENT; i++) {
		size_t at = (n - 1 - i) % D9__WORKER_RECENT;

		if (worker->recent[at].end_ns <= from_ns)
			break;
		if (!clip(worker, at, from_ns, to_ns, &ns, &taken_ns))
			continue;
		if (i == D9__WORKER_RECENT - 1 && worker->recent[at].start_ns > from_ns) {
			out.covered_ns = to_ns - worker->recent[at].start_ns;
			count_round(worker, from_ns, &out);
		}
		if (votes == 0)
			out.one_task = worker->recent[at].task;
		votes += worker->recent[at].task == out.one_task ? 1 : UINT64_MAX;
		out.calls++;
		out.busy_ns += ns;
		out.taken_ns += taken_ns;
		out.natural_ns += ns > worker->recent[at].excused_ns
					  ? ns - worker->recent[at].excused_ns
					  : 0;
		if (worker->recent[at].end_ns - worker->recent[at].start_ns >=
		    D9__SHORT_CALL_NS + worker->recent[at].taken_ns)
			out.long_ns += ns;
		add_to_sums(&sums, worker->recent[at].callback, ns);
		if (ns > out.longest_ns) {
			out.longest_ns = ns;
			out.longest = worker->recent[at].callback;
		}
	}
	out.covered_ns -= out.taken_ns < out.covered_ns ? out.taken_ns : out.covered_ns;
	count_one(worker, from_ns, to_ns, &out);
	for (size_t i = 0; i < sums.n; i++) {
		if (sums.items[i].ns <= out.most_ns)
			continue;
		out.most = sums.items[i].callback;
		out.most_ns = sums.items[i].ns;
		out.most_calls = sums.items[i].calls;
	}
	return out;
}
