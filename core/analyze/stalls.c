/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>

#include "analyze/stalls.h"
#include "analyze/worst.h"
#include "base/u64.h"

/* Of fewer samples no share is believed. */
#define ENOUGH_SAMPLES 3

struct d9__stall *d9__stall_new(void)
{
	struct d9__stall *stall = calloc(1, sizeof(*stall));

	if (stall)
		stall->refs = 1;
	return stall;
}

struct d9__stall *d9__stall_ref(struct d9__stall *stall)
{
	stall->refs++;
	return stall;
}

void d9__stall_unref(struct d9__stall *stall)
{
	if (stall && --stall->refs == 0)
		free(stall);
}

void d9__stall_add_victim(struct d9__stall *stall, const struct d9__victim *victim)
{
	struct d9__victim *place;
	bool evicted;

	stall->waited++;
	if (victim->delay_ns > stall->waited_max_ns)
		stall->waited_max_ns = victim->delay_ns;
	place = d9__worst_place(stall->victims, &stall->n_victims, D9__STALL_VICTIMS,
				sizeof(*victim), victim->delay_ns, NULL, &evicted);
	if (place)
		*place = *victim;
}

void d9__stall_set_cpu(struct d9__stall *stall, uint64_t wall_ns, uint64_t cpu_ns)
{
	uint64_t others_ns = wall_ns > stall->total_ns ? wall_ns - stall->total_ns : 0;

	stall->cpu_known = true;
	stall->cpu_min_ns = cpu_ns > others_ns ? cpu_ns - others_ns : 0;
	stall->cpu_max_ns = cpu_ns < stall->total_ns ? cpu_ns : stall->total_ns;
	if (stall->cpu_min_ns > stall->cpu_max_ns)
		stall->cpu_min_ns = stall->cpu_max_ns;
}

/* As large a part of |ns| as |part_ns| is of the whole call. */
static uint64_t left_of(const struct d9__stall *stall, uint64_t ns, double part_ns)
{
	double part = stall->total_ns ? part_ns / (double)stall->total_ns : 0;

	return ns - (uint64_t)((part < 1 ? part : 1) * (double)ns);
}

/* Of what the culprit took, without what the kernel took from it and what is not known. */
static uint64_t untaken_ns(const struct d9__stall *stall)
{
	return left_of(stall, stall->culprit_ns,
		       (double)stall->run_queue_ns + (double)stall->unread_ns);
}

/* |ns| times |part| / |whole|, which may be 0. */
static uint64_t scaled(uint64_t ns, uint64_t part, uint64_t whole)
{
	return part < whole ? (uint64_t)((double)ns * (double)part / (double)whole) : ns;
}

void d9__off_part(const struct d9__off_part *call, struct d9__off_part *part)
{
	uint64_t slept_ns = d9__u64_min(call->slept_ns, call->ns),
		 all_told_ns = d9__u64_min(call->told_ns, call->ns);
	uint64_t told_ns = d9__u64_min(part->told_ns, d9__u64_min(part->ns, all_told_ns));

	part->slept_ns = scaled(d9__u64_minus(slept_ns, all_told_ns), part->ns - told_ns,
				call->ns - all_told_ns);
	/* Waits are told by the clock: the thread may have slept for less. */
	part->slept_ns += scaled(told_ns, slept_ns, all_told_ns);
	part->slept_ns = d9__u64_min(part->slept_ns, part->ns);
	part->ready_ns =
		d9__u64_min(scaled(call->ready_ns, part->ns, call->ns), part->ns - part->slept_ns);
}

uint64_t d9__stall_slept_ns(const struct d9__stall *stall)
{
	return d9__u64_min(d9__u64_minus(stall->blocked_ns, stall->others_slept_ns),
			   stall->culprit_ns);
}

bool d9__stall_is_blocked(const struct d9__stall *stall)
{
	uint64_t slept_ns = d9__stall_slept_ns(stall);

	/* Half of the shortest stall: a call that the kernel took whole slept for a moment at most. */
	return 2 * slept_ns >= untaken_ns(stall) && 2 * slept_ns >= D9__STALL_NS;
}

uint64_t d9__stall_left_ns(const struct d9__stall *stall, uint64_t ns)
{
	return left_of(stall, ns, (double)stall->run_queue_ns + (double)stall->unread_ns);
}

uint64_t d9__stall_own_ns(const struct d9__stall *stall)
{
	return d9__stall_left_ns(stall, stall->culprit_ns);
}

enum d9__stall_verdict d9__stall_verdict(const struct d9__stall *stall)
{
	uint64_t fifth = stall->total_ns / 5, own_ns, slept_ns;

	/* Time that the kernel took is neither. */
	if (stall->blocked_ns + stall->run_queue_ns + stall->unread_ns &&
	    stall->unread_ns < stall->total_ns) {
		own_ns = untaken_ns(stall);
		slept_ns = d9__stall_slept_ns(stall);
		if (5 * slept_ns <= 2 * own_ns)
			return D9__STALL_COMPUTING;
		return 5 * slept_ns >= 3 * own_ns ? D9__STALL_OFF_CPU : D9__STALL_MIXED;
	}
	if (stall->on_samples >= ENOUGH_SAMPLES && stall->sampled_ns >= 3 * fifth)
		return D9__STALL_COMPUTING;
	if (!stall->cpu_known)
		return D9__STALL_UNKNOWN;
	if (stall->cpu_max_ns <= 2 * fifth)
		return D9__STALL_OFF_CPU;
	if (stall->cpu_min_ns >= 3 * fifth)
		return D9__STALL_COMPUTING;
	return stall->cpu_max_ns - stall->cpu_min_ns <= fifth ? D9__STALL_MIXED
							      : D9__STALL_UNKNOWN;
}

void d9__stalls_release(struct d9__stalls *stalls)
{
	for (size_t i = 0; i < stalls->n; i++)
		d9__stall_unref(stalls->items[i].stall);
	stalls->n = 0;
}

/* Put |stall| into a list of the longest, with a reference. */
static void keep(struct d9__callback_stall *items, size_t *n, size_t max, struct d9__stall *stall,
		 uint64_t ns)
{
	struct d9__callback_stall out, *place;
	bool evicted;

	place = d9__worst_place(items, n, max, sizeof(*items), ns, &out, &evicted);
	if (!place)
		return;
	*place = (struct d9__callback_stall){ ns, d9__stall_ref(stall) };
	if (evicted)
		d9__stall_unref(out.stall);
}

void d9__stalls_keep(struct d9__stalls *stalls, struct d9__stall *stall)
{
	keep(stalls->items, &stalls->n, D9__STALLS_MAX, stall, stall->total_ns);
}

void d9__callback_keep_stall(struct d9__callback *callback, struct d9__stall *stall)
{
	keep(callback->stalls, &callback->n_stalls, D9__CALLBACK_STALLS, stall,
	     d9__stall_own_ns(stall));
}

void d9__callback_sort_stalls(struct d9__callback *callback)
{
	struct d9__callback_stall *items = callback->stalls;

	for (size_t i = 0; i < callback->n_stalls; i++) {
		struct d9__callback_stall item = { d9__stall_own_ns(items[i].stall),
						   items[i].stall };
		size_t at = i;

		for (; at && items[at - 1].ns < item.ns; at--)
			items[at] = items[at - 1];
		items[at] = item;
	}
}
