/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "loop/tasks.h"

#include <errno.h>
#include <stdlib.h>

#include "loop/loops.h"
#include "loop/spin.h"

#define SHARDS        64u
#define FIRST_BUCKETS 16u
#define FIRST_SLAB    16u
#define SLABS         24u /* 16 << 24 entries are more than any limit */
#define EVICT_SAMPLE  16u

struct buckets {
	struct buckets *older; /* a reader may still be in them: kept for ever */
	uint32_t mask;
	_Atomic(struct d9__task *) heads[];
};

struct slab {
	uint32_t n;
	struct d9__task entries[];
};

static struct shard {
	_Alignas(64) struct d9__spin lock;
	/* Odd while a chain changes; moves whenever an entry leaves its chain. */
	_Atomic(uint32_t) changes;
	/* Written under |lock|, read without.  Old arrays are kept: together half of the newest. */
	_Atomic(struct buckets *) buckets;

	/* Protected by |lock|. */
	struct slab *slabs[SLABS];
	uint32_t n_slabs, count, hand, hand_slab;
	struct d9__task *free; /* chained by loop_next */
} shards[SHARDS];

static _Atomic(uint64_t) numbers;
static _Atomic(uint64_t) evicted;
static _Atomic(uint32_t) shard_limit = D9__TASKS_LIMIT / SHARDS;

static uint64_t hash_of(uint32_t library, uint64_t key)
{
	return (key ^ ((uint64_t)library << 61)) * UINT64_C(0x9e3779b97f4a7c15);
}

static struct shard *shard_of(uint64_t hash)
{
	return &shards[hash >> 58];
}

static _Atomic(struct d9__task *) *head_of(struct buckets *buckets, uint64_t hash)
{
	return &buckets->heads[(hash >> 26) & buckets->mask];
}

static bool matches(const struct d9__task *task, uint32_t library, uint64_t key)
{
	return atomic_load_explicit(&task->key, memory_order_relaxed) == key &&
	       atomic_load_explicit(&task->library, memory_order_relaxed) == library;
}

static struct d9__task *find_once(struct shard *shard, uint64_t hash, uint32_t library, uint64_t key)
{
	/* acquire: pairs with the release that published the array */
	struct buckets *buckets = atomic_load_explicit(&shard->buckets, memory_order_acquire);
	struct d9__task *task;

	if (!buckets)
		return NULL;
	task = atomic_load_explicit(head_of(buckets, hash), memory_order_acquire);
	/* The bound ends a walk that strayed into chains that change under it. */
	for (uint32_t hops = 0; task && hops <= buckets->mask + 64; hops++) {
		if (matches(task, library, key))
			return task;
		task = atomic_load_explicit(&task->next, memory_order_acquire);
	}
	return NULL;
}

/* The chains do not rest: look at them with the lock. */
static struct d9__task *find_slow(struct shard *shard, uint64_t hash, uint32_t library, uint64_t key)
{
	struct d9__task *task;

	if (!d9__spin_try(&shard->lock))
		return NULL;
	task = find_once(shard, hash, library, key);
	d9__spin_unlock(&shard->lock);
	return task;
}

struct d9__task *d9__tasks_find(uint32_t library, uint64_t key)
{
	uint64_t hash = hash_of(library, key);
	struct shard *shard = shard_of(hash);

	for (unsigned i = 0; i < 8; i++) {
		uint32_t before = atomic_load_explicit(&shard->changes, memory_order_acquire);
		struct d9__task *task = find_once(shard, hash, library, key);

		/* id 0: on its way out */
		if (task)
			return d9__task_is(task, 0) ? NULL : task;
		if (!(before & 1) &&
		    atomic_load_explicit(&shard->changes, memory_order_acquire) == before)
			return NULL;
	}
	return find_slow(shard, hash, library, key);
}

static void begin_change_locked(struct shard *shard)
{
	atomic_fetch_add_explicit(&shard->changes, 1, memory_order_acq_rel);
}

static void end_change_locked(struct shard *shard)
{
	atomic_fetch_add_explicit(&shard->changes, 1, memory_order_release);
}

/* ---- a loop's tasks ---- */

static void join_loop(struct d9__task *task, struct d9_loop *loop)
{
	d9__spin_lock(&loop->tasks_lock);
	task->loop_next = loop->first_task;
	task->loop_at = &loop->first_task;
	if (loop->first_task)
		loop->first_task->loop_at = &task->loop_next;
	loop->first_task = task;
	d9__spin_unlock(&loop->tasks_lock);
	atomic_store_explicit(&task->loop, loop, memory_order_relaxed);
	atomic_fetch_add_explicit(&loop->tasks, 1, memory_order_relaxed);
}

static void leave_loop(struct d9__task *task)
{
	struct d9_loop *loop = atomic_load_explicit(&task->loop, memory_order_relaxed);

	d9__spin_lock(&loop->tasks_lock);
	*task->loop_at = task->loop_next;
	if (task->loop_next)
		task->loop_next->loop_at = task->loop_at;
	d9__spin_unlock(&loop->tasks_lock);
	atomic_fetch_sub_explicit(&loop->tasks, 1, memory_order_relaxed);
	/* A wake that nobody will take any more is no backlog. */
	if (atomic_load_explicit(&task->wake, memory_order_relaxed) & D9__WAKE_HANDED)
		atomic_fetch_sub_explicit(&loop->handed, 1, memory_order_relaxed);
}

/* ---- entries ---- */

static void note_end(const struct d9__task *task, uint32_t epoch, struct d9__tasks_ended *ended)
{
	uint32_t spawned = atomic_load_explicit(&task->spawned, memory_order_relaxed);

	/* Stale tasks were written once; a needless end is harmless, a missing one is a leak. */
	if ((spawned == epoch || spawned == D9__TASK_STALE) &&
	    ended->n < sizeof(ended->ids) / sizeof(ended->ids[0]))
		ended->ids[ended->n++] = atomic_load_explicit(&task->id, memory_order_relaxed);
}

/* Nothing but the key is left of the task that the entry was. */
static void start_over(struct d9__task *task, uint32_t library)
{
	uint64_t number = atomic_fetch_add_explicit(&numbers, 1, memory_order_relaxed) + 1;

	atomic_store_explicit(&task->identity, 0, memory_order_relaxed);
	atomic_store_explicit(&task->spawned, 0, memory_order_relaxed);
	atomic_store_explicit(&task->polled_ns, 0, memory_order_relaxed);
	atomic_store_explicit(&task->woken, 0, memory_order_relaxed);
	atomic_store_explicit(&task->wake, D9__WAKE_NONE, memory_order_relaxed);
	atomic_store_explicit(&task->callsite, NULL, memory_order_relaxed);
	atomic_store_explicit(&task->name, 0, memory_order_relaxed);
	atomic_store_explicit(&task->fd, -1, memory_order_relaxed);
	atomic_store_explicit(&task->kind, D9_TASK_CUSTOM, memory_order_relaxed);
	atomic_store_explicit(&task->flags, 0, memory_order_relaxed);
	/* release: whoever sees the number sees a clean entry */
	atomic_store_explicit(&task->id, number << 2 | library, memory_order_release);
}

static void unlink_locked(struct shard *shard, struct d9__task *task, uint64_t hash)
{
	struct buckets *buckets = atomic_load_explicit(&shard->buckets, memory_order_relaxed);
	_Atomic(struct d9__task *) *at = head_of(buckets, hash);

	begin_change_locked(shard);
	atomic_store_explicit(&task->id, 0, memory_order_relaxed);
	while (atomic_load_explicit(at, memory_order_relaxed) != task)
		at = &atomic_load_explicit(at, memory_order_relaxed)->next;
	atomic_store_explicit(at, atomic_load_explicit(&task->next, memory_order_relaxed),
			      memory_order_release);
	end_change_locked(shard);
	leave_loop(task);
	task->loop_next = shard->free;
	shard->free = task;
	shard->count--;
}

static void link_locked(struct shard *shard, struct d9__task *task, uint64_t hash)
{
	struct buckets *buckets = atomic_load_explicit(&shard->buckets, memory_order_relaxed);
	_Atomic(struct d9__task *) *head = head_of(buckets, hash);

	atomic_store_explicit(&task->next, atomic_load_explicit(head, memory_order_relaxed),
			      memory_order_relaxed);
	atomic_store_explicit(head, task, memory_order_release);
	shard->count++;
}

/* ---- growing ---- */

struct growth {
	struct slab *slab;
	struct buckets *buckets;
};

/* Allocated without the lock, since nothing is called under it. */
static bool growth_prepare(struct growth *growth, uint32_t n)
{
	uint32_t n_buckets = n < FIRST_BUCKETS ? FIRST_BUCKETS : n;

	growth->slab = calloc(1, sizeof(struct slab) + n * sizeof(struct d9__task));
	growth->buckets = calloc(1, sizeof(struct buckets) +
					    n_buckets * sizeof(_Atomic(struct d9__task *)));
	if (!growth->slab || !growth->buckets) {
		free(growth->slab);
		free(growth->buckets);
		return false;
	}
	growth->slab->n = n;
	growth->buckets->mask = n_buckets - 1;
	return true;
}

static void rehash_locked(struct shard *shard, struct buckets *new)
{
	struct buckets *old = atomic_load_explicit(&shard->buckets, memory_order_relaxed);

	begin_change_locked(shard);
	for (uint32_t i = 0; old && i <= old->mask; i++) {
		struct d9__task *task = atomic_load_explicit(&old->heads[i], memory_order_relaxed);

		while (task) {
			struct d9__task *next =
				atomic_load_explicit(&task->next, memory_order_relaxed);
			uint64_t hash = hash_of(
				atomic_load_explicit(&task->library, memory_order_relaxed),
				atomic_load_explicit(&task->key, memory_order_relaxed));
			_Atomic(struct d9__task *) *head = head_of(new, hash);

			atomic_store_explicit(&task->next,
					      atomic_load_explicit(head, memory_order_relaxed),
					      memory_order_release);
			atomic_store_explicit(head, task, memory_order_release);
			task = next;
		}
	}
	new->older = old;
	/* release: pairs with the acquire of find_once() */
	atomic_store_explicit(&shard->buckets, new, memory_order_release);
	end_change_locked(shard);
}

/* Takes over what |growth| holds, unless another thread was faster. */
static void growth_install_locked(struct shard *shard, struct growth *growth, uint32_t seen_slabs)
{
	struct buckets *buckets = atomic_load_explicit(&shard->buckets, memory_order_relaxed);

	if (shard->n_slabs != seen_slabs)
		return;
	for (uint32_t i = 0; i < growth->slab->n; i++) {
		growth->slab->entries[i].loop_next = shard->free;
		shard->free = &growth->slab->entries[i];
	}
	shard->slabs[shard->n_slabs++] = growth->slab;
	growth->slab = NULL;
	if (!buckets || growth->buckets->mask > buckets->mask) {
		rehash_locked(shard, growth->buckets);
		growth->buckets = NULL;
	}
}

/* Called with the lock, which is dropped meanwhile.  0, -ENOMEM, or -EAGAIN without the lock. */
static int grow(struct shard *shard, bool may_wait)
{
	uint32_t seen = shard->n_slabs;
	uint32_t n = seen ? shard->slabs[seen - 1]->n * 2 : FIRST_SLAB;
	struct growth growth;
	int err = 0;

	if (seen == SLABS)
		return -ENOMEM;
	d9__spin_unlock(&shard->lock);
	if (!growth_prepare(&growth, n))
		err = -ENOMEM;
	if (!d9__spin_take(&shard->lock, may_wait)) {
		if (!err) {
			free(growth.slab);
			free(growth.buckets);
		}
		return -EAGAIN;
	}
	if (err)
		return err;
	growth_install_locked(shard, &growth, seen);
	free(growth.slab);
	free(growth.buckets);
	return 0;
}

/* ---- eviction ---- */

static struct d9__task *next_by_hand(struct shard *shard)
{
	if (shard->hand_slab >= shard->n_slabs)
		shard->hand_slab = 0;
	if (shard->hand >= shard->slabs[shard->hand_slab]->n) {
		shard->hand = 0;
		shard->hand_slab = (shard->hand_slab + 1) % shard->n_slabs;
	}
	return &shard->slabs[shard->hand_slab]->entries[shard->hand++];
}

/* The least recently polled of a sample that goes round: near enough, and bounded. */
static void evict_locked(struct shard *shard, uint32_t epoch, struct d9__tasks_ended *ended)
{
	struct d9__task *victim = NULL;

	for (unsigned found = 0, i = 0; found < EVICT_SAMPLE && i < 8 * EVICT_SAMPLE; i++) {
		struct d9__task *task = next_by_hand(shard);

		if (d9__task_is(task, 0))
			continue;
		found++;
		if (!victim || atomic_load_explicit(&task->polled_ns, memory_order_relaxed) <
				       atomic_load_explicit(&victim->polled_ns, memory_order_relaxed))
			victim = task;
	}
	if (!victim)
		return;
	note_end(victim, epoch, ended);
	unlink_locked(shard, victim,
		      hash_of(atomic_load_explicit(&victim->library, memory_order_relaxed),
			      atomic_load_explicit(&victim->key, memory_order_relaxed)));
	atomic_fetch_add_explicit(&evicted, 1, memory_order_relaxed);
}

/* ---- the functions of tasks.h ---- */

static bool must_renew(const struct d9__task *entry, const struct d9_task *task)
{
	uint64_t identity = atomic_load_explicit(&entry->identity, memory_order_relaxed);

	return atomic_load_explicit(&entry->spawned, memory_order_relaxed) == D9__TASK_STALE ||
	       (task && identity && task->identity && identity != task->identity);
}

static void adopt(struct d9__task *entry, struct d9_loop *loop, const struct d9_task *task)
{
	if (atomic_load_explicit(&entry->loop, memory_order_relaxed) != loop) {
		leave_loop(entry);
		atomic_fetch_and_explicit(&entry->wake, ~D9__WAKE_HANDED, memory_order_relaxed);
		join_loop(entry, loop);
	}
	if (!task)
		return;
	if (task->identity)
		atomic_store_explicit(&entry->identity, task->identity, memory_order_relaxed);
	if (task->callsite)
		atomic_store_explicit(&entry->callsite, task->callsite, memory_order_release);
	if (task->fd >= 0)
		atomic_store_explicit(&entry->fd, task->fd, memory_order_relaxed);
	atomic_store_explicit(&entry->kind, task->kind, memory_order_relaxed);
	atomic_store_explicit(&entry->flags, task->flags, memory_order_relaxed);
}

/* A free entry, out of a new slab or an old task if need be.  0, -ENOMEM, or -EAGAIN (no lock). */
static int make_room(struct shard *shard, bool may_wait, uint32_t epoch,
		     struct d9__tasks_ended *ended)
{
	if (shard->count >= atomic_load_explicit(&shard_limit, memory_order_relaxed))
		evict_locked(shard, epoch, ended);
	return shard->free ? 0 : grow(shard, may_wait);
}

static struct d9__task *insert_locked(struct shard *shard, uint64_t hash, struct d9_loop *loop,
				      uint64_t key)
{
	uint32_t library = atomic_load_explicit(&loop->library, memory_order_relaxed);
	struct d9__task *entry = shard->free;

	shard->free = entry->loop_next;
	atomic_store_explicit(&entry->key, key, memory_order_relaxed);
	atomic_store_explicit(&entry->library, library, memory_order_relaxed);
	start_over(entry, library);
	join_loop(entry, loop);
	link_locked(shard, entry, hash);
	return entry;
}

static void renew_locked(struct d9__task *entry, uint32_t library, uint32_t epoch,
			 struct d9__tasks_ended *ended)
{
	struct d9_loop *loop = atomic_load_explicit(&entry->loop, memory_order_relaxed);

	note_end(entry, epoch, ended);
	leave_loop(entry);
	start_over(entry, library);
	join_loop(entry, loop);
}

int d9__tasks_obtain(struct d9_loop *loop, uint64_t key, const struct d9_task *task, uint32_t epoch,
		     struct d9__task **out, struct d9__tasks_ended *ended)
{
	uint32_t library = atomic_load_explicit(&loop->library, memory_order_relaxed);
	uint64_t hash = hash_of(library, key);
	struct shard *shard = shard_of(hash);
	struct d9__task *entry;
	int err = 0;

	if (!d9__spin_take(&shard->lock, task != NULL))
		return -EAGAIN;
	/* Twice at most: growing drops the lock, and someone may insert the same key. */
	while (!(entry = find_once(shard, hash, library, key)) && !shard->free && !err)
		err = make_room(shard, task != NULL, epoch, ended);
	if (err == -EAGAIN)
		return err;
	if (!entry && !err) {
		if (shard->count >= atomic_load_explicit(&shard_limit, memory_order_relaxed))
			evict_locked(shard, epoch, ended);
		entry = insert_locked(shard, hash, loop, key);
	} else if (entry && must_renew(entry, task)) {
		renew_locked(entry, library, epoch, ended);
	}
	if (entry) {
		adopt(entry, loop, task);
		*out = entry;
		err = 0;
	}
	d9__spin_unlock(&shard->lock);
	return err;
}

void d9__tasks_remove(uint32_t library, uint64_t key, uint64_t id, uint32_t epoch,
		      struct d9__tasks_ended *ended)
{
	uint64_t hash = hash_of(library, key);
	struct shard *shard = shard_of(hash);
	struct d9__task *task;

	d9__spin_lock(&shard->lock);
	task = find_once(shard, hash, library, key);
	if (task && (!id || d9__task_is(task, id))) {
		note_end(task, epoch, ended);
		unlink_locked(shard, task, hash);
	}
	d9__spin_unlock(&shard->lock);
}

bool d9__tasks_remove_one_of(struct d9_loop *loop, uint32_t epoch, struct d9__tasks_ended *ended)
{
	uint32_t library = atomic_load_explicit(&loop->library, memory_order_relaxed);
	struct d9__task *task;
	uint64_t key = 0;

	d9__spin_lock(&loop->tasks_lock);
	task = loop->first_task;
	if (task)
		key = atomic_load_explicit(&task->key, memory_order_relaxed);
	d9__spin_unlock(&loop->tasks_lock);
	if (task)
		d9__tasks_remove(library, key, 0, epoch, ended);
	return task != NULL;
}

void d9__tasks_each(void (*fn)(void *arg, const struct d9__task *task), void *arg)
{
	for (unsigned i = 0; i < SHARDS; i++) {
		const struct slab *slabs[SLABS];
		uint32_t n;

		d9__spin_lock(&shards[i].lock);
		n = shards[i].n_slabs;
		for (uint32_t k = 0; k < n; k++)
			slabs[k] = shards[i].slabs[k];
		d9__spin_unlock(&shards[i].lock);
		for (uint32_t k = 0; k < n; k++)
			for (uint32_t at = 0; at < slabs[k]->n; at++)
				fn(arg, &slabs[k]->entries[at]);
	}
}

void d9__tasks_set_limit(uint32_t limit)
{
	atomic_store_explicit(&shard_limit, limit < SHARDS ? 1 : limit / SHARDS,
			      memory_order_relaxed);
}

uint32_t d9__tasks_count(void)
{
	uint32_t n = 0;

	for (size_t i = 0; i < SHARDS; i++) {
		d9__spin_lock(&shards[i].lock);
		n += shards[i].count;
		d9__spin_unlock(&shards[i].lock);
	}
	return n;
}

uint64_t d9__tasks_evicted(void)
{
	return atomic_load_explicit(&evicted, memory_order_relaxed);
}

void d9__tasks_fork_prepare(void)
{
	for (size_t i = 0; i < SHARDS; i++)
		d9__spin_lock(&shards[i].lock);
}

void d9__tasks_fork_parent(void)
{
	for (size_t i = 0; i < SHARDS; i++)
		d9__spin_unlock(&shards[i].lock);
}

void d9__tasks_fork_child(void)
{
	d9__tasks_fork_parent();
}
