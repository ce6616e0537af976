/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/heap.h"
#include "record/sampling.h"
#include "ring/chunk.h"
#include "ring/event_types.h"
#include "sample/kernel_names.h"
#include "sample/perf_sampler.h"
#include "sample/sampled_threads.h"
#include "sample/unwind.h"

#define STACK_BYTES 16384u

/* Of a ring per processor: more than a second of samples, which have a copy of the stack each. */
#define CPU_RING    ((size_t)4 << 20)
#define CPU_RINGS   ((size_t)64 << 20) /* all of them together */
#define THREAD_RING ((size_t)512 << 10)
#define THREADS_MAX 256u /* that have a ring: 128 MiB */

static struct {
	struct d9__perf_source source;
	bool open, per_thread, refused, no_kernel;
	uint32_t hz, left_out;
	struct d9__perf_event *cpus;
	int n_cpus;
	struct {
		uint32_t tid; /* 0: none */
		bool failed;
		struct d9__perf_event event;
	} threads[D9__SAMPLED_MAX];
	uint32_t high, n_threads;
	char why[D9__PERF_REASON_LEN]; /* it was refused, or has no kernel frames */
} self;

static struct d9__unwind_thread walker; /* no stack of its own, and none is read but copies */

/* ---- samples ---- */

/* The stack of |record|, the kernel's part first, behind |raw|. */
static void put_stack(const struct d9__perf_record *record, struct d9__sample_raw *raw, uint64_t *pcs)
{
	struct d9__unwound unwound = { .truncated = true };
	uint32_t n = record->n_kernel;

	memcpy(pcs, record->kernel, n * sizeof(*pcs));
	if (record->has_registers)
		unwound = d9__unwind_copied(&walker, &record->registers, record->stack, record->stack_len, pcs + n,
					    D9__SAMPLE_FRAMES_MAX - n);
	raw->n = (uint16_t)(n + unwound.n);
	raw->truncated = unwound.truncated;
}

/* A thread that came and went between two ticks is in no list, but of this process. */
static bool is_wanted(uint32_t tid, uint32_t index)
{
	if (index < D9__SAMPLED_MAX)
		return true;
	return atomic_load_explicit(&d9__sampling.all_threads, memory_order_relaxed) &&
	       tid != (uint32_t)syscall(SYS_gettid);
}

/* Of the thread at |index|; one that ended has left its slot. */
__attribute__((no_sanitize("thread"))) static uint32_t worker_of(uint32_t index)
{
	const struct d9__slot *slot = index < D9__SAMPLED_MAX ? d9__sampled_slot(index) : NULL;
	uint32_t worker = slot ? __atomic_load_n(&slot->worker, __ATOMIC_RELAXED) : D9__WORKER_NONE;

	return worker == D9__WORKER_NONE ? D9__SAMPLE_NO_WORKER : worker;
}

static void write_sample(struct d9__perf_source *source, const struct d9__perf_record *record, uint32_t index)
{
	static struct d9__side_record side;
	struct d9__sample_raw *raw = (struct d9__sample_raw *)(void *)side.payload;

	*raw = (struct d9__sample_raw) {
		.worker = worker_of(index),
		.tid = record->tid,
		.copies = 1,
		.source = source->source,
		.cpu_plus_1 = record->cpu + 1,
	};
	if (index < D9__SAMPLED_MAX)
		snprintf(raw->thread_name, sizeof(raw->thread_name), "%s", d9__sampled_name(index));
	put_stack(record, raw, raw->pcs);
	side.type_id = D9__EVENT_CPU_SAMPLE;
	side.ns = record->ns;
	side.len = (uint32_t)(sizeof(*raw) + 8u * raw->n);
	d9__side_emit(source->own, &side);
	for (uint32_t i = 0; i < record->n_kernel; i++)
		d9__kernel_names_met(source->own, record->kernel[i], record->ns);
}

static void write_record(void *arg, struct d9__perf_record *record)
{
	struct d9__perf_source *source = arg;
	uint32_t index;

	source->seen++;
	if (record->pid != (uint32_t)getpid() || record->ns < source->from_ns ||
	    (source->until_ns && record->ns >= source->until_ns))
		return;
	index = d9__sampled_find(record->tid);
	if (!is_wanted(record->tid, index))
		return;
	source->written++;
	write_sample(source, record, index);
}

void d9__perf_write_all(struct d9__perf_source *source, struct d9__perf_event *event, uint64_t now_ns)
{
	uint64_t lost = d9__perf_drain(event, write_record, source);

	if (!lost)
		return;
	if (source->seen)
		lost = 1 + (uint64_t)((double)lost * (double)source->written / (double)source->seen);
	d9__loss_add((int)d9__slot_index(source->own), D9__LOSS_SIDE_RING, lost, now_ns, now_ns);
}

/* ---- per processor ---- */

static void refuse(const struct d9__perf_want *want, int err)
{
	self.refused = true;
	d9__perf_explain(self.why, want, err);
}

/* Halved until all fit. */
static size_t ring_of_each(int n)
{
	size_t ring = CPU_RING;

	while (ring * (size_t)n > CPU_RINGS && ring > ((size_t)128 << 10))
		ring /= 2;
	return ring;
}

static void open_cpus(uint32_t hz)
{
	cpu_set_t set;
	struct d9__perf_want want = { .tid = -1, .hz = hz, .stack = STACK_BYTES };
	int n, err = sched_getaffinity(getpid(), sizeof(set), &set) ? -errno : 0;

	n = err ? 0 : CPU_COUNT(&set);
	self.cpus = d9__calloc((size_t)n + 1, sizeof(*self.cpus));
	if (!self.cpus)
		err = -ENOMEM;
	want.ring = ring_of_each(n);
	for (size_t cpu = 0; cpu < CPU_SETSIZE && !err && self.n_cpus < n; cpu++) {
		want.cpu = (int)cpu;
		if (CPU_ISSET(cpu, &set))
			err = d9__perf_open(&self.cpus[self.n_cpus++], &want);
	}
	if (err)
		refuse(&want, err);
}

/* ---- per thread ---- */

/* With the kernel's frames, if those are permitted. */
static int open_of(struct d9__perf_event *event, struct d9__perf_want *want)
{
	int err;

	want->no_kernel = self.no_kernel;
	err = d9__perf_open(event, want);
	if ((err != -EACCES && err != -EPERM) || self.no_kernel)
		return err;
	d9__perf_explain(self.why, want, err);
	want->no_kernel = true;
	err = d9__perf_open(event, want);
	self.no_kernel = !err;
	return err;
}

static void close_thread(uint32_t i)
{
	self.n_threads -= self.threads[i].event.fd_plus_1 != 0;
	d9__perf_close(&self.threads[i].event);
	self.threads[i].tid = 0;
	self.threads[i].failed = false;
}

static void open_thread(uint32_t i, uint32_t tid, uint32_t hz)
{
	struct d9__perf_want want = { .tid = (int)tid, .cpu = -1, .hz = hz, .stack = STACK_BYTES, .ring = THREAD_RING };
	int err;

	self.threads[i].tid = tid;
	if (self.high <= i)
		self.high = i + 1;
	err = self.n_threads < THREADS_MAX ? open_of(&self.threads[i].event, &want) : -EMFILE;
	self.n_threads += !err;
	self.threads[i].failed = err && err != -ESRCH;
	if (err && err != -ESRCH && !self.n_threads)
		refuse(&want, err);
}

static void follow_threads(uint32_t hz, uint64_t now_ns)
{
	uint32_t high = d9__sampled_high() > self.high ? d9__sampled_high() : self.high;

	self.left_out = 0;
	for (uint32_t i = 0; i < high; i++) {
		uint32_t tid = i < d9__sampled_high() ? d9__sampled_tid(i) : 0;

		d9__perf_write_all(&self.source, &self.threads[i].event, now_ns);
		if (self.threads[i].tid != tid) {
			close_thread(i);
			if (tid && !self.refused)
				open_thread(i, tid, hz);
		}
		self.left_out += self.threads[i].failed;
	}
}

/* ---- ticks ---- */

static void describe(char *state)
{
	if (self.refused)
		snprintf(state, D9__PERF_REASON_LEN, "off: %.240s", self.why);
	else if (!self.per_thread)
		snprintf(state, D9__PERF_REASON_LEN, "on: perf, %d processors", self.n_cpus);
	else if (self.left_out)
		snprintf(state, D9__PERF_REASON_LEN, "on: perf; but %u threads are left out", self.left_out);
	else if (self.no_kernel)
		snprintf(state, D9__PERF_REASON_LEN, "on: perf per thread, without the kernel's frames: %.190s",
			 self.why);
	else
		snprintf(state, D9__PERF_REASON_LEN, "on: perf per thread, which makes each of their sleeps dearer");
}

void d9__perf_sampler_tick(struct d9__slot *own, uint32_t hz, bool per_thread, uint64_t now_ns, char *state)
{
	if (self.open && (self.hz != hz || self.per_thread != per_thread))
		d9__perf_sampler_end(own, now_ns);
	if (!self.open && !per_thread)
		open_cpus(hz);
	self.open = true;
	self.source.own = own;
	self.source.source = D9__SAMPLE_ON_CPU;
	self.hz = hz;
	self.per_thread = per_thread;
	for (int i = 0; i < self.n_cpus; i++)
		d9__perf_write_all(&self.source, &self.cpus[i], now_ns);
	if (per_thread)
		follow_threads(hz, now_ns);
	describe(state);
}

void d9__perf_sampler_end(struct d9__slot *own, uint64_t now_ns)
{
	self.source.own = own;
	for (int i = 0; i < self.n_cpus; i++) {
		d9__perf_stop(&self.cpus[i]);
		if (own)
			d9__perf_write_all(&self.source, &self.cpus[i], now_ns);
		d9__perf_close(&self.cpus[i]);
	}
	for (uint32_t i = 0; i < self.high; i++) {
		d9__perf_stop(&self.threads[i].event);
		if (own)
			d9__perf_write_all(&self.source, &self.threads[i].event, now_ns);
		close_thread(i);
	}
	d9__free(self.cpus);
	memset(&self, 0, sizeof(self));
}

/* Nothing is freed: the parent's thread may have been about to. */
void d9__perf_sampler_forget(void)
{
	memset(&self, 0, sizeof(self));
	walker.version = 0;
}
