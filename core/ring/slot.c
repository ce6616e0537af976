/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slots are claimed with one compare-and-swap on |owner|, without a lock: the first event of a
 * thread may come from a signal handler.  Whoever holds TAKEN owns every other field.
 */
#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/sandbox.h"
#include "base/time.h"
#include "ring/chunk.h"
#include "ring/gate.h"
#include "ring/names.h"
#include "ring/silence.h"
#include "ring/slot.h"

#define OWNER(state, tid) ((uint64_t)(state) << 32 | (tid))
#define STATE(owner)      ((enum d9__slot_state)((owner) >> 32))
#define EXIT_FNS          4
#define DEAD_AFTER_NS     (10 * D9__SECOND_NS)

__thread struct d9__self d9__self D9_TLS;

static _Atomic(uint32_t) high;                  /* slots [0, high) were used */
static _Atomic(uintptr_t) exit_fns[EXIT_FNS];   /* void (*)(void) */
static _Atomic(uint32_t) exit_fn_count;
static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static bool key_works;

/* Flush thread: when each slot's published word was last seen to change. */
static struct {
	uint64_t published, since_ns;
} watch[D9__SLOT_COUNT];

uint32_t d9__slot_high(void)
{
	return atomic_load_explicit(&high, memory_order_acquire);
}

/* The slot's owner changes it without asking anybody, and notes a silence before its end. */
__attribute__((no_sanitize("thread"))) static uint64_t last_stamp(const struct d9__slot *slot)
{
	return __atomic_load_n(&slot->last_ns, __ATOMIC_ACQUIRE);
}

struct d9__signs d9__slot_signs(uint64_t since_ns, uint64_t now_ns)
{
	struct d9__signs signs = { 0, UINT64_MAX };

	for (uint32_t i = 0; i < d9__slot_high(); i++) {
		uint64_t last_ns = last_stamp(&d9__ring.slots[i]);
		struct d9__silence silence = d9__silence_of(&d9__ring.slots[i]);

		/* One that goes on hides the one before it. */
		if (silence.after_ns > since_ns && last_ns + D9__SILENCE_NS > now_ns) {
			last_ns = silence.before_ns;
			if (silence.after_ns < signs.after_ns)
				signs.after_ns = silence.after_ns;
		}
		if (last_ns > signs.before_ns)
			signs.before_ns = last_ns;
	}
	return signs;
}

int d9__slot_on_exit(void (*fn)(void))
{
	uint32_t i = atomic_fetch_add(&exit_fn_count, 1);

	if (i >= EXIT_FNS)
		return -ENOSPC;
	atomic_store(&exit_fns[i], (uintptr_t)fn);
	return 0;
}

static void run_exit_fns(void)
{
	for (unsigned i = 0; i < EXIT_FNS; i++) {
		void (*fn)(void) = (void (*)(void))atomic_load(&exit_fns[i]);

		if (fn)
			fn();
	}
}

/*
 * The thread was cancelled, or vanished, inside an event, which is beyond |published|: forgotten.
 * A name may be on the wire that the table does not know, so the chunk is left.
 */
static void settle(struct d9__slot *slot)
{
	if (!atomic_load_explicit(&slot->busy, memory_order_relaxed))
		return;
	d9__chunk_seal(slot);
	atomic_store_explicit(&slot->busy, 0, memory_order_relaxed);
}

/* Hand over the open chunk if it tells of a worker, because events that come next tell of none. */
static void leave_worker(struct d9__slot *slot)
{
	if (slot->worker != D9__WORKER_NONE)
		d9__chunk_seal(slot);
	__atomic_store_n(&slot->worker, D9__WORKER_NONE, __ATOMIC_RELAXED);
	slot->worker_state = D9__WORKER_UNKNOWN;
	slot->task = 0;
}

/* Keep the thread id, because the flush thread asks for it when it takes the chunks, perhaps later. */
static void set_state(struct d9__slot *slot, enum d9__slot_state state)
{
	uint64_t owner = atomic_load_explicit(&slot->owner, memory_order_relaxed);

	/* release: pairs with the acquire of the next claim, and of d9__slot_follow() */
	atomic_store_explicit(&slot->owner, OWNER(state, (uint32_t)owner), memory_order_release);
}

/* The caller owns |slot| and ends that. */
static void slot_return(struct d9__slot *slot)
{
	settle(slot);
	leave_worker(slot);
	set_state(slot, D9__SLOT_IDLE);
}

/*
 * Give back the slot of a thread that ended as it should.  A worker's id may go to a thread with another slot, whose
 * events must not overtake these on their way to the file: see d9__slot_follow().
 */
static void slot_leave(struct d9__slot *slot)
{
	settle(slot);
	if (slot->worker_state == D9__WORKER_PARKED &&
	    atomic_load_explicit(&slot->open, memory_order_relaxed))
		set_state(slot, D9__SLOT_LEFT);
	else
		slot_return(slot);
}

static bool ring_has(const struct d9__slot *slot)
{
	return d9__ring.slots && slot >= d9__ring.slots && slot < d9__ring.slots + D9__SLOT_COUNT;
}

static void thread_ends(struct d9__slot *slot)
{
	int saved = errno;

	if (d9__self.slot == slot && ring_has(slot)) {
		run_exit_fns();
		d9__self.slot = D9__SLOT_EXITED;
		slot_leave(slot);
	}
	errno = saved;
}

/* Runs twice per thread, so that destructors that run after the first time can still record. */
static void key_destructor(void *value)
{
	uintptr_t slot = (uintptr_t)value;

	/* The thread of the parent that this is a copy of goes on in its slot. */
	if (!d9__gate_is_ours())
		return;
	if (!(slot & 1) && d9__self.slot == value && ring_has(value))
		settle(value);
	if (!(slot & 1) && pthread_setspecific(key, (void *)(slot | 1)) == 0)
		return;
	thread_ends((struct d9__slot *)(slot & ~(uintptr_t)1));
}

static void key_create(void)
{
	key_works = pthread_key_create(&key, key_destructor) == 0;
}

static bool is_idle(uint64_t owner)
{
	return STATE(owner) == D9__SLOT_IDLE || STATE(owner) == D9__SLOT_LEFT;
}

static bool claim(struct d9__slot *slot, uint64_t owner, uint32_t tid)
{
	return atomic_compare_exchange_strong_explicit(&slot->owner, &owner,
						       OWNER(D9__SLOT_CLAIMED, tid),
						       memory_order_acquire, memory_order_relaxed);
}

/* An idle slot in |state|, preferably with a partly filled chunk: it costs no chunk. */
static struct d9__slot *claim_idle(uint32_t tid, enum d9__slot_state state, bool with_chunk)
{
	for (uint32_t i = 0; i < d9__slot_high(); i++) {
		struct d9__slot *slot = &d9__ring.slots[i];
		uint64_t owner = atomic_load_explicit(&slot->owner, memory_order_relaxed);

		if (STATE(owner) != state)
			continue;
		if (with_chunk && !atomic_load_explicit(&slot->open, memory_order_relaxed))
			continue;
		if (claim(slot, owner, tid))
			return slot;
	}
	return NULL;
}

static struct d9__slot *claim_new(uint32_t tid)
{
	uint32_t i = d9__slot_high();

	while (i < D9__SLOT_COUNT)
		if (atomic_compare_exchange_weak_explicit(&high, &i, i + 1, memory_order_acq_rel,
							  memory_order_acquire)) {
			struct d9__slot *slot = &d9__ring.slots[i];

			/* Nobody else claims it: it is not idle yet. */
			atomic_store_explicit(&slot->owner, OWNER(D9__SLOT_CLAIMED, tid),
					      memory_order_relaxed);
			__atomic_store_n(&slot->worker, D9__WORKER_NONE, __ATOMIC_RELAXED);
			return slot;
		}
	return NULL;
}

static struct d9__slot *slot_take(void)
{
	uint32_t tid = (uint32_t)syscall(SYS_gettid);
	struct d9__slot *slot = claim_idle(tid, D9__SLOT_IDLE, true);

	if (!slot)
		slot = claim_idle(tid, D9__SLOT_IDLE, false);
	if (!slot)
		slot = claim_new(tid);
	/* A worker's next thread might have gone on in it. */
	if (!slot)
		slot = claim_idle(tid, D9__SLOT_LEFT, true);
	if (!slot)
		return NULL;
	leave_worker(slot);
	if (!slot->names)
		slot->names = d9__name_table_new();
	if (!slot->names) {
		slot_return(slot);
		return NULL;
	}
	d9__clock_slot_init(slot);
	set_state(slot, D9__SLOT_TAKEN);
	return slot;
}

static void count_refused(enum d9__loss_cause cause)
{
	uint64_t now = d9__clock_mono_ns();

	d9__loss_add(-1, cause, 1, now, now);
}

struct d9__slot *d9__slot_self_slow(void)
{
	int saved = errno;
	struct d9__slot *slot;

	if (!d9__ring.base || d9__slot_is_barred(d9__self.slot))
		return NULL;
	if (!d9__self.slot && d9__sandbox_is_shut()) {
		count_refused(D9__LOSS_NO_SLOT);
		return NULL;
	}
	if (d9__self.slot) {
		count_refused(d9__self.slot == D9__SLOT_EXITED ? D9__LOSS_THREAD_EXIT :
								D9__LOSS_REENTRANT);
		return NULL;
	}
	/* A signal handler that records from here on is told so, instead of taking a second one. */
	d9__self.slot = D9__SLOT_BUSY_TAKING;
	atomic_signal_fence(memory_order_seq_cst);
	pthread_once(&key_once, key_create);
	slot = slot_take();
	if (!slot)
		count_refused(D9__LOSS_NO_SLOT);
	else if (key_works)
		pthread_setspecific(key, slot);
	atomic_signal_fence(memory_order_seq_cst);
	d9__self.slot = slot;
	errno = saved;
	return slot;
}

void d9__slot_give_back(void)
{
	struct d9__slot *slot = d9__self.slot;

	if ((uintptr_t)slot < D9__SLOT_SENTINELS || !ring_has(slot))
		return;
	run_exit_fns();
	if (key_works)
		pthread_setspecific(key, NULL);
	d9__self.slot = NULL;
	slot_leave(slot);
}

void d9__slot_bar(struct d9__slot *mark)
{
	struct d9__slot *slot = d9__self.slot;

	if (d9__slot_is_real(slot) && ring_has(slot))
		d9__slot_give_back();
	else
		run_exit_fns();
	d9__self.slot = mark;
}

void d9__slot_unbar(void)
{
	d9__self.slot = NULL;
	d9__self.thread = NULL;
}

struct d9__left d9__slot_leave(void)
{
	struct d9__slot *slot = d9__self.slot;

	if (!d9__slot_is_real(slot) || !ring_has(slot))
		return (struct d9__left){ 0, 0 };
	return (struct d9__left){ d9__slot_index(slot) + 1, d9__slot_tid(slot) };
}

/* Claimed by us: it is this thread's from now on.  What that recorded before stays where it is. */
static void move_to(struct d9__slot *slot)
{
	struct d9__slot *old = d9__self.slot;

	d9__self.slot = D9__SLOT_BUSY_TAKING;
	atomic_signal_fence(memory_order_seq_cst);
	if (old)
		slot_return(old);
	pthread_once(&key_once, key_create);
	d9__clock_slot_init(slot);
	atomic_store_explicit(&slot->owner, OWNER(D9__SLOT_TAKEN, (uint32_t)syscall(SYS_gettid)),
			      memory_order_release);
	if (key_works)
		pthread_setspecific(key, slot);
	atomic_signal_fence(memory_order_seq_cst);
	d9__self.slot = slot;
}

bool d9__slot_follow(const struct d9__left *left, uint32_t worker, bool may_move)
{
	struct d9__slot *slot, *own = d9__self.slot;
	uint64_t owner;

	if (!left->slot || !d9__ring.slots)
		return true;
	slot = &d9__ring.slots[left->slot - 1];
	/* acquire: what was handed over before the slot was taken comes before all that follows here */
	owner = atomic_load_explicit(&slot->owner, memory_order_acquire);
	if (!is_idle(owner))
		return STATE(owner) == D9__SLOT_TAKEN && (uint32_t)owner != left->tid;
	if (!claim(slot, owner, (uint32_t)owner))
		return false;
	if (slot->worker == worker && (!own || (may_move && d9__slot_is_real(own)))) {
		move_to(slot);
		return true;
	}
	if (slot->worker == worker)
		leave_worker(slot);
	set_state(slot, slot->worker == D9__WORKER_NONE ? D9__SLOT_IDLE : D9__SLOT_LEFT);
	return true;
}

/* A quiet slot of a thread that is gone?  Then it is ours: |tid| is 0 while we hold it. */
static bool claim_dead(struct d9__slot *slot, uint32_t i, uint64_t now_ns)
{
	uint64_t published = atomic_load_explicit(&slot->published, memory_order_relaxed);
	uint64_t owner = atomic_load_explicit(&slot->owner, memory_order_relaxed);

	if (published != watch[i].published || !watch[i].since_ns) {
		watch[i].published = published;
		watch[i].since_ns = now_ns;
		return false;
	}
	if (STATE(owner) != D9__SLOT_TAKEN || now_ns - watch[i].since_ns < DEAD_AFTER_NS)
		return false;
	watch[i].since_ns = now_ns;
	if (syscall(SYS_tgkill, getpid(), (pid_t)(uint32_t)owner, 0) == 0 || errno != ESRCH)
		return false;
	return claim(slot, owner, 0);
}

unsigned d9__slot_reclaim_dead(uint64_t now_ns)
{
	int saved = errno;
	unsigned n = 0;

	for (uint32_t i = 0; i < d9__slot_high(); i++)
		if (claim_dead(&d9__ring.slots[i], i, now_ns)) {
			slot_return(&d9__ring.slots[i]);
			n++;
		}
	errno = saved;
	return n;
}

unsigned d9__slot_seal_idle(uint32_t wanted_free)
{
	unsigned n = 0;

	for (uint32_t i = 0; i < d9__slot_high(); i++) {
		struct d9__slot *slot = &d9__ring.slots[i];
		uint64_t owner = atomic_load_explicit(&slot->owner, memory_order_relaxed);

		if (d9__chunk_free_count() + d9__chunk_full_count() >= wanted_free)
			break;
		if (!is_idle(owner) ||
		    !atomic_load_explicit(&slot->open, memory_order_relaxed) ||
		    !claim(slot, owner, (uint32_t)owner))
			continue;
		d9__chunk_seal(slot);
		slot_return(slot);
		n++;
	}
	return n;
}

void d9__slot_forget_in_child(void)
{
	if (!d9__slot_is_barred(d9__self.slot))
		d9__self.slot = NULL;
	if (key_works)
		pthread_setspecific(key, NULL);
	atomic_store(&high, 0);
	memset(watch, 0, sizeof(watch));
}
