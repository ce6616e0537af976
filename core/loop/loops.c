/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "loop/loops.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"

#define BUCKETS 256u

static struct {
	pthread_mutex_t lock; /* protects all below and the loops' fields marked so */
	/* Heads of chains.  Read without the lock: entries are recycled, never freed. */
	_Atomic(struct d9_loop *) buckets[BUCKETS];
	/* Odd while a chain changes.  A reader that found nothing looks again if it moved. */
	_Atomic(uint32_t) changes;
	_Atomic(struct d9_loop *) all[D9__LOOPS_MAX]; /* read without the lock */
	size_t n;
	struct d9_loop *free;
	uint32_t serials;
} registry = { .lock = PTHREAD_MUTEX_INITIALIZER };

static _Atomic(struct d9_loop *) *bucket_of(uint32_t library, const void *address)
{
	uint64_t hash = ((uint64_t)(uintptr_t)address + library) * UINT64_C(0x9e3779b97f4a7c15);

	return &registry.buckets[hash >> 56];
}

static struct d9_loop *find_once(uint32_t library, const void *address)
{
	struct d9_loop *loop = atomic_load_explicit(bucket_of(library, address),
						    memory_order_acquire);

	/* The bound ends a walk that strayed into a chain that changes under it. */
	for (unsigned i = 0; loop && i < D9__LOOPS_MAX; i++) {
		if (atomic_load_explicit(&loop->address, memory_order_acquire) == address &&
		    atomic_load_explicit(&loop->library, memory_order_relaxed) == library)
			return loop;
		loop = atomic_load_explicit(&loop->next, memory_order_acquire);
	}
	return NULL;
}

struct d9_loop *d9__loops_find(enum d9_library library, const void *address)
{
	for (unsigned i = 0; address && i < 4; i++) {
		uint32_t before = atomic_load_explicit(&registry.changes, memory_order_acquire);
		struct d9_loop *loop = find_once(library, address);

		if (loop || (!(before & 1) &&
			     atomic_load_explicit(&registry.changes, memory_order_acquire) == before))
			return loop;
	}
	return NULL;
}

static void begin_change_locked(void)
{
	atomic_fetch_add_explicit(&registry.changes, 1, memory_order_acq_rel);
}

static void end_change_locked(void)
{
	atomic_fetch_add_explicit(&registry.changes, 1, memory_order_release);
}

static struct d9_loop *take_entry_locked(void)
{
	struct d9_loop *loop = registry.free;

	if (loop) {
		registry.free = loop->next_free;
		return loop;
	}
	if (registry.n == D9__LOOPS_MAX)
		return NULL;
	loop = d9__calloc(1, sizeof(*loop));
	if (loop)
		atomic_store_explicit(&registry.all[registry.n++], loop, memory_order_release);
	return loop;
}

static void set_name_locked(struct d9_loop *loop, const char *name)
{
	size_t len = name ? strnlen(name, D9__LOOP_NAME_MAX - 1) : 0;

	memset(loop->name, 0, sizeof(loop->name));
	if (len)
		memcpy(loop->name, name, len);
}

static struct d9_loop *insert_locked(uint32_t library, const void *address)
{
	_Atomic(struct d9_loop *) *head = bucket_of(library, address);
	struct d9_loop *loop = take_entry_locked();

	if (!loop)
		return NULL;
	atomic_store_explicit(&loop->serial, ++registry.serials, memory_order_relaxed);
	/* Far from those of the loops before and behind. */
	atomic_store_explicit(&loop->round, registry.serials * UINT32_C(0x9e3779b9),
			      memory_order_relaxed);
	atomic_store_explicit(&loop->owner, NULL, memory_order_relaxed);
	atomic_store_explicit(&loop->handed, 0, memory_order_relaxed);
	atomic_store_explicit(&loop->companion, NULL, memory_order_relaxed);
	atomic_store_explicit(&loop->library, library, memory_order_relaxed);
	begin_change_locked();
	atomic_store_explicit(&loop->next, atomic_load_explicit(head, memory_order_relaxed),
			      memory_order_relaxed);
	atomic_store_explicit(&loop->address, address, memory_order_release);
	atomic_store_explicit(head, loop, memory_order_release);
	end_change_locked();
	return loop;
}

int d9__loops_add(enum d9_library library, const void *address, const char *name,
		  struct d9_loop **out)
{
	struct d9_loop *loop;
	int err = 0;

	pthread_mutex_lock(&registry.lock);
	loop = find_once(library, address);
	if (loop) {
		if (name)
			set_name_locked(loop, name);
		goto out;
	}
	loop = insert_locked(library, address);
	if (loop)
		set_name_locked(loop, name);
	else
		err = registry.n == D9__LOOPS_MAX ? -ENOSPC : -ENOMEM;
out:
	pthread_mutex_unlock(&registry.lock);
	if (!err)
		*out = loop;
	return err;
}

bool d9__loops_remove(struct d9_loop *loop)
{
	const void *address = atomic_load_explicit(&loop->address, memory_order_relaxed);
	_Atomic(struct d9_loop *) *at;
	bool found = false;

	pthread_mutex_lock(&registry.lock);
	at = bucket_of(atomic_load_explicit(&loop->library, memory_order_relaxed), address);
	while (atomic_load_explicit(at, memory_order_relaxed)) {
		struct d9_loop *here = atomic_load_explicit(at, memory_order_relaxed);

		if (here == loop) {
			begin_change_locked();
			atomic_store_explicit(at, atomic_load_explicit(&loop->next,
								       memory_order_relaxed),
					      memory_order_release);
			atomic_store_explicit(&loop->address, NULL, memory_order_release);
			end_change_locked();
			loop->next_free = registry.free;
			registry.free = loop;
			found = true;
			break;
		}
		at = &here->next;
	}
	pthread_mutex_unlock(&registry.lock);
	return found;
}

void d9__loop_name(struct d9_loop *loop, char name[D9__LOOP_NAME_MAX])
{
	pthread_mutex_lock(&registry.lock);
	memcpy(name, loop->name, D9__LOOP_NAME_MAX);
	pthread_mutex_unlock(&registry.lock);
}

struct d9_loop *d9__loops_at(size_t i)
{
	/* acquire: pairs with the release in take_entry_locked() */
	return i < D9__LOOPS_MAX ? atomic_load_explicit(&registry.all[i], memory_order_acquire)
				 : NULL;
}

bool d9__loops_any(void)
{
	return d9__loops_at(0) != NULL;
}

const char *d9__library_name(uint32_t library)
{
	static const char *const names[] = { "own", "libevent", "libev", "glib" };

	return names[library & 3];
}

void d9__loops_fork_prepare(void)
{
	pthread_mutex_lock(&registry.lock);
}

void d9__loops_fork_parent(void)
{
	pthread_mutex_unlock(&registry.lock);
}

void d9__loops_fork_child(void)
{
	struct d9_loop *loop;

	for (size_t i = 0; i < registry.n && (loop = d9__loops_at(i)); i++) {
		atomic_store_explicit(&loop->owner, NULL, memory_order_relaxed);
	}
	pthread_mutex_unlock(&registry.lock);
}
