/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unwind: the call stack of a thread, from the registers at which a signal interrupted it.
 *
 * Async-signal-safe: no lock, no allocation, no thread-local storage but errno.  Only the stack, the unwind
 * tables and the memory of the walk itself are touched, so modules may be unmapped meanwhile.  The one system
 * call is process_vm_readv(), once, for a stack that is neither the thread's nor registered.
 *
 * A stack holds secrets: the stack protector's word, keys.  So a walk writes no word of it that is not an address of
 * executable memory, as the tables know it.  The interrupted pc is not looked up for that: the processor ran it.
 *
 * In a handler, where |thread| belongs to the thread and a guard keeps nested handlers out:
 *
 *	struct d9__registers registers;
 *	uint64_t pcs[D9__UNWIND_MAX];
 *	struct d9__unwound unwound;
 *
 *	d9__registers_of(&registers, ucontext);
 *	unwound = d9__unwind(thread, &registers, pcs, D9__UNWIND_MAX);
 */

#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <dial9/export.h>

#include "sample/unwind_row.h"

#define D9__UNWIND_MAX        128 /* frames */
#define D9__UNWIND_COPY_BYTES 16384
#define D9__UNWIND_CACHE      512

/* Why a walk ended. */
enum d9__unwind_stop {
	D9__STOP_END,    /* the last frame, a thread's or coroutine's start, has no caller: the stack is complete */
	D9__STOP_BOUNDS, /* a word to be read is not in the stack, or not aligned */
	D9__STOP_NO_ROW, /* nothing is known of the code, and rbp is no frame pointer */
	D9__STOP_CFA,    /* the caller's frame would not be above this one */
	D9__STOP_DEPTH,  /* there is no room for more frames */
	D9__STOP_REGISTER, /* a register is needed that is known in the innermost frame only */
	D9__STOP_NO_CODE,  /* the return address is not in executable memory: no frame, and not told */
	D9__STOPS
};

#define D9__REGISTERS 16

/* The registers that a walk starts from.  On aarch64 |bp| is x29. */
struct d9__registers {
	uintptr_t ip, sp, bp;
	uintptr_t all[D9__REGISTERS]; /* by the numbers of the x86-64 psABI; elsewhere nothing */
};

/* The result of a walk. */
struct d9__unwound {
	uint32_t n;    /* frames, the innermost first; the first is the interrupted pc, others are return addresses */
	uint8_t stop;  /* enum d9__unwind_stop */
	bool truncated; /* outer frames may be missing: every stop but D9__STOP_END */
	bool guessed;   /* a step followed a frame pointer without knowing that it is one */
};

/* The row that was found for an address.  All zero: none was. */
struct d9__unwind_cached {
	uintptr_t pc;
	const struct d9__unwind_row *row;
};

/*
 * The memory for unwinding a thread, about 24 KiB.  For one walk at a time.  All zero but for |pid| will do.
 */
struct d9__unwind_thread {
	uintptr_t low, high; /* of its stack; both 0: not known */
	pid_t pid;           /* of this process, for foreign stacks; 0: none are read */

	/* Walks only. */
	uint64_t version; /* of the tables that |cache| points into */
	struct d9__unwind_cached cache[D9__UNWIND_CACHE];

	/* Counted by walks, read by anybody (relaxed). */
	_Atomic(uint32_t) stops[D9__STOPS];
	_Atomic(uint32_t) guesses; /* steps by frame pointer, where no row was known */
	_Atomic(uint32_t) copies;  /* of foreign stacks */
	_Atomic(uint32_t) refused; /* copies that the kernel, or a filter of system calls, does not permit */

	_Alignas(16) uint8_t copy[D9__UNWIND_COPY_BYTES];
};

/* The registers of a ucontext_t, the third argument of a handler. */
void d9__registers_of(struct d9__registers *registers, const void *ucontext);

/* Write at most |max| addresses to |pcs|, at least one if |max| is not 0. */
struct d9__unwound d9__unwind(struct d9__unwind_thread *thread,
			      const struct d9__registers *registers, uint64_t *pcs, uint32_t max);

/*
 * Walk the stack of a thread that runs on, with |len| bytes of its stack from registers->sp on, copied to |stack|, which is
 * aligned as the stack is.  No other walk uses |thread|; its bounds are not looked at.
 */
struct d9__unwound d9__unwind_copied(struct d9__unwind_thread *thread, const struct d9__registers *registers,
				     const uint8_t *stack, size_t len, uint64_t *pcs, uint32_t max);

/*
 * How many of |n| return addresses, from the first on, are in executable memory: what of a stack that was walked by other
 * means may be told.  0 while there are no tables.
 */
uint32_t d9__unwind_code(const uint64_t *pcs, uint32_t n);
