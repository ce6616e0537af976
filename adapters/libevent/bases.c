/* SPDX-License-Identifier: Apache-2.0 */

#include "config.h"

#include <errno.h>
#include <pthread.h>

#include "libevent/bases.h"
#include "libevent/capabilities.h"
#include "libevent/thread.h"
#include "loop/adapter.h"

struct d9__libevent_base d9__libevent_bases[D9__LIBEVENT_BASES_MAX];
_Atomic(unsigned) d9__libevent_unwrapped, d9__libevent_bases_used;

/* Protects the records, which of them are in use, and the first word of attached bases. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* A running loop may still hold the address of a record: the longest retired is taken first. */
static struct d9__libevent_base *first_retired, *last_retired;

static struct d9__module_range own;
static d9__libevent_dispatch_fn dispatch; /* of all wrapped bases */

static void lock_bases(void)
{
	pthread_mutex_lock(&lock);
}

static void unlock_bases(void)
{
	pthread_mutex_unlock(&lock);
}

void d9__libevent_bases_init(void)
{
	d9__module_range_of((void *)d9__libevent_bases_init, &own);
	pthread_atfork(lock_bases, unlock_bases, unlock_bases);
}

bool d9__libevent_base_is_ours(const void *address)
{
	if (D9__LIBEVENT_ARCHIVE)
		return d9__libevent_calls_back_at(address);
	return (uintptr_t)address - own.low < own.high - own.low;
}

static const struct d9__libevent_ops *table_of(const struct event_base *base)
{
	return __atomic_load_n((const struct d9__libevent_ops *const *)(const void *)base,
			       __ATOMIC_ACQUIRE);
}

static void set_table(struct event_base *base, const struct d9__libevent_ops *table)
{
	/* release: a loop that reads the word sees the whole table */
	__atomic_store_n((const struct d9__libevent_ops **)(void *)base, table, __ATOMIC_RELEASE);
}

/* A static libevent lies in the image that we lie in. */
static bool is_in_libevent(const void *address)
{
	return d9__in_libevent(address) ||
	       (d9__libevent_is_static() && d9__libevent_in_image(address));
}

/* Is the first word of |base| what we believe it is? */
static bool table_is_known(struct event_base *base)
{
	const struct d9__libevent_ops *table = table_of(base);

	return sizeof(void *) == 8 && is_in_libevent(table) &&
	       table->name == d9__real.event_base_get_method(base) && is_in_libevent(table->init) &&
	       is_in_libevent((void *)table->dispatch) && is_in_libevent(table->dealloc);
}

/* Copy |base|'s present table into its record and let libevent see the copy. */
static void wrap_locked(struct d9__libevent_base *record)
{
	const struct d9__libevent_ops *table = table_of(record->base);

	record->original = table;
	record->ops = *table;
	record->ops.dispatch = dispatch;
	set_table(record->base, &record->ops);
}

static struct d9__libevent_base *find_locked(const struct event_base *base)
{
	for (unsigned i = 0; i < d9__libevent_bases_used; i++) {
		if (d9__libevent_bases[i].base == base)
			return &d9__libevent_bases[i];
	}
	return NULL;
}

static struct d9__libevent_base *take_record_locked(void)
{
	struct d9__libevent_base *record;

	if (d9__libevent_bases_used < D9__LIBEVENT_BASES_MAX)
		return &d9__libevent_bases[d9__libevent_bases_used++];
	record = first_retired;
	if (record)
		first_retired = record->next_retired;
	return record;
}

static void retire_locked(struct d9__libevent_base *record)
{
	record->base = NULL;
	record->next_retired = NULL;
	if (first_retired)
		last_retired->next_retired = record;
	else
		first_retired = record;
	last_retired = record;
}

static int attach_locked(struct event_base *base, const char *name, bool wrap)
{
	struct d9__libevent_base *record = take_record_locked();
	struct d9_loop *loop = NULL;
	int err;

	if (!record)
		return -ENOSPC;
	err = d9__loop_add(D9_LIBRARY_LIBEVENT, base, name, &loop);
	if (err) {
		retire_locked(record);
		return err;
	}
	record->base = base;
	record->loop = loop;
	atomic_store_explicit(&record->exact_clock, false, memory_order_relaxed);
	record->wrapped = wrap;
	if (wrap)
		wrap_locked(record);
	else
		atomic_fetch_add_explicit(&d9__libevent_unwrapped, 1, memory_order_release);
	return 0;
}

int d9__libevent_base_wrap(struct event_base *base, const char *name, bool constructed,
			   d9__libevent_dispatch_fn ours)
{
	struct d9__libevent_base *record;
	bool known = true;
	int err = name || !d9_loop_find(D9_LIBRARY_LIBEVENT, base) ? d9__loop_prepare() : 0;

	if (err)
		return err;
	lock_bases();
	dispatch = ours;
	record = find_locked(base);
	if (!record && !table_is_known(base)) {
		known = false;
		err = constructed ? 0 : -ENOTSUP;
	}
	if (!record && !err)
		err = attach_locked(base, name, known);
	else if (record && name)
		err = d9__loop_add(D9_LIBRARY_LIBEVENT, base, name, &record->loop);
	unlock_bases();
	if (!err && !known)
		d9__libevent_capability_degrade_park();
	return err;
}

struct d9__libevent_base *d9__libevent_base_find(struct event_base *base)
{
	struct d9__libevent_base *record = d9__libevent_wrapped_base(base);

	if (record)
		return record;
	if (!d9_loop_find(D9_LIBRARY_LIBEVENT, base))
		return NULL;
	lock_bases();
	record = find_locked(base);
	if (record && record->wrapped && table_is_known(base))
		wrap_locked(record);
	unlock_bases();
	return record;
}

struct d9_loop *d9__libevent_base_unwrap(struct event_base *base)
{
	struct d9__libevent_base *record;
	struct d9_loop *loop = NULL;

	lock_bases();
	record = find_locked(base);
	if (record) {
		loop = record->loop;
		if (!record->wrapped)
			atomic_fetch_sub_explicit(&d9__libevent_unwrapped, 1, memory_order_relaxed);
		else if (d9__libevent_wrapped_base(base) == record)
			set_table(base, record->original);
		retire_locked(record);
	}
	unlock_bases();
	return loop;
}
