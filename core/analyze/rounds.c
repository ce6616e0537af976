/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "analyze/latency.h"
#include "analyze/rounds.h"
#include "analyze/timeline.h"
#include "base/u64.h"

/* Rates below these, per second, are no spin, no storm and no waste. */
#define SPIN_RATE  2000
#define STORM_RATE 2000
#define IDLE_RATE  50
#define EMPTY_RATE 50

/* Nor are empty wakes that are a smaller part of all. */
#define EMPTY_PART 5

/* So is less than this, of causes of any kind, and so are wakes for more work than this. */
#define LITTLE_RATE 100
#define LITTLE_NS   (30 * D9__US_NS)

/* Of the time that the machine left to the loop, and with fewer calls than these it left too
 * little. */
#define SPIN_CALLS 50

/* Several tasks spin together if each is called so often in a window. */
#define SPIN_TOGETHER 20

/* A call that takes longer achieves something: the loop's own part of a round takes a few us. */
#define SPIN_CALL_NS (10 * D9__US_NS)

/* A wait of this length was a sleep: to look at descriptors takes less.  Behind a call a library
 * may look at thousands. */
#define SLEPT_NS	(20 * D9__US_NS)
#define SLEPT_BEHIND_NS D9__MS_NS

/* The kernel gives the CPU to another thread for longer. */
#define BRIEF_NS D9__MS_NS

/* Longer gaps are no window, because recording was off or the worker's thread ended. */
#define WINDOW_MAX_NS (20 * D9__WINDOW_NS)

static void take(uint64_t *from, uint64_t ns)
{
	*from -= ns < *from ? ns : *from;
}

static bool is_over(const struct d9__rounds *rounds, uint64_t ns)
{
	return rounds->start_ns && ns >= rounds->start_ns + D9__WINDOW_NS;
}

/* |calls| in |ns| are at least |rate| per second. */
static bool is_rate(uint64_t calls, uint64_t ns, uint64_t rate)
{
	return calls * D9__SECOND_NS >= rate * ns;
}

/*
 * The loop never slept, one task was called over and over, and that took less time than the loop
 * needed to find it ready: nothing was achieved.
 */
static bool is_spin(const struct d9__rounds *rounds, uint64_t ns)
{
	uint64_t left_ns = d9__u64_minus(ns, rounds->ready_ns);
	uint64_t awake_ns = rounds->slept_ns < left_ns ? left_ns - rounds->slept_ns : 0;
	const struct d9__share *all = &rounds->all;
	bool together = all->tasks > 1 && is_rate(all->calls, left_ns, SPIN_RATE) &&
			all->top.calls * all->tasks <= 2 * all->calls &&
			all->calls >= SPIN_TOGETHER * all->tasks;

	if (all->calls < SPIN_CALLS ||
	    (!together && !is_rate(all->top.calls, left_ns, SPIN_RATE)) ||
	    all->top.reason == D9__WAKE_CROSS_THREAD ||
	    20 * rounds->real_waits > (together ? all->calls : all->top.calls) ||
	    2 * rounds->slept_ns > left_ns)
		return false;
	/*
	 * GIO takes once or twice as long for a refusal as the loop for a round, four times as long for a connection,
	 * on any machine; and nothing follows.
	 */
	if (all->top.renewed && all->top.listener)
		return 20 * all->top.calls >= 19 * all->calls && rounds->brief_calls_ns < 3 * rounds->brief_gaps_ns;
	return all->top.ns < SPIN_CALL_NS * all->top.calls && 2 * rounds->all_busy_ns < awake_ns;
}

/*
 * Most calls were asked for by another thread, the loop was woken for a few at a time, and being
 * woken took longer than the calls.
 */
static bool is_storm(const struct d9__rounds *rounds, uint64_t ns)
{
	uint64_t awake_ns = rounds->parked_ns < ns ? ns - rounds->parked_ns : 0;

	return is_rate(rounds->by[D9__CAUSE_THREAD].calls, ns, STORM_RATE) &&
	       5 * rounds->by[D9__CAUSE_THREAD].calls >= 4 * rounds->calls &&
	       4 * rounds->unparks >= rounds->by[D9__CAUSE_THREAD].calls && 2 * rounds->busy_ns < awake_ns;
}

/* Nearly always asleep, and woken by timers alone. */
static bool is_idle(const struct d9__rounds *rounds, uint64_t ns)
{
	return is_rate(rounds->timer_calls, ns, IDLE_RATE) &&
	       10 * rounds->timer_calls >= 9 * rounds->calls &&
	       10 * rounds->parked_ns >= 9 * ns &&
	       2 * rounds->all.top.calls >= rounds->timer_calls && rounds->all.top.reason == D9__WAKE_TIMER;
}

/* Each fifth time that the loop woke there was nothing to run, or more often. */
static bool is_empty(const struct d9__rounds *rounds, uint64_t ns)
{
	return is_rate(rounds->empty, ns, EMPTY_RATE) &&
	       EMPTY_PART * rounds->empty >= rounds->unparks;
}

static void note_empty(struct d9__worker *worker, uint64_t ns)
{
	const struct d9__rounds *rounds = &worker->rounds_over;

	if (worker->empty.windows++ == 0)
		worker->empty.first_ns = rounds->start_ns;
	worker->empty.ns += ns;
	worker->empty.unparks += rounds->unparks;
	worker->empty.empty += rounds->empty;
	worker->empty.parked_ns += rounds->parked_ns;
}

/*
 * How often it woke: from sleep, or because another thread said so, however short the wait was. Two
 * loops that hand something to each other are answered at once.
 */
static uint64_t wakes_of(const struct d9__rounds *rounds)
{
	uint64_t by_thread = rounds->by[D9__CAUSE_THREAD].calls;

	if (by_thread > rounds->unparks)
		by_thread = rounds->unparks;
	return by_thread > rounds->real_waits ? by_thread : rounds->real_waits;
}

/* Woken again and again, asleep for most of the time all the same, and hardly anything was done. */
static bool is_little(const struct d9__rounds *rounds, uint64_t ns)
{
	uint64_t wakes = wakes_of(rounds);

	return is_rate(wakes, ns, LITTLE_RATE) && 10 * rounds->slept_ns >= 7 * ns &&
	       4 * rounds->calls >= wakes && rounds->all_busy_ns <= LITTLE_NS * wakes;
}

static void note_little(struct d9__worker *worker, uint64_t ns)
{
	const struct d9__rounds *rounds = &worker->rounds_over;
	struct d9__little *little = &worker->little;

	if (little->windows++ == 0)
		little->first_ns = rounds->start_ns;
	little->ns += ns;
	little->wakes += wakes_of(rounds);
	little->calls += rounds->calls;
	little->busy_ns += rounds->all_busy_ns;
	for (size_t i = 0; i < D9__CAUSES; i++) {
		const struct d9__share *share = &rounds->by[i];
		struct d9__little_cause *cause = &little->causes[i];

		cause->calls += share->calls;
		if (share->tasks > cause->tasks)
			cause->tasks = share->tasks;
		if (share->most.calls <= cause->most_calls)
			continue;
		cause->most_calls = share->most.calls;
		cause->task = share->most.task;
		cause->callback = share->most.callback;
		cause->fd = share->most.fd;
		cause->waker = share->most.waker;
		cause->waker_worker = share->most.waker_worker;
	}
}

static int note(const struct d9__share *share, enum d9__spell_kind kind, uint64_t ns,
		const struct d9__worker *worker)
{
	struct d9__spell *spell = d9__callback_new_spell(share->top.callback, kind, worker->number);
	const struct d9__rounds *rounds = &worker->rounds_over;

	/* Other threads may send a new task each time: all of them make the storm. */
	uint64_t calls = kind == D9__SPELL_STORM ? share->calls : share->top.calls;

	if (!spell)
		return -ENOMEM;
	if (spell->windows++ == 0)
		spell->first_ns = rounds->start_ns;
	d9__callback_spell_grew(share->top.callback, kind, spell);
	spell->ns += ns;
	spell->calls += calls;
	spell->busy_ns += kind == D9__SPELL_STORM ? rounds->busy_ns : share->top.ns;
	spell->unparks += rounds->unparks;
	/* Count tasks that are called about as often as it. */
	if (share->top.calls * share->tasks <= 2 * share->calls && share->tasks > spell->tasks)
		spell->tasks = share->tasks;
	if (calls < spell->most_calls)
		return 0;
	spell->most_calls = calls;
	spell->worker = worker->id;
	spell->task = share->top.id;
	spell->fd = share->top.fd;
	spell->reason = share->top.reason;
	spell->listener = share->top.listener;
	spell->waker = share->top.waker;
	spell->waker_worker = share->top.waker_worker;
	return 0;
}

/* Judge the window of |worker| that is over, if that was not done yet. */
static int judge(struct d9__worker *worker)
{
	struct d9__rounds *rounds = &worker->rounds_over;
	uint64_t length_ns = d9__u64_minus(rounds->over_ns, rounds->start_ns);

	rounds->over_ns = 0;
	take(&rounds->parked_ns, rounds->waits_ready_ns);
	take(&rounds->slept_ns, rounds->waits_ready_ns);
	if (length_ns < D9__WINDOW_NS / 2 || length_ns > WINDOW_MAX_NS)
		return 0;
	if (is_empty(rounds, length_ns))
		note_empty(worker, length_ns);
	if (!rounds->all.top.callback)
		return 0;
	worker->windows++;
	if (rounds->by[D9__CAUSE_THREAD].top.callback && is_storm(rounds, length_ns))
		return note(&rounds->by[D9__CAUSE_THREAD], D9__SPELL_STORM, length_ns, worker);
	if (is_spin(rounds, length_ns))
		return note(&rounds->all, D9__SPELL_SPIN, length_ns, worker);
	if (is_idle(rounds, length_ns))
		return note(&rounds->all, D9__SPELL_IDLE, length_ns, worker);
	if (is_little(rounds, length_ns) && !is_empty(rounds, length_ns))
		note_little(worker, length_ns);
	return 0;
}

/*
 * The window of |worker| ends at |ns|.  It is judged with the next one's end: how long the thread
 * had no CPU in its last waits is in the trace behind them.
 */
static int end(struct d9__worker *worker, uint64_t ns)
{
	int err = judge(worker);

	worker->rounds_over = worker->rounds;
	worker->rounds_over.over_ns = ns;
	return err;
}

static void begin(struct d9__worker *worker, uint64_t ns)
{
	uint64_t number = worker->rounds.number + 1;

	worker->rounds = (struct d9__rounds){ .number = number, .start_ns = ns };
}

static int see(struct d9__worker *worker, uint64_t ns)
{
	int err = 0;

	if (is_over(&worker->rounds, ns))
		err = end(worker, ns);
	else if (worker->rounds.start_ns)
		return 0;
	begin(worker, ns);
	return err;
}

static void count(struct d9__share *share, const struct d9__traced_task *task,
		  struct d9__callback *callback)
{
	share->calls++;
	share->tasks += task->window_calls == 1;
	if (task->window_calls <= share->top.calls || callback->each_round)
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

/* Of |callback|'s calls in |worker|'s window; NULL: they are left out. */
static struct d9__callback_on *in_window(const struct d9__worker *worker,
					 struct d9__callback *callback)
{
	struct d9__callback_on *on = d9__callback_on(callback, worker->number);

	if (on && on->window != worker->rounds.number) {
		on->window = worker->rounds.number;
		memset(on->window_calls, 0, sizeof(on->window_calls));
		on->anew_calls = on->anew_ns = 0;
	}
	return on;
}

static void count_callback(struct d9__share *share, uint64_t calls,
			   const struct d9__traced_task *task, struct d9__callback *callback)
{
	if (calls <= share->most.calls)
		return;
	share->most.calls = calls;
	if (share->most.callback == callback && task->window_calls <= share->most.task_calls)
		return;
	share->most.callback = callback;
	share->most.task = task->id;
	share->most.task_calls = task->window_calls;
	share->most.fd = task->fd;
	share->most.waker = task->waker;
	share->most.waker_worker = task->waker_worker;
}

static enum d9__cause cause_of(const struct d9__traced_task *task)
{
	switch (task->reason) {
	case D9__WAKE_TIMER:
		return D9__CAUSE_TIMER;
	case D9__WAKE_SIGNAL:
		return D9__CAUSE_SIGNAL;
	case D9__WAKE_FD:
		return D9__CAUSE_DESCRIPTOR;
	case D9__WAKE_CROSS_THREAD:
		return D9__CAUSE_THREAD;
	default:
		return D9__CAUSE_OTHER;
	}
}

/* The first call of |task| in a window: instead of another one of its descriptor, which ended? */
static void go_on(const struct d9__rounds *rounds, struct d9__traced_task *task)
{
	if (task->fd < 0 || rounds->latest.callback != task->callback || rounds->latest.fd != task->fd)
		return;
	task->renewed = true;
	task->window_calls = rounds->latest.calls;
	task->window_ns = rounds->latest.ns;
}

/* More of them at once are others. */
#define ANEW_MAX 4

/*
 * Whether |task| is a timer that is made anew for each call and ends with it (event_base_once(),
 * g_timeout_add() and FALSE): one after the other, all of them are one.
 */
static bool is_anew(const struct d9__traced_task *task)
{
	const struct d9__callback *callback = task->callback;

	return task->reason == D9__WAKE_TIMER && callback->alive <= ANEW_MAX &&
	       2 * callback->ended >= callback->calls;
}

/* The first call of |task| in a window: instead of the one before? */
static void go_on_anew(const struct d9__callback_on *on, struct d9__traced_task *task)
{
	if (!on || task->renewed || !is_anew(task))
		return;
	task->window_calls = on->anew_calls;
	task->window_ns = on->anew_ns;
}

static void note_anew(struct d9__callback_on *on, const struct d9__traced_task *task)
{
	if (!on || !is_anew(task))
		return;
	on->anew_calls = task->window_calls;
	on->anew_ns = task->window_ns;
}

static void add_brief(uint64_t *sum, uint64_t ns)
{
	*sum += ns < BRIEF_NS ? ns : 0;
}

/* The user's function inside the library's, if there is one. */
static struct d9__callback *user_of(const struct d9__piece *piece)
{
	struct d9__callback *callback = piece->task->callback;

	return callback->internal && piece->inner.callback ? piece->inner.callback : callback;
}

/* A timer's call so soon after an empty wake: it was due, and by a coarse clock it was not. */
#define EARLY_NS (5 * D9__MS_NS)

/* No timer's call explains the empty wakes before, if there are some. */
static void settle(struct d9__worker *worker)
{
	if (!worker->wake.pending_ns)
		return;
	worker->rounds.empty += worker->wake.pending;
	worker->empty.all += worker->wake.pending;
	worker->empty.awake_ns += worker->wake.pending_awake_ns;
	worker->wake.pending_ns = 0;
}

static void settle_by_call(struct d9__worker *worker, const struct d9__piece *piece)
{
	if (piece->task->reason == D9__WAKE_TIMER &&
	    piece->start_ns < worker->wake.pending_ns + EARLY_NS)
		worker->wake.pending_ns = 0;
	settle(worker);
}

static void note_called(struct d9__worker *worker, const struct d9__traced_task *task)
{
	struct d9__newest_wake *wake = &worker->wake;
	struct d9__callback_on *on = d9__callback_on(task->callback, worker->number);

	wake->others |= wake->calls && on != wake->latest;
	wake->calls++;
	wake->latest = on;
	if (!on)
		return;
	on->by_timer += task->reason == D9__WAKE_TIMER;
	on->by_self += task->waker == task->id && task->reason != D9__WAKE_TIMER;
}

int d9__rounds_call(struct d9__worker *worker, const struct d9__piece *piece)
{
	struct d9__rounds *rounds = &worker->rounds;
	struct d9__traced_task *task = piece->task;
	struct d9__callback *callback = user_of(piece);
	uint64_t ns = piece->end_ns - piece->start_ns;
	struct d9__callback_on *on;
	enum d9__cause cause;

	if (see(worker, piece->end_ns) < 0)
		return -ENOMEM;
	on = in_window(worker, task->callback);
	if (task->window != rounds->number || task->window_worker != worker->number) {
		task->window = rounds->number;
		task->window_worker = worker->number;
		task->window_calls = task->window_ns = 0;
		task->renewed = false;
		go_on(rounds, task);
		go_on_anew(on, task);
	}
	task->window_calls++;
	task->window_ns += ns;
	note_anew(on, task);
	add_brief(&rounds->brief_calls_ns, ns);
	if (rounds->latest.end_ns)
		add_brief(&rounds->brief_gaps_ns, piece->start_ns - rounds->latest.end_ns);
	rounds->latest.end_ns = piece->end_ns;
	rounds->latest.callback = task->callback;
	rounds->latest.calls = task->window_calls;
	rounds->latest.ns = task->window_ns;
	rounds->latest.fd = task->fd;
	rounds->all_busy_ns += ns;
	if (!task->callback->each_round) {
		settle_by_call(worker, piece);
		note_called(worker, task);
	}
	count(&rounds->all, task, callback);
	if (callback->internal)
		return 0;
	rounds->busy_ns += ns;
	/* A callback that the loop calls in each round is never why it woke. */
	if (callback->each_round)
		return 0;
	rounds->calls++;
	rounds->timer_calls += task->reason == D9__WAKE_TIMER;
	cause = cause_of(task);
	count(&rounds->by[cause], task, callback);
	if (callback != task->callback)
		on = in_window(worker, callback);
	if (on)
		count_callback(&rounds->by[cause], ++on->window_calls[cause], task, callback);
	return 0;
}

void d9__rounds_taken(struct d9__worker *worker, struct d9__traced_task *task, uint64_t taken_ns)
{
	struct d9__rounds *rounds = &worker->rounds;

	if (task->window != rounds->number || task->window_worker != worker->number)
		return;
	rounds->ready_ns += taken_ns;
	take(&task->window_ns, taken_ns);
	if (rounds->latest.callback == task->callback && rounds->latest.fd == task->fd)
		take(&rounds->latest.ns, taken_ns);
	take(&rounds->all_busy_ns, taken_ns);
	if (!task->callback->internal)
		take(&rounds->busy_ns, taken_ns);
	if (rounds->all.top.id == task->id)
		take(&rounds->all.top.ns, taken_ns);
	if (rounds->by[cause_of(task)].top.id == task->id)
		take(&rounds->by[cause_of(task)].top.ns, taken_ns);
}

/*
 * The wake before is over since |ns|.  An empty one behind a mere look at descriptors is no wake,
 * as a library may look again after each call; where it does so again and again it goes round for
 * nothing.
 */
static void end_wake(struct d9__worker *worker, uint64_t ns)
{
	struct d9__newest_wake *wake = &worker->wake;
	bool empty = wake->ns && !wake->calls;

	if (empty && (wake->slept || wake->before_empty)) {
		/* By a coarse clock a library looks again and again until a timer is due. */
		if (wake->ns >= wake->pending_ns + EARLY_NS)
			settle(worker);
		if (!wake->pending_ns) {
			wake->pending_ns = wake->ns;
			wake->pending = 0;
			wake->pending_awake_ns = 0;
		}
		wake->pending++;
		wake->pending_awake_ns += ns > wake->ns ? ns - wake->ns : 0;
	} else if (wake->calls && wake->latest && !wake->others) {
		wake->latest->alone += wake->calls;
		wake->latest->wakes++;
	}
	wake->before_empty = empty;
}

int d9__rounds_unpark(struct d9__worker *worker, uint64_t ns, uint64_t parked_ns)
{
	struct d9__rounds *rounds = &worker->rounds;
	bool behind_calls = worker->wake.calls;

	end_wake(worker, ns - parked_ns);
	worker->wake.ns = ns;
	worker->wake.calls = 0;
	worker->wake.others = false;
	worker->wake.slept = parked_ns >= (behind_calls ? SLEPT_BEHIND_NS : SLEPT_NS);

	/* A long wait ends the window in which it began. */
	if (rounds->start_ns) {
		rounds->parked_ns += parked_ns;
		if (parked_ns >= D9__REAL_WAIT_NS) {
			rounds->real_waits++;
			rounds->slept_ns += parked_ns;
			rounds->latest.end_ns = 0;
		}
	}
	if (see(worker, ns) < 0)
		return -ENOMEM;
	rounds->unparks++;
	return 0;
}

static void add_ready(struct d9__rounds *rounds, uint64_t ns)
{
	rounds->ready_ns += ns;
	rounds->waits_ready_ns += ns;
}

void d9__rounds_ready(struct d9__worker *worker, uint64_t from_ns, uint64_t ns)
{
	struct d9__rounds *over = &worker->rounds_over;
	uint64_t before_ns = 0;

	if (from_ns < over->over_ns)
		before_ns = d9__u64_min(ns, d9__u64_minus(over->slept_ns, over->waits_ready_ns));
	add_ready(over, before_ns);
	add_ready(&worker->rounds, ns - before_ns);
}

int d9__rounds_finish(struct d9__worker *worker, uint64_t ns)
{
	int err = 0;

	if (worker->rounds.start_ns && ns > worker->rounds.start_ns)
		err = end(worker, ns);
	worker->rounds.start_ns = 0;
	return err ? err : judge(worker);
}
