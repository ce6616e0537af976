/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <unwind.h>

#include "sample/place_stacks.h"
#include "sample/unwind.h"
#include "sample/unwind_table.h"

#define STACKS_MAX  4096u
#define BY_HASH	    (2 * STACKS_MAX)
#define ARENA_BYTES (2u << 20)
#define HANDLE_MAX  UINT64_C(0xffff)

_Atomic(uint64_t) d9__places[1u << D9__PLACE_BITS];

/* Stored with release when the stack is complete. */
static _Atomic(const struct d9__place_stack *) stacks[STACKS_MAX];
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

/* Of this function, so that the walk begins in it. */
static inline __attribute__((always_inline)) void read_registers(struct d9__registers *registers)
{
#if defined(__x86_64__)
	__asm__ volatile("lea 0(%%rip), %0\n\tmov %%rsp, %1\n\tmov %%rbp, %2"
			 : "=&r"(registers->ip), "=&r"(registers->sp), "=&r"(registers->bp));
#else
	registers->ip = (uintptr_t)read_registers;
	registers->sp = registers->bp = (uintptr_t)__builtin_frame_address(0);
#endif
}

struct walk {
	uint32_t n;
	bool ended; /* nobody called the last frame */
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

/* Before the flush thread has made tables, and where there are none. */
static struct walk walk_without_tables(void)
{
	struct walk walk = { 0 };

	walk.ended |= _Unwind_Backtrace(add_frame, &walk) == _URC_END_OF_STACK;
	return walk;
}

static __attribute__((noinline)) struct walk walk_stack(const struct d9__place *place)
{
	struct d9__registers registers = { 0 };
	struct d9__unwound unwound;

	if (!d9__unwind_table_now())
		return walk_without_tables();
	unwinder.low = place->low;
	unwinder.high = place->high;
	unwinder.pid = getpid();
	read_registers(&registers);
	unwound = d9__unwind(&unwinder, &registers, pcs, D9__UNWIND_MAX);
	return (struct walk){ unwound.n, !unwound.truncated && !unwound.guessed };
}

/* Where the program's frames begin: behind ours, which called from hooks.  0: not found, and all are kept. */
static uint32_t first_frame(const struct d9__place *place, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (pcs[i] == (uintptr_t)place->caller)
			return i;
	return 0;
}

/* ---- keeping it ---- */

static uint64_t hash_of(const uint64_t *addresses, uint32_t n, bool truncated)
{
	uint64_t hash = truncated;

	for (uint32_t i = 0; i < n; i++) {
		hash = (hash ^ addresses[i]) * UINT64_C(0x9e3779b97f4a7c15);
		hash ^= hash >> 29;
	}
	return hash;
}

static struct d9__place_stack *new_stack(uint32_t n)
{
	struct d9__place_stack *stack;
	size_t bytes = sizeof(*stack) + n * sizeof(stack->pcs[0]);
	void *memory;

	if (!arena) {
		memory = mmap(NULL, ARENA_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		arena = memory == MAP_FAILED ? NULL : memory;
	}
	if (!arena || n_stacks == STACKS_MAX || arena_used + bytes > ARENA_BYTES)
		return NULL;
	stack = (struct d9__place_stack *)(void *)(arena + arena_used);
	arena_used += bytes;
	return stack;
}

/* The handle of the stack |function|, |addresses|.  0: there is no room. */
static uint32_t keep(const void *function, const uint64_t *addresses, uint32_t n, bool truncated)
{
	uint64_t hash = hash_of(addresses, n, truncated) ^ (uintptr_t)function;
	uint32_t at = (uint32_t)(hash % BY_HASH);
	struct d9__place_stack *stack;

	for (; by_hash[at]; at = (at + 1) % BY_HASH)
		if (d9__place_stack_of(by_hash[at])->hash == hash)
			return by_hash[at];
	stack = new_stack(n + 1);
	if (!stack)
		return 0;
	stack->hash = hash;
	stack->n = n + 1;
	stack->truncated = truncated;
	stack->pcs[0] = (uintptr_t)function;
	memcpy(stack->pcs + 1, addresses, n * sizeof(addresses[0]));
	atomic_store_explicit(&stacks[n_stacks], stack, memory_order_release);
	return by_hash[at] = (uint16_t)++n_stacks;
}

static uint32_t capture(const struct d9__place *place)
{
	struct walk walk = walk_stack(place);
	uint32_t first = first_frame(place, walk.n), n = walk.n - first;
	bool truncated = !walk.ended;

	if (n >= D9__PLACE_FRAMES) {
		n = D9__PLACE_FRAMES - 1;
		truncated = true;
	}
	return keep(place->function, pcs + first, n, truncated);
}

uint32_t d9__place_capture(const struct d9__place *place, uint64_t hash)
{
	int saved = errno;
	uint32_t handle;

	if (atomic_exchange_explicit(&taken, true, memory_order_acquire))
		return miss();
	handle = capture(place);
	atomic_store_explicit(&taken, false, memory_order_release);
	errno = saved;
	/* Also 0, so that the next calls from there do not try again.  release: who finds the handle finds the stack */
	atomic_store_explicit(&d9__places[hash & ((1u << D9__PLACE_BITS) - 1)], (hash & ~HANDLE_MAX) | handle,
			      memory_order_release);
	return handle ? handle : miss();
}

const struct d9__place_stack *d9__place_stack_of(uint32_t handle)
{
	return atomic_load_explicit(&stacks[handle - 1], memory_order_acquire);
}

uint64_t d9__place_misses(void)
{
	return atomic_load_explicit(&misses, memory_order_relaxed);
}

void d9__place_stacks_fork_child(void)
{
	atomic_store_explicit(&taken, false, memory_order_relaxed);
}
