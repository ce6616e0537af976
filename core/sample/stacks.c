/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sorted array in place.  Writers hold the lock and keep |changes| odd meanwhile; readers look whether it moved, and
 * then found nothing.  What writers store in between they store with release, and readers load it with acquire: who
 * sees any of it sees the odd number, too.
 */
#include "config.h"

#include <dial9/stack.h>

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#include "sample/stacks.h"

struct stack {
	_Atomic(uintptr_t) low, high;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic(uint32_t) changes, n_stacks;
static struct stack stacks[D9__STACKS_MAX]; /* by address */

static uintptr_t low_of(uint32_t i)
{
	return atomic_load_explicit(&stacks[i].low, memory_order_acquire);
}

static uintptr_t high_of(uint32_t i)
{
	return atomic_load_explicit(&stacks[i].high, memory_order_acquire);
}

/* The first of |n| that ends above |address|; |n|: none does. */
static uint32_t first_above(uint32_t n, uintptr_t address)
{
	uint32_t from = 0;

	while (from < n) {
		uint32_t middle = from + (n - from) / 2;

		if (high_of(middle) <= address)
			from = middle + 1;
		else
			n = middle;
	}
	return from;
}

bool d9__stacks_find(uintptr_t sp, uintptr_t *low, uintptr_t *high)
{
	uint32_t before = atomic_load_explicit(&changes, memory_order_acquire);
	uint32_t n = atomic_load_explicit(&n_stacks, memory_order_acquire), i = first_above(n, sp);

	if (i >= n || before & 1)
		return false;
	*low = low_of(i);
	*high = high_of(i);
	return atomic_load_explicit(&changes, memory_order_relaxed) == before && *low <= sp && sp < *high;
}

/* ---- writers ---- */

static void put_locked(uint32_t i, uintptr_t low, uintptr_t high)
{
	atomic_store_explicit(&stacks[i].low, low, memory_order_release);
	atomic_store_explicit(&stacks[i].high, high, memory_order_release);
}

/* Odd at the first call, even at the second. */
static void change_locked(void)
{
	uint32_t now = atomic_load_explicit(&changes, memory_order_relaxed);

	atomic_store_explicit(&changes, now + 1, memory_order_release);
}

static int add_locked(uintptr_t low, uintptr_t high)
{
	uint32_t n = atomic_load_explicit(&n_stacks, memory_order_relaxed), at = first_above(n, low);
	bool known = at < n && low_of(at) == low;

	if (at + known < n && low_of(at + known) < high)
		return -EEXIST;
	if (!known && n == D9__STACKS_MAX)
		return -ENOSPC;
	change_locked();
	for (uint32_t i = n; !known && i > at; i--)
		put_locked(i, low_of(i - 1), high_of(i - 1));
	put_locked(at, low, high);
	atomic_store_explicit(&n_stacks, n + !known, memory_order_release);
	change_locked();
	return 0;
}

static int remove_locked(uintptr_t low)
{
	uint32_t n = atomic_load_explicit(&n_stacks, memory_order_relaxed), at = first_above(n, low);

	if (at == n || low_of(at) != low)
		return -ENOENT;
	change_locked();
	for (uint32_t i = at; i + 1 < n; i++)
		put_locked(i, low_of(i + 1), high_of(i + 1));
	atomic_store_explicit(&n_stacks, n - 1, memory_order_release);
	change_locked();
	return 0;
}

int d9_stack_register(const void *low, size_t size)
{
	uintptr_t from = (uintptr_t)low, to = from + size;
	int err;

	if (!low || to <= from)
		return -EINVAL;
	pthread_mutex_lock(&lock);
	err = add_locked(from, to);
	pthread_mutex_unlock(&lock);
	return err;
}

int d9_stack_unregister(const void *low)
{
	int err;

	pthread_mutex_lock(&lock);
	err = remove_locked((uintptr_t)low);
	pthread_mutex_unlock(&lock);
	return err;
}

void d9__stacks_fork_prepare(void)
{
	pthread_mutex_lock(&lock);
}

void d9__stacks_fork_parent(void)
{
	pthread_mutex_unlock(&lock);
}
