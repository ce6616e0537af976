/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "block/waits.h"

#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "block/call.h"

#define WAITS(X)                                                                                   \
	X(int, pthread_barrier_wait, "pthread_barrier_wait", -1, (pthread_barrier_t * barrier),    \
	  barrier)                                                                                 \
	X(int, pthread_timedjoin_np, "pthread_join", -1,                                           \
	  (pthread_t thread, void **out, const struct timespec *until), thread, out, until)        \
	X(int, pthread_clockjoin_np, "pthread_join", -1,                                           \
	  (pthread_t thread, void **out, clockid_t clock, const struct timespec *until), thread,   \
	  out, clock, until)                                                                       \
	X(int, pause, "pause", -1, (void), )                                                       \
	X(int, sigsuspend, "sigsuspend", -1, (const sigset_t *mask), mask)

WAITS(D9__BLOCK_CALL)

static void (*real_flockfile)(FILE *file);

static void hook_flockfile(FILE *file)
{
	uint64_t begin_ns = d9__block_begin();

	D9__BLOCK_REAL(real_flockfile)(file);
	if (__builtin_expect(begin_ns != 0, 0))
		D9__BLOCK_END(begin_ns, "flockfile", D9__BLOCK_REAL(real_flockfile), -1);
}

/* ---- initialisations ---- */

#define ONCE_RUNS 1 /* glibc: some thread runs the function, and has not ended it */
#define ONCE_DONE 2

static int (*real_pthread_once)(pthread_once_t *once, void (*function)(void));

/* A call that runs the function itself does not wait.  C++ exceptions pass through. */
static int hook_pthread_once(pthread_once_t *once, void (*function)(void))
{
	int word = __atomic_load_n((int *)once, __ATOMIC_RELAXED);
	uint64_t begin_ns = 0;
	int result;

	if (__builtin_expect((word & (ONCE_RUNS | ONCE_DONE)) == ONCE_RUNS, 0))
		begin_ns = d9__block_begin();
	if (__builtin_expect(!begin_ns, 1))
		return D9__BLOCK_REAL(real_pthread_once)(once, function);
	result = D9__BLOCK_REAL(real_pthread_once)(once, function);
	D9__BLOCK_END(begin_ns, "pthread_once", D9__BLOCK_REAL(real_pthread_once), -1);
	return result;
}

/* ---- futexes ---- */

/*
 * The calls of syscall() that are not to be looked at have no frame here, because a child of
 * vfork() returns into its parent's, and clone() may begin on a stack with nothing on it:
 * d9__block_syscall, in assembly, jumps on to the real function with all registers and the stack as
 * they came.  A futex's wait goes to d9__block_futex(), whose arguments are where syscall() has
 * them.
 */
__attribute__((used)) long (*d9__block_real_syscall)(long number, long a, long b, long c, long d,
						     long e, long f);

long d9__block_futex(long number, long a, long b, long c, long d, long e, long f);
long d9__block_syscall(long number, ...);

__attribute__((used)) long d9__block_futex(long number, long a, long b, long c, long d, long e,
					   long f)
{
	uint64_t begin_ns = d9__block_begin();
	long result = D9__BLOCK_REAL(d9__block_real_syscall)(number, a, b, c, d, e, f);

	if (__builtin_expect(begin_ns != 0, 0))
		D9__BLOCK_END(begin_ns, "futex", D9__BLOCK_REAL(d9__block_real_syscall), -1);
	return result;
}

_Static_assert(FUTEX_WAIT == 0 && FUTEX_WAIT_BITSET == 9, "as below");

#if defined(__x86_64__)
_Static_assert(SYS_futex == 202, "as below");
__asm__(".pushsection .text\n"
	".p2align 4\n"
	".hidden d9__block_syscall\n"
	".globl d9__block_syscall\n"
	".type d9__block_syscall, @function\n"
	"d9__block_syscall:\n"
	".cfi_startproc\n"
	"endbr64\n"
	"cmpq $202, %rdi\n"
	"jne 1f\n"
	"movl %edx, %eax\n"
	"andl $0x7f, %eax\n" /* FUTEX_CMD_MASK, as far as there are commands */
	"jz 2f\n"
	"cmpl $9, %eax\n"
	"je 2f\n"
	"1: jmp *d9__block_real_syscall(%rip)\n"
	"2: jmp d9__block_futex\n"
	".cfi_endproc\n"
	".size d9__block_syscall, . - d9__block_syscall\n"
	".popsection\n");
#define HAS_SYSCALL 1
#elif defined(__aarch64__)
_Static_assert(SYS_futex == 98, "as below");
__asm__(".pushsection .text\n"
	".p2align 4\n"
	".hidden d9__block_syscall\n"
	".globl d9__block_syscall\n"
	".type d9__block_syscall, %function\n"
	"d9__block_syscall:\n"
	".cfi_startproc\n"
	"hint 34\n"
	"cmp x0, #98\n"
	"b.ne 1f\n"
	"and w16, w2, #0x7f\n"
	"cbz w16, 2f\n"
	"cmp w16, #9\n"
	"b.eq 2f\n"
	"1: adrp x16, d9__block_real_syscall\n"
	"ldr x16, [x16, #:lo12:d9__block_real_syscall]\n"
	"br x16\n"
	"2: b d9__block_futex\n"
	".cfi_endproc\n"
	".size d9__block_syscall, . - d9__block_syscall\n"
	".popsection\n");
#define HAS_SYSCALL 1
#endif

/* ---- redirection ---- */

#define HOOK(type, function, ...)                                                                  \
	D9__GOT_HOOK(function, hook_##function, &real_##function,                                  \
		     D9__GOT_IN_OTHERS | D9__GOT_SCOPE),

const struct d9__got_hook d9__wait_hooks[] = {
	WAITS(HOOK) HOOK(void, flockfile) HOOK(int, pthread_once)
#ifdef HAS_SYSCALL
		D9__GOT_HOOK(syscall, d9__block_syscall, &d9__block_real_syscall,
			     D9__GOT_IN_OTHERS | D9__GOT_SCOPE),
#endif
};
