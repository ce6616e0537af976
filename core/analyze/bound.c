/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/bound.h"
#include "analyze/timeline.h"
#include "base/utf8.h"
#include "read/known_text.h"

/* ---- sets of CPUs ---- */

static void put_cpu(struct d9__cpu_set *set, unsigned long cpu)
{
	if (cpu >= D9__BOUND_CPUS || set->bits[cpu / 64] >> cpu % 64 & 1)
		return;
	set->bits[cpu / 64] |= UINT64_C(1) << cpu % 64;
	set->n++;
}

/* |text| is "0-3,8". */
static struct d9__cpu_set read_set(struct d9_text text)
{
	struct d9__cpu_set set = { .n = 0 };
	char list[256], *at = list;

	snprintf(list, sizeof(list), "%.*s", d9__precision(text.len), text.data);
	snprintf(set.text, sizeof(set.text), "%.*s", d9__precision(text.len), text.data);
	while (*at >= '0' && *at <= '9') {
		unsigned long first = strtoul(at, &at, 10), last = first;

		if (*at == '-')
			last = strtoul(at + 1, &at, 10);
		for (; first <= last && first < D9__BOUND_CPUS; first++)
			put_cpu(&set, first);
		at += *at == ',';
	}
	return set;
}

static bool is_within(const struct d9__cpu_set *set, const struct d9__cpu_set *of)
{
	for (size_t i = 0; i < D9__BOUND_CPUS / 64; i++)
		if (set->bits[i] & ~of->bits[i])
			return false;
	return true;
}

/* ---- one look ---- */

/*
 * How much other programs used of |cpus| at least.  While a thread waits, all of these CPUs are in
 * use; what the program's other threads did not use of that others did.
 */
static uint64_t of_others(const struct d9__bound *bound, const struct d9__cpu_set *cpus,
			  uint64_t own_ns)
{
	uint64_t most_ns = 0;

	for (size_t i = 0; i < bound->n; i++) {
		const struct d9__bound_thread *thread = &bound->threads[i];
		uint64_t used_ns = cpus->n * thread->wait_ns, rest_ns = own_ns - thread->cpu_ns;

		if (is_within(&thread->cpus, cpus) && is_within(cpus, &thread->cpus) &&
		    used_ns > rest_ns + most_ns)
			most_ns = used_ns - rest_ns;
	}
	return most_ns;
}

/* The program's threads used so much of |cpus|. */
static uint64_t of_own(const struct d9__bound *bound, const struct d9__cpu_set *cpus)
{
	uint64_t ns = 0;

	for (size_t i = 0; i < bound->n; i++)
		if (is_within(&bound->threads[i].cpus, cpus))
			ns += bound->threads[i].cpu_ns;
	return ns;
}

/* |loop| waited for |ns| behind |thread|. */
static void add_neighbour(struct d9__bound *bound, const struct d9__bound_thread *loop,
			  const struct d9__bound_thread *thread, uint64_t ns)
{
	struct d9__neighbour *neighbour = bound->neighbours;
	const struct d9__neighbour *end = neighbour + bound->n_neighbours;

	while (neighbour < end &&
	       (neighbour->tid != thread->tid || neighbour->loop_tid != loop->tid))
		neighbour++;
	if (neighbour == bound->neighbours + D9__BOUND_NEIGHBOURS)
		return;
	if (neighbour == end) {
		*neighbour = (struct d9__neighbour) { .tid = thread->tid, .loop_tid = loop->tid };
		bound->n_neighbours++;
	}
	memcpy(neighbour->name, thread->name, sizeof(neighbour->name));
	neighbour->cpus = loop->cpus;
	neighbour->cpu_ns += thread->cpu_ns;
	neighbour->ns += ns;
}

/* The wait of |loop|'s thread is divided by what each used of its CPUs; the program's threads had
 * |part|. */
static double wait_behind(struct d9__bound *bound, const struct d9__bound_thread *loop)
{
	uint64_t all_ns = of_own(bound, &loop->cpus);
	uint64_t own_ns = all_ns - loop->cpu_ns, others_ns = of_others(bound, &loop->cpus, all_ns);
	double part;

	if (!own_ns)
		return 0;
	part = (double)own_ns / ((double)own_ns + (double)others_ns);
	for (size_t i = 0; i < bound->n; i++) {
		const struct d9__bound_thread *thread = &bound->threads[i];

		if (thread != loop && thread->cpu_ns && is_within(&thread->cpus, &loop->cpus))
			add_neighbour(bound, loop, thread,
				      (uint64_t)((double)loop->wait_ns * part *
						 (double)thread->cpu_ns / (double)own_ns));
	}
	return part;
}

static void settle(struct d9__bound *bound, struct d9__timeline *timeline)
{
	for (size_t i = 0; i < timeline->n; i++) {
		struct d9__worker *worker = timeline->items[i];

		for (size_t j = 0; j < bound->n; j++) {
			const struct d9__bound_thread *thread = &bound->threads[j];

			if (thread->tid != worker->tid || !thread->wait_ns)
				continue;
			worker->behind.wait_ns += thread->wait_ns;
			worker->behind.own_ns +=
				(uint64_t)((double)thread->wait_ns * wait_behind(bound, thread));
		}
	}
	bound->n = 0;
}

/* ---- all looks ---- */

void d9__bound_add(struct d9__bound *bound, struct d9__timeline *timeline,
		   const struct d9_event *event)
{
	struct d9_text name = d9__known_text(event, D9_BOUND_THREAD_NAME);
	struct d9__bound_thread *thread;

	if (event->timestamp_ns != bound->look_ns)
		settle(bound, timeline);
	bound->look_ns = event->timestamp_ns;
	if (bound->n == D9__BOUND_THREADS)
		return;
	thread = &bound->threads[bound->n++];
	*thread = (struct d9__bound_thread) {
		.tid = (uint32_t)d9_event_known_u64(event, D9_BOUND_THREAD_TID, 0),
		.cpus = read_set(d9__known_text(event, D9_BOUND_THREAD_CPUS)),
		.cpu_ns = d9_event_known_u64(event, D9_BOUND_THREAD_CPU_NS, 0),
		.wait_ns = d9_event_known_u64(event, D9_BOUND_THREAD_WAIT_NS, 0),
	};
	snprintf(thread->name, sizeof(thread->name), "%.*s", d9__precision(name.len), name.data);
}

void d9__bound_finish(struct d9__bound *bound, struct d9__timeline *timeline)
{
	settle(bound, timeline);
}

const struct d9__neighbour *d9__bound_worst(const struct d9__bound *bound)
{
	const struct d9__neighbour *worst = NULL;

	for (size_t i = 0; i < bound->n_neighbours; i++)
		if (bound->neighbours[i].ns > (worst ? worst->ns : 0))
			worst = &bound->neighbours[i];
	return worst;
}

double d9__bound_part(const struct d9__timeline *timeline)
{
	double own = 0, all = 0;

	for (size_t i = 0; i < timeline->n; i++) {
		const struct d9__worker *worker = timeline->items[i];
		double ready_ns = (double)(worker->wait_sum_ns + worker->loop_time.wait_ready_ns +
					   worker->time.ready_ns);

		all += ready_ns;
		if (worker->behind.wait_ns)
			own += ready_ns * (double)worker->behind.own_ns /
			       (double)worker->behind.wait_ns;
	}
	return all > 0 ? own / all : 0;
}
