/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Perf sampler: samples that the kernel takes, with the kernel's own frames; the flush thread unwinds the rest of the
 * stack from the copy that is in the sample.
 *
 * Per processor it sees all processes and drops what is of others; per thread each sleep of the thread costs about a
 * microsecond more.  Nothing runs in the threads themselves.  Flush thread only.
 */

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/time.h"
#include "drain/side_event.h"
#include "ring/slot.h"
#include "sample/perf_event.h"

#define D9__PERF_LOOK_NS (100 * D9__MS_NS) /* rings are large enough for twice as long */

struct d9__perf_source {
	struct d9__slot *own;	/* where samples go */
	uint8_t source;		/* enum d9__sample_source */
	uint64_t from_ns;	/* earlier samples are dropped */
	uint64_t until_ns;	/* so are those from here on; 0: none are */
	uint64_t seen, written; /* samples so far, of anybody and of this process */
};

/*
 * Write the samples in the ring of |event| that are of this process, and of threads that are sampled.  What the kernel
 * had no room for is counted as lost: of those of all processes the part that this one had of the others.
 */
void d9__perf_write_all(struct d9__perf_source *source, struct d9__perf_event *event, uint64_t now_ns);

/*
 * A tick with the threads of sampled_threads.h: open what is not open, and write what was sampled.  |per_thread|: not
 * per processor.  What is to be said of the source is in |state|, of D9__PERF_REASON_LEN bytes.
 */
void d9__perf_sampler_tick(struct d9__slot *own, uint32_t hz, bool per_thread, uint64_t now_ns, char *state);

/* Write what is left into |own|, which may be NULL, and close all. */
void d9__perf_sampler_end(struct d9__slot *own, uint64_t now_ns);

/* In a forked child: what is open is the parent's, and its rings are not mapped. */
void d9__perf_sampler_forget(void);
