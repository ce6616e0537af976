/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "loop/callsites.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "record/modules.h"
#include "record/names.h"

#define BUCKETS 4096u

static struct {
	pthread_mutex_t lock; /* protects |n| and the order of insertions */
	uint32_t n;
	_Atomic(uint64_t) overflows;
	_Atomic(struct d9_callsite *) buckets[BUCKETS]; /* release/acquire: entry is complete */
} table = { .lock = PTHREAD_MUTEX_INITIALIZER };

static struct d9_callsite unknown = { .name = D9__NAME_EMPTY + 1 };

static _Atomic(struct d9_callsite *) *bucket_of(const void *callback, const void *site)
{
	uint64_t hash = ((uint64_t)(uintptr_t)callback * UINT64_C(0x9e3779b97f4a7c15)) ^
			(uint64_t)(uintptr_t)site;

	return &table.buckets[(hash * UINT64_C(0x9e3779b97f4a7c15)) >> 52];
}

static struct d9_callsite *find(_Atomic(struct d9_callsite *) *bucket, const void *callback,
				const void *site)
{
	struct d9_callsite *at = atomic_load_explicit(bucket, memory_order_acquire);

	while (at && (at->callback != callback || at->site != site))
		at = at->next;
	return at;
}

struct d9_callsite *d9__callsites_intern(const void *callback, const void *site)
{
	_Atomic(struct d9_callsite *) *bucket = bucket_of(callback, site);
	struct d9_callsite *found = find(bucket, callback, site), *new;

	if (found)
		return found;
	new = calloc(1, sizeof(*new));
	if (new) {
		pthread_mutex_lock(&table.lock);
		found = find(bucket, callback, site);
		if (!found && table.n < D9__CALLSITES_MAX) {
			new->next = atomic_load_explicit(bucket, memory_order_relaxed);
			new->callback = callback;
			new->site = site;
			table.n++;
			atomic_store_explicit(bucket, new, memory_order_release);
			found = new;
			new = NULL;
		}
		pthread_mutex_unlock(&table.lock);
		free(new);
	}
	if (found)
		return found;
	atomic_fetch_add_explicit(&table.overflows, 1, memory_order_relaxed);
	return &unknown;
}

static size_t append_place(char *text, size_t size, size_t at, const void *addr)
{
	int n = d9__module_name_of(addr, text + at, size - at);

	return n > 0 ? at + (size_t)n : at;
}

uint32_t d9__callsite_name_slow(struct d9_callsite *callsite)
{
	char text[640];
	size_t len = 0;
	int saved = errno;
	uint32_t name;

	if (callsite->callback)
		len = append_place(text, sizeof(text) / 2, len, callsite->callback);
	if (callsite->site) {
		memcpy(text + len, " @ ", 3);
		len = append_place(text, sizeof(text), len + 3, callsite->site);
	}
	/* Two threads may come here at once: equal texts have equal handles. */
	name = d9__name_intern(text, len);
	atomic_store_explicit(&callsite->name, name + 1, memory_order_release);
	errno = saved;
	return name;
}

const struct d9_callsite *d9_callsite(const void *callback, const void *site, unsigned flags)
{
	int saved = errno;
	struct d9_callsite *callsite = d9__callsites_intern(callback, site);

	if (!(flags & D9_CALLSITE_LOCKED))
		d9__callsite_name(callsite);
	errno = saved;
	return callsite;
}

uint64_t d9__callsites_overflows(void)
{
	return atomic_load_explicit(&table.overflows, memory_order_relaxed);
}

void d9__callsites_fork_prepare(void)
{
	pthread_mutex_lock(&table.lock);
}

void d9__callsites_fork_parent(void)
{
	pthread_mutex_unlock(&table.lock);
}
