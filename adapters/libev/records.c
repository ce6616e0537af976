/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "libev/records.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/mapped.h"

#define BUCKETS 256u /* a power of two */

static struct d9__libev_record records[D9__LIBEV_RECORDS_MAX];
_Atomic(uint32_t) d9__libev_attached;

/* Protects the chains; look-ups go without, since no record is ever freed. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic(struct d9__libev_record *) buckets[BUCKETS];
static unsigned n_used;
/* A running loop may still hold the address of a record: the longest retired is taken first. */
static struct d9__libev_record *first_retired, *last_retired;

static void lock_records(void)
{
	pthread_mutex_lock(&lock);
}

static void unlock_records(void)
{
	pthread_mutex_unlock(&lock);
}

void d9__libev_records_init(void)
{
	pthread_atfork(lock_records, unlock_records, unlock_records);
}

static _Atomic(struct d9__libev_record *) *bucket_of(const struct ev_loop *loop)
{
	return &buckets[((uint64_t)(uintptr_t)loop * UINT64_C(0x9e3779b97f4a7c15) >> 32) &
			(BUCKETS - 1)];
}

struct d9__libev_record *d9__libev_record_search(const struct ev_loop *loop)
{
	/* acquire: pairs with the release in link_locked() */
	struct d9__libev_record *record =
		atomic_load_explicit(bucket_of(loop), memory_order_acquire);

	/* The bound ends a walk that a concurrent change led astray. */
	for (unsigned i = 0; record && i < D9__LIBEV_RECORDS_MAX; i++) {
		if (atomic_load_explicit(&record->address, memory_order_relaxed) == loop) {
			d9__libev_thread()->latest = record;
			return record;
		}
		record = __atomic_load_n(&record->next, __ATOMIC_ACQUIRE);
	}
	return NULL;
}

static void link_locked(struct d9__libev_record *record, const struct ev_loop *loop)
{
	_Atomic(struct d9__libev_record *) *bucket = bucket_of(loop);

	__atomic_store_n(&record->next, atomic_load_explicit(bucket, memory_order_relaxed),
			 __ATOMIC_RELAXED);
	atomic_store_explicit(&record->address, loop, memory_order_relaxed);
	/* release: who finds the record sees all of it */
	atomic_store_explicit(bucket, record, memory_order_release);
	atomic_fetch_add_explicit(&d9__libev_attached, 1, memory_order_relaxed);
}

static void unlink_locked(struct d9__libev_record *record)
{
	_Atomic(struct d9__libev_record *) *bucket =
		bucket_of(atomic_load_explicit(&record->address, memory_order_relaxed));
	struct d9__libev_record *before = atomic_load_explicit(bucket, memory_order_relaxed);

	if (before == record) {
		atomic_store_explicit(bucket, record->next, memory_order_release);
	} else {
		while (before->next != record)
			before = before->next;
		__atomic_store_n(&before->next, record->next, __ATOMIC_RELEASE);
	}
	atomic_store_explicit(&record->address, NULL, memory_order_relaxed);
	atomic_fetch_sub_explicit(&d9__libev_attached, 1, memory_order_relaxed);
}

static struct d9__libev_record *take_record_locked(void)
{
	struct d9__libev_record *record;

	if (n_used < D9__LIBEV_RECORDS_MAX)
		return &records[n_used++];
	record = first_retired;
	if (record)
		first_retired = record->next_retired;
	return record;
}

static void give_back_locked(struct d9__libev_record *record)
{
	record->next_retired = NULL;
	if (first_retired)
		last_retired->next_retired = record;
	else
		first_retired = record;
	last_retired = record;
}

static int fill(struct d9__libev_record *record, const char *name)
{
	struct d9__libev_watcher *watchers = record->watchers;
	int err;

	if (!watchers)
		watchers = d9__map(D9__LIBEV_SETS * D9__LIBEV_WAYS * sizeof(*watchers));
	if (!watchers)
		return -ENOMEM;
	for (unsigned i = 0; i < D9__LIBEV_SETS * D9__LIBEV_WAYS; i++)
		watchers[i].watcher = NULL;
	*record = (struct d9__libev_record) { .watchers = watchers };
	/* libev may use the address again before the old loop is forgotten: ours it does not. */
	err = d9_loop_register(D9_LIBRARY_LIBEV, record, name, &record->loop);
	return err;
}

/* An older one of that address may be dying. */
static struct d9__libev_record *living_locked(const struct ev_loop *loop)
{
	struct d9__libev_record *record = d9__libev_record_search(loop);

	return record && !record->dying ? record : NULL;
}

/* It is in no chain (any more). */
static void forget(struct d9__libev_record *record)
{
	d9_loop_unregister(record->loop);
	lock_records();
	give_back_locked(record);
	unlock_records();
}

int d9__libev_record_add(const struct ev_loop *loop, const char *name,
			 struct d9__libev_record **out, bool *is_new)
{
	struct d9__libev_record *record;
	int err;

	lock_records();
	*out = living_locked(loop);
	*is_new = !*out;
	record = *is_new ? take_record_locked() : NULL;
	unlock_records();
	if (!*is_new)
		return name ? d9_loop_register(D9_LIBRARY_LIBEV, *out, name, &(*out)->loop) : 0;
	if (!record)
		return -ENOSPC;
	/* Not under our lock: who forks takes it behind the recorder's. */
	err = fill(record, name);
	lock_records();
	if (err) {
		give_back_locked(record);
	} else {
		/* Another thread may have been faster. */
		*out = living_locked(loop);
		*is_new = !*out;
		if (*is_new)
			link_locked(*out = record, loop);
	}
	unlock_records();
	if (!*is_new)
		forget(record);
	return err;
}

void d9__libev_record_retire(struct d9__libev_record *record)
{
	struct d9_loop *loop = record->loop;

	lock_records();
	unlink_locked(record);
	unlock_records();
	d9__libev_record_cells_remove_of(loop);
	forget(record);
}

/* ---- watchers ---- */

/* One that was stopped goes first: it ends unless it is started again, and then it is another task. */
static struct d9__libev_watcher *choose_victim(struct d9__libev_record *record,
					       struct d9__libev_watcher *set)
{
	for (unsigned i = 0; i < D9__LIBEV_WAYS; i++) {
		if (!set[i].watcher)
			return &set[i];
	}
	for (unsigned i = 0; i < D9__LIBEV_WAYS; i++) {
		if (set[i].stopped)
			return &set[i];
	}
	return &set[record->victim++ % D9__LIBEV_WAYS];
}

struct d9__libev_watcher *d9__libev_record_place_for(struct d9__libev_record *record, const void *watcher)
{
	struct d9__libev_watcher *known = d9__libev_recall(record, watcher);

	if (known)
		return known;
	known = choose_victim(record, d9__libev_set_of(record, watcher));
	if (known->watcher && known->stopped && !known->expired)
		d9_task_end(D9_LIBRARY_LIBEV, (uintptr_t)known->watcher);
	return known;
}

/* ---- cells ---- */

#define CELLS  4096u /* a power of two */
#define PLACES 8u    /* where one may lie: looked at in a fixed number of steps */

static struct cell {
	_Atomic(const void *) watcher; /* NULL: free */
	_Atomic(struct d9_loop *) loop;
	struct d9_wake_cell wake;
} cells[CELLS];

static struct cell *place(const void *watcher, unsigned i)
{
	uint64_t hash = (uint64_t)(uintptr_t)watcher * UINT64_C(0x9e3779b97f4a7c15);

	return &cells[((hash >> 40) + i) & (CELLS - 1)];
}

static struct cell *find_cell(const void *watcher)
{
	for (unsigned i = 0; i < PLACES; i++) {
		struct cell *cell = place(watcher, i);

		/* acquire: pairs with the release in d9__libev_record_cell_add() */
		if (atomic_load_explicit(&cell->watcher, memory_order_acquire) == watcher)
			return cell;
	}
	return NULL;
}

static void empty_cell(struct cell *cell)
{
	struct d9_waker waker;

	atomic_store_explicit(&cell->watcher, NULL, memory_order_relaxed);
	d9_wake_cell_take(&cell->wake, atomic_load_explicit(&cell->loop, memory_order_relaxed),
			  &waker);
}

bool d9__libev_record_cell_add(const void *watcher, struct d9_loop *loop)
{
	bool found = find_cell(watcher) != NULL;

	lock_records();
	for (unsigned i = 0; i < PLACES && !found; i++) {
		struct cell *cell = place(watcher, i);

		if (atomic_load_explicit(&cell->watcher, memory_order_relaxed))
			continue;
		atomic_store_explicit(&cell->loop, loop, memory_order_relaxed);
		atomic_store_explicit(&cell->watcher, watcher, memory_order_release);
		found = true;
	}
	unlock_records();
	return found;
}

void d9__libev_record_cell_remove(const void *watcher)
{
	struct cell *cell = find_cell(watcher);

	if (cell)
		empty_cell(cell);
}

void d9__libev_record_cells_remove_of(struct d9_loop *loop)
{
	for (unsigned i = 0; i < CELLS; i++) {
		if (atomic_load_explicit(&cells[i].watcher, memory_order_relaxed) &&
		    atomic_load_explicit(&cells[i].loop, memory_order_relaxed) == loop)
			empty_cell(&cells[i]);
	}
}

void d9__libev_record_cell_fill(const void *watcher)
{
	struct cell *cell = find_cell(watcher);

	if (cell)
		d9_wake_cell_fill(&cell->wake,
				  atomic_load_explicit(&cell->loop, memory_order_relaxed));
}

int d9__libev_record_cell_take(const void *watcher, struct d9_waker *waker)
{
	struct cell *cell = find_cell(watcher);

	return cell ? d9_wake_cell_take(&cell->wake,
					atomic_load_explicit(&cell->loop, memory_order_relaxed),
					waker)
		    : 0;
}
