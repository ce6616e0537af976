/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "loop/running.h"

#include "loop/callsites.h"
#include "loop/loops.h"
#include "loop/span_stack.h"
#include "loop/thread_state.h"
#include "loop/workers.h"
#include "record/open_calls.h"
#include "record/triggers.h"
#include "ring/names.h"
#include "segment/modules.h"

/*
 * Frames and entered spans are their thread's own, which changes them without asking.  Each word is read whole, and
 * a frame that does not begin the same task at the same time before and after it was read is none.
 */
#define UNASKED __attribute__((no_sanitize("thread")))
#define READ(place) __atomic_load_n(&(place), __ATOMIC_RELAXED)

struct search {
	struct d9__open_call *calls;
	size_t n;
	bool found[D9__OPEN_CALLS_MAX];
};

/* The innermost frame of |task|; NULL: it is not running. */
UNASKED static const struct d9__frame_running *find_frame(const struct d9__thread *thread, uint64_t task)
{
	uint32_t n = READ(thread->n_frames);

	if (n > D9__FRAMES_MAX)
		return NULL;
	while (n--)
		if (READ(thread->frames[n].task) == task)
			return &thread->frames[n];
	return NULL;
}

/*
 * The functions of the program that a library's callback has called, in |frame|.  Their owner
 * thread learns that the trace may have their ids, which does no harm to one that has returned
 * meanwhile.
 */
UNASKED static void describe_inner(const struct d9__thread *thread,
				   const struct d9__frame_running *frame,
				   struct d9__open_call *call)
{
	struct d9__span_stack *entered = &d9__span_stack_all[call->slot];
	uint32_t n = atomic_load_explicit(&entered->n, memory_order_relaxed), frames = (uint32_t)(frame - thread->frames) + 1;
	uint64_t start_ns = READ(frame->start_ns);

	call->n_inner = 0;
	call->library = d9__library_name(READ(frame->library));
	while (n && n <= D9__ENTERED_MAX && call->n_inner < D9__OPEN_INNER_MAX) {
		struct d9__stacked_span *item = &entered->items[--n];
		uint64_t id = atomic_load_explicit(&item->id, memory_order_relaxed);

		if (!id || id == D9__ENTERED_LEFT || !READ(item->adapter) ||
		    READ(item->frames) != frames || READ(item->frame_ns) != start_ns)
			continue;
		call->inner[call->n_inner++] =
			(struct d9__open_inner) { id, READ(item->enter_ns), READ(item->name) };
		atomic_store_explicit(&item->told, true, memory_order_relaxed);
	}
	call->span = call->n_inner ? call->inner[0].name : 0;
}

UNASKED static const struct d9__frame_running *outermost_frame(const struct d9__thread *thread)
{
	return READ(thread->n_frames) ? &thread->frames[0] : NULL;
}

/*
 * A loop that waits, or that its thread has left, does not stand still; nor does one that the program goes round by itself,
 * for then it may do anything in between.
 */
UNASKED static void describe_outside(const struct d9__thread *thread, struct d9__open_call *call, bool *found)
{
	uint8_t stage = READ(thread->stage);

	call->waits = READ(thread->spins) + READ(thread->waits);
	call->function = READ(thread->outside);
	*found = !READ(thread->n_frames) && (stage == D9__STAGE_FRESH || stage == D9__STAGE_ROUND) &&
		 (READ(thread->n_runs) || call->function);
}

UNASKED static void describe_one(const struct d9__thread *thread, struct d9__open_call *call, bool *found)
{
	const struct d9__frame_running *frame = call->around ? outermost_frame(thread) : find_frame(thread, call->task);

	if (!frame)
		return;
	if (call->around)
		call->task = READ(frame->task);
	call->since_ns = READ(frame->start_ns);
	call->loc = READ(frame->loc);
	describe_inner(thread, frame, call);
	atomic_thread_fence(memory_order_acquire);
	*found = READ(frame->task) == call->task && READ(frame->start_ns) == call->since_ns;
}

UNASKED static void look_at(void *arg, const struct d9__thread *thread)
{
	struct search *search = arg;

	for (size_t i = 0; i < search->n; i++) {
		struct d9__open_call *call = &search->calls[i];

		if (call->tid != READ(thread->tid))
			continue;
		if (call->outside)
			describe_outside(thread, call, &search->found[i]);
		else
			describe_one(thread, call, &search->found[i]);
	}
}

/* Not while the list of threads is locked: the loader may be asked. */
static void name_function(struct d9__open_call *call)
{
	char name[256];

	if (call->function)
		call->span = d9__name_intern(name, (size_t)d9__module_name_of(call->function, name, sizeof(name)));
}

static void describe(struct d9__open_call *calls, size_t n)
{
	struct search search = { .calls = calls, .n = n };

	d9__threads_each(look_at, &search);
	for (size_t i = 0; i < n; i++) {
		name_function(&calls[i]);
		if (!search.found[i])
			calls[i].since_ns = 0;
	}
}

void d9__running_start(void)
{
	d9__open_calls_provide(describe);
	d9__triggers_provide(d9__workers_name, d9__callsites_callback);
}
