/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "analyze/latency.h"
#include "analyze/rounds.h"
#include "analyze/timeline.h"

/* Rates below these, per second, are no spin, no storm and no waste. */
#define SPIN_RATE  2000
#define STORM_RATE 2000
#define IDLE_RATE  50
#define EMPTY_RATE 200

/* A call that takes longer achieves something: the loop's own part of a round takes a few us. */
#define SPIN_CALL_NS D9__US(10)

/* Longer gaps are nobody's window: recording was off, or the worker's thread ended. */
#define WINDOW_MAX_NS (20 * D9__WINDOW_NS)

static bool is_over(const struct d9__rounds *rounds, uint64_t ns)
{
	return rounds->start_ns && ns >= rounds->start_ns + D9__WINDOW_NS;
}

/* |calls| in |ns| are at least |rate| per second. */
static bool is_rate(uint64_t calls, uint64_t ns, uint64_t rate)
{
	return calls * UINT64_C(1000000000) >= rate * ns;
}

/*
 * The loop never slept, one task was called over and over, and that took less time than the loop
 * needed to find it ready: nothing was achieved.
 */
static bool is_spin(const struct d9__rounds *rounds, uint64_t ns)
{
	uint64_t awake_ns = rounds->slept_ns < ns ? ns - rounds->slept_ns : 0;

	if (!is_rate(rounds->all.top.calls, ns, SPIN_RATE) ||
	    rounds->all.top.reason == D9__WAKE_CROSS_THREAD ||
	    20 * rounds->real_waits > rounds->all.top.calls)
		return false;
	if (rounds->all.top.ns >= SPIN_CALL_NS * rounds->all.top.calls)
		return false;
	/* GIO takes as long for each refusal as the loop, but less than for a connection, and nothing follows. */
	if (rounds->all.top.renewed && rounds->all.top.listener)
		return 20 * rounds->all.top.calls >= 19 * rounds->all.calls;
	return 2 * rounds->all_busy_ns < awake_ns;
}

/*
 * Most calls were asked for by another thread, the loop was woken for a few at a time, and being
 * woken took longer than the calls.
 */
static bool is_storm(const struct d9__rounds *rounds, uint64_t ns)
{
	uint64_t awake_ns = rounds->parked_ns < ns ? ns - rounds->parked_ns : 0;

	return is_rate(rounds->cross.calls, ns, STORM_RATE) &&
	       5 * rounds->cross.calls >= 4 * rounds->calls &&
	       4 * rounds->unparks >= rounds->cross.calls && 2 * rounds->busy_ns < awake_ns;
}

/* Nearly always asleep, and woken by timers alone. */
static bool is_idle(const struct d9__rounds *rounds, uint64_t ns)
{
	return is_rate(rounds->timer_calls, ns, IDLE_RATE) &&
	       10 * rounds->timer_calls >= 9 * rounds->calls &&
	       10 * rounds->parked_ns >= 9 * ns &&
	       2 * rounds->all.top.calls >= rounds->timer_calls && rounds->all.top.reason == D9__WAKE_TIMER;
}

/* Nearly each time the loop woke there was nothing to run. */
static bool is_empty(const struct d9__rounds *rounds, uint64_t ns)
{
	return is_rate(rounds->unparks, ns, EMPTY_RATE) && 10 * rounds->all.calls < rounds->unparks;
}

static void note_empty(struct d9__worker *worker, uint64_t ns)
{
	const struct d9__rounds *rounds = &worker->rounds;

	if (worker->empty.windows++ == 0)
		worker->empty.first_ns = rounds->start_ns;
	worker->empty.ns += ns;
	worker->empty.unparks += rounds->unparks;
	worker->empty.calls += rounds->all.calls;
	worker->empty.parked_ns += rounds->parked_ns;
}

static void note(const struct d9__share *share, enum d9__spell_kind kind, uint64_t ns,
		 const struct d9__worker *worker)
{
	struct d9__spell *spell = &share->top.callback->spells[kind];
	const struct d9__rounds *rounds = &worker->rounds;

	if (spell->windows++ == 0)
		spell->first_ns = rounds->start_ns;
	spell->ns += ns;
	spell->calls += share->top.calls;
	spell->busy_ns += share->top.ns;
	spell->unparks += rounds->unparks;
	if (share->top.calls < spell->most_calls)
		return;
	spell->most_calls = share->top.calls;
	spell->worker = worker->id;
	spell->task = share->top.id;
	spell->fd = share->top.fd;
	spell->reason = share->top.reason;
	spell->listener = share->top.listener;
	spell->waker = share->top.waker;
	spell->waker_worker = share->top.waker_worker;
}

/* The window of |worker| ends at |ns|. */
static void judge(struct d9__worker *worker, uint64_t ns)
{
	const struct d9__rounds *rounds = &worker->rounds;
	uint64_t length_ns = ns - rounds->start_ns;

	if (!rounds->start_ns || length_ns < D9__WINDOW_NS / 2 || length_ns > WINDOW_MAX_NS)
		return;
	if (is_empty(rounds, length_ns))
		note_empty(worker, length_ns);
	if (!rounds->all.top.callback)
		return;
	worker->windows++;
	if (rounds->cross.top.callback && is_storm(rounds, length_ns))
		note(&rounds->cross, D9__SPELL_STORM, length_ns, worker);
	else if (is_spin(rounds, length_ns))
		note(&rounds->all, D9__SPELL_SPIN, length_ns, worker);
	else if (is_idle(rounds, length_ns))
		note(&rounds->all, D9__SPELL_IDLE, length_ns, worker);
}

static void begin(struct d9__worker *worker, uint64_t ns)
{
	uint64_t number = worker->rounds.number + 1;

	worker->rounds = (struct d9__rounds){ .number = number, .start_ns = ns };
}

static void see(struct d9__worker *worker, uint64_t ns)
{
	if (is_over(&worker->rounds, ns))
		judge(worker, ns);
	else if (worker->rounds.start_ns)
		return;
	begin(worker, ns);
}

static void count(struct d9__share *share, const struct d9__task *task,
		  struct d9__callback *callback)
{
	share->calls++;
	if (task->window_calls <= share->top.calls)
		return;
	share->top.id = task->id;
	share->top.calls = task->window_calls;
	share->top.ns = task->window_ns;
	share->top.callback = callback;
	share->top.fd = task->fd;
	share->top.renewed = task->renewed;
	share->top.listener = task->callback->listener;
	share->top.reason = task->reason;
	share->top.waker = task->waker;
	share->top.waker_worker = task->waker_worker;
}

/* The first call of |task| in a window: instead of another one of its descriptor, which ended? */
static void go_on(const struct d9__rounds *rounds, struct d9__task *task)
{
	if (task->fd < 0 || rounds->latest.callback != task->callback || rounds->latest.fd != task->fd)
		return;
	task->renewed = true;
	task->window_calls = rounds->latest.calls;
	task->window_ns = rounds->latest.ns;
}

/* The user's function inside the library's, if there is one. */
static struct d9__callback *user_of(const struct d9__piece *piece)
{
	struct d9__callback *callback = piece->task->callback;

	return callback->internal && piece->inner ? piece->inner : callback;
}

void d9__rounds_call(struct d9__worker *worker, const struct d9__piece *piece)
{
	struct d9__rounds *rounds = &worker->rounds;
	struct d9__task *task = piece->task;
	struct d9__callback *callback = user_of(piece);
	uint64_t ns = piece->end_ns - piece->start_ns;

	see(worker, piece->end_ns);
	if (task->window != rounds->number || task->window_worker != worker->number) {
		task->window = rounds->number;
		task->window_worker = worker->number;
		task->window_calls = task->window_ns = 0;
		task->renewed = false;
		go_on(rounds, task);
	}
	task->window_calls++;
	task->window_ns += ns;
	rounds->latest.callback = task->callback;
	rounds->latest.calls = task->window_calls;
	rounds->latest.ns = task->window_ns;
	rounds->latest.fd = task->fd;
	rounds->all_busy_ns += ns;
	count(&rounds->all, task, callback);
	if (callback->internal)
		return;
	rounds->calls++;
	rounds->busy_ns += ns;
	rounds->timer_calls += task->reason == D9__WAKE_TIMER;
	if (task->reason == D9__WAKE_CROSS_THREAD)
		count(&rounds->cross, task, callback);
}

static void take(uint64_t *from, uint64_t ns)
{
	*from -= ns < *from ? ns : *from;
}

void d9__rounds_taken(struct d9__worker *worker, struct d9__task *task, uint64_t taken_ns)
{
	struct d9__rounds *rounds = &worker->rounds;

	if (task->window != rounds->number || task->window_worker != worker->number)
		return;
	take(&task->window_ns, taken_ns);
	if (rounds->latest.callback == task->callback && rounds->latest.fd == task->fd)
		take(&rounds->latest.ns, taken_ns);
	take(&rounds->all_busy_ns, taken_ns);
	if (!task->callback->internal)
		take(&rounds->busy_ns, taken_ns);
	if (rounds->all.top.id == task->id)
		take(&rounds->all.top.ns, taken_ns);
	if (rounds->cross.top.id == task->id)
		take(&rounds->cross.top.ns, taken_ns);
}

void d9__rounds_unpark(struct d9__worker *worker, uint64_t ns, uint64_t parked_ns)
{
	struct d9__rounds *rounds = &worker->rounds;

	/* A long wait ends the window in which it began. */
	if (rounds->start_ns) {
		rounds->parked_ns += parked_ns;
		if (parked_ns >= D9__REAL_WAIT_NS) {
			rounds->real_waits++;
			rounds->slept_ns += parked_ns;
		}
	}
	see(worker, ns);
	rounds->unparks++;
}

void d9__rounds_finish(struct d9__worker *worker, uint64_t ns)
{
	if (ns > worker->rounds.start_ns)
		judge(worker, ns);
	worker->rounds.start_ns = 0;
}
