/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/descriptors.h"
#include "base/u64.h"
#include "record/pace.h"
#include "record/process_state.h"
#include "record/stopped.h"
#include "ring/clock.h"
#include "ring/emit_inl.h"
#include "ring/event_types.h"
#include "ring/slot.h"

#define SCHEDSTAT "/proc/thread-self/schedstat"

/* ---- the judgement ---- */

bool d9__stopped_judge(const struct d9__stopped_wait *wait, struct d9__stop *out)
{
	uint64_t from_ns = d9__u64_max(wait->begun_ns, wait->before_ns), kept_ns, least_ns;
	uint64_t to_ns = wait->after_ns < wait->back_ns ? wait->after_ns : wait->back_ns;

	least_ns = d9__u64_minus(to_ns, d9__u64_max(wait->due_ns, from_ns));
	/* Some of it may be of the time after which others went on already. */
	kept_ns = d9__u64_minus(wait->queue_ns + wait->throttled_ns, wait->back_ns - to_ns);
	if (!wait->has_queue || least_ns <= D9__STOPPED_NS || kept_ns >= least_ns / 2)
		return false;
	*out = (struct d9__stop){ .from_ns = from_ns, .to_ns = to_ns, .least_ns = least_ns };
	return true;
}

/* ---- what it is made of ---- */

bool d9__stopped_schedule(const struct d9__stopped *stopped, uint64_t *ran_ns, uint64_t *waited_ns)
{
	char text[96], *at = text;
	ssize_t n = stopped->fd > 0 ? pread(stopped->fd, text, sizeof(text) - 1, 0) : -1;

	text[n > 0 ? n : 0] = '\0';
	*ran_ns = strtoull(at, &at, 10);
	*waited_ns = strtoull(at, &at, 10);
	return strtoull(at, NULL, 10) != 0;
}

static bool read_queue(const struct d9__stopped *stopped, uint64_t *ns)
{
	uint64_t ran_ns;

	return d9__stopped_schedule(stopped, &ran_ns, ns);
}

/*
 * How long that was since the wait which ended at |now_ns| began, at most.  It is read once a
 * second: the time by which earlier waits ended late belongs to those.
 */
static bool grown_queue(struct d9__stopped *stopped, uint64_t now_ns, uint64_t *ns)
{
	uint64_t queue_ns;
	bool known = read_queue(stopped, &queue_ns);

	*ns = d9__u64_minus(queue_ns - stopped->queue_ns, stopped->late_ns);
	stopped->queue_ns = queue_ns;
	stopped->read_ns = now_ns;
	stopped->late_ns = 0;
	return known;
}

/* How long the machine was suspended.  Between two readings this thread may lose its CPU. */
static uint64_t suspended(struct d9__stopped *stopped, uint64_t now_ns)
{
	uint64_t most_ns = d9__clock_boot_ns() - now_ns, boot_ns, least_ns, grown_ns;

	stopped->asked_ns = now_ns;
	if (most_ns < stopped->away_ns)
		stopped->away_ns = most_ns;
	if (most_ns - stopped->away_ns <= D9__STOPPED_NS)
		return 0;
	boot_ns = d9__clock_boot_ns();
	least_ns = boot_ns - d9__clock_mono_ns();
	grown_ns = d9__u64_minus(least_ns, stopped->away_ns);
	if (grown_ns <= D9__STOPPED_NS)
		return 0;
	stopped->away_ns = most_ns;
	return grown_ns;
}

static bool stood_still(struct d9__stopped *stopped, const struct d9__process_state *process,
			struct d9__stopped_wait *wait, struct d9__stop *out)
{
	struct d9__signs signs = d9__slot_signs(wait->due_ns, wait->back_ns);

	wait->before_ns = signs.before_ns;
	wait->after_ns = signs.after_ns;
	wait->has_queue = grown_queue(stopped, wait->back_ns, &wait->queue_ns);
	wait->throttled_ns = d9__process_state_throttled(process);
	return d9__stopped_judge(wait, out);
}

/* ---- the flush thread's waits ---- */

void d9__stopped_begin(struct d9__stopped *stopped)
{
	d9__stopped_end(stopped);
	stopped->asked_ns = stopped->read_ns = d9__clock_mono_ns();
	stopped->away_ns = d9__clock_boot_ns() - stopped->asked_ns;
	if (!d9__descriptors_are_few())
		stopped->fd = d9__descriptor_place(open(SCHEDSTAT, O_RDONLY | O_CLOEXEC));
	read_queue(stopped, &stopped->queue_ns);
}

void d9__stopped_end(struct d9__stopped *stopped)
{
	if (stopped->fd > 0)
		close(stopped->fd);
	*stopped = (struct d9__stopped){ 0 };
}

bool d9__stopped_look(struct d9__stopped *stopped, const struct d9__process_state *process,
		      uint64_t begun_ns, uint64_t due_ns, struct d9__stop *out)
{
	uint64_t back_ns = d9__clock_mono_ns(), late_ns = d9__u64_minus(back_ns, due_ns), ns;
	struct d9__stopped_wait wait = {
		.begun_ns = begun_ns,
		.due_ns = due_ns,
		.back_ns = back_ns,
	};
	bool found = false;

	*out = (struct d9__stop){ .from_ns = back_ns, .to_ns = back_ns };
	if (late_ns > D9__STOPPED_NS)
		found = stood_still(stopped, process, &wait, out);
	else if (back_ns - stopped->read_ns >= D9__SECOND_NS)
		grown_queue(stopped, back_ns, &ns);
	else
		stopped->late_ns += late_ns;
	if (back_ns - stopped->asked_ns >= D9__PACE_TICK_NS)
		out->suspended_ns = suspended(stopped, back_ns);
	return found || out->suspended_ns;
}

void d9__stopped_write(struct d9__slot *own, const struct d9__stop *stop)
{
	uint8_t *p;

	p = d9__emit_begin(own, D9__EVENT_PROCESS_STOPPED, stop->to_ns, 4 * D9__VARINT_MAX);
	if (!p)
		return;
	p = d9__varint_put(p, stop->from_ns);
	p = d9__varint_put(p, stop->to_ns);
	p = d9__varint_put(p, stop->least_ns);
	d9__emit_end(own, d9__varint_put(p, stop->suspended_ns));
}
