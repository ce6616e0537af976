/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "loop/waits.h"

#include <errno.h>
#include <stdio.h>

#include "drain/side_event.h"
#include "loop/accept_queues.h"
#include "loop/adapter.h"
#include "loop/loops.h"
#include "loop/polls.h"
#include "loop/thread_state.h"
#include "loop/wakes.h"
#include "record/sampling.h"
#include "record/sandbox.h"
#include "record/source.h"
#include "ring/clock.h"
#include "ring/gate.h"
#include "sample/place_stacks.h"
#include "sample/stacks.h"
#include "sample/unwind_table.h"
#include "segment/metadata.h"

/* A wait that lasts so many times the mean is told while it lasts: at its end it would be, but for one in 22,000. */
#define SURELY 10

static uint64_t mean_ns(void)
{
	return atomic_load_explicit(&d9__sampling.idle_ns, memory_order_relaxed);
}

/* ---- the word of a task ---- */

/*
 * Handle of the stack; whether the task stays armed; whether it waits with the stack of an earlier wait; and since when
 * it waits: in units of 4096 ns, which last for nine years of CLOCK_MONOTONIC, the beginning rounded up.  0: it does not
 * wait.
 */
#define STACK(word)	((uint32_t)(word) & 0xffff)
#define STAYS		UINT64_C(0x10000)
#define KEPT		UINT64_C(0x20000)
#define SINCE_SHIFT	18
#define SINCE_NS(word)	((word) >> SINCE_SHIFT << 12)
#define NOT_SINCE(word) ((word) & ((UINT64_C(1) << SINCE_SHIFT) - 1))

static inline uint64_t since(uint64_t word, uint64_t ns)
{
	return NOT_SINCE(word) | (ns + 4095) >> 12 << SINCE_SHIFT;
}

static inline uint64_t word_of(const struct d9__task *task)
{
	return atomic_load_explicit(&task->wait, memory_order_relaxed);
}

static inline void set_word(struct d9__task *task, uint64_t word)
{
	atomic_store_explicit(&task->wait, word, memory_order_relaxed);
}

/* ---- chance ---- */

static inline uint64_t next_random(uint64_t *state)
{
	*state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return *state;
}

/* |mean| times -ln(u), u being even in (0, 1), without libm: the binary digits of a logarithm come by squaring. */
static uint64_t draw_exponential(uint64_t *state, uint64_t mean)
{
	uint64_t random = next_random(state) | 1; /* u * 2^64 */
	int zeros = __builtin_clzll(random);
	double mantissa = (double)random / (double)(UINT64_C(1) << 63 >> zeros); /* in [1, 2) */
	double minus_log2 = 1. + zeros, digit = 1.;

	for (int digits = 0; digits < 20; digits++) {
		digit /= 2;
		mantissa *= mantissa;
		if (mantissa >= 2.) {
			mantissa /= 2.;
			minus_log2 -= digit;
		}
	}
	return (uint64_t)(minus_log2 * 0.6931471805599453 * (double)mean) + 1;
}

/* ---- arming ---- */

/* Decides which armings are looked at again. */
static uint64_t armed_random(struct d9__thread *thread)
{
	static _Atomic(uint64_t) of_others;
	uint64_t state;

	if (thread)
		return next_random(&thread->waiting.random);
	state = atomic_load_explicit(&of_others, memory_order_relaxed);
	next_random(&state);
	atomic_store_explicit(&of_others, state, memory_order_relaxed);
	return state;
}

static inline bool is_usable(const struct d9__task *task)
{
	return task && atomic_load_explicit(&task->spawned, memory_order_relaxed) != D9__TASK_STALE;
}

static __attribute__((noinline)) struct d9__task *obtain(struct d9__thread *thread, struct d9_loop *loop,
							  uint64_t key)
{
	struct d9__slot *slot = d9__slot_self();

	return slot ? d9__wakes_task(thread, slot, loop, key,
				     atomic_load_explicit(&d9__loop_epoch, memory_order_relaxed))
		    : NULL;
}

/* Bounds of the stacks of threads that run no loop, by slot.  Each by the owner of its slot. */
static struct {
	uint32_t tid;
	uintptr_t low, high;
} outside[D9__SLOT_COUNT];

static void find_outside(struct d9__slot *slot, uintptr_t *low, uintptr_t *high)
{
	uint32_t i = d9__slot_index(slot), tid = (uint32_t)atomic_load_explicit(&slot->owner, memory_order_relaxed);
	int saved = errno;

	if (outside[i].tid != tid) {
		outside[i].low = outside[i].high = 0;
		d9__thread_find_stack(&outside[i].low, &outside[i].high);
		outside[i].tid = tid;
		errno = saved;
	}
	*low = outside[i].low;
	*high = outside[i].high;
}

/* The bounds of the stack that |place| is on; none of a coroutine that was not registered. */
static inline void find_bounds(const struct d9__thread *thread, struct d9__stack_place *place)
{
	uintptr_t low = 0, high = 0;
	struct d9__slot *slot;

	if (thread) {
		low = thread->stack_low;
		high = thread->stack_high;
	} else if (!d9__sandbox_is_shut() && (slot = d9__slot_self())) {
		find_outside(slot, &low, &high);
	}
	if ((place->here < low || place->here >= high) && !d9__stacks_find(place->here, &low, &high))
		return;
	place->low = low;
	place->high = high;
}

/* From the callback's end on; until then, from the latest record. */
static uint64_t note_armed(struct d9__thread *thread, struct d9__task *task)
{
	struct d9__waits *waits = &thread->waiting;

	if (waits->n < D9__WAITS_ARMED)
		waits->armed[waits->n++] =
			(struct d9__armed){ task, atomic_load_explicit(&task->id, memory_order_relaxed) };
	return d9__self.slot->last_ns;
}

static void begin_armed(struct d9__thread *thread, struct d9__task *task, const void *function, const void *caller,
			bool stays)
{
	struct d9__stack_place place = { .function = function, .caller = caller,
				   .here = (uintptr_t)__builtin_frame_address(0) };
	bool inside = thread && thread->n_frames && d9__slot_is_real(d9__self.slot);
	uint64_t word = stays ? STAYS : 0;

	find_bounds(thread, &place);
	if (inside)
		place.callback = thread->frames[thread->n_frames - 1].loc;
	word |= d9__place_stack(&place, armed_random(thread));
	set_word(task, since(word, inside ? note_armed(thread, task) : d9__clock_mono_ns()));
}

void d9__task_waits(struct d9_loop *loop, uint64_t key, int fd, const void *function, const void *caller, bool stays)
{
	uint32_t library = atomic_load_explicit(&loop->library, memory_order_relaxed), gate = d9__gate_word();
	struct d9__thread *thread = d9__thread_peek();
	struct d9__task *task = d9__polls_task(thread, library, key);

	if (__builtin_expect(!is_usable(task), 0)) {
		if (!(task = obtain(thread, loop, key)))
			return;
		if (fd >= 0 && gate & D9__GATE_LISTEN)
			d9__accept_queues_watch(loop, fd);
	}
	if (gate & D9__GATE_ARM)
		begin_armed(thread, task, function, caller, stays);
}

void d9__task_rests(enum d9_library library, uint64_t key)
{
	struct d9__task *task = d9__polls_task(d9__thread_peek(), (uint32_t)library, key);

	if (task)
		set_word(task, 0);
}

/* ---- dumps ---- */

static struct d9__dump_raw raw_of(const struct d9__task *task, const struct d9__place_stack *stack, uint64_t word)
{
	uint32_t n = d9__place_frames(stack);

	return (struct d9__dump_raw){ .task = atomic_load_explicit(&task->id, memory_order_relaxed),
				      .n = (uint16_t)n,
				      .truncated = stack->truncated || n < stack->n,
				      .kept = (word & KEPT) != 0 };
}

/* True if a dump falls into the next |length_ns| of waits. */
static bool is_chosen(struct d9__waits *waits, uint64_t length_ns)
{
	if (!waits->left_ns)
		waits->left_ns = draw_exponential(&waits->random, mean_ns());
	if (length_ns < waits->left_ns) {
		waits->left_ns -= length_ns;
		return false;
	}
	waits->left_ns = draw_exponential(&waits->random, mean_ns());
	return true;
}

static void end_wait(struct d9__thread *thread, struct d9__slot *slot, struct d9__task *task, uint64_t word,
		     uint64_t ns)
{
	const struct d9__place_stack *stack;
	struct d9__dump_raw raw;

	/* A task that does not stay armed needs to be armed again. */
	if (!atomic_compare_exchange_strong_explicit(&task->wait, &word, word & STAYS ? NOT_SINCE(word) : 0,
						     memory_order_relaxed, memory_order_relaxed))
		return; /* armed again by another thread, or told by the flush thread */
	if (ns <= SINCE_NS(word) || !STACK(word) || !is_chosen(&thread->waiting, ns - SINCE_NS(word)))
		return;
	stack = d9__place_stack_of(STACK(word));
	raw = raw_of(task, stack, word);
	d9__dump_leave(slot, &raw, stack->pcs, SINCE_NS(word));
}

void d9__waits_end(struct d9__thread *thread, struct d9__slot *slot, uint32_t library, uint64_t key, uint64_t ns)
{
	struct d9__task *task = d9__polls_task(thread, library, key);
	uint64_t word = task ? word_of(task) : 0;

	if (SINCE_NS(word))
		end_wait(thread, slot, task, word, ns);
}

/* |task|, whose word was |word|, is armed, and its callback, or the one that armed it, has returned. */
static void begin_wait(struct d9__task *task, uint64_t word, uint64_t bits, uint64_t ns)
{
	if (word)
		atomic_compare_exchange_strong_explicit(&task->wait, &word, since(word | bits, ns),
							memory_order_relaxed, memory_order_relaxed);
}

void d9__waits_begin(struct d9__thread *thread, const struct d9__frame_running *frame, uint64_t ns)
{
	struct d9__waits *waits = &thread->waiting;
	struct d9__task *task;
	uint64_t word;

	for (uint32_t i = 0; i < waits->n; i++)
		if (d9__task_is(waits->armed[i].task, waits->armed[i].id))
			begin_wait(waits->armed[i].task, word_of(waits->armed[i].task), 0, ns);
	waits->n = 0;
	if (frame->once || !(task = d9__polls_task(thread, frame->library, frame->key)))
		return;
	/* One that was armed again meanwhile waits since then. */
	word = word_of(task);
	if (word & STAYS && !SINCE_NS(word))
		begin_wait(task, word, KEPT, ns);
}

/* ---- waits that no poll ends for long, on the flush thread ---- */

struct look {
	struct d9__slot *slot;
	uint64_t now_ns, least_ns;
	uint32_t epoch;
};

static void look_at(void *arg, const struct d9__task *seen)
{
	struct d9__task *task = (struct d9__task *)(uintptr_t)seen;
	const struct look *look = arg;
	uint64_t word = word_of(task);
	const struct d9__place_stack *stack;
	struct d9__dump_raw raw;

	if (!STACK(word) || !SINCE_NS(word) || look->now_ns < SINCE_NS(word) + look->least_ns ||
	    d9__task_is(task, 0) ||
	    atomic_load_explicit(&task->spawned, memory_order_relaxed) != look->epoch)
		return;
	stack = d9__place_stack_of(STACK(word));
	raw = raw_of(task, stack, word);
	/* Once: not at the next boundary again, and not when it ends. */
	if (raw.task && atomic_compare_exchange_strong_explicit(&task->wait, &word, NOT_SINCE(word),
								memory_order_relaxed, memory_order_relaxed))
		d9__dump_write(look->slot, &raw, stack->pcs, SINCE_NS(word));
}

static void say(void)
{
	uint64_t misses = d9__place_misses();
	char text[64] = "on";

	if (misses)
		snprintf(text, sizeof(text), "on; tasks were armed without a stack %llu times", (unsigned long long)misses);
	d9__metadata_set("source.task_dumps", text);
}

void d9__waits_tell(struct d9__slot *own, uint64_t now_ns)
{
	struct look look = { own, now_ns, SURELY * mean_ns(),
			     atomic_load_explicit(&d9__loop_epoch, memory_order_relaxed) };

	d9__tasks_each(look_at, &look);
}

static void at_boundary(struct d9__source *source, struct d9__slot *slot, uint64_t now_ns)
{
	(void)source;
	say();
	d9__waits_tell(slot, now_ns);
}

static struct d9__source boundaries = { .name = "task_dumps", .sample = at_boundary };

static void tick(void)
{
	bool on = (d9__gate_word() & D9__GATE_ARM) != 0;

	/* Shut at the end, where everything that was on is asked once more. */
	if (!d9__gate_bits())
		return;
	atomic_store_explicit(&boundaries.period_ns,
			      on ? atomic_load_explicit(&d9__sampling.segment_ns, memory_order_relaxed) : 0,
			      memory_order_relaxed);
	/* Where CPU sampling is off no other source does. */
	if (!on)
		return;
	d9__unwind_tables_want_rows();
	d9__unwind_tables_refresh(d9__clock_mono_ns());
}

void d9__waits_start(void)
{
	d9__source_add(&boundaries);
	d9__tick_add(tick);
}
