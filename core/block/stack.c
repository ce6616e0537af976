/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "block/stack.h"

#include <stdatomic.h>
#include <stddef.h>
#include <unistd.h>

#include "loop/thread_state.h"
#include "record/sandbox.h"
#include "sample/unwind.h"
#include "sample/unwind_table.h"

#define ROOMS 8 /* so many threads walk at once; further ones tell their caller alone */

/* The memory of a walk, too much for the program's stack. */
struct d9__block_room {
	_Atomic(bool) taken;
	uint64_t pcs[D9__UNWIND_MAX];
	struct d9__unwind_thread unwind;
};

static struct d9__block_room rooms[ROOMS];

static struct d9__block_room *take_room(void)
{
	for (unsigned i = 0; i < ROOMS; i++)
		/* acquire: pairs with the release in d9__block_stack_release() */
		if (!atomic_load_explicit(&rooms[i].taken, memory_order_relaxed) &&
		    !atomic_exchange_explicit(&rooms[i].taken, true, memory_order_acquire))
			return &rooms[i];
	return NULL;
}

/* The registers of the function that this is inlined into. */
__attribute__((always_inline)) static inline struct d9__registers registers_here(void)
{
	struct d9__registers registers = { 0 };

#if defined(__x86_64__)
	__asm__ volatile("leaq 0(%%rip), %0\n\tmovq %%rsp, %1\n\tmovq %%rbp, %2"
			 : "=r"(registers.ip), "=r"(registers.sp), "=r"(registers.bp));
#elif defined(__aarch64__)
	__asm__ volatile("adr %0, .\n\tmov %1, sp\n\tmov %2, x29"
			 : "=r"(registers.ip), "=r"(registers.sp), "=r"(registers.bp));
#endif
	return registers;
}

static void know_thread(struct d9__unwind_thread *unwind)
{
	const struct d9__thread *thread = d9__thread_peek();

	unwind->low = thread ? thread->stack_low : 0;
	unwind->high = thread ? thread->stack_high : 0;
	/* Of a thread without bounds the kernel copies a part of the stack, which may be a call too many. */
	unwind->pid = d9__sandbox_is_shut() ? 0 : getpid();
}

__attribute__((noinline)) void d9__block_stack_take(struct d9__block_stack *stack, const void *real,
						    const void *caller)
{
	struct d9__registers registers = registers_here();
	struct d9__unwound unwound;
	struct d9__block_room *room = take_room();

	*stack = (struct d9__block_stack){ .n = 2, .truncated = true, .room = room,
					   .few = { (uintptr_t)real, (uintptr_t)caller } };
	stack->pcs = stack->few;
	if (!room)
		return;
	know_thread(&room->unwind);
	/* Too late for this call, of which the caller alone is told, unless it was seen open. */
	if (!d9__unwind_tables_have_rows())
		d9__unwind_tables_want_rows();
	unwound = d9__unwind(&room->unwind, &registers, room->pcs, D9__UNWIND_MAX);
	for (uint32_t i = 1; i < unwound.n; i++) {
		if (room->pcs[i] != (uintptr_t)caller)
			continue;
		/* Frames before it are our own; the last of them stands for the function that was called. */
		room->pcs[i - 1] = (uintptr_t)real;
		stack->pcs = &room->pcs[i - 1];
		stack->n = unwound.n - (i - 1);
		stack->truncated = unwound.truncated;
		return;
	}
}

void d9__block_stack_release(struct d9__block_stack *stack)
{
	if (stack->room)
		atomic_store_explicit(&stack->room->taken, false, memory_order_release);
}

void d9__block_stacks_fork_child(void)
{
	for (unsigned i = 0; i < ROOMS; i++)
		atomic_store_explicit(&rooms[i].taken, false, memory_order_relaxed);
}
