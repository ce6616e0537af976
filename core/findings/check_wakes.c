/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of wakes that get lost on their way from one thread to another, and of wakes for nothing.
 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analyze/lost.h"
#include "base/u64.h"
#include "findings/check_parts.h"
#include "findings/owners.h"
#include "text/units.h"

/* Told from so many on, if at least every second wake that found the loop asleep was lost. */
#define LOST_MIN 3

void d9__finding_waker(const struct d9__findings *findings, uint64_t waker, uint64_t waker_worker,
		       char *buf, size_t size)
{
	const struct d9__traced_task *task = d9__table_find(&findings->analysis->tasks.table, waker);
	struct d9__shown_name name;

	if (waker && task && task->callback) {
		name = d9__finding_name(task->callback);
		snprintf(buf, size, "%.*s", name.len, name.text);
	} else if (waker_worker < 254) {
		snprintf(buf, size, "worker %" PRIu64, waker_worker);
	} else {
		snprintf(buf, size, "a thread without a loop");
	}
}

static void lost_wake(struct d9__findings *findings, const struct d9__callback *callback)
{
	const struct d9__lost_wakes *lost = callback->lost;
	struct d9__finding *finding;
	char sender[256];
	struct d9__shown_name name;

	name = d9__finding_name(callback);
	d9__finding_waker(findings, lost->waker, lost->waker_worker, sender, sizeof(sender));
	finding = d9__finding_add(
		findings, lost->slept_ns / lost->lost > 50 * D9__MS_NS ? D9__CRITICAL : D9__WARNING,
		lost->slept_ns,
		"Wake the loop as well (libev: ev_async_send() behind all else, and of the right loop; libevent: "
		"evthread_use_pthreads() before the first base; GLib: g_main_context_wakeup()): what makes a "
		"callback ready does not wake a loop that another thread runs.",
		"%s makes %.*s ready and does not wake its loop: it slept on for %s on average, %s of "
		"%s times, until something else came.",
		sender, name.len, name.text, d9__units_ns(lost->slept_ns / lost->lost).text,
		d9__units_count(lost->lost).text, d9__units_count(lost->asleep).text);
	d9__finding_set_callback(findings, finding, callback);
	d9__finding_set_brief(findings, finding, "is ready and its loop sleeps on, %s of %s times",
			      d9__units_count(lost->lost).text, d9__units_count(lost->asleep).text);
	d9__finding_add_evidence(findings, finding,
				 &(struct d9__evidence){ .at_ns = lost->at_ns,
							 .duration_ns = lost->longest_ns,
							 .has_worker = true,
							 .worker = lost->worker,
							 .task = lost->task,
							 .callback = callback },
				 "ready, while its worker slept on");
	d9__finding_add_evidence(findings, finding, NULL,
				 "lost: by another thread, to a loop that slept, and it slept on for %s, "
				 "without a wait for a CPU; told from %d and every second on",
				 d9__units_ns(D9__LOST_NS).text, LOST_MIN);
}

void d9__check_lost_wake(struct d9__findings *findings)
{
	const struct d9__callbacks *callbacks = &findings->analysis->callbacks;

	/* GLib wakes a loop whenever another thread makes a source of it ready: what comes late waited for a CPU. */
	if (d9__metadata_is_only(&findings->analysis->metadata, "glib"))
		return;
	for (size_t i = 0; i < callbacks->n; i++) {
		const struct d9__lost_wakes *lost = callbacks->items[i]->lost;

		if (lost && lost->lost >= LOST_MIN && 2 * lost->lost >= lost->asleep)
			lost_wake(findings, callbacks->items[i]);
	}
}

/* ---- wakes for nothing ---- */

/* Told from so many on, at so many a second, if each fifth wake is one at least; or if they take so
 * much of the time. */
#define EMPTY_MIN   50
#define EMPTY_RATE  50
#define EMPTY_PART  5
#define EMPTY_SHARE 0.02

/* No call for nothing takes so long on average. */
#define EMPTY_CALL_NS (500 * D9__US_NS)

/* Of less time that the machine left to a loop none is told. */
#define EMPTY_LEAST_NS (500 * D9__MS_NS)

/* Worth a warning if they take that share, or come so often a second. */
#define EMPTY_WARNING_RATE 200

/* Critical if they take that share. */
#define EMPTY_CRITICAL_SHARE 0.5

/*
 * GLib's own threads, whose loops no program has a hand in: each GTask sets a timer in "gmain"
 * anew, which wakes it to wait for longer.  By the name alone it may be a thread that the program
 * made.
 */
bool d9__worker_is_librarys_own(const struct d9__analysis *a, const struct d9__worker *worker)
{
	const char *name = d9__metadata_group(&a->metadata, worker->id);

	if (!name || (strcmp(name, "gmain") && strcmp(name, "gdbus")))
		return false;
	for (size_t i = 0; i < a->callbacks.n; i++)
		if (!a->callbacks.items[i]->internal &&
		    d9__callback_ran_on(a->callbacks.items[i], worker->number))
			return false;
	return true;
}

/* Wakes for nothing of one cause, on all loops that have it. */
struct nothing {
	uint64_t empty, wakes;
	double rate;  /* of all loops together */
	double share; /* of the loop that loses most */
	uint64_t loops;
	const struct d9__worker *most; /* with most of them */
	uint64_t most_empty;
};

/* |empty| of its |wakes| were for nothing, which took |ns|: count them, if that is much for the
 * loop. */
static void add_loop(struct nothing *nothing, const struct d9__worker *worker,
		     const struct d9__owners *owners, uint64_t empty, uint64_t ns)
{
	double share = d9__owners_share(owners, ns);
	double rate = owners->left_ns
			      ? (double)empty * (double)D9__SECOND_NS / (double)owners->left_ns
			      : 0;

	if (owners->left_ns < EMPTY_LEAST_NS || empty < EMPTY_MIN ||
	    (share < EMPTY_SHARE && (rate < EMPTY_RATE || EMPTY_PART * empty < worker->parks)))
		return;
	nothing->empty += empty;
	nothing->wakes += worker->parks;
	nothing->rate += rate;
	nothing->loops++;
	if (share > nothing->share)
		nothing->share = share;
	if (empty <= nothing->most_empty)
		return;
	nothing->most = worker;
	nothing->most_empty = empty;
}

static enum d9__severity severity_of(const struct nothing *nothing)
{
	if (nothing->share >= EMPTY_CRITICAL_SHARE)
		return D9__CRITICAL;
	return nothing->share >= EMPTY_SHARE || nothing->rate >= EMPTY_WARNING_RATE ? D9__WARNING
										    : D9__INFO;
}

/* ", on 4 loops together", or nothing. */
static const char *describe_loops(const struct nothing *nothing, char *buf, size_t size)
{
	buf[0] = '\0';
	if (nothing->loops > 1)
		snprintf(buf, size, ", on %s loops together", d9__units_count(nothing->loops).text);
	return buf;
}

static void add_loops(struct d9__findings *findings, struct d9__finding *finding,
		      const struct nothing *nothing)
{
	d9__finding_add_evidence(
		findings, finding,
		&(struct d9__evidence) { .has_worker = true, .worker = nothing->most->id },
		"has most: %s for nothing of %s wakes, %.1f %% of its time",
		d9__units_count(nothing->most_empty).text,
		d9__units_count(nothing->most->parks).text, 100 * nothing->share);
	d9__finding_add_evidence(findings, finding, NULL,
				 "told from %u a second on, if each fifth wake is for nothing, or "
				 "from %.0f %% of the time on; "
				 "a warning from %u a second on, or by that share",
				 EMPTY_RATE, 100 * EMPTY_SHARE, EMPTY_WARNING_RATE);
}

/* ---- nothing is called ---- */

static void nothing_called(struct d9__findings *findings, const struct nothing *nothing)
{
	uint64_t rate = d9__finding_rate((uint64_t)nothing->rate, D9__SECOND_NS);
	struct d9__finding *finding;
	char loops[160];

	finding = d9__finding_add(
		findings, severity_of(nothing), nothing->empty,
		"Wake the loop when there is something to run: another thread wakes it and gives "
		"it no work "
		"(g_main_context_wakeup(), a write to its wake-up descriptor); or a descriptor is "
		"ready that nothing is "
		"called for, because it hung up and that was not asked for (POLLHUP), or because "
		"it was closed before "
		"its event was removed and a child still has it; or a source asks for a short "
		"timeout and is not ready "
		"then; or signals interrupt its waits (setitimer(2), SIGCHLD), with handlers of "
		"the program's own: let the loop have them.",
		"Worker %" PRIu64
		" wakes %s times a second and finds nothing to run%s: %.0f %% of its wakes.",
		nothing->most->id, d9__units_count(rate).text,
		describe_loops(nothing, loops, sizeof(loops)),
		100 * (double)nothing->empty / (double)(nothing->wakes ? nothing->wakes : 1));
	d9__finding_set_brief(findings, finding,
			      "worker %" PRIu64 " wakes %s times a second for nothing",
			      nothing->most->id, d9__units_count(rate).text);
	add_loops(findings, finding, nothing);
}

static void check_nothing_called(struct d9__findings *findings)
{
	const struct d9__analysis *a = findings->analysis;
	struct nothing nothing = { .most = NULL };

	/*
	 * Callbacks that the hooks do not see may well have run, and workers of another runtime
	 * wake to look for work of each other's.
	 */
	if (d9__metadata_coverage(&a->metadata, "poll") != D9__COVERAGE_FULL ||
	    !d9__metadata_says(&a->metadata, "poll", "full"))
		return;
	for (size_t i = 0; i < a->timeline.n; i++) {
		const struct d9__worker *worker = a->timeline.items[i];

		if (worker->empty.windows >= D9__SPELL_WINDOWS &&
		    !d9__worker_is_librarys_own(a, worker))
			add_loop(&nothing, worker, &findings->owners[i], worker->empty.all,
				 worker->empty.awake_ns);
	}
	if (nothing.most)
		nothing_called(findings, &nothing);
}

/* ---- a source of GLib has its loop not wait, and is not called ---- */

/* Told from so many rounds a second on, if so few of them waited or called something, and if the
 * program does not go round its loop by itself. */
#define ROUNDS_RATE  1000
#define ROUNDS_PART  10
#define BETWEEN_PART 50

uint64_t d9__finding_rounds(const struct d9__analysis *a, const struct d9__worker *worker)
{
	uint64_t rounds = 0;

	for (size_t i = 0; i < a->callbacks.n; i++) {
		const struct d9__outside *outside = &a->callbacks.items[i]->outside[D9__IN_PREPARE];

		if (outside->worker == worker->id && outside->calls > rounds)
			rounds = outside->calls;
	}
	return rounds;
}

/* The one callback whose source is asked in most rounds of |worker| and not called in them, or
 * NULL: there are several. */
static const struct d9__callback *asked_only(const struct d9__analysis *a,
					     const struct d9__worker *worker, uint64_t rounds)
{
	const struct d9__callback *found = NULL;

	for (size_t i = 0; i < a->callbacks.n; i++) {
		const struct d9__callback *callback = a->callbacks.items[i];
		const struct d9__outside *outside = &callback->outside[D9__IN_PREPARE];

		if (outside->worker != worker->id || 2 * outside->calls < rounds ||
		    ROUNDS_PART * callback->calls > rounds)
			continue;
		if (found)
			return NULL;
		found = callback;
	}
	return found;
}

static void does_not_wait(struct d9__findings *findings, const struct d9__worker *worker,
			  const struct d9__owners *owners, uint64_t rounds, double share)
{
	const struct d9__callback *callback = asked_only(findings->analysis, worker, rounds);
	uint64_t rate = d9__finding_rate(rounds, owners->left_ns);
	struct d9__shown_name name = d9__finding_name(callback);
	struct d9__finding *finding;

	finding = d9__finding_add(
		findings, share >= 0.5 ? D9__CRITICAL : D9__WARNING, rounds,
		"Let prepare() set the timeout to -1 while the source has nothing to do, or to the "
		"time until it has: with 0 the loop does not wait, and where check() then says "
		"no, it goes round again and nothing is called. What makes the source ready "
		"wakes the loop by a descriptor, g_source_set_ready_time() or "
		"g_main_context_wakeup().",
		"Worker %" PRIu64
		"'s loop goes round %s times a second without a wait and calls nothing: "
		"prepare() of %.*s asks for no time to wait, %.0f %% of the time in all.",
		worker->id, d9__units_count(rate).text, callback ? name.len : 9,
		callback ? name.text : "a source", 100 * share);
	if (callback)
		d9__finding_set_callback(findings, finding, callback);
	d9__finding_set_brief(findings, finding,
			      "%s its loop not wait, %s rounds a second for nothing",
			      callback ? "has" : "a source has", d9__units_count(rate).text);
	d9__finding_add_evidence(
		findings, finding,
		&(struct d9__evidence) {
			.has_worker = true, .worker = worker->id, .callback = callback },
		"%s calls of prepare(), %s waits and %s callbacks; told from %u a second on, if "
		"one in %u at most waited or called",
		d9__units_count(rounds).text, d9__units_count(worker->parks).text,
		d9__units_count(worker->polls).text, ROUNDS_RATE, ROUNDS_PART);
	if (callback)
		d9__finding_explain(findings, finding, callback);
}

static void check_does_not_wait(struct d9__findings *findings, size_t number)
{
	const struct d9__worker *worker = findings->analysis->timeline.items[number];
	const struct d9__owners *owners = &findings->owners[number];
	uint64_t rounds = d9__finding_rounds(findings->analysis, worker);
	uint64_t ns = owners->awake_ns;
	double share;

	for (size_t i = 0; i < owners->n; i++)
		if (owners->items[i].kind == D9__OWNER_CALLBACK)
			ns = d9__u64_minus(ns, owners->items[i].ns);
	share = d9__owners_share(owners, ns);
	if (owners->left_ns >= EMPTY_LEAST_NS && share >= EMPTY_SHARE &&
	    d9__finding_rate(rounds, owners->left_ns) >= ROUNDS_RATE &&
	    ROUNDS_PART * (worker->parks + worker->polls) <= rounds &&
	    BETWEEN_PART * worker->loop_time.outside_ns <= owners->left_ns)
		does_not_wait(findings, worker, owners, rounds, share);
}

/* ---- what is called brings nothing ---- */

/*
 * Whether half of the calls and more took connections, or tried to.  A function that serves all
 * descriptors of a program (gevent's) takes some, and is no listener.
 */
static bool is_listener(const struct d9__io *io, uint64_t calls)
{
	return io->accepts && 2 * io->accepts >= calls;
}

/*
 * Of the wakes in which nothing but the callback was called, how many brought nothing, at the
 * least: a call that brought something may have tried until there was no more, and those beside
 * others are the ones without.
 */
static uint64_t empty_wakes(const struct d9__callback_on *on, uint64_t ends)
{
	const struct d9__io *io = &on->io;
	uint64_t useless = io->again + d9__u64_minus(io->eof + io->errors, ends);
	/* A listener is called for connections: what it reads from them and writes to them comes
	 * after. */
	uint64_t useful = is_listener(io, on->calls) ? d9__u64_minus(io->accepts, useless)
						     : d9__io_useful(io);
	uint64_t empty = d9__u64_minus(on->calls, useful + ends);

	/* Calls that take long do something, whatever their reads bring. */
	if (on->ns >= EMPTY_CALL_NS * on->calls)
		return 0;
	empty = d9__u64_minus(empty < useless ? empty : useless, on->calls - on->alone);
	return on->alone ? (uint64_t)((double)empty * (double)on->wakes / (double)on->alone) : 0;
}

static const char *nobody_knew(const struct d9__io *io, const struct nothing *nothing, bool listens)
{
	if (listens)
		return "Let one loop take connections and hand them over, or give each loop a "
		       "listener of its own "
		       "(SO_REUSEPORT), or have the kernel wake one of them (EPOLLEXCLUSIVE): all "
		       "wake for each "
		       "connection, and one gets it.";
	if (nothing->loops > 1)
		return "Let one loop watch the descriptor, or have the kernel wake one of them "
		       "(EPOLLEXCLUSIVE): all wake "
		       "for what comes, and one gets it.";
	return d9__finding_nothing_advice(io);
}

/* Of a timer that has its callback try again and again, by how it tries and fails. */
static const char *wait_instead(const struct d9__io *io)
{
	if (io->errors && io->errors >= io->again && io->errors >= io->eof)
		return "Stop the timer when a call fails like that, and close the descriptor: it "
		       "will not do better the next time.";
	if (io->writes > io->reads + io->accepts)
		return "Wait for the descriptor instead of trying by a timer: add it to the loop "
		       "for writing (EV_WRITE, G_IO_OUT) while something is left to write, and it "
		       "is called when there is room.";
	return "Wait for the descriptor instead of looking by a timer: add it to the loop for "
	       "reading (EV_READ, G_IO_IN), and it is called when there is something.";
}

static void brings_nothing(struct d9__findings *findings, const struct d9__callback *callback,
			   const struct nothing *nothing, const struct d9__io *io, bool timer,
			   bool listens)
{
	uint64_t rate = d9__finding_rate((uint64_t)nothing->rate, D9__SECOND_NS);
	bool herd = listens || (nothing->loops > 1 && !timer);
	struct d9__shown_name name = d9__finding_name(callback);
	struct d9__finding *finding;
	char loops[160], why[96];

	d9__finding_nothing(io, why, sizeof(why));
	finding = d9__finding_add(findings, severity_of(nothing), nothing->empty,
				  timer ? wait_instead(io) : nobody_knew(io, nothing, listens),
				  "%.*s wakes its loop %s times a second for nothing%s: %s%s.",
				  name.len, name.text, d9__units_count(rate).text,
				  describe_loops(nothing, loops, sizeof(loops)), why,
				  herd ? ", as another was faster: a thundering herd" : "");
	d9__finding_set_callback(findings, finding, callback);
	d9__finding_set_brief(findings, finding, "wakes %s times a second for nothing%s",
			      d9__units_count(rate).text, herd ? ": thundering herd" : "");
	d9__finding_add_evidence(findings, finding, &(struct d9__evidence) { .callback = callback },
				 "of %s reads, writes and accepts %s brought nothing: %s EAGAIN, "
				 "%s with 0 bytes, %s errors",
				 d9__units_count(d9__io_calls(io)).text,
				 d9__units_count(d9__io_calls(io) - d9__io_useful(io)).text,
				 d9__units_count(io->again).text, d9__units_count(io->eof).text,
				 d9__units_count(io->errors).text);
	add_loops(findings, finding, nothing);
}

/* Whether it is told already that |callback| goes round for nothing. */
static bool is_told(const struct d9__findings *findings, const struct d9__callback *callback)
{
	static const char *const checks[] = { "spin", "accept-storm", "works-for-nothing" };

	for (size_t i = 0; i < findings->n; i++)
		for (size_t j = 0; j < sizeof(checks) / sizeof(checks[0]); j++)
			if (findings->items[i]->callback == callback &&
			    !strcmp(findings->items[i]->check, checks[j]))
				return true;
	return false;
}

static void check_brings_nothing(struct d9__findings *findings, const struct d9__callback *callback)
{
	const struct d9__analysis *a = findings->analysis;
	struct nothing nothing = { .most = NULL };
	uint64_t timers = 0, calls = 0;
	struct d9__io io = { .fd = -1 };

	for (size_t i = 0; i < callback->n_on && i < a->timeline.n; i++) {
		const struct d9__callback_on *on = callback->on[i];
		/* A task that ends, at the end of its connection say, was of use. */
		uint64_t empty = on && d9__io_calls(&on->io) ? empty_wakes(on, callback->ended) : 0;

		if (!empty)
			continue;
		add_loop(&nothing, a->timeline.items[i], &findings->owners[i], empty,
			 (uint64_t)((double)on->ns * (double)empty / (double)on->calls));
		d9__io_add(&io, &on->io);
		timers += on->by_timer;
		calls += on->calls;
	}
	if (nothing.most && !is_told(findings, callback))
		brings_nothing(findings, callback, &nothing, &io, 2 * timers > calls,
			       is_listener(&io, calls));
}

void d9__check_empty_wakes(struct d9__findings *findings)
{
	const struct d9__callbacks *callbacks = &findings->analysis->callbacks;

	check_nothing_called(findings);
	for (size_t i = 0; i < findings->analysis->timeline.n; i++)
		check_does_not_wait(findings, i);
	for (size_t i = 0; i < callbacks->n; i++)
		check_brings_nothing(findings, callbacks->items[i]);
}
