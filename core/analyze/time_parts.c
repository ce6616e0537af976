/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "analyze/stalls.h"
#include "analyze/time_parts.h"
#include "analyze/worst.h"
#include "base/u64.h"
#include "text/json.h"
#include "text/units.h"

/* The recorder writes CPU times in steps of so much. */
#define STEP_NS 4096

/* Parts from here on are told, in thousandths. */
#define TOLD_PART 5

/* |ns| of |*left|, or all that is left; takes it. */
static uint64_t take(uint64_t *left, uint64_t ns)
{
	uint64_t taken = d9__u64_min(*left, ns);

	*left -= taken;
	return taken;
}

/* ---- accounts ---- */

void d9__time_told_add(struct d9__told_time *told, const char *function, uint64_t ns)
{
	unsigned i = 0;

	while (i < told->n && told->in[i].function != function)
		i++;
	if (i == D9__TOLD_FUNCTIONS) {
		if (told->in[--i].ns >= ns)
			return;
		told->in[i].ns = 0;
	} else if (i == told->n) {
		told->in[told->n++].ns = 0;
	}
	told->in[i].function = function;
	told->in[i].ns += ns;
	for (; i && told->in[i].ns > told->in[i - 1].ns; i--) {
		uint64_t swap_ns = told->in[i].ns;

		told->in[i] = told->in[i - 1];
		told->in[i - 1].function = function;
		told->in[i - 1].ns = swap_ns;
	}
}

void d9__time_told_subtract(struct d9__told_time *told, const struct d9__told_time *before)
{
	struct d9__told_time left = { .n = 0 };

	for (unsigned i = 0; i < told->n; i++) {
		uint64_t ns = told->in[i].ns;

		for (unsigned j = 0; j < before->n; j++)
			if (before->in[j].function == told->in[i].function)
				ns = d9__u64_minus(ns, before->in[j].ns);
		if (ns)
			d9__time_told_add(&left, told->in[i].function, ns);
	}
	*told = left;
}

void d9__time_account_add(struct d9__account *account, const struct d9__account *from)
{
	account->on_cpu_ns += from->on_cpu_ns;
	account->ready_ns += from->ready_ns;
	account->blocked_ns += from->blocked_ns;
	account->by_period_ns += from->by_period_ns;
	account->samples += from->samples;
	account->major_faults += from->major_faults;
	for (unsigned i = 0; i < from->told.n; i++)
		d9__time_told_add(&account->told, from->told.in[i].function, from->told.in[i].ns);
}

/* Give what nothing else tells to the CPU, as far as samples say so. */
static void count_samples(struct d9__parts *parts, const struct d9__account *account,
			  uint64_t period_ns)
{
	uint64_t elapsed_ns = parts->total_ns - parts->waiting_ns,
		 sampled_ns = account->samples * period_ns, more_ns;

	if (period_ns == 0 || parts->unknown_ns == 0)
		return;
	if (elapsed_ns < D9__SAMPLES_FEW * period_ns) {
		/* Readings are worth more than a word about samples. */
		parts->few_samples = 20 * parts->unknown_ns > elapsed_ns;
		return;
	}
	more_ns = d9__u64_min(d9__u64_minus(sampled_ns, parts->on_cpu_ns), parts->unknown_ns);
	parts->by_samples = more_ns > 0;
	parts->on_cpu_ns += more_ns;
	parts->unknown_ns -= more_ns;
}

struct d9__parts d9__time_parts_of(const struct d9__account *account, uint64_t total_ns,
			      uint64_t waiting_ns, uint64_t period_ns)
{
	struct d9__parts parts = { .total_ns = total_ns, .unknown_ns = total_ns };

	parts.waiting_ns = take(&parts.unknown_ns, waiting_ns);
	parts.ready_ns = take(&parts.unknown_ns, account->ready_ns);
	parts.blocked_ns = take(&parts.unknown_ns, account->blocked_ns);
	parts.on_cpu_ns = take(&parts.unknown_ns, account->on_cpu_ns);
	count_samples(&parts, account, period_ns);
	return parts;
}

/* ---- for people ---- */

struct word {
	uint64_t ns;
	char text[160];
};

/* A part in percent, without decimals from ten on. */
static void put_word(const struct d9__parts *parts, const struct word *word, bool first, char *buf,
		     size_t size)
{
	double percent = 100 * (double)word->ns / (double)parts->total_ns;
	size_t used = strlen(buf);

	snprintf(buf + used, size - used, "%s%.0f %% %s", first ? "" : ", ",
		 percent < 1 ? 1 : percent, word->text);
}

/* Of the blocked part, what was told by function, and the rest. */
static size_t blocked_words(const struct d9__parts *parts, const struct d9__account *account,
			    struct word *words)
{
	uint64_t left_ns = parts->blocked_ns;
	size_t n = 0;

	for (unsigned i = 0; i < account->told.n && left_ns; i++) {
		words[n].ns = take(&left_ns, account->told.in[i].ns);
		snprintf(words[n++].text, sizeof(words->text), "blocked in %.64s",
			 account->told.in[i].function);
	}
	words[n].ns = left_ns;
	/* A page that comes from a disk is waited for, and no call tells it. */
	if (account->major_faults)
		snprintf(words[n].text, sizeof(words->text),
			 "blocked%s, %s page faults from disk among that",
			 account->told.n ? " elsewhere" : "",
			 d9__units_count(account->major_faults).text);
	else
		snprintf(words[n].text, sizeof(words->text),
			 account->told.n ? "blocked elsewhere" : "blocked");
	return n + 1;
}

const char *d9__time_parts_text(const struct d9__parts *parts, const struct d9__account *account,
			   char *buf, size_t size)
{
	struct word words[D9__TOLD_FUNCTIONS + 5] = {
		{ parts->on_cpu_ns, "on CPU" },
		{ parts->ready_ns, "ready" },
		{ parts->waiting_ns, "waiting" },
		{ parts->unknown_ns, "unknown" },
	};
	size_t n = 4 + blocked_words(parts, account, words + 4);
	bool first = true;

	if (parts->by_samples)
		snprintf(words[0].text, sizeof(words->text), "on CPU by samples");
	if (parts->few_samples)
		snprintf(words[3].text, sizeof(words->text), "unknown: too few samples (%llu)",
			 (unsigned long long)account->samples);
	buf[0] = '\0';
	for (;;) {
		struct word *most = words;

		for (size_t i = 1; i < n; i++)
			if (words[i].ns > most->ns)
				most = &words[i];
		if (most->ns == 0 || 1000 * (double)most->ns < TOLD_PART * (double)parts->total_ns)
			return buf;
		put_word(parts, most, first, buf, size);
		first = false;
		most->ns = 0;
	}
}

void d9__time_parts_json(struct d9__json *json, const struct d9__parts *parts,
		    const struct d9__account *account, bool waits)
{
	d9__json_open(json, "time", '{');
	d9__json_u64(json, "total_ns", parts->total_ns);
	d9__json_u64(json, "on_cpu_ns", parts->on_cpu_ns);
	d9__json_u64(json, "ready_ns", parts->ready_ns);
	d9__json_u64(json, "blocked_ns", parts->blocked_ns);
	if (waits)
		d9__json_u64(json, "waiting_ns", parts->waiting_ns);
	d9__json_u64(json, "unknown_ns", parts->unknown_ns);
	d9__json_u64(json, "by_period_ns", d9__u64_min(account->by_period_ns, parts->total_ns));
	d9__json_bool(json, "by_period", account->by_period_ns > 0);
	d9__json_bool(json, "by_samples", parts->by_samples);
	d9__json_u64(json, "samples", account->samples);
	d9__json_u64(json, "major_faults", account->major_faults);
	d9__json_bool(json, "too_few_samples", parts->few_samples);
	d9__json_open(json, "blocked_in", '[');
	for (unsigned i = 0; i < account->told.n; i++) {
		d9__json_open(json, NULL, '{');
		d9__json_string(json, "function", account->told.in[i].function);
		d9__json_u64(json, "ns", account->told.in[i].ns);
		d9__json_close(json, '}');
	}
	d9__json_close(json, ']');
	d9__json_close(json, '}');
}

/* ---- calls ---- */

/* Add a stay to those of the same account; without room it is left out, and its time stays unknown.
 */
static void add_stay(struct d9__time_stay *stays, unsigned *n, unsigned max,
		     const struct d9__time_stay *stay)
{
	unsigned i = *n;

	while (i && stays[i - 1].account != stay->account)
		i--;
	if (i == 0) {
		if (*n == max)
			return;
		stays[(*n)++] = (struct d9__time_stay) { stay->account, 0, 0 };
		i = *n;
	}
	stays[i - 1].ns += stay->ns;
	stays[i - 1].told_ns += stay->told_ns;
}

/*
 * Count time in a call under 1 ms, or between calls: subtract the blocking calls that were recorded; the
 * rest gets its share of the period's CPU reading.
 */
static void add_short(struct d9__period *period, struct d9__time_stay stay)
{
	stay.told_ns = d9__u64_min(stay.told_ns, stay.ns);
	stay.account->blocked_ns += stay.told_ns;
	stay.ns -= stay.told_ns;
	stay.told_ns = 0;
	add_stay(period->shorts, &period->n_shorts, D9__PERIOD_STAYS, &stay);
}

/* A stay in a long call without a reading. */
static void add_long(struct d9__period *period, const struct d9__time_stay *stay,
		     struct d9__stall *stall)
{
	uint64_t told_ns = d9__u64_min(stay->told_ns, stay->ns);

	stay->account->blocked_ns += told_ns;
	if (stall)
		stall->time.blocked_ns += told_ns;
	if (period->n_longs == D9__PERIOD_LONGS)
		return;
	period->longs[period->n_longs].account = stay->account;
	period->longs[period->n_longs].stall = stall ? d9__stall_ref(stall) : NULL;
	period->longs[period->n_longs++].ns = stay->ns - told_ns;
}

/* No reading came for the call that ended last. */
static void let_go(struct d9__period *period)
{
	uint64_t told_ns = d9__u64_min(period->pending.told_ns, period->pending.ns);

	if (!period->pending.valid)
		return;
	period->pending.valid = false;
	add_long(period, &period->pending.self, period->pending.stall);
	for (unsigned i = 0; i < period->n_inside; i++)
		add_long(period, &period->inside[i], NULL);
	d9__stall_unref(period->pending.stall);
	period->told_ns += told_ns;
	period->long_ns += period->pending.ns - told_ns;
}

void d9__time_period_begin(struct d9__period *period)
{
	let_go(period);
	period->n_inside = 0;
	period->told.n = 0;
}

void d9__time_period_inside(struct d9__period *period, struct d9__account *account, uint64_t ns,
		       uint64_t told_ns)
{
	add_stay(period->inside, &period->n_inside, D9__CALL_STAYS,
		 &(struct d9__time_stay) { account, ns, told_ns });
}

void d9__time_period_short(struct d9__period *period, struct d9__account *account, uint64_t ns)
{
	add_short(period, (struct d9__time_stay) { account, ns, 0 });
}

void d9__time_period_call(struct d9__period *period, const struct d9__period_call *call)
{
	if (call->has_reading) {
		period->pending.valid = true;
		period->pending.task = call->task;
		period->pending.ns = call->ns;
		period->pending.told_ns = call->told_ns;
		period->pending.self = call->self;
		period->pending.stall = call->stall ? d9__stall_ref(call->stall) : NULL;
		return;
	}
	period->told_ns += d9__u64_min(call->told_ns, call->ns);
	add_short(period, call->self);
	for (unsigned i = 0; i < period->n_inside; i++)
		add_short(period, period->inside[i]);
}

/* ---- a reading of one call ---- */

struct reading {
	uint64_t told_ns;		       /* of the blocked part, by those who were there */
	uint64_t on_cpu_ns, ready_ns, rest_ns; /* rest: blocked, not told */
	uint64_t left_ns;		       /* of the call, without what was told */
};

/*
 * Add the part of the call that |stay| has for certain, because the rest of the call cannot have
 * had it.
 */
static void add_certain(const struct reading *reading, const struct d9__time_stay *stay)
{
	uint64_t told_ns = d9__u64_min(d9__u64_min(stay->told_ns, stay->ns), reading->told_ns);
	uint64_t others_ns = d9__u64_minus(reading->left_ns, stay->ns - told_ns);

	stay->account->blocked_ns += told_ns + d9__u64_minus(reading->rest_ns, others_ns);
	stay->account->ready_ns += d9__u64_minus(reading->ready_ns, others_ns);
	stay->account->on_cpu_ns += d9__u64_minus(reading->on_cpu_ns, others_ns);
}

static void add_to_call(struct d9__stall *stall, const struct reading *reading)
{
	if (!stall)
		return;
	stall->time.on_cpu_ns += reading->on_cpu_ns;
	stall->time.ready_ns += reading->ready_ns;
	stall->time.blocked_ns += reading->told_ns + reading->rest_ns;
}

void d9__time_period_read(struct d9__period *period, uint64_t task, const struct d9__call_reading *read)
{
	uint64_t left_ns = period->pending.ns, blocked_ns;
	struct reading reading;

	if (!period->pending.valid || period->pending.task != task)
		return;
	period->pending.valid = false;
	reading.ready_ns = take(&left_ns, read->ready_ns);
	blocked_ns = take(&left_ns, read->blocked_ns);
	reading.on_cpu_ns =
		read->cpu_ns == UINT64_MAX ? left_ns : d9__u64_min(left_ns, read->cpu_ns + STEP_NS);
	/* A call that can block is told by the clock: while it is not asleep, too. */
	reading.told_ns = d9__u64_min(period->pending.told_ns, blocked_ns);
	reading.rest_ns = blocked_ns - reading.told_ns;
	reading.left_ns = period->pending.ns - reading.told_ns;
	add_certain(&reading, &period->pending.self);
	for (unsigned i = 0; i < period->n_inside; i++)
		add_certain(&reading, &period->inside[i]);
	add_to_call(period->pending.stall, &reading);
	d9__stall_unref(period->pending.stall);
	period->read_ns += period->pending.ns;
	period->on_cpu_ns += reading.on_cpu_ns;
	period->ready_ns += reading.ready_ns;
	period->blocked_ns += blocked_ns;
}

/* ---- the end of a period ---- */

/* The part of |all_ns|, in a time of |of_ns|, that a short call of |ns| has. */
static uint64_t part_of(uint64_t all_ns, uint64_t ns, uint64_t of_ns)
{
	if (all_ns == 0 || all_ns == of_ns)
		return all_ns == of_ns ? ns : 0;
	return (uint64_t)((double)all_ns * (double)ns / (double)of_ns);
}

/*
 * In |awake_ns|, besides calls with readings and waits that were told, |cpu_ns| of CPU were used,
 * and for |ready_ns| there was none.
 */
static void share(struct d9__period *period, uint64_t awake_ns, uint64_t cpu_ns, uint64_t ready_ns)
{
	uint64_t shorts_ns = d9__u64_minus(awake_ns, period->long_ns);
	uint64_t shared_ns = d9__u64_min(d9__u64_minus(cpu_ns, period->long_ns), shorts_ns);
	uint64_t shared_ready_ns =
		d9__u64_min(d9__u64_minus(ready_ns, period->long_ns), shorts_ns - shared_ns);

	for (unsigned i = 0; i < period->n_longs; i++) {
		uint64_t others_ns = d9__u64_minus(awake_ns, period->longs[i].ns);
		uint64_t ns = d9__u64_min(d9__u64_minus(cpu_ns, others_ns), period->longs[i].ns);

		period->longs[i].account->on_cpu_ns += ns;
		period->longs[i].account->ready_ns += d9__u64_minus(ready_ns, others_ns);
		period->longs[i].account->by_period_ns += period->longs[i].ns;
		if (period->longs[i].stall) {
			period->longs[i].stall->time.on_cpu_ns += ns;
			period->longs[i].stall->time.by_period_ns += period->longs[i].ns;
		}
	}
	for (unsigned i = 0; i < period->n_shorts; i++) {
		struct d9__account *account = period->shorts[i].account;
		uint64_t ns = d9__u64_min(period->shorts[i].ns, shorts_ns);

		account->by_period_ns += period->shorts[i].ns;
		account->on_cpu_ns += part_of(shared_ns, ns, shorts_ns);
		account->ready_ns += part_of(shared_ready_ns, ns, shorts_ns);
	}
}

uint64_t d9__time_period_off_cpu(struct d9__period *period)
{
	let_go(period);
	return period->ready_ns + period->blocked_ns + period->told_ns;
}

void d9__time_period_ready(struct d9__period *period, uint64_t ns)
{
	period->untold_ready_ns += ns;
}

void d9__time_period_end(struct d9__period *period, struct d9__account *worker, uint64_t awake_ns,
		    uint64_t cpu_ns)
{
	uint64_t left_ns = awake_ns, untold_ready_ns;

	let_go(period);
	worker->ready_ns += take(&left_ns, period->ready_ns);
	untold_ready_ns = take(&left_ns, period->untold_ready_ns);
	worker->ready_ns += untold_ready_ns;
	worker->blocked_ns += take(&left_ns, period->blocked_ns + period->told_ns);
	worker->on_cpu_ns += take(&left_ns, cpu_ns == UINT64_MAX ? period->on_cpu_ns : cpu_ns);
	if (cpu_ns != UINT64_MAX) {
		uint64_t others_ns = d9__u64_minus(awake_ns, period->read_ns + period->told_ns);

		share(period, others_ns,
		      d9__u64_min(d9__u64_minus(cpu_ns, period->on_cpu_ns), others_ns),
		      untold_ready_ns);
	}
	d9__time_period_release(period);
}

void d9__time_period_release(struct d9__period *period)
{
	if (period->pending.valid)
		d9__stall_unref(period->pending.stall);
	for (unsigned i = 0; i < period->n_longs; i++)
		d9__stall_unref(period->longs[i].stall);
	period->read_ns = period->on_cpu_ns = period->ready_ns = period->blocked_ns = 0;
	period->told_ns = period->long_ns = period->untold_ready_ns = 0;
	period->n_shorts = period->n_longs = period->n_inside = 0;
	period->told.n = 0;
	period->pending.valid = false;
}
