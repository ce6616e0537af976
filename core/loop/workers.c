/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "loop/workers.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/time.h"
#include "ring/clock.h"
#include "ring/ring_file.h"
#include "segment/metadata.h"

/* Programs name their threads at start, some only after the loop began. */
#define FIRST_LOOK_NS (10 * D9__MS_NS)
#define RARE_LOOK_NS  (60 * D9__SECOND_NS)
#define SETTLE_S      5

struct worker {
	char name[D9__WORKER_NAME_MAX]; /* of its present or last holder */
	uint32_t tid;                   /* 0: free */
	uint64_t freed;                 /* when, counted in releases */
	struct d9__left left;           /* by the last holder */
	uint64_t look_ns, every_ns;     /* when its thread's name is looked at; 0: not its name */
};

static struct {
	pthread_mutex_t lock; /* protects |workers|, |n|, |releases| */
	struct worker workers[D9__WORKERS_MAX];
	unsigned n; /* ids [0, n) were used */
	uint64_t releases;
	_Atomic(bool) changed; /* metadata is behind */
} table = { .lock = PTHREAD_MUTEX_INITIALIZER };

/*
 * Keeps what the metadata says in the order in which it was true: protects |told|.  The metadata's
 * own lock is taken inside.
 */
static pthread_mutex_t publish_lock = PTHREAD_MUTEX_INITIALIZER;
static char told[D9__WORKERS_MAX][D9__WORKER_NAME_MAX]; /* by id: its group in the metadata; "": none */
static unsigned n_told;

/* Ids that cannot be had now, as bits. */
struct skipped {
	uint64_t bits[D9__WORKERS_MAX / 64];
};

static bool is_skipped(const struct skipped *skip, unsigned id)
{
	return skip->bits[id / 64] >> id % 64 & 1;
}

/* The next id that was never used; -1: none is left. */
static int next_new_locked(void)
{
	while (table.n < D9__WORKERS_MAX && !D9__WORKER_IS_ID(table.n))
		table.n++;
	return table.n < D9__WORKERS_MAX ? (int)table.n++ : -1;
}

/* Not one of |skip|. */
static int find_free_locked(const char *name, const struct skipped *skip)
{
	int oldest = -1;

	for (unsigned i = 0; i < table.n; i++) {
		const struct worker *worker = &table.workers[i];

		if (worker->tid || !D9__WORKER_IS_ID(i) || is_skipped(skip, i))
			continue;
		if (!strcmp(worker->name, name))
			return (int)i;
		if (oldest < 0 || worker->freed < table.workers[oldest].freed)
			oldest = (int)i;
	}
	return oldest < 0 || table.n < D9__WORKERS_USUAL ? next_new_locked() : oldest;
}

/* An id whose last holder's events are on their way before any of this thread's. */
static int follow_one_locked(const char *name, bool may_move)
{
	struct skipped skip = { .bits = { 0 } };
	int id;

	while ((id = find_free_locked(name, &skip)) >= 0 &&
	       !d9__slot_follow(&table.workers[id].left, (uint32_t)id, may_move))
		skip.bits[id / 64] |= UINT64_C(1) << id % 64;
	return id;
}

int d9__workers_take(uint32_t tid, const char *name, bool may_move)
{
	int id;

	pthread_mutex_lock(&table.lock);
	id = follow_one_locked(name, may_move);
	if (id >= 0) {
		struct worker *worker = &table.workers[id];

		worker->tid = tid;
		worker->every_ns = 0;
		if (strcmp(worker->name, name)) {
			strncpy(worker->name, name, sizeof(worker->name) - 1);
			atomic_store_explicit(&table.changed, true, memory_order_relaxed);
		}
	}
	pthread_mutex_unlock(&table.lock);
	return id;
}

void d9__workers_follow_thread(unsigned worker)
{
	pthread_mutex_lock(&table.lock);
	table.workers[worker].every_ns = FIRST_LOOK_NS;
	table.workers[worker].look_ns = 0;
	pthread_mutex_unlock(&table.lock);
}

/* The kernel's name of thread |tid|.  False if it cannot be had. */
static bool read_thread_name(uint32_t tid, char *name, size_t size)
{
	char path[48];
	ssize_t len;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/task/%u/comm", tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	len = read(fd, name, size - 1);
	close(fd);
	if (len <= 1)
		return false;
	name[len] = '\0';
	name[strcspn(name, "\n")] = '\0';
	return name[0] != '\0';
}

/* The tids of the workers whose thread's name is due for a look, 0 for the others; how many there are. */
static unsigned find_due(uint64_t now_ns, uint32_t tids[D9__WORKERS_MAX])
{
	unsigned n;

	pthread_mutex_lock(&table.lock);
	n = table.n;
	for (unsigned i = 0; i < n; i++) {
		struct worker *worker = &table.workers[i];
		bool due = worker->every_ns && now_ns >= worker->look_ns;

		tids[i] = due ? worker->tid : 0;
		if (!due)
			continue;
		worker->look_ns = now_ns + worker->every_ns;
		worker->every_ns = worker->every_ns * 4 < RARE_LOOK_NS ? worker->every_ns * 4
								       : RARE_LOOK_NS;
	}
	pthread_mutex_unlock(&table.lock);
	return n;
}

static void rename_worker(unsigned i, uint32_t tid, const char name[D9__WORKER_NAME_MAX])
{
	struct worker *worker = &table.workers[i];

	pthread_mutex_lock(&table.lock);
	if (worker->tid == tid && strcmp(worker->name, name)) {
		memcpy(worker->name, name, sizeof(worker->name));
		atomic_store_explicit(&table.changed, true, memory_order_relaxed);
	}
	pthread_mutex_unlock(&table.lock);
}

void d9__workers_look(uint64_t now_ns)
{
	uint32_t tids[D9__WORKERS_MAX];
	char name[D9__WORKER_NAME_MAX] = "";
	unsigned n = find_due(now_ns, tids);

	for (unsigned i = 0; i < n; i++)
		if (tids[i] && read_thread_name(tids[i], name, sizeof(name)))
			rename_worker(i, tids[i], name);
	d9__workers_publish();
}

void d9__workers_release(unsigned worker, struct d9__left left)
{
	pthread_mutex_lock(&table.lock);
	table.workers[worker].tid = 0;
	table.workers[worker].left = left;
	table.workers[worker].freed = ++table.releases;
	pthread_mutex_unlock(&table.lock);
}

void d9__workers_name(uint32_t worker, char *out, size_t size)
{
	out[0] = '\0';
	/* A poll may end in a handler of signals that found the lock held. */
	if (worker >= D9__WORKERS_MAX || pthread_mutex_trylock(&table.lock))
		return;
	snprintf(out, size, "%s", table.workers[worker].name);
	pthread_mutex_unlock(&table.lock);
}

/* Write group |name|, of all ids that are held or were last held under that name; without any it goes. */
static void publish_group(const char *name, char names[][D9__WORKER_NAME_MAX], unsigned n)
{
	char key[sizeof("runtime.") + D9__WORKER_NAME_MAX], ids[5 * D9__WORKERS_MAX] = "";
	size_t len = 0;

	if (!name[0])
		return;
	for (unsigned i = 0; i < n; i++)
		if (!strcmp(names[i], name))
			len += (size_t)snprintf(ids + len, sizeof(ids) - len, len ? ",%u" : "%u", i);
	snprintf(key, sizeof(key), "runtime.%.63s", name);
	d9__metadata_set(key, len ? ids : NULL);
}

void d9__workers_publish(void)
{
	static char names[D9__WORKERS_MAX][D9__WORKER_NAME_MAX];
	unsigned n;

	if (!atomic_load_explicit(&table.changed, memory_order_relaxed))
		return;
	pthread_mutex_lock(&publish_lock);
	pthread_mutex_lock(&table.lock);
	atomic_store_explicit(&table.changed, false, memory_order_relaxed);
	n = table.n;
	for (unsigned i = 0; i < n; i++)
		memcpy(names[i], table.workers[i].name, sizeof(names[i]));
	pthread_mutex_unlock(&table.lock);

	/* Only groups whose ids changed: usually one does, and there may be a thousand groups. */
	for (unsigned i = 0; i < n || i < n_told; i++) {
		const char *name = i < n ? names[i] : "";
		char before[D9__WORKER_NAME_MAX];

		if (!strcmp(told[i], name))
			continue;
		strcpy(before, told[i]);
		strcpy(told[i], name);
		publish_group(before, names, n);
		publish_group(name, names, n);
	}
	n_told = n;
	pthread_mutex_unlock(&publish_lock);
}

/* Whoever has begun has the lock; on a busy machine that thread may not run for long. */
void d9__workers_settle(void)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += SETTLE_S;
	if (!pthread_mutex_timedlock(&publish_lock, &until))
		pthread_mutex_unlock(&publish_lock);
	d9__workers_publish();
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
	/* Whoever held it is not in this process.  What is told stays: it is in the child's metadata, too. */
	pthread_mutex_init(&publish_lock, NULL);
}
