/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>
#include <unwind.h>

#include "base/mapped.h"
#include "record/sandbox.h"
#include "sample/place_stacks.h"
#include "sample/unwind.h"
#include "sample/unwind_table.h"

#define STACKS_MAX  4096u
#define BY_HASH	    (2 * STACKS_MAX)
#define ARENA_BYTES (2u << 20)
#define PARTS_MAX   6 /* times that paths to one place part */
#define HANDLE_MAX  UINT64_C(0xffff)

/* Aligned, as |n| addresses are behind it. */
#define STACK_BYTES(n) (sizeof(struct d9__place_stack) + (n) * sizeof(uint64_t))
_Static_assert(sizeof(struct d9__place_stack) % sizeof(uint64_t) == 0, "stacks lie one behind the other");

_Atomic(uint64_t) d9__places[D9__PLACES];

/* Stored with release when the stack is complete. */
_Atomic(const struct d9__place_stack *) d9__place_stacks[STACKS_MAX];
static _Atomic(uint64_t) misses;

/* Set by the thread that takes a stack; others go without one meanwhile.  It protects what follows. */
static atomic_bool taken;
static uint8_t *arena;
static size_t arena_used;
static uint32_t n_stacks;
static uint16_t by_hash[BY_HASH]; /* handles, each at its hash or behind; 0: none */
static uint64_t pcs[D9__UNWIND_MAX];
static struct d9__unwind_thread unwinder;

static uint32_t miss(void)
{
	atomic_fetch_add_explicit(&misses, 1, memory_order_relaxed);
	return 0;
}

/* ---- taking a stack ---- */

struct walk {
	uint32_t n;
	bool ended;  /* the last frame has no caller */
	bool is_raw; /* as in struct d9__place_stack */
};

static _Unwind_Reason_Code add_frame(struct _Unwind_Context *context, void *arg)
{
	struct walk *walk = arg;

	uintptr_t pc = _Unwind_GetIP(context);

	walk->ended = !pc;
	if (!pc || walk->n == D9__UNWIND_MAX)
		return _URC_END_OF_STACK;
	pcs[walk->n++] = pc;
	return _URC_NO_REASON;
}

/* Before the flush thread has made rows, and where there are none. */
static struct walk walk_without_tables(void)
{
	struct walk walk = { .is_raw = true };

	walk.ended |= _Unwind_Backtrace(add_frame, &walk) == _URC_END_OF_STACK;
	return walk;
}

#if D9__UNWIND_TABLES
static struct walk walk_stack(const struct d9__stack_place *place)
{
	struct d9__registers registers = { 0 };
	struct d9__unwound unwound;

	if (!d9__unwind_tables_have_rows())
		return walk_without_tables();
	unwinder.low = place->low;
	unwinder.high = place->high;
	unwinder.pid = getpid();
	__asm__ volatile("lea 0(%%rip), %0\n\tmov %%rsp, %1\n\tmov %%rbp, %2"
			 : "=&r"(registers.ip), "=&r"(registers.sp), "=&r"(registers.bp));
	unwound = d9__unwind(&unwinder, &registers, pcs, D9__UNWIND_MAX);
	return (struct walk){ unwound.n, !unwound.truncated, false };
}
#else
static struct walk walk_stack(const struct d9__stack_place *place)
{
	(void)place;
	return walk_without_tables();
}
#endif

/*
 * Where the program's frames begin: behind ours, which called from hooks.  0: not found, and all are kept.  Of a walk that
 * did not come out of ours the caller alone is left.
 */
static uint32_t first_frame(const struct d9__stack_place *place, struct walk *walk)
{
	for (uint32_t i = 0; i < walk->n; i++)
		if (pcs[i] == (uintptr_t)place->caller)
			return i;
	if (!walk->ended && place->caller) {
		pcs[0] = (uintptr_t)place->caller;
		walk->n = 1;
	}
	return 0;
}

/* ---- keeping it ---- */

static uint64_t mix(uint64_t hash, uint64_t word)
{
	hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
	return hash ^ hash >> 29;
}

static uint64_t hash_of(const struct d9__place_stack *stack)
{
	uint64_t hash = stack->truncated;

	for (uint32_t i = 0; i < stack->n; i++)
		hash = mix(hash, stack->pcs[i]);
	for (uint32_t i = 0; i < stack->n_checked; i++)
		hash = mix(hash, stack->words[i]);
	return hash;
}

/* Room for a stack of D9__PLACE_FRAMES, of which as much is used as was found.  NULL: there is none. */
static struct d9__place_stack *next_stack(void)
{
	if (!arena && !arena_used) {
		arena = d9__map(ARENA_BYTES);
		if (!arena)
			arena_used = ARENA_BYTES; /* so that later calls do not try to map it again */
	}
	if (!arena || n_stacks == STACKS_MAX || arena_used + STACK_BYTES(D9__PLACE_FRAMES) > ARENA_BYTES)
		return NULL;
	return (struct d9__place_stack *)(void *)(arena + arena_used);
}

/* The handle of |stack|, which next_stack() gave, or of the same one from before. */
static uint32_t keep(struct d9__place_stack *stack)
{
	uint32_t at = (uint32_t)((stack->hash = hash_of(stack)) % BY_HASH);

	for (; by_hash[at]; at = (at + 1) % BY_HASH)
		if (d9__place_stack_of(by_hash[at])->hash == stack->hash)
			return by_hash[at];
	arena_used += STACK_BYTES(stack->n);
	atomic_store_explicit(&d9__place_stacks[n_stacks], stack, memory_order_release);
	return by_hash[at] = (uint16_t)++n_stacks;
}

/* Find where the first return addresses stand: each is the first word of its value above the one before. */
static void find_words(const struct d9__stack_place *place, struct d9__place_stack *stack)
{
	uintptr_t room = d9__place_room(place);
	uint32_t n = stack->n < D9__PLACE_CHECKED + 2 ? stack->n : D9__PLACE_CHECKED + 2;
	uintptr_t at = 0;

	stack->n_checked = 0;
	if (room > UINT16_MAX)
		room = UINT16_MAX;
	for (uint32_t i = 1; i < n; i++) {
		while (at < room && d9__place_word(place, at) != stack->pcs[i])
			at++;
		if (at == room)
			return;
		if (i >= 2)
			stack->words[stack->n_checked++] = (uint16_t)at;
		at++;
	}
}

static uint32_t capture(const struct d9__stack_place *place)
{
	struct d9__place_stack *stack = next_stack();
	struct walk walk;
	uint32_t first;

	if (!stack)
		return 0;
	walk = walk_stack(place);
	first = first_frame(place, &walk);
	stack->is_raw = walk.is_raw;
	stack->n = walk.n - first + 1;
	stack->truncated = !walk.ended || stack->n > D9__PLACE_FRAMES;
	if (stack->n > D9__PLACE_FRAMES)
		stack->n = D9__PLACE_FRAMES;
	stack->pcs[0] = (uintptr_t)place->function;
	memcpy(stack->pcs + 1, pcs + first, (stack->n - 1) * sizeof(pcs[0]));
	find_words(place, stack);
	return keep(stack);
}

/* ---- places ---- */

static _Atomic(uint64_t) *place_at(uint64_t hash)
{
	return &d9__places[hash & (D9__PLACES - 1)];
}

static uint32_t capture_at(const struct d9__stack_place *place, uint64_t hash)
{
	uint32_t handle;

	/* A walk may need the kernel. */
	if (d9__sandbox_is_shut() || atomic_exchange_explicit(&taken, true, memory_order_acquire))
		return miss();
	handle = capture(place);
	atomic_store_explicit(&taken, false, memory_order_release);
	/* Also 0, so that the next calls from there do not try again.  release: who finds the handle finds the stack */
	atomic_store_explicit(place_at(hash), (hash & ~HANDLE_MAX) | handle, memory_order_release);
	return handle ? handle : miss();
}

/* Paths that share a place go on, from where they part, by the return address that tells them apart. */
uint32_t d9__place_search(const struct d9__stack_place *place, uint64_t hash, uint64_t random)
{
	const struct d9__place_stack *stack;
	int saved = errno;
	uint32_t handle, n;
	uint64_t word;

	for (unsigned parts = 0; random >> 54 && parts < PARTS_MAX; parts++) {
		word = atomic_load_explicit(place_at(hash), memory_order_acquire);
		if (word >> 16 != hash >> 16)
			break;
		if (!(word & HANDLE_MAX))
			return miss();
		stack = d9__place_stack_of(word & HANDLE_MAX);
		n = d9__place_agrees(place, stack);
		if (n == stack->n_checked)
			return word & HANDLE_MAX;
		if (stack->words[n] >= d9__place_room(place))
			break;
		hash = mix(hash, d9__place_word(place, stack->words[n]));
	}
	handle = capture_at(place, hash);
	errno = saved;
	return handle;
}

uint32_t d9__place_frames(const struct d9__place_stack *stack)
{
	/* The function and its caller, which it has returned to, are code. */
	uint32_t sure = stack->is_raw && stack->n > 2 ? 2 : stack->n;

	return sure + d9__unwind_code(stack->pcs + sure, stack->n - sure);
}

uint64_t d9__place_misses(void)
{
	return atomic_load_explicit(&misses, memory_order_relaxed);
}

void d9__place_stacks_fork_child(void)
{
	atomic_store_explicit(&taken, false, memory_order_relaxed);
}
