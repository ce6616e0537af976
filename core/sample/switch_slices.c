/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/time.h"
#include "ring/clock.h"
#include "sample/perf_event.h"
#include "sample/perf_sampler.h"
#include "sample/sampled_threads.h"
#include "sample/switch_slices.h"
#include "segment/metadata.h"

#define SLICE_NS     (100 * D9__MS_NS)
#define EVERY_NS     (10000 * D9__MS_NS)
#define DUTY	     "0.01"
#define LOOK_NS	     (10 * D9__MS_NS) /* in a slice */
#define STACK_BYTES  8192u
#define RING	     ((size_t)2 << 20)	 /* 250 stacks: 25,000 switches a second */
#define RING_OF_MANY ((size_t)512 << 10) /* the same of each of more than FEW threads */
#define FEW	     8u
#define THREADS_MAX  32u /* in one slice; the next one begins with others */

static struct {
	bool in_slice, refused;
	uint64_t begun_ns; /* the latest slice; 0: none yet */
	uint32_t n, next;  /* threads in it; where the next one begins */
	struct d9__perf_event events[THREADS_MAX];
	char why[D9__PERF_REASON_LEN];
} self;

static int open_thread(uint32_t tid)
{
	const struct d9__perf_want want = {
		.tid = (int)tid, .cpu = -1, .stack = STACK_BYTES, .ring = self.n < FEW ? RING : RING_OF_MANY
	};
	int err = d9__perf_open(&self.events[self.n], &want);

	if (!err)
		self.n++;
	else if (err != -ESRCH && !self.n)
		d9__perf_explain(self.why, &want, err);
	return err == -ESRCH ? 0 : err;
}

/* Threads in turn, so that all have their slice if they are many. */
static void begin(void)
{
	uint32_t high = d9__sampled_high(), i;
	int err = 0;

	for (i = 0; i < high && self.n < THREADS_MAX && !err; i++) {
		uint32_t tid = d9__sampled_tid((self.next + i) % high);

		err = tid ? open_thread(tid) : 0;
	}
	self.next = high ? (self.next + i) % high : 0;
	self.refused = err && !self.n;
	if (!self.n)
		return;
	self.in_slice = true;
	/* A busy machine may have taken the processor from this thread since its tick began: the slice is whole all the same. */
	self.begun_ns = d9__clock_mono_ns();
	d9__metadata_set("sched.switch_duty", DUTY);
}

/* A slice that ends late, as on a busy machine, has no more switches than one that ends in time: readers scale by DUTY. */
static void write_all(struct d9__slot *own, uint64_t now_ns)
{
	struct d9__perf_source source = {
		.own = own,
		.source = D9__SAMPLE_OFF_CPU,
		.from_ns = self.begun_ns,
		.until_ns = self.begun_ns + SLICE_NS,
	};

	for (uint32_t i = 0; i < self.n; i++)
		d9__perf_write_all(&source, &self.events[i], now_ns);
}

void d9__switch_slices_end(struct d9__slot *own, uint64_t now_ns)
{
	for (uint32_t i = 0; i < self.n; i++)
		d9__perf_stop(&self.events[i]);
	if (own)
		write_all(own, now_ns);
	for (uint32_t i = 0; i < self.n; i++)
		d9__perf_close(&self.events[i]);
	self.n = 0;
	self.in_slice = false;
}

uint64_t d9__switch_slices_tick(struct d9__slot *own, uint64_t now_ns, char *state)
{
	if (self.in_slice && now_ns < self.begun_ns + SLICE_NS)
		write_all(own, now_ns);
	else if (self.in_slice)
		d9__switch_slices_end(own, now_ns);
	else if (!self.refused && (!self.begun_ns || now_ns - self.begun_ns >= EVERY_NS))
		begin();
	if (self.refused)
		snprintf(state, D9__PERF_REASON_LEN, "off: %.240s", self.why);
	else
		snprintf(state, D9__PERF_REASON_LEN, "%s", self.begun_ns ? "on: 100 ms in 10 s" : "");
	if (self.in_slice)
		return now_ns + LOOK_NS;
	return self.begun_ns ? self.begun_ns + EVERY_NS : UINT64_MAX;
}

void d9__switch_slices_forget(void)
{
	memset(&self, 0, sizeof(self));
}
