/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "loop/thread_state.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/mapped.h"
#include "loop/loops.h"
#include "loop/polls.h"
#include "loop/span_stack.h"
#include "loop/workers.h"
#include "record/sampling.h"
#include "record/sandbox.h"

_Atomic(uint32_t) d9__loop_epoch = 1;

/* All states, so that a child can free those of threads that it does not have. */
static struct {
	pthread_mutex_t lock;
	struct d9__thread *first;
} all = { .lock = PTHREAD_MUTEX_INITIALIZER };

static uint32_t kernel_tid(void)
{
	return (uint32_t)syscall(SYS_gettid);
}

static void unmap(struct d9__thread *thread)
{
	if (d9__sandbox_is_shut())
		return;
	d9__cpu_time_release(&thread->cpu);
	d9__unmap(thread, sizeof(*thread));
}

void d9__thread_find_stack(uintptr_t *low, uintptr_t *high)
{
	pthread_attr_t attr;
	void *address;
	size_t size;

	if (pthread_getattr_np(pthread_self(), &attr))
		return;
	if (!pthread_attr_getstack(&attr, &address, &size)) {
		*low = (uintptr_t)address;
		*high = (uintptr_t)address + size;
	}
	pthread_attr_destroy(&attr);
}

/* For samplers. */
static void tell_stack(const struct d9__thread *thread)
{
	struct d9__slot_stack *stack = &d9__slot_stacks[d9__slot_index(d9__self.slot)];

	atomic_store_explicit(&stack->low, thread->stack_low, memory_order_relaxed);
	atomic_store_explicit(&stack->high, thread->stack_high, memory_order_relaxed);
}

/* True if thread |tid| is inside spans: they are kept beside its slot. */
static bool has_entered(uint32_t tid)
{
	const struct d9__slot *slot = d9__self.slot;
	const struct d9__span_stack *entered;

	if (!d9__slot_is_real(slot))
		return false;
	entered = &d9__span_stack_all[d9__slot_index(slot)];
	return (uint32_t)entered->owner == tid && d9__span_stack_count(entered);
}

/* Lane groups are named after loops, else after threads. */
static void take_worker(struct d9__thread *thread, struct d9_loop *loop, bool may_move)
{
	char name[D9__LOOP_NAME_MAX] = "";
	bool of_thread;
	int id;

	if (loop)
		d9__loop_name(loop, name);
	of_thread = !name[0];
	if (of_thread && prctl(PR_GET_NAME, name) < 0)
		strcpy(name, "main");
	id = d9__workers_take(thread->tid, name, may_move);
	if (id < 0) {
		thread->refused = true;
		return;
	}
	if (of_thread)
		d9__workers_follow_thread((unsigned)id);
	thread->worker = (uint32_t)id;
	thread->head = d9__emit_plain_of(thread->worker);
	thread->found = D9__WOKEN(0, thread->worker, D9_WAKE_FD);
	thread->odd &= (uint8_t)~(D9__ODD_NO_WORKER | D9__ODD_WIDE);
	if (thread->worker >= D9__WORKER_WIDE)
		thread->odd |= D9__ODD_WIDE;
	thread->cpu.schedstat_off |= thread->worker >= D9__WORKERS_USUAL;
}

static struct d9__thread *new_thread(void)
{
	/* Of pages: those for tasks that a small loop has not are never touched. */
	struct d9__thread *thread = d9__map(sizeof(*thread));

	if (!thread)
		return NULL;
	thread->tid = kernel_tid();
	thread->odd = D9__ODD_NO_WORKER | D9__ODD_STOPPED;
	thread->epoch = atomic_load_explicit(&d9__loop_epoch, memory_order_relaxed);
	d9__cpu_time_init(&thread->cpu, thread->tid);
	d9__thread_find_stack(&thread->stack_low, &thread->stack_high);
	pthread_mutex_lock(&all.lock);
	thread->next = all.first;
	thread->at = &all.first;
	if (all.first)
		all.first->at = &thread->next;
	all.first = thread;
	pthread_mutex_unlock(&all.lock);
	return thread;
}

struct d9__thread *d9__thread_make(struct d9_loop *loop)
{
	struct d9__thread *thread = d9__self.thread;
	bool fresh = !thread;
	int saved = errno;

	if (thread == D9__THREAD_GONE || d9__slot_is_barred(d9__self.slot)) {
		d9__slot_self(); /* which counts what is lost */
		return NULL;
	}
	if (d9__sandbox_is_shut() && (fresh || thread->odd & D9__ODD_NO_WORKER)) {
		d9__slot_self(); /* likewise */
		return NULL;
	}
	if (fresh)
		thread = d9__self.thread = new_thread();
	if (thread && thread->odd & D9__ODD_NO_WORKER)
		/* Our callers have the slot in hand, unless this is the first that the thread does. */
		take_worker(thread, loop, fresh && !has_entered(thread->tid));
	if (thread && fresh)
		d9__cpu_time_open(&thread->cpu, d9__clock_mono_ns());
	/* Without a slot nothing tells of the thread's end. */
	if (thread && fresh && !d9__slot_self()) {
		d9__self.thread = NULL;
		d9__thread_free(thread);
		thread = NULL;
	}
	if (thread && fresh)
		tell_stack(thread);
	errno = saved;
	return thread && !(thread->odd & D9__ODD_NO_WORKER) ? thread : NULL;
}

void d9__thread_free(struct d9__thread *thread)
{
	bool is_worker = !(thread->odd & D9__ODD_NO_WORKER);
	uint32_t worker = thread->worker;

	pthread_mutex_lock(&all.lock);
	*thread->at = thread->next;
	if (thread->next)
		thread->next->at = thread->at;
	pthread_mutex_unlock(&all.lock);
	d9__task_io_end(thread);
	unmap(thread);
	/* Last: until this thread has given its slot back no other thread has the id. */
	if (is_worker)
		d9__workers_release(worker, d9__slot_leave());
}

void d9__threads_each(void (*fn)(void *arg, const struct d9__thread *thread), void *arg)
{
	pthread_mutex_lock(&all.lock);
	for (const struct d9__thread *thread = all.first; thread; thread = thread->next)
		fn(arg, thread);
	pthread_mutex_unlock(&all.lock);
}

bool d9__threads_nth(size_t n, void (*fn)(void *arg, struct d9__thread *thread), void *arg)
{
	struct d9__thread *thread;

	pthread_mutex_lock(&all.lock);
	for (thread = all.first; thread && n; thread = thread->next)
		n--;
	if (thread)
		fn(arg, thread);
	pthread_mutex_unlock(&all.lock);
	return thread != NULL;
}

void d9__threads_fork_prepare(void)
{
	pthread_mutex_lock(&all.lock);
}

void d9__threads_fork_parent(void)
{
	pthread_mutex_unlock(&all.lock);
}

/* Frames and runs stay: the child goes on in them. */
static void start_over(struct d9__thread *thread)
{
	thread->odd = D9__ODD_NO_WORKER | D9__ODD_STOPPED;
	thread->epoch = atomic_load_explicit(&d9__loop_epoch, memory_order_relaxed);
	thread->shared_ns = thread->resume_ns = thread->late_end_ns = 0;
	thread->park_ns = thread->round_ns = 0;
	thread->n_held = 0;
	d9__task_io_forget(&thread->io);
	thread->parked = thread->refused = false;
	memset(&thread->between, 0, sizeof(thread->between));
	if (thread->n_frames)
		thread->odd |= D9__ODD_FRAMES;
	/* Nothing of a sandbox's child is recorded. */
	if (d9__sandbox_is_shut())
		return;
	thread->tid = kernel_tid();
	/* The descriptor shows the parent's thread. */
	d9__cpu_time_release(&thread->cpu);
	d9__cpu_time_init(&thread->cpu, thread->tid);
}

void d9__threads_fork_child(void)
{
	struct d9__thread *self = d9__thread_peek(), *thread = all.first;

	atomic_fetch_add_explicit(&d9__loop_epoch, 1, memory_order_relaxed);
	all.first = NULL;
	while (thread) {
		struct d9__thread *next = thread->next;

		if (thread != self)
			unmap(thread);
		thread = next;
	}
	if (self) {
		self->next = NULL;
		self->at = &all.first;
		all.first = self;
		start_over(self);
	}
	pthread_mutex_unlock(&all.lock);
}
