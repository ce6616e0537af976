/* SPDX-License-Identifier: Apache-2.0 */
/* Check of loops that are woken again and again for little: one budget for all causes together. */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>

#include "findings/check_parts.h"
#include "text/units.h"

/* Told if it went on for so many windows, and for half of the time or more. */
#define WINDOWS 3

/* Worth a warning from so many a second on. */
#define WARNING_RATE 250

/* Of timers, if a wake is for fewer of them, and each calls so often in a window that has it. */
#define TOGETHER 4
#define AGAIN	 2

/*
 * A descriptor may be a peer's that asks one thing after the other: a warning only if hardly more is done than to
 * read what another thread wrote to wake the loop, and of few, because clients are many.
 */
#define DESCRIPTOR_RATE 500
#define DESCRIPTOR_NS	(3 * D9__US_NS)
#define DESCRIPTORS	4

static const char *const advice[D9__CAUSES] = {
	[D9__CAUSE_TIMER] =
		("Join timers that may run together in one, give them the same deadlines "
		 "(g_timeout_add_seconds(), rounded times), make periods longer, and set them only "
		 "while there is something to look for: each is cheap, all of them keep the CPU "
		 "from "
		 "sleeping."),
	[D9__CAUSE_SIGNAL] = ("Send a signal only when there is something to do and none was sent "
			      "before, or use a "
			      "timer of the loop instead of setitimer(2) or timer_create(2): each "
			      "interrupts the "
			      "loop and goes through its signal descriptor."),
	[D9__CAUSE_DESCRIPTOR] = ("Ask a peer for more at once. To a pipe or eventfd by which "
				  "another thread or process "
				  "wakes this loop, write only if nothing was waiting yet, hand "
				  "over in batches, and let "
				  "the callback take all there is."),
	[D9__CAUSE_THREAD] =
		("Wake the loop only if nothing was waiting for it yet, hand over in batches, and "
		 "let "
		 "the callback take all there is: each wake costs both threads a system call and a "
		 "switch."),
};

static enum d9__cause main_cause(const struct d9__little *little)
{
	size_t most = 0;

	for (size_t i = 1; i < D9__CAUSES; i++)
		if (little->causes[i].calls > little->causes[most].calls)
			most = i;
	return (enum d9__cause)most;
}

/*
 * Whether the timers are many with long periods, as of hundreds of connections: then they are
 * others in each window, how many is not known, and there are no few to join.
 */
static bool are_many(const struct d9__little *little)
{
	const struct d9__little_cause *cause = &little->causes[D9__CAUSE_TIMER];

	return cause->calls < AGAIN * cause->tasks * little->windows;
}

/* "20 timers, tick most often", "signals, on_usr1", "descriptor 7, on_pipe", "thread worker, take_results" */
static void describe_cause(const struct d9__findings *findings, const struct d9__little *little, enum d9__cause which,
			   char *buf, size_t size)
{
	const struct d9__little_cause *cause = &little->causes[which];
	struct d9__shown_name name = d9__finding_name(cause->callback);
	const char *often = cause->tasks > 1 ? " most often" : "";
	char sender[256];

	switch (which) {
	case D9__CAUSE_TIMER:
		snprintf(buf, size, "%s timer%s, %.*s%s",
			 are_many(little) ? "many" : d9__units_count(cause->tasks).text,
			 cause->tasks == 1 ? "" : "s", name.len, name.text, often);
		break;
	case D9__CAUSE_SIGNAL:
		snprintf(buf, size, "signals, for %.*s%s", name.len, name.text, often);
		break;
	case D9__CAUSE_DESCRIPTOR:
		snprintf(buf, size, "%s descriptor%s, %.*s%s (%" PRId64 ")", d9__units_count(cause->tasks).text,
			 cause->tasks == 1 ? "" : "s", name.len, name.text, often, cause->fd);
		break;
	case D9__CAUSE_THREAD:
		d9__finding_waker(findings, cause->waker, cause->waker_worker, sender, sizeof(sender));
		snprintf(buf, size, "%s, for %.*s%s", sender, name.len, name.text, often);
		break;
	default:
		snprintf(buf, size, "%.*s", name.len, name.text);
		break;
	}
}

/*
 * True if a finding of its own tells of |worker|'s wakes: by one timer, other threads, nothing at
 * all.
 */
static bool is_told(const struct d9__findings *findings, const struct d9__worker *worker)
{
	const struct d9__callbacks *callbacks = &findings->analysis->callbacks;
	uint64_t told = worker->empty.windows;

	for (size_t i = 0; i < callbacks->n; i++)
		for (unsigned j = 0; j < D9__SPELLS; j++) {
			const struct d9__spell *spell =
				d9__callback_spell(callbacks->items[i], (enum d9__spell_kind)j, worker->number);

			told += spell ? spell->windows : 0;
		}
	return told >= worker->little.windows;
}

static enum d9__severity severity_of(const struct d9__little *little, enum d9__cause which, uint64_t rate)
{
	const struct d9__little_cause *cause = &little->causes[which];

	if (which == D9__CAUSE_DESCRIPTOR)
		return rate >= DESCRIPTOR_RATE && cause->tasks <= DESCRIPTORS &&
				       10 * cause->calls >= 9 * little->calls &&
				       little->busy_ns < DESCRIPTOR_NS * little->calls
			       ? D9__WARNING
			       : D9__INFO;
	/* Timers that wake it together are joined already. */
	if (which == D9__CAUSE_TIMER &&
	    (little->calls >= TOGETHER * little->wakes || are_many(little)))
		return D9__INFO;
	return rate >= WARNING_RATE ? D9__WARNING : D9__INFO;
}

/* One evidence for each cause of |worker|'s wakes. */
static void add_causes(struct d9__findings *findings, struct d9__finding *finding,
		       const struct d9__worker *worker)
{
	const struct d9__little *little = &worker->little;
	char cause[512];

	for (size_t i = 0; i < D9__CAUSES; i++) {
		const struct d9__little_cause *of = &little->causes[i];

		if (of->calls == 0)
			continue;
		describe_cause(findings, little, (enum d9__cause)i, cause, sizeof(cause));
		d9__finding_add_evidence(findings, finding,
					 &(struct d9__evidence){ .at_ns = little->first_ns,
								 .has_worker = true,
								 .worker = worker->id,
								 .task = of->task,
								 .callback = of->callback },
					 "%s calls a second by %s",
					 d9__units_count(d9__finding_rate(of->calls, little->ns)).text, cause);
	}
}

static void add_rule(struct d9__findings *findings, struct d9__finding *finding)
{
	d9__finding_add_evidence(findings, finding, NULL,
				 "a tenth of a second counts if the loop slept for seven tenths of it, woke over ten times, "
				 "and callbacks took less than 30 us for each; a warning from %u a second on",
				 WARNING_RATE);
}

static bool is_much(const struct d9__worker *worker)
{
	return worker->little.windows >= WINDOWS && 2 * worker->little.windows >= worker->windows;
}

/* The worker that wakes |worker| most often, if it is |worker| that wakes that one most often; else
 * NULL. */
static const struct d9__worker *partner_of(const struct d9__analysis *a,
					   const struct d9__worker *worker)
{
	const struct d9__little *little = &worker->little;
	const struct d9__worker *other;

	if (main_cause(little) != D9__CAUSE_THREAD)
		return NULL;
	other = d9__table_find(&a->timeline.by_id, little->causes[D9__CAUSE_THREAD].waker_worker);
	if (!other || other == worker || !is_much(other) ||
	    main_cause(&other->little) != D9__CAUSE_THREAD ||
	    other->little.causes[D9__CAUSE_THREAD].waker_worker != worker->id)
		return NULL;
	return other;
}

/* Something goes back and forth between two loops. */
static void hops(struct d9__findings *findings, const struct d9__worker *worker,
		 const struct d9__worker *other)
{
	const struct d9__callback *callback = worker->little.causes[D9__CAUSE_THREAD].callback;
	const struct d9__callback *others = other->little.causes[D9__CAUSE_THREAD].callback;
	uint64_t wakes = worker->little.wakes + other->little.wakes;
	uint64_t busy_ns = worker->little.busy_ns + other->little.busy_ns;
	uint64_t rate = d9__finding_rate(worker->little.wakes, worker->little.ns) +
			d9__finding_rate(other->little.wakes, other->little.ns);
	struct d9__shown_name name = d9__finding_name(callback);
	struct d9__shown_name others_name = d9__finding_name(others);
	struct d9__finding *finding;

	finding = d9__finding_add(findings, rate >= WARNING_RATE ? D9__WARNING : D9__INFO, wakes,
				  "Do all of it on one loop, or hand over once, with all that the "
				  "other has to do: it "
				  "goes back and forth between two threads, and each time costs "
				  "both a system call and "
				  "a switch.",
				  "Workers %" PRIu64 " and %" PRIu64
				  " wake each other %s times a second for little, %s "
				  "of callbacks each time: %.*s and %.*s hand over to each other.",
				  worker->id, other->id, d9__units_count(rate).text,
				  d9__units_ns(busy_ns / (wakes ? wakes : 1)).text, name.len,
				  name.text, others_name.len, others_name.text);
	d9__finding_set_callback(findings, finding, callback);
	d9__finding_set_brief(findings, finding,
			      "two loops wake each other %s times a second for little",
			      d9__units_count(rate).text);
	add_causes(findings, finding, worker);
	add_causes(findings, finding, other);
	add_rule(findings, finding);
}

static void many_wakes(struct d9__findings *findings, const struct d9__worker *worker)
{
	const struct d9__little *little = &worker->little;
	enum d9__cause which = main_cause(little);
	uint64_t rate = d9__finding_rate(little->wakes, little->ns);
	struct d9__finding *finding;
	char cause[512];

	describe_cause(findings, little, which, cause, sizeof(cause));
	finding = d9__finding_add(
		findings, severity_of(little, which, rate), little->wakes, advice[which],
		"Worker %" PRIu64
		" is woken %s times a second for little, %s of callbacks each time: "
		"%s of the calls are of %s.",
		worker->id, d9__units_count(rate).text,
		d9__units_ns(little->busy_ns / little->wakes).text,
		d9__units_percent((double)little->causes[which].calls /
				  (double)(little->calls ? little->calls : 1))
			.text,
		cause);
	d9__finding_set_callback(findings, finding, little->causes[which].callback);
	d9__finding_set_brief(findings, finding, "the loop is woken %s times a second for little",
			      d9__units_count(rate).text);
	add_causes(findings, finding, worker);
	add_rule(findings, finding);
}

void d9__check_many_wakes(struct d9__findings *findings)
{
	const struct d9__analysis *a = findings->analysis;

	for (size_t i = 0; i < a->timeline.n; i++) {
		const struct d9__worker *worker = a->timeline.items[i], *partner;

		if (!is_much(worker) || main_cause(&worker->little) == D9__CAUSE_OTHER ||
		    is_told(findings, worker))
			continue;
		partner = partner_of(a, worker);
		if (!partner)
			many_wakes(findings, worker);
		else if (worker->number < partner->number || is_told(findings, partner))
			hops(findings, worker, partner);
	}
}
