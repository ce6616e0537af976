/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "loop/workers.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "record/metadata.h"


struct worker {
	char name[D9__WORKER_NAME_MAX]; /* of its present or last holder */
	uint32_t tid;                   /* 0: free */
	uint64_t freed;                 /* when, counted in releases */
};

static struct {
	pthread_mutex_t lock; /* protects |workers|, |n|, |releases| */
	struct worker workers[D9__WORKERS_MAX];
	unsigned n; /* ids [0, n) were used */
	uint64_t releases;
	_Atomic(bool) changed; /* metadata is behind */
	_Atomic(uint64_t) dropped;
} table = { .lock = PTHREAD_MUTEX_INITIALIZER };

/*
 * Keeps what the metadata says in the order in which it was true: protects |told|.  The metadata's
 * own lock is taken inside.
 */
static pthread_mutex_t publish_lock = PTHREAD_MUTEX_INITIALIZER;
static struct worker told[D9__WORKERS_MAX];
static unsigned n_told;

static int find_free_locked(const char *name)
{
	int oldest = -1;

	for (unsigned i = 0; i < table.n; i++) {
		const struct worker *worker = &table.workers[i];

		if (worker->tid)
			continue;
		if (!strcmp(worker->name, name))
			return (int)i;
		if (oldest < 0 || worker->freed < table.workers[oldest].freed)
			oldest = (int)i;
	}
	return table.n < D9__WORKERS_MAX ? (int)table.n++ : oldest;
}

int d9__workers_take(uint32_t tid, const char *name)
{
	int id;

	pthread_mutex_lock(&table.lock);
	id = find_free_locked(name);
	if (id >= 0) {
		struct worker *worker = &table.workers[id];

		worker->tid = tid;
		if (strcmp(worker->name, name) || !worker->freed) {
			strncpy(worker->name, name, sizeof(worker->name) - 1);
			atomic_store_explicit(&table.changed, true, memory_order_relaxed);
		}
	}
	pthread_mutex_unlock(&table.lock);
	if (id < 0)
		atomic_fetch_add_explicit(&table.dropped, 1, memory_order_relaxed);
	return id;
}

void d9__workers_release(unsigned worker)
{
	pthread_mutex_lock(&table.lock);
	table.workers[worker].tid = 0;
	table.workers[worker].freed = ++table.releases;
	pthread_mutex_unlock(&table.lock);
}

/* Ids held or last held under the name of worker |first|, or "" if a lower one has that name. */
static void list_ids(const struct worker *workers, unsigned n, unsigned first, char *text,
		     size_t size)
{
	size_t len = 0;

	text[0] = '\0';
	for (unsigned i = 0; i < n; i++) {
		if (strcmp(workers[i].name, workers[first].name))
			continue;
		if (i < first) {
			text[0] = '\0';
			return;
		}
		len += (size_t)snprintf(text + len, size - len, len ? ",%u" : "%u", i);
	}
}

static void publish_group(const char *name, const char *ids)
{
	char key[sizeof("runtime.") + D9__WORKER_NAME_MAX];

	snprintf(key, sizeof(key), "runtime.%.63s", name);
	d9__metadata_set(key, ids);
}

void d9__workers_publish(void)
{
	static struct worker now[D9__WORKERS_MAX];
	unsigned n;

	if (!atomic_load_explicit(&table.changed, memory_order_relaxed))
		return;
	pthread_mutex_lock(&publish_lock);
	atomic_store_explicit(&table.changed, false, memory_order_relaxed);
	pthread_mutex_lock(&table.lock);
	memcpy(now, table.workers, sizeof(now));
	n = table.n;
	pthread_mutex_unlock(&table.lock);

	for (unsigned i = 0; i < n; i++) {
		char ids[4 * D9__WORKERS_MAX];

		list_ids(now, n, i, ids, sizeof(ids));
		if (ids[0])
			publish_group(now[i].name, ids);
	}
	/* A group whose last id went to another one is gone. */
	for (unsigned i = 0; i < n_told; i++) {
		unsigned j = 0;

		while (j < n && strcmp(now[j].name, told[i].name))
			j++;
		if (j == n)
			publish_group(told[i].name, NULL);
	}
	memcpy(told, now, sizeof(told));
	n_told = n;
	pthread_mutex_unlock(&publish_lock);
}

uint64_t d9__workers_dropped(void)
{
	return atomic_load_explicit(&table.dropped, memory_order_relaxed);
}

void d9__workers_fork_prepare(void)
{
	pthread_mutex_lock(&table.lock);
}

void d9__workers_fork_parent(void)
{
	pthread_mutex_unlock(&table.lock);
}

void d9__workers_fork_child(void)
{
	memset(table.workers, 0, sizeof(table.workers));
	table.n = 0;
	d9__workers_fork_parent();
	/* Whoever held it is not in this process. */
	pthread_mutex_init(&publish_lock, NULL);
	n_told = 0;
}
