/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <dial9/memory.h>
#include <dial9/recorder.h>

#include "base/mapped.h"
#include "base/options.h"
#include "base/own_memory.h"
#include "base/thread.h"
#include "base/time.h"
#include "record/recorder.h"
#include "record/sampling.h"
#include "record/sandbox.h"
#include "record/source.h"
#include "ring/clock.h"
#include "ring/emit_inl.h"
#include "ring/gate.h"
#include "ring/side_ring.h"
#include "sample/alloc.h"
#include "sample/alloc_gap.h"
#include "sample/unwind.h"
#include "sample/unwind_table.h"
#include "segment/metadata.h"
#include "segment/modules.h"

#define WALKERS	  32 /* samples that are taken at one time with whole stacks */
#define STACKS	  64 /* remembered by each walker */
#define OWN_DEPTH 16 /* frames in which ours are looked for */

/* Fields of AllocEvent and FreeEvent, at most. */
#define ALLOC_MAX (4 + 3 * D9__VARINT_MAX + 4)
#define FREE_MAX  (4 + 3 * D9__VARINT_MAX)

D9_TLS __thread struct d9__alloc_thread d9__alloc_self;

/* The activity of a thread during which its allocations are not sampled. */
enum inside { OUTSIDE, SAMPLING, LOCKED /* perhaps: in the live set */ };

/* Addresses of a module; both 0: of none. */
struct range {
	uintptr_t low, high;
};

/* Set in constructors, before there is another thread; read by hooks. */
static struct {
	bool attached;
	const char *reason;
	struct range hooks, dial9; /* what lies in them is not the program's */
	struct range libc, threads, loader; /* a call from there may hold any lock of it; the first two may be one */
	pid_t pid;
} self;

/* The flush thread's, read by hooks. */
static _Atomic(uint64_t) rate_now; /* 0: no sample can be taken now */
static _Atomic(bool) live_now;
static _Atomic(struct d9__slot *) sink; /* whose side ring takes the frees of threads that have no slot any more */

static _Atomic(uint32_t) dropped_allocs, dropped_frees, evicted;
static _Atomic(uint32_t) threads_begun;

/* The memory of a walk, and the stacks that the chunks of threads have already.  A thread takes one for a sample. */
struct walker {
	_Atomic(bool) taken;
	struct d9__unwind_thread unwind;
	struct {
		uint64_t hash;
		uint32_t stamp, id;
	} stacks[STACKS];
	uint64_t pcs[D9__UNWIND_MAX];
};

static _Atomic(struct walker *) walkers; /* stored once (release) */

static void count(_Atomic(uint32_t) *counter)
{
	atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

static bool contains(const struct range *range, uint64_t address)
{
	return address >= range->low && address < range->high;
}

static bool is_libcs(uint64_t address)
{
	return contains(&self.libc, address) || contains(&self.threads, address);
}

static uint8_t enter(enum inside inside)
{
	uint8_t before = d9__alloc_self.inside;

	d9__alloc_self.inside = (uint8_t)inside;
	atomic_signal_fence(memory_order_seq_cst);
	return before;
}

static void leave(uint8_t before)
{
	atomic_signal_fence(memory_order_seq_cst);
	d9__alloc_self.inside = before;
}

/* ---- threads ---- */

void d9_memory_pause(void)
{
	d9__alloc_self.paused++;
}

void d9_memory_resume(void)
{
	d9__alloc_self.paused -= d9__alloc_self.paused > 0;
}

static void find_stack(struct d9__alloc_thread *thread)
{
	pthread_attr_t attr;
	void *low = NULL;
	size_t size = 0;

	if (pthread_getattr_np(pthread_self(), &attr))
		return;
	if (!pthread_attr_getstack(&attr, &low, &size)) {
		thread->stack_low = (uintptr_t)low;
		thread->stack_high = (uintptr_t)low + size;
	}
	pthread_attr_destroy(&attr);
}

static void begin_random(struct d9__alloc_thread *thread)
{
	uint64_t seed = atomic_load_explicit(&d9__sampling.memory_seed, memory_order_relaxed);
	uint64_t number = atomic_fetch_add_explicit(&threads_begun, 1, memory_order_relaxed);

	if (!seed)
		seed = d9__clock_mono_ns() ^ (uint64_t)(uintptr_t)thread ^ (uint64_t)self.pid << 32;
	/* Neighbours are far apart once they are mixed. */
	seed += number << 32;
	thread->random = d9__alloc_random(&seed) | 1;
}

/* ---- stacks ---- */

/* Of the function that this becomes a part of. */
static inline __attribute__((always_inline)) void read_registers(struct d9__registers *out)
{
	*out = (struct d9__registers){ 0 };
#if defined(__x86_64__)
	__asm__ volatile("leaq 0(%%rip), %0\n\tmovq %%rsp, %1\n\tmovq %%rbp, %2"
			 : "=&r"(out->ip), "=&r"(out->sp), "=&r"(out->bp));
#elif defined(__aarch64__)
	__asm__ volatile("adr %0, .\n\tmov %1, sp\n\tmov %2, x29" : "=&r"(out->ip), "=&r"(out->sp), "=&r"(out->bp));
#else
	out->sp = out->bp = (uintptr_t)__builtin_frame_address(0);
#endif
}

/* Take the walker that |thread| had before, if no other thread has it. */
static struct walker *take_walker(const struct d9__alloc_thread *thread)
{
	struct walker *all = atomic_load_explicit(&walkers, memory_order_acquire);
	uintptr_t first = (uintptr_t)thread >> 12;

	for (unsigned i = 0; all && i < WALKERS; i++) {
		struct walker *walker = &all[(first + i) % WALKERS];

		if (!atomic_load_explicit(&walker->taken, memory_order_relaxed) &&
		    !atomic_exchange_explicit(&walker->taken, true, memory_order_acquire))
			return walker;
	}
	return NULL;
}

static void give_back(struct walker *walker)
{
	atomic_store_explicit(&walker->taken, false, memory_order_release);
}

/*
 * Where the stack begins that asked for the allocation: behind the outermost of our hooks, for an operator of C++ is one
 * and ends in another.  Without a row for them, behind |caller| nothing is known.
 */
static uint32_t strip(uint64_t *pcs, uint32_t n, const void *caller)
{
	uint32_t first = 0;

	for (uint32_t i = 0; i < n && i < OWN_DEPTH; i++)
		if (contains(&self.hooks, pcs[i]))
			first = i + 1;
		else if (pcs[i] == (uintptr_t)caller && !first)
			first = i;
	if (first < n && first) {
		memmove(pcs, pcs + first, (n - first) * sizeof(pcs[0]));
		return n - first;
	}
	pcs[0] = (uintptr_t)caller;
	return 1;
}

/* Not the program's: ours, itself or by way of libc. */
static bool is_own(const uint64_t *pcs, uint32_t n)
{
	uint32_t i = 0;

	while (i + 1 < n && contains(&self.libc, pcs[i]))
		i++;
	return contains(&self.dial9, pcs[i]);
}

static uint64_t hash_of(const uint64_t *pcs, uint32_t n)
{
	uint64_t hash = n;

	for (uint32_t i = 0; i < n; i++) {
		hash = (hash ^ pcs[i]) * UINT64_C(0x9e3779b97f4a7c15);
		hash ^= hash >> 29;
	}
	return hash;
}

/* ---- events ---- */

static uint8_t *begin_alloc(struct d9__slot *slot, uint64_t ns, struct walker *walker,
			    struct d9__emitted_stack *stack)
{
	uint64_t hash = hash_of(stack->addresses, stack->n);
	unsigned i = hash % STACKS;
	uint8_t *p;

	if (walker && walker->stacks[i].hash == hash) {
		stack->stamp = walker->stacks[i].stamp;
		stack->id = walker->stacks[i].id;
	}
	p = d9__emit_begin_stack(slot, D9__EVENT_ALLOC, ns, ALLOC_MAX, stack);
	if (p && walker) {
		walker->stacks[i].hash = hash;
		walker->stacks[i].stamp = stack->stamp;
		walker->stacks[i].id = stack->id;
	}
	return p;
}

/* False: lost and counted. */
static bool write_alloc(const struct d9__alloc_block *block, struct walker *walker, const uint64_t *pcs, uint32_t n,
			struct d9__slot *slot, bool live)
{
	struct d9__emitted_stack stack = { .addresses = pcs, .n = n };
	uint8_t *p = begin_alloc(slot, block->alloc_ns, walker, &stack);

	if (!p)
		return false;
	p = d9__wire_put_u32(p, d9__alloc_self.tid);
	p = d9__varint_put(p, block->size);
	p = d9__varint_put(p, live ? block->address : 0);
	p = d9__wire_put_u32(p, stack.id);
	d9__emit_end(slot, d9__varint_put(p, d9__alloc_self.rate));
	return true;
}

static uint8_t *put_free(uint8_t *p, const struct d9__alloc_block *block)
{
	p = d9__wire_put_u32(p, d9__alloc_self.tid);
	p = d9__varint_put(p, block->address);
	p = d9__varint_put(p, block->size);
	return d9__varint_put(p, block->alloc_ns);
}

/* Of a thread that is nearly gone. */
static bool leave_free(const struct d9__alloc_block *block)
{
	struct d9__slot *other = atomic_load_explicit(&sink, memory_order_relaxed);
	uint8_t fields[FREE_MAX];

	return other && d9__side_put(other, D9__EVENT_FREE, d9__clock_mono_ns(), fields,
				     (uint32_t)(put_free(fields, block) - fields), fields, 0);
}

static bool write_free(const struct d9__alloc_block *block)
{
	struct d9__slot *slot = d9__self.slot == D9__SLOT_EXITED ? NULL : d9__slot_self();
	uint8_t *p;

	if (!slot)
		return leave_free(block);
	d9__alloc_self.tid = d9__slot_tid(slot);
	p = d9__emit_begin(slot, D9__EVENT_FREE, d9__slot_now(slot), FREE_MAX);
	if (p)
		d9__emit_end(slot, put_free(p, block));
	return p != NULL;
}

/* ---- samples ---- */

static void follow(const struct d9__alloc_block *block)
{
	uint8_t before = enter(LOCKED);

	/* In a copy of the process that has no recorder, a lock may be held by a thread that the copy has not. */
	if (d9__alloc_live_add(block, d9__gate_is_ours()) != D9__LIVE_ADDED)
		count(&evicted);
	leave(before);
}

static void record_sample(void *block, size_t size, struct walker *walker, const uint64_t *pcs, uint32_t n)
{
	struct d9__alloc_block taken = { .address = (uintptr_t)block, .size = size };
	bool live = atomic_load_explicit(&live_now, memory_order_relaxed);
	struct d9__slot *slot = d9__slot_self();

	if (slot) {
		taken.alloc_ns = d9__slot_now(slot);
		d9__alloc_self.tid = d9__slot_tid(slot);
	}
	if (!slot || !write_alloc(&taken, walker, pcs, n, slot, live))
		count(&dropped_allocs);
	else if (live)
		follow(&taken);
}

/* The stack that asked for the allocation, by |walker|; its own frame is above that of the hook.  How many frames. */
static __attribute__((noinline)) uint32_t walk(struct walker *walker, const struct d9__alloc_thread *thread,
					       const void *caller)
{
	struct d9__registers registers;

	walker->unwind.low = thread->stack_low;
	walker->unwind.high = thread->stack_high;
	walker->unwind.pid = d9__sandbox_is_shut() ? 0 : self.pid;
	read_registers(&registers);
	return strip(walker->pcs, d9__unwind(&walker->unwind, &registers, walker->pcs, D9__UNWIND_MAX).n, caller);
}

static void take_sample(struct d9__alloc_thread *thread, void *block, size_t size, const void *caller)
{
	struct walker *walker = take_walker(thread);
	uint64_t nearest[] = { (uintptr_t)caller };
	uint32_t n;

	if (!walker) {
		record_sample(block, size, NULL, nearest, 1);
		return;
	}
	/* libc asks itself for the bounds under a lock of the thread, and allocates there. */
	if (!thread->stack_high && !d9__sandbox_is_shut() && !is_libcs(nearest[0]))
		find_stack(thread);
	n = walk(walker, thread, caller);
	if (!is_own(walker->pcs, n))
		record_sample(block, size, walker, walker->pcs, n);
	give_back(walker);
}

static int make_walkers(void)
{
	struct walker *fresh;

	if (atomic_load_explicit(&walkers, memory_order_relaxed))
		return 0;
	fresh = d9__map(WALKERS * sizeof(*fresh));
	if (!fresh)
		return -ENOMEM;
	atomic_store_explicit(&walkers, fresh, memory_order_release);
	return 0;
}

/* Make what samples need besides a recorder, because there is no flush thread yet, whose first tick would. */
static bool prepare_samples(void)
{
	d9__unwind_tables_want_rows();
	return !d9__unwind_tables_begin(d9__clock_mono_ns()) && !make_walkers() && !d9__alloc_live_init();
}

/* Where that fails, samples have the nearest frame alone, and the first tick tells why. */
static void prepare(void)
{
	(void)prepare_samples();
}

/*
 * With its first sample a program that runs no loop begins to record, a forked child too, and a thread of ours that has ended for
 * a while begins again; not where the caller may hold a lock of libc's.
 */
static void do_pending(const void *caller)
{
	uint64_t from = (uintptr_t)caller;

	if (!atomic_load_explicit(&d9__recorder_pending, memory_order_relaxed) || is_libcs(from) || contains(&self.loader, from) || contains(&self.dial9, from))
		return;
	d9__recorder_do_pending();
}

static void look(struct d9__alloc_thread *thread, void *block, size_t size, const void *caller, uint64_t rate)
{
	do_pending(caller);
	if (d9__gate_open(D9__GATE_ALL))
		take_sample(thread, block, size, caller);
	thread->left = d9__alloc_gap(&thread->random, rate);
}

/* Gaps have no memory: what is left of one that was drawn with another mean is of no account. */
static bool is_due(struct d9__alloc_thread *thread, size_t size, uint64_t rate)
{
	if (!thread->random)
		begin_random(thread);
	if (thread->rate != rate) {
		thread->rate = rate;
		thread->left = d9__alloc_gap(&thread->random, rate);
	}
	if (thread->left <= size)
		return true;
	thread->left -= size;
	return false;
}

void d9__alloc_sample(void *block, size_t size, const void *caller)
{
	struct d9__alloc_thread *thread = &d9__alloc_self;
	uint64_t rate = atomic_load_explicit(&rate_now, memory_order_acquire);
	int saved = errno;

	if (thread->probing) {
		thread->probing = 2;
		return;
	}
	/* Allocations of the flush thread are ours, also by way of libraries. */
	if (!rate || !block || thread->inside || thread->paused || d9__slot_is_barred(d9__self.slot) ||
	    d9__thread_is_flush())
		return;
	enter(SAMPLING);
	if (is_due(thread, size, rate))
		look(thread, block, size, caller, rate);
	leave(OUTSIDE);
	errno = saved;
}

/* ---- frees ---- */

bool d9__alloc_take(const void *block, struct d9__alloc_block *out)
{
	int saved = errno;
	uint8_t before;
	bool found;

	/* A handler that frees, where it must not: it may have interrupted who holds the lock.  Or one that may not wait. */
	if (d9__alloc_self.inside == LOCKED || d9__slot_is_barred(d9__self.slot)) {
		count(&dropped_frees);
		return false;
	}
	before = enter(LOCKED);
	found = d9__alloc_live_take((uintptr_t)block, out, d9__gate_is_ours());
	leave(before);
	errno = saved;
	return found;
}

void d9__alloc_put_back(const struct d9__alloc_block *block)
{
	int saved = errno;

	follow(block);
	errno = saved;
}

void d9__alloc_gone(const struct d9__alloc_block *block)
{
	int saved = errno;
	uint8_t before;

	if (!d9__gate_open(D9__GATE_ALL))
		return;
	before = enter(SAMPLING);
	if (!write_free(block))
		count(&dropped_frees);
	leave(before);
	errno = saved;
}

void d9__alloc_freed(const void *block)
{
	struct d9__alloc_block gone;

	if (d9__alloc_take(block, &gone))
		d9__alloc_gone(&gone);
}

/* ---- ticks: flush thread ---- */

static struct {
	char said[128];
	uint64_t second_ns;
} told;

static void say(const char *state)
{
	if (strcmp(told.said, state) != 0)
		told.second_ns = 0;
	snprintf(told.said, sizeof(told.said), "%s", state);
	/* A recorder that was started again has a trace of its own, which is to say it too. */
	if (d9__clock_mono_ns() - told.second_ns < D9__SECOND_NS)
		return;
	told.second_ns = d9__clock_mono_ns();
	d9__metadata_set("source.memory", told.said);
}

static void publish(uint64_t rate, bool live)
{
	atomic_store_explicit(&live_now, live, memory_order_relaxed);
	/* release: pairs with the acquire in d9__alloc_sample() */
	atomic_store_explicit(&rate_now, rate, memory_order_release);
}

/* NULL: samples can be taken. */
static const char *obstacle(bool live)
{
	if (!self.attached)
		return "off: libdial9-memory is not loaded; start the program by dial9 record --memory, or link it";
	if (self.reason)
		return self.reason;
	d9__unwind_tables_want_rows();
	if (d9__unwind_tables_refresh(d9__clock_mono_ns()) || make_walkers() || (live && d9__alloc_live_init()))
		return "off: no memory";
	return NULL;
}

/* Lost frees make leaks look larger, so readers have to know. */
static void tell_losses(void)
{
	uint32_t lost[] = { atomic_exchange_explicit(&dropped_allocs, 0, memory_order_relaxed),
			    atomic_exchange_explicit(&dropped_frees, 0, memory_order_relaxed),
			    atomic_exchange_explicit(&evicted, 0, memory_order_relaxed) };
	/* Of a program that ended before the first tick, too: this thread has no slot yet. */
	struct d9__slot *own = lost[0] | lost[1] | lost[2] ? d9__slot_self() : NULL;
	uint8_t *p;

	if (!own)
		return;
	p = d9__emit_begin(own, D9__EVENT_MEMORY_OVERFLOW, d9__clock_mono_ns(), 3 * D9__VARINT_MAX);
	if (!p)
		return;
	for (unsigned i = 0; i < 3; i++)
		p = d9__varint_put(p, lost[i]);
	d9__emit_end(own, p);
}

static void tick(void)
{
	uint64_t rate = atomic_load_explicit(&d9__sampling.memory_rate, memory_order_relaxed);
	bool live = atomic_load_explicit(&d9__sampling.memory_live_set, memory_order_relaxed);
	const char *why_not;

	tell_losses();
	if (!rate)
		atomic_store_explicit(&rate_now, 0, memory_order_relaxed);
	/* While nothing is recorded threads go on counting, so that they begin anywhere in their gaps. */
	if (!rate || !d9__gate_open(D9__GATE_ALL))
		return;
	why_not = obstacle(live);
	say(why_not ? why_not : "on");
	atomic_store_explicit(&sink, d9__slot_self(), memory_order_relaxed);
	publish(why_not ? 0 : rate, live);
}

void d9__alloc_start(void)
{
	d9__tick_add(tick);
}

/* ---- attaching ---- */

struct search {
	uintptr_t address;
	struct range found;
	bool first;
};

/* The first is the program itself: where libraries are linked into that, nothing tells them apart. */
static int visit(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct search *search = arg;
	struct d9__own_headers headers;
	const struct dl_phdr_info *readable = d9__own_headers_read(&headers, info);
	struct d9__module module = { 0 };
	bool is_program = search->first;

	(void)size;
	search->first = false;
	if (!readable)
		return 0;
	d9__module_describe(&module, readable);
	if (search->address < module.start || search->address >= module.end)
		return 0;
	if (!is_program)
		search->found = (struct range){ module.start, module.end };
	return 1;
}

static struct range range_of(uintptr_t address)
{
	struct search search = { .address = address, .first = true };

	d9__modules_walk(visit, &search);
	return search.found;
}

static void fork_child(void)
{
	struct walker *all = atomic_load_explicit(&walkers, memory_order_relaxed);

	d9__alloc_live_forget_in_child();
	for (unsigned i = 0; all && i < WALKERS; i++) {
		/* Another thread may have been writing there: do not believe it. */
		if (atomic_exchange_explicit(&all[i].taken, false, memory_order_relaxed))
			all[i].unwind.version = 0;
	}
	atomic_store_explicit(&sink, NULL, memory_order_relaxed);
	/* For foreign stacks, which are not read where calls are forbidden. */
	if (!d9__sandbox_is_shut())
		self.pid = getpid();
}

void d9__alloc_hold_over_forks(void)
{
	pthread_atfork(NULL, NULL, fork_child);
}

void d9__alloc_attach(const void *code, const char *reason)
{
	self.hooks = range_of((uintptr_t)code);
	self.dial9 = range_of((uintptr_t)d9__alloc_attach);
	self.libc = range_of((uintptr_t)getauxval);
	self.threads = range_of((uintptr_t)pthread_getattr_np);
	self.loader = range_of(getauxval(AT_BASE));
	self.reason = reason;
	self.pid = getpid();
	self.attached = true;
	find_stack(&d9__alloc_self);
	d9__alloc_start();
}

static void open_at_once(void)
{
	/* Else the flush thread does so at its first tick; there is none yet. */
	bool ready = !self.reason && !d9_recorder_running() && prepare_samples();

	d9__recorder_open_early();
	if (ready && d9__gate_open(D9__GATE_ALL))
		publish(atomic_load_explicit(&d9__sampling.memory_rate, memory_order_relaxed),
			atomic_load_explicit(&d9__sampling.memory_live_set, memory_order_relaxed));
}

void d9__alloc_open_early(void)
{
	if (self.reason || d9_recorder_running() || !d9__options_late_start()) {
		open_at_once();
		return;
	}
	d9__recorder_open_later(prepare, 0);
	publish(atomic_load_explicit(&d9__sampling.memory_rate, memory_order_relaxed),
		atomic_load_explicit(&d9__sampling.memory_live_set, memory_order_relaxed));
}
