/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "record/aside.h"

#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "base/descriptors.h"
#include "base/thread.h"
#include "base/time.h"
#include "record/flush.h"
#include "ring/clock.h"
#include "segment/user_callbacks.h"

#define PATIENCE_NS D9__SECOND_NS
#define GOES_MAX    8 /* in a second */

bool d9__calm_lock(struct d9__calm *before, pthread_mutex_t *lock)
{
	sigset_t all;

	before->saved_errno = errno;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before->signals);
	if (pthread_mutex_trylock(lock)) {
		pthread_sigmask(SIG_SETMASK, &before->signals, NULL);
		errno = before->saved_errno;
		return false;
	}
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before->cancel);
	return true;
}

void d9__calm_unlock(const struct d9__calm *before, pthread_mutex_t *lock)
{
	pthread_mutex_unlock(lock);
	pthread_setcancelstate(before->cancel, NULL);
	pthread_sigmask(SIG_SETMASK, &before->signals, NULL);
	errno = before->saved_errno;
}

/* ---- going ---- */

bool d9__aside_may_go(void)
{
	static uint64_t second_ns;
	static unsigned n;
	uint64_t now_ns = d9__clock_mono_ns();

	if (n < GOES_MAX && now_ns - second_ns >= D9__SECOND_NS) {
		second_ns = now_ns;
		n = 0;
	}
	return n < GOES_MAX && ++n;
}

/* False: it takes too long, and was called back. */
static bool wait_for_aside(uint64_t deadline_ns)
{
	int asked = D9__ASIDE_ASKED;

	while (atomic_load_explicit(&d9__flush.aside, memory_order_acquire) == D9__ASIDE_ASKED) {
		uint64_t now_ns = d9__clock_mono_ns();
		struct timespec left;

		if (now_ns >= deadline_ns)
			break;
		left = d9__timespec_of(deadline_ns - now_ns);
		syscall(SYS_futex, &d9__flush.aside, FUTEX_WAIT_PRIVATE, D9__ASIDE_ASKED, &left, NULL, 0);
	}
	return !atomic_compare_exchange_strong_explicit(&d9__flush.aside, &asked, D9__ASIDE_NO, memory_order_acq_rel,
							memory_order_acquire);
}

bool d9__aside_go(pthread_t thread)
{
	uint64_t deadline_ns = d9__clock_mono_ns() + PATIENCE_NS;
	bool gone;

	if (!d9__user_callbacks_pause(deadline_ns))
		return false;
	gone = !d9__descriptors_expect();
	if (gone) {
		/* release: with the socket's address */
		atomic_store_explicit(&d9__flush.aside, D9__ASIDE_ASKED, memory_order_release);
		d9__flush_wake();
		gone = wait_for_aside(deadline_ns);
	}
	if (!gone) {
		d9__descriptors_expect_none();
		d9__user_callbacks_go_on();
		return false;
	}
	d9__thread_join(thread, atomic_load_explicit(&d9__flush.tid, memory_order_relaxed));
	return true;
}

int d9__aside_return(pthread_t *thread)
{
	int err = d9__flush_start_again(thread);

	if (err)
		return err;
	d9__descriptors_expect_none();
	d9__user_callbacks_go_on();
	return 0;
}

/* ---- where ---- */

#define SIGNALS 64
#define DEPTH	(256u << 10) /* in which a handler's frame is looked for */
#define CHUNK	4096u

static bool is_handled(int signal, struct sigaction *action)
{
	return !sigaction(signal, NULL, action) && (action->sa_flags & SA_SIGINFO || (action->sa_handler != SIG_DFL &&
										     action->sa_handler != SIG_IGN));
}

/* Signals whose handlers may be running: they are blocked, or their handlers let them be.  Bits by number - 1. */
struct suspects {
	uint64_t blocked, let;
};

static struct suspects find_suspects(void)
{
	struct suspects found = { 0, 0 };
	struct sigaction action;
	sigset_t blocked;

	sigemptyset(&blocked);
	pthread_sigmask(SIG_SETMASK, NULL, &blocked);
	/* sigaction() shows none of the C library's own signals, and no code of the program runs in their handlers. */
	for (int i = 1; i <= SIGNALS; i++) {
		if (!is_handled(i, &action))
			continue;
		found.blocked |= (uint64_t)(sigismember(&blocked, i) == 1) << (i - 1);
		found.let |= (uint64_t)((action.sa_flags & SA_NODEFER) != 0) << (i - 1);
	}
	return found;
}

#if defined(__x86_64__)

/* In the kernel's frame: behind the address that the handler returns to, and registers.  What was blocked before. */
#define MASK_AT (8 + 8 * 5 + 256)

static uint64_t restorer(void)
{
	struct {
		void *handler;
		unsigned long flags;
		uint64_t restorer, mask;
	} action = { 0 };

	for (int i = 1; i <= SIGNALS; i++)
		if (!syscall(SYS_rt_sigaction, i, NULL, &action, 8) && action.restorer)
			return action.restorer;
	return 0;
}

static size_t read_stack(uintptr_t at, void *to, size_t len)
{
	struct iovec local = { to, len }, remote = { (void *)at, len };
	ssize_t n = process_vm_readv(getpid(), &local, 1, &remote, 1, 0);

	return n > 0 ? (size_t)n : 0;
}

/* Of a frame that is left over on the stack the signal is not blocked any more. */
static bool is_live(uintptr_t at, const struct suspects *suspects)
{
	uint64_t before;

	return suspects->let || (read_stack(at + MASK_AT, &before, sizeof(before)) == sizeof(before) &&
				 suspects->blocked & ~before);
}

static bool has_frame(const struct suspects *suspects)
{
	uint64_t words[CHUNK / 8], wanted = restorer();
	uintptr_t begin = (uintptr_t)__builtin_frame_address(0) & ~(uintptr_t)7, at = begin;

	while (wanted && at - begin < DEPTH) {
		size_t len = CHUNK - at % CHUNK;

		if (read_stack(at, words, len) != len)
			break;
		for (size_t i = 0; i < len / 8; i++)
			if (words[i] == wanted && is_live(at + 8 * i, suspects))
				return true;
		at += len;
	}
	/* Where the stack may not be read, nothing is known. */
	return at == begin;
}

#else

static bool has_frame(const struct suspects *suspects)
{
	(void)suspects;
	return true;
}

#endif

bool d9__aside_in_handler(void)
{
	int saved = errno;
	struct suspects suspects = find_suspects();
	bool in = (suspects.blocked || suspects.let) && has_frame(&suspects);

	errno = saved;
	return in;
}
