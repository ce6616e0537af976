/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>

#include "export/off_cpu.h"
#include "export/profile.h"

/* The newest time that a thread left the CPU. */
struct absence {
	struct d9__profile_stack *stack; /* NULL: it is back */
	uint64_t from_ns, until_ns;	 /* until_ns: at most */
};

/* Workers and other threads are told apart by the lowest bit. */
static uint64_t key_of_worker(uint64_t worker)
{
	return worker << 1 | 1;
}

static uint64_t key_of_sample(const struct d9__profile *profile, const struct d9_event *event)
{
	const struct d9__worker *worker = d9__analysis_sampled(&profile->analysis, event);

	return worker ? key_of_worker(worker->id)
		      : d9_event_known_u64(event, D9_CPU_SAMPLE_TID, 0) << 1;
}

/* True if |event| is a sign of the thread |*key|. */
static bool is_sign(const struct d9__profile *profile, const struct d9_event *event, uint64_t *key)
{
	switch (event->kind) {
	case D9_EVENT_CPU_SAMPLE:
		*key = key_of_sample(profile, event);
		return true;
	case D9_EVENT_POLL_START:
	case D9_EVENT_POLL_END:
	case D9_EVENT_WORKER_PARK:
	case D9_EVENT_WORKER_UNPARK:
		/* The worker's id is the first field of each. */
		*key = key_of_worker(d9_event_known_u64(event, 0, 0));
		return true;
	default:
		return false;
	}
}

void d9__off_cpu_sign(struct d9__profile *profile, const struct d9_event *event)
{
	struct absence *absence;
	uint64_t key, until_ns;

	if (!profile->off_cpu.threads.n || !is_sign(profile, event, &key))
		return;
	absence = d9__table_find(&profile->off_cpu.threads, key);
	if (!absence || !absence->stack)
		return;
	until_ns =
		event->timestamp_ns < absence->until_ns ? event->timestamp_ns : absence->until_ns;
	if (until_ns > absence->from_ns)
		absence->stack->away_ns += until_ns - absence->from_ns;
	absence->stack = NULL;
}

/* The end of the slice that a switch now lies in; UINT64_MAX: switches are recorded all the time.
 */
static uint64_t slice_end(const struct d9__analysis *a)
{
	return d9__metadata_value(&a->metadata, "sched.switch_duty")
		       ? a->samples.slice_ns + D9__SLICE_NS
		       : UINT64_MAX;
}

int d9__off_cpu_left(struct d9__profile *profile, const struct d9_event *event,
		     struct d9__profile_stack *stack)
{
	uint64_t key = key_of_sample(profile, event);
	struct absence *absence = d9__table_find(&profile->off_cpu.threads, key);

	if (!absence) {
		absence = calloc(1, sizeof(*absence));
		if (!absence || d9__table_add(&profile->off_cpu.threads, key, absence)) {
			free(absence);
			return -ENOMEM;
		}
	}
	*absence = (struct absence) { stack, event->timestamp_ns, slice_end(&profile->analysis) };
	return 0;
}

void d9__off_cpu_told(struct d9__off_cpu *off_cpu, uint64_t worker)
{
	struct absence *absence = d9__table_find(&off_cpu->threads, key_of_worker(worker));

	if (absence)
		absence->stack = NULL;
}

void d9__off_cpu_release(struct d9__off_cpu *off_cpu)
{
	void *item;

	for (size_t place = 0; (place = d9__table_next(&off_cpu->threads, place, &item));)
		free(item);
	d9__table_release(&off_cpu->threads);
}
