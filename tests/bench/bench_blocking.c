/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A wrapped call against the plain one, outside and inside a callback, and two stamps for
 * comparison.  The call does nothing, so that the wrapper is all there is.
 */
#include "config.h"

#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

#include <dial9/loop.h>

#include "bench/bench_recorder.h"
#include "bench/bench_variants.h"
#include "block/call.h"
#include "block/calls.h"
#include "block/locks.h"
#include "block/waits.h"

#define MORE_NS 2.0 /* than nothing, or two stamps */

static struct d9_loop *loop;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static volatile uint64_t sink;

static __attribute__((noinline)) int nothing(int fd)
{
	return (int)(sink = (uint64_t)fd);
}

static __attribute__((noinline)) ssize_t read_nothing(int fd, void *buf, size_t n)
{
	(void)buf;
	sink = (uint64_t)fd;
	return (ssize_t)n;
}

/* As through a GOT slot. */
static int (*volatile plain)(int) = nothing;
static int (*volatile wrapped)(int);
static ssize_t (*volatile plain_read)(int, void *, size_t) = read_nothing;
static ssize_t (*volatile wrapped_read)(int, void *, size_t);
static int (*volatile plain_lock)(pthread_mutex_t *) = pthread_mutex_lock;
static int (*volatile plain_unlock)(pthread_mutex_t *) = pthread_mutex_unlock;
static int (*volatile wrapped_lock)(pthread_mutex_t *);
static int (*volatile wrapped_unlock)(pthread_mutex_t *);

static int (*volatile plain_read_lock)(pthread_rwlock_t *) = pthread_rwlock_rdlock;
static int (*volatile plain_rw_unlock)(pthread_rwlock_t *) = pthread_rwlock_unlock;
static int (*volatile wrapped_read_lock)(pthread_rwlock_t *);
static int (*volatile wrapped_rw_unlock)(pthread_rwlock_t *);
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;

static __attribute__((noinline)) long call_nothing(long number, long a, long b, long c, long d,
						   long e, long f)
{
	(void)a, (void)b, (void)c, (void)d, (void)e, (void)f;
	sink = (uint64_t)number;
	return 0;
}

static long (*volatile plain_syscall)(long, long, long, long, long, long, long) = call_nothing;
static long (*volatile wrapped_syscall)(long, long, long, long, long, long, long);

static void call_plain(uint64_t i)
{
	plain((int)i);
}

static void call_wrapped(uint64_t i)
{
	wrapped((int)i);
}

static void read_plain(uint64_t i)
{
	plain_read((int)i, NULL, 8);
}

static void read_wrapped(uint64_t i)
{
	wrapped_read((int)i, NULL, 8);
}

static void call_and_stamps(uint64_t i)
{
	const struct d9__slot *slot = d9__slot_self();

	sink = d9__block_now(slot);
	plain((int)i);
	sink = d9__block_now(slot);
}

static void lock_plain(uint64_t i)
{
	(void)i;
	plain_lock(&mutex);
	plain_unlock(&mutex);
}

static void lock_wrapped(uint64_t i)
{
	(void)i;
	wrapped_lock(&mutex);
	wrapped_unlock(&mutex);
}

static void read_lock_plain(uint64_t i)
{
	(void)i;
	plain_read_lock(&rwlock);
	plain_rw_unlock(&rwlock);
}

static void read_lock_wrapped(uint64_t i)
{
	(void)i;
	wrapped_read_lock(&rwlock);
	wrapped_rw_unlock(&rwlock);
}

static void syscall_plain(uint64_t i)
{
	plain_syscall(SYS_futex, (long)i, FUTEX_WAKE, 1, 0, 0, 0);
}

static void syscall_wrapped(uint64_t i)
{
	wrapped_syscall(SYS_futex, (long)i, FUTEX_WAKE, 1, 0, 0, 0);
}

static void futex_wrapped(uint64_t i)
{
	wrapped_syscall(SYS_futex, (long)i, FUTEX_WAIT, 1, 0, 0, 0);
}

static const struct bench_variant variants[] = {
	{ "plain call", call_plain, false },
	{ "wrapped call", call_wrapped, false },
	{ "two stamps", call_and_stamps, false },
	{ "plain lock and unlock", lock_plain, false },
	{ "wrapped lock and unlock", lock_wrapped, false },
	{ "plain read", read_plain, false },
	{ "wrapped read", read_wrapped, false },
	{ "plain read lock and unlock", read_lock_plain, false },
	{ "wrapped read lock and unlock", read_lock_wrapped, false },
	{ "plain syscall()", syscall_plain, false },
	{ "wrapped syscall(), no wait", syscall_wrapped, false },
	{ "wrapped syscall(), a futex's wait", futex_wrapped, false },
	{ "two stamps again", call_and_stamps, false },
};

#define VARIANTS (sizeof(variants) / sizeof(variants[0]))

/* As the engine does. */
typedef void *any_function __attribute__((may_alias));

static void *wrap(const struct d9__got_hook *hooks, size_t n, const char *name, void *real)
{
	for (size_t i = 0; i < n; i++) {
		if (!hooks[i].name || strcmp(hooks[i].name, name) != 0)
			continue;
		*(any_function *)hooks[i].real = real;
		return hooks[i].replacement;
	}
	return NULL;
}

static void measure(void)
{
	bench_measure_all(variants, VARIANTS);
	bench_same("two stamps", bench_cost(2), bench_cost(VARIANTS - 1), BENCH_ROUNDS);
}

static void report_others(const char *where)
{
	char name[96];

	snprintf(name, sizeof(name), "wrapped read lock and unlock %s a callback", where);
	bench_ratio(name, "ns", bench_cost(8), variants[7].name, bench_cost(7), BENCH_ROUNDS, 0);
	snprintf(name, sizeof(name), "wrapped syscall() %s a callback", where);
	bench_ratio(name, "ns", bench_cost(10), variants[9].name, bench_cost(9), BENCH_ROUNDS, 0);
	snprintf(name, sizeof(name), "wrapped wait of a futex %s a callback", where);
	bench_ratio(name, "ns", bench_cost(11), variants[9].name, bench_cost(9), BENCH_ROUNDS, 0);
}

int main(void)
{
	struct d9_poll poll = { .task = { .key = 1, .fd = -1 } };
	struct d9_loop_run run;
	double stamps_ns;

	if (bench_start_recorder() || d9_loop_register(D9_LIBRARY_OWN, &loop, "bench", &loop)) {
		fputs("cannot start recording\n", stderr);
		return 1;
	}
	wrapped = wrap(d9__call_hooks, D9__CALL_HOOKS, "fsync", (void *)nothing);
	wrapped_read = wrap(d9__call_hooks, D9__CALL_HOOKS, "read", (void *)read_nothing);
	wrapped_lock = wrap(d9__lock_hooks, D9__LOCK_HOOKS, "pthread_mutex_lock",
			    (void *)pthread_mutex_lock);
	wrapped_unlock = wrap(d9__lock_hooks, D9__LOCK_HOOKS, "pthread_mutex_unlock",
			      (void *)pthread_mutex_unlock);
	wrapped_read_lock = wrap(d9__lock_hooks, D9__LOCK_HOOKS, "pthread_rwlock_rdlock",
				 (void *)pthread_rwlock_rdlock);
	wrapped_rw_unlock = wrap(d9__lock_hooks, D9__LOCK_HOOKS, "pthread_rwlock_unlock",
				 (void *)pthread_rwlock_unlock);
	wrapped_syscall = wrap(d9__wait_hooks, D9__WAIT_HOOKS, "syscall", (void *)call_nothing);
	if (!wrapped_syscall)
		wrapped_syscall = call_nothing;
	poll.loop = loop;
	d9_loop_enter(loop, &run);
	measure();
	bench_value("wrapped call outside a callback", "ns", bench_cost(1), BENCH_ROUNDS, MORE_NS);
	bench_ratio("wrapped lock and unlock outside a callback", "ns", bench_cost(4),
		    variants[3].name, bench_cost(3), BENCH_ROUNDS, 0);
	bench_ratio("wrapped read outside a callback", "ns", bench_cost(6), variants[5].name,
		    bench_cost(5), BENCH_ROUNDS, 0);
	report_others("outside");
	d9_poll_begin(&poll);
	measure();
	stamps_ns = bench_median(bench_cost(2), BENCH_ROUNDS);
	bench_ratio("wrapped call inside a callback", "ns", bench_cost(1), variants[2].name,
		    bench_cost(2), BENCH_ROUNDS, (stamps_ns + MORE_NS) / stamps_ns);
	bench_ratio("wrapped lock and unlock inside a callback", "ns", bench_cost(4),
		    variants[3].name, bench_cost(3), BENCH_ROUNDS, 0);
	bench_ratio("wrapped read inside a callback", "ns", bench_cost(6), variants[5].name,
		    bench_cost(5), BENCH_ROUNDS, 0);
	report_others("inside");
	d9_poll_end(&poll);
	d9_loop_leave(&run);
	return 0;
}
