/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <dial9/options.h>

#include "base/time.h"
#include "record/sampling.h"
#include "record/sandbox.h"
#include "record/source.h"
#include "ring/clock.h"
#include "ring/gate.h"
#include "ring/slot.h"
#include "sample/cpu_sampler.h"
#include "sample/kernel_names.h"
#include "sample/perf_sampler.h"
#include "sample/sampled_threads.h"
#include "sample/sampler.h"
#include "sample/switch_slices.h"
#include "sample/unwind_table.h"
#include "segment/metadata.h"

/* The text that the trace has of a source. */
struct state {
	const char *key;
	bool asked; /* it is a fault if it cannot be had */
	char now[D9__PERF_REASON_LEN], said[D9__PERF_REASON_LEN];
};

/* Flush thread. */
static struct {
	pid_t pid;
	uint64_t second_ns;
	uint32_t said_hz;
	bool resting;
	struct state cpu, off_cpu;
} self = { .resting = true, .cpu = { .key = "source.cpu" }, .off_cpu = { .key = "source.offcpu", .asked = true } };

/* A recorder that was started again has a trace of its own, which is to say it too: |again|. */
static void say(struct state *state, bool again)
{
	if (!state->now[0] || (!again && !strcmp(state->now, state->said)))
		return;
	snprintf(state->said, sizeof(state->said), "%s", state->now);
	d9__metadata_set(state->key, state->said);
	/* That it could not be had is worth a trace, even if there is nothing else. */
	if (!strncmp(state->said, "off", 3) && state->asked)
		d9__metadata_keep();
}

/* For readers, who count samples as times. */
static void say_rate(uint32_t hz)
{
	char text[16];

	if (strncmp(self.cpu.now, "on", 2) != 0 || self.said_hz == hz)
		return;
	snprintf(text, sizeof(text), "%u", hz);
	d9__metadata_set("cpu.sample_hz", text);
	self.said_hz = hz;
}

/* After a fork timers and events are the parent's alone. */
static void forget_parent(void)
{
	pid_t pid = getpid();

	if (self.pid == pid)
		return;
	self.pid = pid;
	d9__cpu_sampler_forget();
	d9__perf_sampler_forget();
	d9__switch_slices_forget();
	d9__kernel_names_forget();
	d9__sampled_forget();
}

/* Nothing is recorded: what was sampled so far is. */
static void rest(uint64_t now_ns)
{
	struct d9__slot *own = d9__slot_is_real(d9__self.slot) ? d9__self.slot : NULL;

	if (self.resting)
		return;
	self.resting = true;
	d9__sampled_rest();
	d9__cpu_sampler_rest();
	d9__perf_sampler_end(own, now_ns);
	d9__switch_slices_end(own, now_ns);
	d9__switch_slices_forget();
	if (own)
		d9__kernel_names_look(own, now_ns, true);
	d9__kernel_names_renew();
	self.said_hz = 0;
	self.second_ns = 0;
	atomic_store_explicit(&d9__sampling.due_ns, 0, memory_order_relaxed);
}

static bool is_perf(uint32_t backend)
{
	return backend == D9_CPU_BACKEND_PERF || backend == D9_CPU_BACKEND_PERF_THREAD;
}

static void sample_on_cpu(struct d9__slot *own, uint32_t hz, uint32_t backend, uint64_t now_ns)
{
	if (is_perf(backend))
		d9__perf_sampler_tick(own, hz, backend == D9_CPU_BACKEND_PERF_THREAD, now_ns, self.cpu.now);
	else
		d9__cpu_sampler_tick(own, hz, self.cpu.now, sizeof(self.cpu.now));
	say_rate(hz);
}

static uint64_t sooner(uint64_t a_ns, uint64_t b_ns)
{
	return a_ns < b_ns ? a_ns : b_ns;
}

static void sample(struct d9__slot *own, uint32_t hz, bool off_cpu, uint64_t now_ns)
{
	uint32_t backend = atomic_load_explicit(&d9__sampling.cpu_backend, memory_order_relaxed);
	uint64_t due_ns;
	bool again = now_ns - self.second_ns >= D9__SECOND_NS;

	self.resting = false;
	/* Or there is nothing else to record. */
	self.cpu.asked = backend != D9_CPU_BACKEND_AUTO || !d9__gate_open(D9__GATE_LOOP);
	d9__unwind_tables_want_rows();
	d9__unwind_tables_refresh(now_ns);
	due_ns = d9__sampled_look(own, now_ns);
	if (hz)
		sample_on_cpu(own, hz, backend, now_ns);
	if (hz && is_perf(backend) && !strncmp(self.cpu.now, "on", 2))
		due_ns = sooner(due_ns, now_ns + D9__PERF_LOOK_NS);
	if (off_cpu)
		due_ns = sooner(due_ns, d9__switch_slices_tick(own, now_ns, self.off_cpu.now));
	d9__kernel_names_look(own, now_ns, false);
	atomic_store_explicit(&d9__sampling.due_ns, due_ns == UINT64_MAX ? 0 : due_ns, memory_order_relaxed);
	if (again)
		self.second_ns = now_ns;
	say(&self.cpu, again);
	say(&self.off_cpu, again);
}

static void tick(void)
{
	uint32_t hz = atomic_load_explicit(&d9__sampling.cpu_hz, memory_order_relaxed);
	bool off_cpu = atomic_load_explicit(&d9__sampling.off_cpu, memory_order_relaxed);
	uint64_t now_ns = d9__clock_mono_ns();
	struct d9__slot *own;

	forget_parent();
	if ((!hz && !off_cpu) || !d9__gate_open(D9__GATE_EVENT) || !(own = d9__slot_self()))
		rest(now_ns);
	else
		sample(own, hz, off_cpu, now_ns);
}

void d9__sampler_start(void)
{
	d9__tick_add(tick);
	/* Whoever records loops, too, has more to do then, and says so later. */
	d9__sandbox_on_enter(d9__cpu_sampler_end);
	d9__sandbox_on_bar(d9__cpu_sampler_bar);
}
