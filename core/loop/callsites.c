/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "loop/callsites.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "loop/generated.h"
#include "ring/names.h"
#include "sample/unwind.h"
#include "segment/modules.h"

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

	while (at && (at->callback != callback || at->site != site ||
		      atomic_load_explicit(&at->gone, memory_order_relaxed)))
		at = at->next;
	return at;
}

static struct d9_callsite *intern(const void *callback, const void *site, unsigned kind)
{
	_Atomic(struct d9_callsite *) *bucket = bucket_of(callback, site);
	struct d9_callsite *found = find(bucket, callback, site), *new;

	if (found)
		return found;
	new = d9__calloc(1, sizeof(*new));
	if (new) {
		pthread_mutex_lock(&table.lock);
		found = find(bucket, callback, site);
		if (!found && table.n < D9__CALLSITES_MAX) {
			new->next = atomic_load_explicit(bucket, memory_order_relaxed);
			new->callback = callback;
			new->site = site;
			new->kind = (uint16_t)kind;
			table.n++;
			atomic_store_explicit(bucket, new, memory_order_release);
			found = new;
			new = NULL;
		}
		pthread_mutex_unlock(&table.lock);
		d9__free(new);
	}
	if (found)
		return found;
	atomic_fetch_add_explicit(&table.overflows, 1, memory_order_relaxed);
	return &unknown;
}

struct d9_callsite *d9__callsites_intern(const void *callback, const void *site)
{
	return intern(callback, site, D9_TASK_CUSTOM);
}

/* ---- what callbacks of a loop library are for ---- */

#define ROLES 256u /* a power of 2; one that finds no place has no role */

static struct {
	_Atomic(const void *) callback;
	_Atomic(const char *) role;
} roles[ROLES];

static size_t role_home(const void *callback)
{
	return ((uintptr_t)callback * UINT64_C(0x9e3779b97f4a7c15)) >> 56 & (ROLES - 1);
}

const char *d9__callback_role(const void *callback)
{
	for (size_t i = role_home(callback), n = 0; n < ROLES; n++, i = (i + 1) & (ROLES - 1)) {
		const void *at = atomic_load_explicit(&roles[i].callback, memory_order_relaxed);

		if (at == callback || !at)
			/* acquire: the text is complete; it may be missing for a moment */
			return at ? atomic_load_explicit(&roles[i].role, memory_order_acquire) : NULL;
	}
	return NULL;
}

void d9__callback_role_set(const void *callback, const char *role)
{
	for (size_t i = role_home(callback), n = 0; n < ROLES; n++, i = (i + 1) & (ROLES - 1)) {
		const void *at = NULL;

		if (!atomic_compare_exchange_strong_explicit(&roles[i].callback, &at, callback,
							     memory_order_relaxed,
							     memory_order_relaxed) &&
		    at != callback)
			continue;
		atomic_store_explicit(&roles[i].role, role, memory_order_release);
		return;
	}
}

/* ---- names ---- */

static size_t append_place(char *text, size_t size, size_t at, const void *addr)
{
	const char *maker = NULL;
	int n = d9__module_name_of(addr, text + at, size - at);

	if (n > 0 && !strncmp(text + at, "0x", 2))
		maker = d9__generated_by();
	/* The list of modules may have been made in between. */
	if (maker)
		n = d9__module_name_of(addr, text + at, size - at);
	if (maker && n > 0 && !strncmp(text + at, "0x", 2))
		n = snprintf(text + at, size - at, "%s code", maker);
	return n > 0 ? at + (size_t)n : at;
}

/*
 * Write what to call |callback|; |*shared| if that stands for many.  Code that a language's runtime makes lies in
 * no module: its address would tell nothing.
 */
static size_t callback_name(char *text, size_t size, const void *callback, const void *site, unsigned kind,
			    bool *shared)
{
	const char *role = d9__callback_role(callback);
	int n;

	*shared = false;
	if (role)
		n = snprintf(text, size, "%s", role);
	else
		n = d9__module_name_of(callback, text, size);
	if (n > 0 && !strncmp(text, "0x", 2))
		n = d9__generated_name(callback, site, kind, text, size, shared);
	return n > 0 ? (size_t)n : 0;
}

uint32_t d9__callsite_name_slow(struct d9_callsite *callsite)
{
	char text[640];
	size_t len = 0;
	int saved = errno;
	uint32_t name;
	bool shared;

	if (callsite->callback)
		len = callback_name(text, sizeof(text) / 2, callsite->callback, callsite->site, callsite->kind,
				    &shared);
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

const struct d9_callsite *d9__callsite_of_kind(const void *callback, const void *site, enum d9_task_kind kind)
{
	static struct d9_callsite of_many[D9__TASK_KINDS];
	struct d9_callsite *callsite = find(bucket_of(callback, site), callback, site);
	int saved = errno;
	bool shared = false;
	char text[320];
	size_t len;

	if (!callsite && callback) {
		len = callback_name(text, sizeof(text), callback, site, kind, &shared);
		if (shared) {
			callsite = &of_many[kind];
			atomic_store_explicit(&callsite->name, d9__name_intern(text, len) + 1, memory_order_release);
		}
	}
	if (!callsite)
		callsite = intern(callback, site, kind);
	d9__callsite_name(callsite);
	errno = saved;
	return callsite;
}

/*
 * Find none of those in a module any more that was unloaded.  Without a lock: a thread that forks
 * has ours, and may wait for that of the modules, under which this runs.
 */
static void forget_module(uintptr_t start, uintptr_t end)
{
	for (uint32_t i = 0; i < BUCKETS; i++)
		for (struct d9_callsite *at =
			     atomic_load_explicit(&table.buckets[i], memory_order_acquire);
		     at; at = at->next)
			if ((uintptr_t)at->callback - start < end - start ||
			    (uintptr_t)at->site - start < end - start)
				atomic_store_explicit(&at->gone, true, memory_order_relaxed);
}

static __attribute__((constructor)) void watch_modules(void)
{
	d9__modules_on_unload(forget_module);
}

uint64_t d9__callsites_callback(uint32_t name)
{
	/* Many may have that. */
	if (name == D9__NAME_OTHER)
		return 0;
	for (uint32_t i = 0; i < BUCKETS; i++)
		for (const struct d9_callsite *at =
			     atomic_load_explicit(&table.buckets[i], memory_order_acquire);
		     at; at = at->next)
			if (atomic_load_explicit(&at->name, memory_order_relaxed) == name + 1)
				return (uint64_t)(uintptr_t)at->callback;
	return 0;
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

bool d9__callsite_is_code(const void *address)
{
	uint64_t pc = (uintptr_t)address;

	return d9__unwind_code(&pc, 1) || d9__modules_have_code(address);
}
