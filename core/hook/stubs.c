/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <pthread.h>

#include "hook/images.h"
#include "hook/stubs.h"

#define FULL_TENTHS 8 /* from here on all sites of a callback share one stub */

static pthread_mutex_t stubs_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct d9__stubs *pools; /* in use; grows at the head, read without the lock */

void d9__stubs_lock(void)
{
	pthread_mutex_lock(&stubs_mutex);
}

void d9__stubs_unlock(void)
{
	pthread_mutex_unlock(&stubs_mutex);
}

static uint64_t mix(uint64_t value)
{
	value *= UINT64_C(0x9e3779b97f4a7c15);
	return value ^ value >> 29;
}

static unsigned key_hash(const void *callback, const void *site, uint32_t kind)
{
	return (unsigned)(mix(mix((uintptr_t)callback) + (uintptr_t)site + kind) >> 16);
}

static unsigned address_hash(const void *function)
{
	return (unsigned)(mix((uintptr_t)function) >> 16);
}

/* The modules that hold callback and site; 0 for a callback that was made at run time. */
static uint32_t home_of(const void *callback, const void *site)
{
	struct d9__module_range of_callback, of_site = { 0, 0 };
	uint64_t hash;

	if (!d9__module_range_of(callback, &of_callback))
		return 0;
	if (site && !d9__module_range_of(site, &of_site))
		of_site.low = 1;
	hash = mix(of_callback.low + mix(of_callback.high));
	hash = mix(hash + of_site.low + mix(of_site.high));
	return (uint32_t)(hash >> 20) | 1;
}

/* ---- address -> stub ---- */

static void index_addresses(struct d9__stubs *stubs)
{
	uintptr_t low = UINTPTR_MAX, high = 0;

	for (unsigned i = 0; i < stubs->size; i++) {
		uintptr_t addr = (uintptr_t)stubs->functions[i];
		unsigned at = address_hash(stubs->functions[i]);

		while (atomic_load_explicit(&stubs->addresses[at & stubs->key_mask],
					    memory_order_relaxed))
			at++;
		atomic_store_explicit(&stubs->addresses[at & stubs->key_mask], (uint16_t)(i + 1),
				      memory_order_relaxed);
		low = addr < low ? addr : low;
		high = addr > high ? addr : high;
	}
	atomic_store_explicit(&stubs->low, low, memory_order_relaxed);
	/* release: pairs with the acquire in d9__stubs_find(); the addresses are indexed */
	atomic_store_explicit(&stubs->high, high, memory_order_release);
}

static void begin_use_locked(struct d9__stubs *stubs)
{
	if (atomic_load_explicit(&stubs->high, memory_order_relaxed) != 0)
		return;
	index_addresses(stubs);
	stubs->next = pools;
	/* release: pairs with the acquire in d9__stubs_sweep() */
	__atomic_store_n(&pools, stubs, __ATOMIC_RELEASE);
}

struct d9__stub *d9__stubs_find(struct d9__stubs *stubs, const void *function)
{
	uintptr_t addr = (uintptr_t)function;

	/* acquire: pairs with the release in index_addresses() */
	if (addr > atomic_load_explicit(&stubs->high, memory_order_acquire) ||
	    addr < atomic_load_explicit(&stubs->low, memory_order_relaxed))
		return NULL;
	for (unsigned at = address_hash(function);; at++) {
		unsigned entry = atomic_load_explicit(&stubs->addresses[at & stubs->key_mask],
						      memory_order_relaxed);

		if (entry == 0)
			return NULL;
		if (stubs->functions[entry - 1] == function)
			return d9__stub_at(stubs, entry - 1);
	}
}

/* ---- key -> stub ---- */

/* The stub's index, or -1 with *|free_key| where the key belongs. */
static int find_key(struct d9__stubs *stubs, const void *callback, const void *site, uint32_t kind,
		    unsigned *free_key)
{
	for (unsigned at = key_hash(callback, site, kind);; at++) {
		/* acquire: pairs with the release in add_stub_locked() */
		unsigned entry = atomic_load_explicit(&stubs->keys[at & stubs->key_mask],
						      memory_order_acquire);
		struct d9__stub *stub = &stubs->slots[entry ? entry - 1 : 0];

		if (entry == 0) {
			*free_key = at & stubs->key_mask;
			return -1;
		}
		if (stub->callback == callback && stub->site == site && stub->kind == kind &&
		    !atomic_load_explicit(&stub->dead, memory_order_relaxed))
			return (int)entry - 1;
	}
}

static bool nearly_full(const struct d9__stubs *stubs)
{
	return atomic_load_explicit(&stubs->used, memory_order_relaxed) * 10 >=
	       stubs->size * FULL_TENTHS;
}

static int add_stub_locked(struct d9__stubs *stubs, void *callback, const void *site, uint32_t kind,
			   unsigned key)
{
	unsigned index = atomic_load_explicit(&stubs->used, memory_order_relaxed);
	struct d9__stub *stub = &stubs->slots[index];

	if (index == stubs->size) {
		atomic_fetch_add_explicit(&stubs->full, 1, memory_order_relaxed);
		return -1;
	}
	stub->callback = callback;
	stub->site = site;
	stub->kind = kind;
	stub->home = home_of(callback, site);
	if (stubs->prepare)
		stubs->prepare(stub);
	D9__TSAN_RELEASE(stub);
	atomic_store_explicit(&stubs->used, index + 1, memory_order_relaxed);
	/* release: pairs with the acquire in find_key() */
	atomic_store_explicit(&stubs->keys[key], (uint16_t)(index + 1), memory_order_release);
	return (int)index;
}

static __attribute__((noinline)) int wrap_slow(struct d9__stubs *stubs, void *callback,
					       const void *site, uint32_t kind)
{
	int saved_errno = errno, index;
	unsigned key = 0;

	d9__stubs_lock();
	begin_use_locked(stubs);
	if (nearly_full(stubs))
		site = NULL;
	index = find_key(stubs, callback, site, kind, &key);
	if (index < 0)
		index = add_stub_locked(stubs, callback, site, kind, key);
	d9__stubs_unlock();
	errno = saved_errno;
	return index;
}

void *d9__stubs_wrap(struct d9__stubs *stubs, void *callback, const void *site, uint32_t kind)
{
	unsigned key;
	int index;

	if (!callback)
		return NULL;
	callback = d9__stubs_unwrap(stubs, callback);
	index = find_key(stubs, callback, site, kind, &key);
	if (index < 0 && nearly_full(stubs)) {
		index = find_key(stubs, callback, NULL, kind, &key);
		/* Full and unknown: no lock for a callback that is passed through each time. */
		if (index < 0 &&
		    atomic_load_explicit(&stubs->used, memory_order_relaxed) == stubs->size) {
			atomic_fetch_add_explicit(&stubs->full, 1, memory_order_relaxed);
			return callback;
		}
	}
	if (index < 0)
		index = wrap_slow(stubs, callback, site, kind);
	return index < 0 ? callback : stubs->functions[index];
}

/* ---- unloaded code ---- */

void d9__stubs_sweep(void)
{
	/* acquire: pairs with the release in begin_use_locked() */
	struct d9__stubs *stubs = __atomic_load_n(&pools, __ATOMIC_ACQUIRE);

	for (; stubs; stubs = stubs->next) {
		d9__stubs_lock();
		unsigned n = atomic_load_explicit(&stubs->used, memory_order_relaxed);
		d9__stubs_unlock();
		for (unsigned i = 0; i < n; i++) {
			struct d9__stub *stub = &stubs->slots[i];

			if (stub->home && stub->home != home_of(stub->callback, stub->site))
				atomic_store_explicit(&stub->dead, true, memory_order_relaxed);
		}
	}
}
