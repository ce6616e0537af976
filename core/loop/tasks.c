/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "loop/tasks.h"

#include <errno.h>
#include <stdlib.h>

#include "base/heap.h"
#include "loop/loops.h"
#include "loop/spin.h"
#include "loop/thread_state.h"

#define SHARDS        ((uint32_t)D9__TASK_SHARDS)
#define FIRST_BUCKETS 16u
#define FIRST_SLAB    16u
#define SLABS         24u /* 16 << 24 entries are more than any limit */
#define EVICT_SAMPLE  16u
#define CROWD         192u
#define NUMBERS       16u /* that a thread takes at a time */

struct buckets {
	struct buckets *older; /* a reader may still be in them: kept for ever */
	uint32_t mask;
	_Atomic(struct d9__task *) heads[];
};

/* Of zeros when it is new, so that what is not used takes no memory. */
struct slab {
	void *memory; /* that it is aligned in */
	uint32_t n;
	uint32_t used; /* those behind were never in use; protected by the shard's lock */
	struct d9__task entries[];
};

static struct shard {
	/* One line: all that it takes to find a task, begin one and end it. */
	_Alignas(64) struct d9__spin lock;
	/*
	 * Odd while a chain changes; moves whenever an entry leaves its chain.  Written under
	 * |lock|, read without, as is |buckets|.
	 */
	_Atomic(uint32_t) changes;
	/* Old arrays are kept: together half of the newest. */
	_Atomic(struct buckets *) buckets;

	/* Protected by |lock|. */
	struct d9__task *free; /* chained by loop_next */
	struct slab *newest;   /* the only one with entries that were never in use */
	uint32_t count, n_slabs, hand, hand_slab;
	struct slab *slabs[SLABS];
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

static inline struct d9__task *find_once(struct shard *shard, uint64_t hash, uint32_t library,
					 uint64_t key)
{
	/* acquire: pairs with the release that published the array */
	struct buckets *buckets = atomic_load_explicit(&shard->buckets, memory_order_acquire);
	struct d9__task *task;

	if (!buckets)
		return NULL;
	task = atomic_load_explicit(head_of(buckets, hash), memory_order_acquire);
	/* The bound ends a walk that strayed into chains that change under it. */
	for (uint32_t left = buckets->mask + 64; task && left; left--) {
		if (matches(task, library, key))
			return task;
		task = atomic_load_explicit(&task->next, memory_order_acquire);
	}
	return NULL;
}

/* The chains do not rest: look again, in the end with the lock. */
static __attribute__((noinline)) struct d9__task *
find_slow(struct shard *shard, uint64_t hash, uint32_t library, uint64_t key)
{
	struct d9__task *task;

	for (unsigned i = 0; i < 8; i++) {
		uint32_t before = atomic_load_explicit(&shard->changes, memory_order_acquire);

		task = find_once(shard, hash, library, key);
		if (task ||
		    (!(before & 1) &&
		     atomic_load_explicit(&shard->changes, memory_order_acquire) == before))
			return task;
	}
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
	uint32_t before = atomic_load_explicit(&shard->changes, memory_order_acquire);
	struct d9__task *task = find_once(shard, hash, library, key);

	if (!task) {
		if (__builtin_expect(!(before & 1) && atomic_load_explicit(&shard->changes,
									   memory_order_acquire) ==
							      before,
				     1))
			return NULL;
		task = find_slow(shard, hash, library, key);
	}
	/* id 0: on its way out */
	return task && !d9__task_is(task, 0) ? task : NULL;
}

/*
 * Nothing but the lock's holder writes |changes|.  What follows up to end_change_locked() stores with
 * release: who sees any of it sees the odd number, too.
 */
static void begin_change_locked(struct shard *shard)
{
	uint32_t changes = atomic_load_explicit(&shard->changes, memory_order_relaxed);

	atomic_store_explicit(&shard->changes, changes + 1, memory_order_release);
}

static void end_change_locked(struct shard *shard)
{
	begin_change_locked(shard);
}

/* ---- a loop's tasks ---- */

static void count_locked(struct d9_loop *loop, size_t shard, uint32_t more)
{
	uint32_t n = atomic_load_explicit(&loop->shards[shard].n, memory_order_relaxed);

	atomic_store_explicit(&loop->shards[shard].n, n + more, memory_order_relaxed);
}

static void join_loop_locked(struct shard *shard, struct d9__task *task, struct d9_loop *loop)
{
	size_t at = (size_t)(shard - shards);
	struct d9__task *first =
		atomic_load_explicit(&loop->shards[at].first, memory_order_relaxed);

	task->loop_next = first;
	task->loop_before = NULL;
	if (first)
		first->loop_before = task;
	atomic_store_explicit(&loop->shards[at].first, task, memory_order_relaxed);
	count_locked(loop, at, 1);
	atomic_store_explicit(&task->loop, loop, memory_order_relaxed);
}

static void leave_loop_locked(struct shard *shard, struct d9__task *task)
{
	struct d9_loop *loop = atomic_load_explicit(&task->loop, memory_order_relaxed);
	size_t at = (size_t)(shard - shards);

	if (task->loop_before)
		task->loop_before->loop_next = task->loop_next;
	else
		atomic_store_explicit(&loop->shards[at].first, task->loop_next,
				      memory_order_relaxed);
	if (task->loop_next)
		task->loop_next->loop_before = task->loop_before;
	count_locked(loop, at, UINT32_MAX);
	d9__task_unhand(task, loop);
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

/* Above 0 and never twice; one thread's grow. */
static uint64_t new_number(struct d9__thread *thread)
{
	if (!thread)
		return atomic_fetch_add_explicit(&numbers, 1, memory_order_relaxed) + 1;
	if (thread->number == thread->numbers_end) {
		thread->number = atomic_fetch_add_explicit(&numbers, NUMBERS, memory_order_relaxed);
		thread->numbers_end = thread->number + NUMBERS;
	}
	return ++thread->number;
}

uint64_t d9__tasks_new_id(struct d9__thread *thread, uint32_t library)
{
	return new_number(thread) << 2 | library;
}

/* Nothing but the key is left of the task that the entry was. */
static void start_over(struct d9__task *task, uint32_t library, enum d9__wake_state wake)
{
	atomic_store_explicit(&task->identity, 0, memory_order_relaxed);
	atomic_store_explicit(&task->spawned, 0, memory_order_relaxed);
	atomic_store_explicit(&task->polled_ns, 0, memory_order_relaxed);
	atomic_store_explicit(&task->woken, 0, memory_order_relaxed);
	atomic_store_explicit(&task->wake, wake, memory_order_relaxed);
	atomic_store_explicit(&task->callsite, NULL, memory_order_relaxed);
	atomic_store_explicit(&task->name, 0, memory_order_relaxed);
	atomic_store_explicit(&task->fd, -1, memory_order_relaxed);
	atomic_store_explicit(&task->kind, D9_TASK_CUSTOM, memory_order_relaxed);
	atomic_store_explicit(&task->flags, 0, memory_order_relaxed);
	atomic_store_explicit(&task->wait, 0, memory_order_relaxed);
	/* release: a thread that sees the number sees a clean entry */
	atomic_store_explicit(&task->id, d9__tasks_new_id(d9__thread_peek(), library),
			      memory_order_release);
}

static void unlink_locked(struct shard *shard, struct d9__task *task, uint64_t hash)
{
	struct buckets *buckets = atomic_load_explicit(&shard->buckets, memory_order_relaxed);
	_Atomic(struct d9__task *) *at = head_of(buckets, hash);

	begin_change_locked(shard);
	atomic_store_explicit(&task->id, 0, memory_order_release);
	while (atomic_load_explicit(at, memory_order_relaxed) != task)
		at = &atomic_load_explicit(at, memory_order_relaxed)->next;
	atomic_store_explicit(at, atomic_load_explicit(&task->next, memory_order_relaxed),
			      memory_order_release);
	end_change_locked(shard);
	leave_loop_locked(shard, task);
	task->loop_next = shard->free;
	shard->free = task;
	shard->count--;
}

static void link_locked(struct shard *shard, struct d9__task *task, uint64_t hash)
{
	struct buckets *buckets = atomic_load_explicit(&shard->buckets, memory_order_relaxed);
	_Atomic(struct d9__task *) *head = head_of(buckets, hash);

	/* release: a reader may still stand here, in the chain that the entry was in before */
	atomic_store_explicit(&task->next, atomic_load_explicit(head, memory_order_relaxed),
			      memory_order_release);
	atomic_store_explicit(head, task, memory_order_release);
	shard->count++;
}

/* ---- growing ---- */

struct growth {
	struct slab *slab;
	struct buckets *buckets;
};

/* From calloc(), unlike aligned_alloc(), zeros come for nothing. */
static struct slab *new_slab(uint32_t n)
{
	const size_t align = _Alignof(struct slab);
	void *memory = d9__calloc(1, sizeof(struct slab) + n * sizeof(struct d9__task) + align);
	struct slab *slab;

	if (!memory)
		return NULL;
	slab = (struct slab *)(((uintptr_t)memory + align) & ~(uintptr_t)(align - 1));
	slab->memory = memory;
	slab->n = n;
	return slab;
}

static void growth_release(const struct growth *growth)
{
	if (growth->slab)
		d9__free(growth->slab->memory);
	d9__free(growth->buckets);
}

/* Allocated without the lock, since nothing is called under it. */
static bool growth_prepare(struct growth *growth, uint32_t n)
{
	uint32_t n_buckets = n < FIRST_BUCKETS ? FIRST_BUCKETS : n;

	growth->slab = new_slab(n);
	growth->buckets = d9__calloc(1, sizeof(struct buckets) +
						n_buckets * sizeof(_Atomic(struct d9__task *)));
	if (!growth->slab || !growth->buckets) {
		growth_release(growth);
		return false;
	}
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
	shard->slabs[shard->n_slabs++] = shard->newest = growth->slab;
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
		if (!err)
			growth_release(&growth);
		return -EAGAIN;
	}
	if (err)
		return err;
	growth_install_locked(shard, &growth, seen);
	growth_release(&growth);
	return 0;
}

/* ---- eviction ---- */

static struct d9__task *next_by_hand(struct shard *shard)
{
	if (shard->hand_slab >= shard->n_slabs)
		shard->hand_slab = 0;
	if (shard->hand >= shard->slabs[shard->hand_slab]->used) {
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

static void adopt_locked(struct shard *shard, struct d9__task *entry, struct d9_loop *loop,
			 const struct d9_task *task)
{
	if (atomic_load_explicit(&entry->loop, memory_order_relaxed) != loop) {
		leave_loop_locked(shard, entry);
		atomic_fetch_and_explicit(&entry->wake, ~D9__WAKE_HANDED, memory_order_relaxed);
		join_loop_locked(shard, entry, loop);
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

static bool has_room(const struct shard *shard)
{
	return shard->free || (shard->newest && shard->newest->used < shard->newest->n);
}

/* A free entry, out of a new slab or an old task if need be.  0, -ENOMEM, or -EAGAIN (no lock). */
static int make_room(struct shard *shard, bool may_wait, uint32_t epoch,
		     struct d9__tasks_ended *ended)
{
	if (shard->count >= atomic_load_explicit(&shard_limit, memory_order_relaxed))
		evict_locked(shard, epoch, ended);
	return has_room(shard) ? 0 : grow(shard, may_wait);
}

/* There is room. */
static struct d9__task *take_free_locked(struct shard *shard)
{
	struct d9__task *entry = shard->free;

	if (entry)
		shard->free = entry->loop_next;
	else
		entry = &shard->newest->entries[shard->newest->used++];
	return entry;
}

static struct d9__task *insert_locked(struct shard *shard, uint64_t hash, struct d9_loop *loop,
				      uint64_t key, enum d9__wake_state wake)
{
	uint32_t library = atomic_load_explicit(&loop->library, memory_order_relaxed);
	struct d9__task *entry = take_free_locked(shard);

	/* release: as in link_locked() */
	atomic_store_explicit(&entry->key, key, memory_order_release);
	atomic_store_explicit(&entry->library, library, memory_order_release);
	start_over(entry, library, wake);
	join_loop_locked(shard, entry, loop);
	link_locked(shard, entry, hash);
	return entry;
}

static void renew_locked(struct shard *shard, struct d9__task *entry, uint32_t library,
			 uint32_t epoch, struct d9__tasks_ended *ended)
{
	struct d9_loop *loop = atomic_load_explicit(&entry->loop, memory_order_relaxed);

	note_end(entry, epoch, ended);
	leave_loop_locked(shard, entry);
	start_over(entry, library, D9__WAKE_NONE);
	join_loop_locked(shard, entry, loop);
}

int d9__tasks_obtain(struct d9_loop *loop, uint64_t key, const struct d9_task *task, uint32_t epoch,
		     struct d9__task **out, struct d9__tasks_ended *ended)
{
	uint32_t library = atomic_load_explicit(&loop->library, memory_order_relaxed);
	uint64_t hash = hash_of(library, key);
	struct shard *shard = shard_of(hash);
	bool fills = ended->fills;
	struct d9__task *entry;
	int err = 0;

	ended->fills = false;
	if (!d9__spin_take(&shard->lock, task != NULL))
		return -EAGAIN;
	/* Twice at most: growing drops the lock, and someone may insert the same key. */
	while (!(entry = find_once(shard, hash, library, key)) && !has_room(shard) && !err)
		err = make_room(shard, task != NULL, epoch, ended);
	if (err == -EAGAIN)
		return err;
	if (!entry && !err) {
		if (shard->count >= atomic_load_explicit(&shard_limit, memory_order_relaxed))
			evict_locked(shard, epoch, ended);
		entry = insert_locked(shard, hash, loop, key,
				      fills ? D9__WAKE_FILLING : D9__WAKE_NONE);
		ended->fills = fills;
	} else if (entry && must_renew(entry, task)) {
		renew_locked(shard, entry, library, epoch, ended);
	}
	if (entry) {
		adopt_locked(shard, entry, loop, task);
		*out = entry;
		err = 0;
	}
	d9__spin_unlock(&shard->lock);
	return err;
}

void d9__task_unhand(struct d9__task *task, struct d9_loop *loop)
{
	uint32_t word = atomic_load_explicit(&task->wake, memory_order_relaxed);

	if (word & D9__WAKE_HANDED &&
	    atomic_compare_exchange_strong_explicit(&task->wake, &word, word & ~D9__WAKE_HANDED,
						    memory_order_relaxed, memory_order_relaxed))
		atomic_fetch_sub_explicit(&loop->handed, 1, memory_order_relaxed);
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

static bool remove_first_of(struct d9_loop *loop, struct shard *shard, uint32_t epoch,
			    struct d9__tasks_ended *ended)
{
	struct d9__task *task;

	d9__spin_lock(&shard->lock);
	task = atomic_load_explicit(&loop->shards[shard - shards].first, memory_order_relaxed);
	if (task) {
		note_end(task, epoch, ended);
		unlink_locked(shard, task,
			      hash_of(atomic_load_explicit(&task->library, memory_order_relaxed),
				      atomic_load_explicit(&task->key, memory_order_relaxed)));
	}
	d9__spin_unlock(&shard->lock);
	return task != NULL;
}

bool d9__tasks_remove_one_of(struct d9_loop *loop, uint32_t epoch, struct d9__tasks_ended *ended)
{
	for (size_t i = 0; i < SHARDS; i++) {
		if (atomic_load_explicit(&loop->shards[i].first, memory_order_relaxed) &&
		    remove_first_of(loop, &shards[i], epoch, ended))
			return true;
	}
	return false;
}

uint32_t d9__tasks_of(const struct d9_loop *loop)
{
	uint32_t n = 0;

	for (size_t i = 0; i < SHARDS; i++)
		n += atomic_load_explicit(&loop->shards[i].n, memory_order_relaxed);
	return n;
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

bool d9__tasks_is_crowd(const struct d9_loop *loop, const struct d9__task *task)
{
	uint64_t hash = hash_of(atomic_load_explicit(&task->library, memory_order_relaxed),
				atomic_load_explicit(&task->key, memory_order_relaxed));

	return atomic_load_explicit(&loop->shards[shard_of(hash) - shards].n,
				    memory_order_relaxed) >= CROWD / D9__TASK_SHARDS;
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
