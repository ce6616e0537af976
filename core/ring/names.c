/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texts live in arena blocks and are never freed or moved.  |texts| leads from a handle to its
 * text without a lock; the hash from a text to its handle is used under |lock| only.  Both are
 * mapped at full size: what is not touched takes no memory, and nothing is ever rehashed.
 */
#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/mapped.h"
#include "ring/event_types.h"
#include "ring/names.h"

#define HASH_SLOTS  (2u * D9__NAMES_MAX) /* at most half full */
#define BLOCK_BYTES ((size_t)256 * 1024)
#define FIRST_FREE  2u /* behind D9__NAME_EMPTY and D9__NAME_OTHER */

static const struct d9__name name_empty = { .len = 0, .text = "" };
static const struct d9__name name_other = { .len = 7, .text = "(other)" };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* protects all below but atomics */
static uint32_t *hash; /* handles; 0 = unused place */
static uint8_t *arena_next, *arena_end;
static _Atomic(uint32_t) count = FIRST_FREE;
static _Atomic(uint64_t) overflows;

/* Stored by intern (release), read by anybody who was given a handle (acquire). */
static _Atomic(const struct d9__name *) *_Atomic texts;

static bool tables_ready_locked(void)
{
	if (!hash)
		hash = d9__map(HASH_SLOTS * sizeof(*hash));
	if (!atomic_load_explicit(&texts, memory_order_relaxed))
		atomic_store_explicit(&texts, d9__map(D9__NAMES_MAX * sizeof(*texts)),
				      memory_order_release);
	return hash && atomic_load_explicit(&texts, memory_order_relaxed);
}

static struct d9__name *arena_name_locked(const char *text, size_t len)
{
	size_t need = (sizeof(struct d9__name) + len + 7) & ~(size_t)7;
	struct d9__name *name;

	if ((size_t)(arena_end - arena_next) < need) {
		/* In a sandbox names that are new stand as "(other)" from then on. */
		uint8_t *block = d9__map(BLOCK_BYTES);

		if (!block)
			return NULL;
		arena_next = block;
		arena_end = block + BLOCK_BYTES;
	}
	name = (struct d9__name *)(void *)arena_next;
	arena_next += need;
	name->len = (uint32_t)len;
	memcpy(name->text, text, len);
	return name;
}

static uint32_t hash_of(const char *text, size_t len)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i < len; i++)
		h = (h ^ (uint8_t)text[i]) * UINT64_C(0x100000001b3);
	return (uint32_t)(h ^ h >> 32);
}

/* The place of |text| in the hash: its handle, or 0 where it would go. */
static uint32_t *hash_place_locked(const char *text, size_t len)
{
	uint32_t i = hash_of(text, len);

	for (;; i++) {
		uint32_t *place = &hash[i & (HASH_SLOTS - 1)];
		const struct d9__name *name;

		if (!*place)
			return place;
		name = d9__name_text(*place);
		if (name->len == len && memcmp(name->text, text, len) == 0)
			return place;
	}
}

bool d9__names_ready(void)
{
	bool ready;

	pthread_mutex_lock(&lock);
	ready = tables_ready_locked() && arena_name_locked("", 0);
	pthread_mutex_unlock(&lock);
	return ready;
}

static uint32_t intern_locked(const char *text, size_t len)
{
	uint32_t *place, handle = atomic_load_explicit(&count, memory_order_relaxed);
	struct d9__name *name;

	if (!tables_ready_locked())
		return D9__NAME_OTHER;
	place = hash_place_locked(text, len);
	if (*place)
		return *place;
	if (handle >= D9__NAMES_MAX)
		return D9__NAME_OTHER;
	name = arena_name_locked(text, len);
	if (!name)
		return D9__NAME_OTHER;
	/* In this order a process that is copied in between has a table without gaps. */
	atomic_store_explicit(&atomic_load_explicit(&texts, memory_order_relaxed)[handle], name,
			      memory_order_release);
	atomic_store_explicit(&count, handle + 1, memory_order_release);
	*place = handle;
	return handle;
}

/* Cut at a character's boundary: bytes 10xxxxxx continue one. */
static size_t cut_len(const char *text, size_t len)
{
	if (len <= D9__NAME_BYTES)
		return len;
	len = D9__NAME_BYTES;
	while (len > 0 && ((uint8_t)text[len] & 0xc0) == 0x80)
		len--;
	return len;
}

uint32_t d9__name_intern(const char *text, size_t len)
{
	int saved = errno;
	uint32_t handle;

	len = cut_len(text, len);
	if (len == 0)
		return D9__NAME_EMPTY;
	if (len == name_other.len && memcmp(text, name_other.text, len) == 0)
		return D9__NAME_OTHER;
	pthread_mutex_lock(&lock);
	handle = intern_locked(text, len);
	pthread_mutex_unlock(&lock);
	if (handle == D9__NAME_OTHER)
		atomic_fetch_add_explicit(&overflows, 1, memory_order_relaxed);
	errno = saved;
	return handle;
}

const struct d9__name *d9__name_text(uint32_t handle)
{
	_Atomic(const struct d9__name *) *table;
	const struct d9__name *name = NULL;

	if (handle == D9__NAME_EMPTY)
		return &name_empty;
	table = atomic_load_explicit(&texts, memory_order_acquire);
	if (table && handle < D9__NAMES_MAX)
		name = atomic_load_explicit(&table[handle], memory_order_acquire);
	return name ? name : &name_other;
}

uint32_t d9__name_count(void)
{
	return atomic_load_explicit(&count, memory_order_acquire);
}

uint64_t d9__name_overflows(void)
{
	return atomic_load_explicit(&overflows, memory_order_relaxed);
}

void d9__names_fork_prepare(void)
{
	pthread_mutex_lock(&lock);
}

void d9__names_fork_parent(void)
{
	pthread_mutex_unlock(&lock);
}

void d9__names_fork_child(void)
{
	pthread_mutex_unlock(&lock); /* the child's only thread is the one that locked it */
}

#define TABLE_BYTES (D9__NAMES_MAX * sizeof(uint32_t) + D9__TYPES_MAX * sizeof(uint16_t))

uint32_t *d9__name_table_new(void)
{
	return d9__map(TABLE_BYTES);
}

void d9__name_table_clear(uint32_t *table)
{
	uint32_t names = d9__name_count();

	memset(table, 0, names * sizeof(*table));
	memset(d9__name_table_types(table), 0, D9__TYPES_MAX * sizeof(uint16_t));
}
