/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stepping: a signal handler behind any one instruction of what is tested.  The trap flag makes the processor raise
 * SIGTRAP behind each.
 *
 *     if (!stepping_start(handler))
 *         return;
 *     unsigned at = 0;
 *     do {
 *         stepping_begin(at++);
 *         what_is_tested();
 *     } while (stepping_end());
 */

#ifndef D9_TESTS_RECORD_STEPPING_H
#define D9_TESTS_RECORD_STEPPING_H

#include <signal.h>
#include <stdbool.h>
#include <ucontext.h>

#include "base/sanitized.h"
#include "ring/clock.h"

static struct {
	void (*handler)(void);
	unsigned at, step; /* the handler's place, and how many instructions have passed */
	bool ended, ran;
} stepping;

#if defined(__x86_64__) && !D9__SANITIZED
#define STEPPING_TRAP_FLAG 0x100

static inline void stepping_trap(int signal_number, siginfo_t *info, void *ucontext)
{
	ucontext_t *context = ucontext;

	(void)signal_number;
	(void)info;
	if (!stepping.ended && stepping.step++ == stepping.at) {
		stepping.handler();
		stepping.ran = true;
	}
	if (stepping.ended || stepping.ran)
		context->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)STEPPING_TRAP_FLAG;
	else
		context->uc_mcontext.gregs[REG_EFL] |= STEPPING_TRAP_FLAG;
}

/* False where that cannot be done: valgrind has no trap flag, a sanitizer's runtime may not be interrupted. */
static inline bool stepping_start(void (*handler)(void))
{
	struct sigaction action = { .sa_sigaction = stepping_trap, .sa_flags = SA_SIGINFO };

	stepping.handler = handler;
	return !d9__clock_under_valgrind() && !sigaction(SIGTRAP, &action, NULL);
}

static inline void stepping_begin(unsigned at)
{
	stepping.at = at;
	stepping.step = 0;
	stepping.ended = stepping.ran = false;
	__asm__ volatile("int3" ::: "memory", "cc");
}
#else
static inline bool stepping_start(void (*handler)(void))
{
	stepping.handler = handler;
	return false;
}

static inline void stepping_begin(unsigned at)
{
	stepping.at = at;
}
#endif

/* Whether the handler ran: else |at| is behind the end. */
static inline bool stepping_end(void)
{
	stepping.ended = true;
	return stepping.ran;
}

#endif /* D9_TESTS_RECORD_STEPPING_H */
