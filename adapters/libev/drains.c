/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "libev/drains.h"

#include <stdbool.h>

#include "libev/drain.h"
#include "libev/layout.h"
#include "libev/thread.h"

#define WATCHERS  12
#define CALLS_MAX 150 /* a script feeds no more after so many callbacks */
#define DEPTH_MAX 3

static struct script {
	ev_prepare watchers[WATCHERS];
	uint64_t random, hash;
	int calls, depth;
	bool ours;
} script;

static uint32_t draw(uint32_t n)
{
	script.random = script.random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(script.random >> 33) % n;
}

static void note(uint64_t value)
{
	script.hash = (script.hash ^ value) * UINT64_C(0x100000001b3);
}

static void drain(struct ev_loop *loop)
{
	if (script.depth >= DEPTH_MAX)
		return;
	script.depth++;
	if (script.ours)
		d9__libev_drain(loop, NULL);
	else
		d9__libev.ev_invoke_pending(loop);
	script.depth--;
}

static void act(struct ev_loop *loop)
{
	ev_prepare *w = &script.watchers[draw(WATCHERS)];

	switch (draw(8)) {
	case 0:
	case 1:
	case 2:
		d9__libev.ev_feed_event(loop, w, 1 << draw(20));
		break;
	case 3:
		note((uint64_t)d9__libev.ev_clear_pending(loop, w));
		break;
	case 4:
		for (int i = 0; i < 3; i++)
			d9__libev.ev_feed_event(loop, &script.watchers[draw(WATCHERS)], EV_CUSTOM);
		break;
	case 5:
		drain(loop);
		break;
	case 6:
		if (script.depth++ < DEPTH_MAX)
			d9__libev.ev_invoke(loop, w, EV_CUSTOM);
		script.depth--;
		break;
	default:
		break;
	}
}

static void on_event(struct ev_loop *loop, ev_prepare *w, int events)
{
	note((uint64_t)(w - script.watchers));
	note((uint32_t)events);
	note(d9__libev.ev_pending_count(loop));
	for (int i = 0; i < WATCHERS; i++)
		note((uint64_t)script.watchers[i].pending);
	if (script.calls++ < CALLS_MAX)
		act(loop);
}

static uint64_t run_script(struct ev_loop *loop, uint64_t seed, bool ours)
{
	script = (struct script) { .random = seed, .ours = ours };
	for (int i = 0; i < WATCHERS; i++) {
		ev_init(&script.watchers[i], on_event);
		ev_set_priority(&script.watchers[i],
				(int)draw(D9__LIBEV_PRIORITIES) + EV_MINPRI);
	}
	for (int i = 0; i < 6; i++)
		act(loop);
	drain(loop);
	note(d9__libev.ev_pending_count(loop));
	/* Events that a script leaves behind must not meet the next one. */
	while (d9__libev.ev_pending_count(loop))
		d9__libev.ev_invoke_pending(loop);
	return script.hash;
}

unsigned d9__libev_drain_differences(struct ev_loop *loop, uint64_t seed, unsigned n)
{
	unsigned differences = 0;

	for (unsigned i = 0; i < n; i++) {
		uint64_t want = run_script(loop, seed + i, false);

		differences += run_script(loop, seed + i, true) != want;
	}
	return differences;
}

int d9__libev_drain_compare(uint64_t seed, unsigned n)
{
	struct d9__libev_thread *thread = d9__libev_thread();
	struct ev_loop *loop;
	int differences;

	if (!d9__libev_layout.known)
		return -1;
	thread->calibrating = true;
	loop = d9__libev.ev_loop_new(EVFLAG_NOENV | EVBACKEND_SELECT);
	differences = loop ? (int)d9__libev_drain_differences(loop, seed, n) : -1;
	if (loop)
		d9__libev.ev_loop_destroy(loop);
	thread->calibrating = false;
	return differences;
}
