/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work for helper threads: GThreadPool, and GTask, which libgio pushes through one.
 *
 * A pool's function is a public member that is read for each item, so it is replaced in place at
 * the first push: pools that are older than us are seen too.
 */
#include "config.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include <dial9/event.h>
#include <dial9/loop.h>

#include "glib/real.h"
#include "glib/thread.h"
#include "hook/stubs.h"
#include "loop/adapter.h"

#define NO_WORKER 255u
#define ITEMS_MAX 1024 /* on their way at a time; a power of 2 */

static const struct d9_field queued_fields[] = {
	{ "function", D9_FIELD_POOLED_STRING, NULL, NULL },
	{ "item", D9_FIELD_VARINT, NULL, NULL },
	{ "task_id", D9_FIELD_VARINT | D9_FIELD_OPTIONAL, NULL, NULL },
	{ "worker_id", D9_FIELD_VARINT | D9_FIELD_OPTIONAL, NULL, NULL },
};
static struct d9_event_type queued_type = D9_EVENT_TYPE("HelperQueuedEvent", queued_fields);

/* Written when it has run, on the helper thread. */
static const struct d9_field run_fields[] = {
	{ "function", D9_FIELD_POOLED_STRING, NULL, NULL },
	{ "item", D9_FIELD_VARINT, NULL, NULL },
	{ "task_id", D9_FIELD_VARINT | D9_FIELD_OPTIONAL, NULL, NULL },
	{ "wait_ns", D9_FIELD_VARINT, "ns", NULL },
	{ "run_ns", D9_FIELD_VARINT, "ns", NULL },
};
static struct d9_event_type run_type = D9_EVENT_TYPE("HelperRunEvent", run_fields);

/* ---- items on their way ---- */

struct item {
	const struct d9__stub *stub; /* NULL: free */
	const void *data;
	uint64_t number; /* never used again */
	uint64_t task, pushed_ns;
};

/* Protects the items.  A leaf. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct item items[ITEMS_MAX];
static uint64_t last_number;

static unsigned start_of(const struct d9__stub *stub, const void *data)
{
	uint64_t mixed = ((uintptr_t)data ^ (uintptr_t)stub << 8) * UINT64_C(0x9e3779b97f4a7c15);

	return (unsigned)(mixed >> 54) % ITEMS_MAX;
}

/* Looks at a few places only: where all are taken the item goes without. */
#define TRIES 16u

static uint64_t put_item(const struct d9__stub *stub, const void *data, const struct d9_waker *self)
{
	unsigned at = start_of(stub, data);
	uint64_t number;

	pthread_mutex_lock(&lock);
	number = ++last_number;
	for (unsigned i = 0; i < TRIES; i++) {
		struct item *item = &items[(at + i) % ITEMS_MAX];

		if (item->stub)
			continue;
		*item = (struct item) { stub, data, number, self->task_id, self->ns };
		break;
	}
	pthread_mutex_unlock(&lock);
	return number;
}

/* The oldest of equal ones. */
static bool take_item(const struct d9__stub *stub, const void *data, struct item *out)
{
	unsigned at = start_of(stub, data);
	struct item *oldest = NULL;

	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < TRIES; i++) {
		struct item *item = &items[(at + i) % ITEMS_MAX];

		if (item->stub == stub && item->data == data &&
		    (!oldest || item->number < oldest->number))
			oldest = item;
	}
	if (oldest) {
		*out = *oldest;
		oldest->stub = NULL;
	}
	pthread_mutex_unlock(&lock);
	return oldest != NULL;
}

static void lock_items(void)
{
	pthread_mutex_lock(&lock);
}

static void unlock_items(void)
{
	pthread_mutex_unlock(&lock);
}

/* ---- the pool's function ---- */

static struct d9_arg task_of(uint64_t task)
{
	return task ? d9_arg_u64(task) : d9_absent();
}

/* Its place as text, made once. */
static struct d9_name name_of(struct d9__stub *stub)
{
	uint64_t word = atomic_load_explicit(&stub->word, memory_order_relaxed);
	struct d9_name name = { (uint32_t)word };
	char text[320] = "";

	if (word >> 32)
		return name;
	d9__module_name_of(stub->callback, text, sizeof(text));
	name = d9_name_intern(text);
	atomic_store_explicit(&stub->word, UINT64_C(1) << 32 | name.handle, memory_order_relaxed);
	return name;
}

struct run {
	struct d9__stub *stub;
	struct item item;
	uint64_t start_ns;
	bool known;
};

static void tell_run(struct run *run)
{
	if (!run->known)
		return;
	D9_EMIT(&run_type, name_of(run->stub), run->item.number,
		task_of(run->item.task),
		run->start_ns > run->item.pushed_ns ? run->start_ns - run->item.pushed_ns : 0,
		d9_loop_now() - run->start_ns);
}

static __attribute__((noinline)) void run_item(gpointer data, gpointer pool_data, unsigned index);
D9__STUBS_DEFINE(item_pool, 64, void, run_item, (gpointer data, gpointer pool_data),
		 (data, pool_data))

static void run_item(gpointer data, gpointer pool_data, unsigned index)
{
	struct d9__stub *stub = d9__stub_at(&item_pool, index);
	__attribute__((cleanup(tell_run))) struct run run = { .stub = stub };

	run.known = take_item(stub, data, &run.item);
	if (run.known)
		run.start_ns = d9_loop_now();
	((GFunc)stub->callback)(data, pool_data);
}

gboolean d9__hook_g_thread_pool_push(GThreadPool *pool, gpointer data, GError **error)
{
	struct d9__stub *stub;
	struct d9_waker self;

	if (pool && d9__gate_open(D9__GATE_EVENT)) {
		GFunc function = __atomic_load_n(&pool->func, __ATOMIC_RELAXED);
		GFunc wrapped = (GFunc)d9__stubs_wrap(&item_pool, (void *)function, NULL, 0);

		if (!d9__stubs_find(&item_pool, (void *)function) && wrapped != function)
			__atomic_store_n(&pool->func, wrapped, __ATOMIC_RELEASE);
		stub = d9__stubs_find(&item_pool, (void *)pool->func);
		if (stub) {
			d9_waker_self(&self);
			D9_EMIT(&queued_type, name_of(stub), put_item(stub, data, &self),
				task_of(self.task_id),
				self.worker == NO_WORKER ? d9_absent() : d9_arg_u64(self.worker));
		}
	}
	return d9__glib.g_thread_pool_push(pool, data, error);
}

static __attribute__((constructor)) void hold_over_forks(void)
{
	pthread_atfork(lock_items, unlock_items, unlock_items);
}
