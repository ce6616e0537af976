/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For each frame: find the row of its pc, compute the CFA, read the return address below it and the caller's
 * rbp; the caller's sp is the CFA.  A return address may be the first byte of the next function, if the call
 * never returns, so callers are looked up one byte before it.
 */
#include "config.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/sanitized.h"
#include "sample/stacks.h"
#include "sample/unwind.h"
#include "sample/unwind_table.h"

/* The ABI of x86-64 lets a function use this many bytes below its sp. */
#define RED_ZONE 128

/* Numbers of the psABI. */
#define RBP 6
#define RSP 7

#if D9__UNWIND_TABLES
/* Where ucontext_t has the registers that the psABI numbers. */
static const uint8_t in_context[D9__REGISTERS] = { REG_RAX, REG_RDX, REG_RCX, REG_RBX,
						   REG_RSI, REG_RDI, REG_RBP, REG_RSP,
						   REG_R8,	REG_R9,	 REG_R10, REG_R11,
						   REG_R12, REG_R13, REG_R14, REG_R15 };

#define SAVED(reg) (offsetof(ucontext_t, uc_mcontext.gregs) + sizeof(greg_t) * (reg))
#endif

/* A part of a stack that may be read: the word at |address| is at |address| + |shift|. */
struct region {
	uintptr_t low, high;
	uintptr_t shift;
};

struct walk {
	struct d9__unwind_thread *thread;
	const struct d9__unwind_table *table;
	struct region region;
	uintptr_t pc, sp, bp;
	const uintptr_t *all; /* registers of the frame that was interrupted; NULL: they are its callee's by now */
	uintptr_t saved[D9__REGISTERS]; /* those that a signal frame holds */
	bool is_caller; /* |pc| is a word of the stack */
	bool has_copied;
	bool has_guessed;
};

static void count(_Atomic(uint32_t) *counter)
{
	/* One thread writes: no locked instruction. */
	atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + 1,
			      memory_order_relaxed);
}

/* ---- the stack ---- */

/*
 * A word of a stack.  Sanitizers are kept out: AddressSanitizer poisons parts of frames, which the walk reads
 * from below; and the slots of other frames may be written by any thread that was given their address, so that
 * ThreadSanitizer would report a race.
 */
#if D9__SANITIZED
__attribute__((no_sanitize("address", "thread"), noinline))
#endif
static uintptr_t load(uintptr_t at)
{
	return *(const volatile uintptr_t *)at;
}

/* False if |address| is no word of the stack. */
static bool read_word(const struct walk *walk, uintptr_t address, uintptr_t *out)
{
	uintptr_t low = walk->sp - RED_ZONE;

	if (low < walk->region.low || low > walk->sp)
		low = walk->region.low;
	if (address % sizeof(*out) || address < low || address >= walk->region.high ||
	    walk->region.high - address < sizeof(*out))
		return false;
	*out = load(address + walk->region.shift);
	return true;
}

/* The memory above sp, copied: the kernel reads it, and stops where nothing is mapped. */
static void copy_stack(struct walk *walk)
{
	struct d9__unwind_thread *thread = walk->thread;
	uintptr_t from = walk->sp & ~(uintptr_t)(sizeof(uintptr_t) - 1);
	struct iovec to = { thread->copy, sizeof(thread->copy) };
	struct iovec there = { (void *)from, sizeof(thread->copy) };
	long n;

	walk->region = (struct region){ 0 };
	if (walk->has_copied || !thread->pid)
		return;
	walk->has_copied = true;
	count(&thread->copies);
	/* Not the library's function: sanitizers and others wrap it. */
	n = syscall(SYS_process_vm_readv, (long)thread->pid, &to, 1L, &there, 1L, 0L);
	if (n < 0 && (errno == EPERM || errno == ENOSYS))
		count(&thread->refused);
	if (n > 0)
		walk->region = (struct region){ from, from + (uintptr_t)n,
						(uintptr_t)thread->copy - from };
}

/* After sp was set to a stack that may be another one. */
static void choose_region(struct walk *walk)
{
	const struct d9__unwind_thread *thread = walk->thread;
	uintptr_t low, high;

	if (walk->sp >= thread->low && walk->sp < thread->high)
		walk->region = (struct region){ thread->low, thread->high, 0 };
	else if (d9__stacks_find(walk->sp, &low, &high))
		walk->region = (struct region){ low, high, 0 };
	else if (walk->sp < walk->region.low || walk->sp >= walk->region.high)
		copy_stack(walk);
}

/* ---- steps ---- */

static struct d9__unwind_cached *cached(struct d9__unwind_thread *thread, uintptr_t pc)
{
	uint64_t hash = (uint64_t)pc * UINT64_C(0x9e3779b97f4a7c15);

	return &thread->cache[(hash >> 32) % D9__UNWIND_CACHE];
}

/* False: the pc is not in executable memory, as far as is known.  Else |*row| may be NULL. */
static bool find_row(struct walk *walk, const struct d9__unwind_row **row)
{
	uintptr_t pc = walk->all ? walk->pc : walk->pc - 1;
	struct d9__unwind_cached *entry = cached(walk->thread, pc);
	bool found;

	*row = entry->row;
	if (*row && entry->pc == pc)
		return true;
	*row = NULL;
	found = walk->table && d9__unwind_table_find(walk->table, pc, row);
	if (*row)
		*entry = (struct d9__unwind_cached){ pc, *row };
	return found;
}

static enum d9__unwind_stop read_cfa(const struct walk *walk, uintptr_t base, intptr_t offset,
				     uintptr_t more, uintptr_t *cfa)
{
	if (!read_word(walk, base + (uintptr_t)offset, cfa))
		return D9__STOP_BOUNDS;
	*cfa += more;
	return D9__STOP_END;
}

/* D9__STOP_END, which stands for none here, and |*cfa|. */
static enum d9__unwind_stop find_cfa(const struct walk *walk, const struct d9__unwind_row *row,
				     uintptr_t *cfa)
{
	intptr_t n = row->cfa_offset;

	switch (row->cfa) {
	case D9__CFA_RSP:
		*cfa = walk->sp + (uintptr_t)n;
		return D9__STOP_END;
	case D9__CFA_RBP:
		*cfa = walk->bp + (uintptr_t)n;
		return D9__STOP_END;
	case D9__CFA_PLT:
		*cfa = walk->sp + 8 + ((intptr_t)(walk->pc & 15) >= n ? 8 : 0);
		return D9__STOP_END;
	case D9__CFA_AT_RBP:
		return read_cfa(walk, walk->bp, n, 0, cfa);
	case D9__CFA_AT_RBP_8:
		return read_cfa(walk, walk->bp, n, 8, cfa);
	case D9__CFA_AT_RSP_8:
		return read_cfa(walk, walk->sp, n, 8, cfa);
	default:
		if (!walk->all)
			return D9__STOP_REGISTER;
		*cfa = walk->all[row->cfa - D9__CFA_REGISTER] + (uintptr_t)n;
		return D9__STOP_END;
	}
}

/*
 * The caller's rbp.  A slot below sp has been popped again: the function is about to return, and the register
 * holds the caller's value already.  Compilers leave such slots in the rules of epilogues.
 */
static bool find_bp(const struct walk *walk, const struct d9__unwind_row *row, uintptr_t cfa,
		    uintptr_t *bp)
{
	uintptr_t slot = (row->rbp == D9__RBP_AT_CFA ? cfa : walk->bp) + (uintptr_t)row->rbp_offset;

	*bp = walk->bp;
	if (row->rbp == D9__RBP_SAME || slot < walk->sp)
		return true;
	return read_word(walk, slot, bp);
}

/* A return address may be signed, in the bits that addresses do not use. */
static uintptr_t without_signature(uintptr_t pc)
{
#if defined(__aarch64__)
	return pc & ((UINT64_C(1) << 48) - 1);
#else
	return pc;
#endif
}

static void enter_caller(struct walk *walk, uintptr_t pc, uintptr_t sp, uintptr_t bp)
{
	walk->pc = without_signature(pc);
	walk->sp = sp;
	walk->bp = bp;
	walk->all = NULL;
	walk->is_caller = true;
}

static enum d9__unwind_stop step_by_row(struct walk *walk, const struct d9__unwind_row *row)
{
	uintptr_t cfa = 0, pc, bp;
	enum d9__unwind_stop stop = find_cfa(walk, row, &cfa);

	if (stop != D9__STOP_END)
		return stop;
	if (cfa <= walk->sp)
		return D9__STOP_CFA;
	if (!read_word(walk, cfa - sizeof(pc), &pc) || !find_bp(walk, row, cfa, &bp))
		return D9__STOP_BOUNDS;
	enter_caller(walk, pc, cfa, bp);
	return D9__STOP_END;
}

/* The two words that a function with a frame pointer pushed: the caller's frame pointer, and above it the return address. */
static enum d9__unwind_stop step_by_frame_pointer(struct walk *walk)
{
	uintptr_t pc, bp;

	if (walk->bp < walk->sp || !read_word(walk, walk->bp, &bp) ||
	    !read_word(walk, walk->bp + sizeof(bp), &pc))
		return D9__STOP_NO_ROW;
	count(&walk->thread->guesses);
	walk->has_guessed = true;
	enter_caller(walk, pc, walk->bp + 2 * sizeof(bp), bp);
	return D9__STOP_END;
}

#if D9__UNWIND_TABLES
/* The frame that a signal handler returns to: the kernel left all registers at sp. */
static enum d9__unwind_stop step_over_signal(struct walk *walk)
{
	uintptr_t pc;

	for (size_t i = 0; i < D9__REGISTERS; i++)
		if (!read_word(walk, walk->sp + SAVED(in_context[i]), &walk->saved[i]))
			return D9__STOP_BOUNDS;
	if (!read_word(walk, walk->sp + SAVED(REG_RIP), &pc))
		return D9__STOP_BOUNDS;
	enter_caller(walk, pc, walk->saved[RSP], walk->saved[RBP]);
	walk->all = walk->saved;
	choose_region(walk);
	return D9__STOP_END;
}
#else
static enum d9__unwind_stop step_over_signal(struct walk *walk)
{
	return step_by_frame_pointer(walk);
}
#endif

/* Go to the caller.  False if there is none, or none that can be found: |*stop| says why. */
static bool step(struct walk *walk, enum d9__unwind_stop *stop)
{
	const struct d9__unwind_row *row;

	if (!find_row(walk, &row) && walk->is_caller) {
		*stop = D9__STOP_NO_CODE;
		return false;
	}
	if (row && row->cfa == D9__CFA_END) {
		*stop = D9__STOP_END;
		return false;
	}
	if (!row || row->cfa == D9__CFA_NONE)
		*stop = step_by_frame_pointer(walk);
	else if (row->cfa == D9__CFA_SIGNAL)
		*stop = step_over_signal(walk);
	else
		*stop = step_by_row(walk, row);
	return *stop == D9__STOP_END;
}

/* ---- walks ---- */

/*
 * The hot path: frames of callers whose row is in the cache and gives the CFA by rsp or rbp, as nearly all do.
 * It does for them what step() does, in registers, and leaves to step() whatever is not as it should be, and to look
 * whether the last is code: the others are, as they have rows.
 * Returns the number of frames, |n| of which were there.
 */
static uint32_t step_usual(struct walk *walk, uint64_t *pcs, uint32_t n, uint32_t max)
{
	struct d9__unwind_thread *thread = walk->thread;
	uintptr_t pc = walk->pc, sp = walk->sp, bp = walk->bp;
	uintptr_t last = walk->region.high - sizeof(pc), shift = walk->region.shift;

	while (n < max) {
		const struct d9__unwind_cached *entry = cached(thread, pc - 1);
		const struct d9__unwind_row *row = entry->row;
		uintptr_t cfa, slot, caller;

		if (entry->pc != pc - 1 || !row || row->cfa < D9__CFA_RSP || row->cfa > D9__CFA_RBP ||
		    row->rbp > D9__RBP_AT_CFA)
			break;
		cfa = (row->cfa == D9__CFA_RSP ? sp : bp) + (uintptr_t)(intptr_t)row->cfa_offset;
		slot = row->rbp == D9__RBP_SAME ? 0 : cfa + (uintptr_t)(intptr_t)row->rbp_offset;
		if (cfa <= sp || cfa - sizeof(pc) > last || slot > last || (cfa | slot) % sizeof(pc))
			break;
		caller = without_signature(load(cfa - sizeof(pc) + shift));
		if (slot >= sp)
			bp = load(slot + shift);
		pcs[n++] = pc = caller;
		sp = cfa;
	}
	enter_caller(walk, pc, sp, bp);
	return n;
}

/* The cache points into one version of the tables. */
static void take_table(struct walk *walk)
{
	struct d9__unwind_thread *thread = walk->thread;
	uint64_t version;

	walk->table = d9__unwind_table_now();
	version = walk->table ? d9__unwind_table_number(walk->table) : 0;
	if (version == thread->version)
		return;
	memset(thread->cache, 0, sizeof(thread->cache));
	thread->version = version;
}

/* From where |walk| stands. */
static struct d9__unwound go(struct walk *walk, uint64_t *pcs, uint32_t max)
{
	enum d9__unwind_stop stop = D9__STOP_DEPTH;
	uint32_t n = 0;

	if (max > D9__UNWIND_MAX)
		max = D9__UNWIND_MAX;
	while (n < max) {
		pcs[n++] = walk->pc;
		if (!walk->all && walk->region.high)
			n = step_usual(walk, pcs, n, max);
		/* It looks at the latest address, which may be any word. */
		if (!step(walk, &stop))
			break;
		stop = D9__STOP_DEPTH;
	}
	if (stop == D9__STOP_NO_CODE)
		n--;
	count(&walk->thread->stops[stop]);
	return (struct d9__unwound){ n, (uint8_t)stop, stop != D9__STOP_END, walk->has_guessed };
}

struct d9__unwound d9__unwind(struct d9__unwind_thread *thread,
			      const struct d9__registers *registers, uint64_t *pcs, uint32_t max)
{
	struct walk walk = { .thread = thread, .pc = registers->ip, .sp = registers->sp,
			     .bp = registers->bp, .all = registers->all };

	take_table(&walk);
	choose_region(&walk);
	return go(&walk, pcs, max);
}

struct d9__unwound d9__unwind_copied(struct d9__unwind_thread *thread, const struct d9__registers *registers,
				     const uint8_t *stack, size_t len, uint64_t *pcs, uint32_t max)
{
	struct walk walk = { .thread = thread, .pc = registers->ip, .sp = registers->sp, .bp = registers->bp,
			     .all = registers->all, .has_copied = true };

	take_table(&walk);
	if ((walk.sp | (uintptr_t)stack) % sizeof(uintptr_t) == 0 && walk.sp <= UINTPTR_MAX - len)
		walk.region = (struct region){ walk.sp, walk.sp + len, (uintptr_t)stack - walk.sp };
	return go(&walk, pcs, max);
}

uint32_t d9__unwind_code(const uint64_t *pcs, uint32_t n)
{
	const struct d9__unwind_table *table = d9__unwind_table_now();
	const struct d9__unwind_row *row;
	uint32_t i = 0;

	while (table && i < n && d9__unwind_table_find(table, (uintptr_t)pcs[i] - 1, &row))
		i++;
	return i;
}

void d9__registers_of(struct d9__registers *registers, const void *ucontext)
{
	const ucontext_t *context = ucontext;

#if defined(__x86_64__)
	const greg_t *saved = context->uc_mcontext.gregs;

	for (size_t i = 0; i < D9__REGISTERS; i++)
		registers->all[i] = (uintptr_t)saved[in_context[i]];
	registers->ip = (uintptr_t)saved[REG_RIP];
	registers->sp = registers->all[RSP];
	registers->bp = registers->all[RBP];
#elif defined(__aarch64__)
	registers->ip = context->uc_mcontext.pc;
	registers->sp = context->uc_mcontext.sp;
	registers->bp = context->uc_mcontext.regs[29];
#else
	(void)context;
	*registers = (struct d9__registers){ 0 };
#endif
}
