/* SPDX-License-Identifier: Apache-2.0 */
/* Stack samples: on the CPU, or at the moment the kernel took the thread off it. */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "analyze/texts.h"
#include "analyze/timeline.h"
#include "base/table.h"
#include "base/time.h"

#define D9__STACK_FRAMES 64 /* kept of each group, innermost first */

/* Of switches the recorder tells those of slices so long: `sched.switch_duty` in FORMAT.md. */
#define D9__SLICE_NS (100 * D9__MS_NS)

/* The name of a frame.  Borrowed from the samples' texts. */
struct d9__frame_name {
	const char *function;	   /* never NULL: else where the address lies */
	const char *file, *module; /* NULL: unknown */
	unsigned line;
	bool known; /* the function is one */
	const char *outermost; /* that it was inlined into, as its callers know it; NULL: none */
};

/* Whether the frame lies in what records, which is no part of the program. */
static inline bool d9__frame_is_ours(const struct d9__frame_name *frame)
{
	return frame->module && !strncmp(frame->module, "libdial9", 8);
}

/*
 * Whether the frame lies in the program's own file, or in a plugin of its own: libraries and what
 * the kernel maps have other names, "libz.so.1" and "[vdso]"; and so have an interpreter's modules.
 */
static inline bool d9__frame_is_program(const struct d9__frame_name *frame)
{
	const char *module = frame->module, *end = module ? strstr(module, ".so") : NULL;

	if (!module || module[0] == '[')
		return false;
	return !end || (!end[strlen(".so")] && strncmp(module, "lib", 3) &&
			strncmp(module, "ld-", 3) && !strstr(module, "cpython"));
}

/* Whether |module| ("libevent-2.1.so.7+0x1234") names a loop library. */
static inline bool d9__module_is_loop(const char *module, size_t len)
{
	static const char *const prefixes[] = { "libevent", "libev.so", "libev-", "libglib-",
						"libgio-" };

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(*prefixes); i++)
		if (len >= strlen(prefixes[i]) && !memcmp(module, prefixes[i], strlen(prefixes[i])))
			/* A library, not a program that is called after it. */
			return memmem(module, len, ".so", strlen(".so"));
	return false;
}

/*
 * Whether |function| is the C++ library's, whose templates are compiled into whatever program uses them: no module tells
 * them from the program's own.
 */
static inline bool d9__function_is_cxx(const char *function)
{
	return !strncmp(function, "std::", strlen("std::")) || !strncmp(function, "__gnu_cxx::", strlen("__gnu_cxx::"));
}

/* Samples with one call chain, by the names of its frames where they are known. */
struct d9__stack {
	uint64_t on, off, off_in_polls;
	size_t number;    /* in the order of their first samples */
	const char *leaf; /* name of the innermost frame, or NULL */
	uint64_t ns;	  /* of the first sample */
	struct d9__frame_name *names; /* of the frames; owned; NULL: they have no names yet */
	size_t n;
	uint64_t addresses[];
};

/* The state of a sample's thread. */
struct d9__sampled {
	uint32_t tid;
	const char *name; /* not terminated; |name_len| 0: not told */
	size_t name_len;
	struct d9__worker *worker; /* NULL: it runs no loop */
	bool off_cpu;
	bool is_whole; /* its stack is known to come to the start of the thread, however short it is
			*/
	bool in_slice; /* a switch, of which only those of slices of the time are recorded: it stands for others, too */
};

/* A sample outside of callbacks: whether its loop had been left then is told when it is entered
 * again. */
#define D9__BESIDE_SAMPLES 1024
struct d9__beside_sample {
	struct d9__worker *worker;
	const struct d9__stack *stack;
	uint64_t ns;
	uint32_t tid;
};

struct d9__samples {
	uint64_t on, off, on_in_polls, off_in_polls, off_worker;
	uint64_t off_told; /* of |off_in_polls|, in calls that are told with their length */
	struct d9__off_time off_time; /* of |off| */
	uint64_t switches, slices; /* of |off|, that slices of the time tell of; how many slices have one at least */
	uint64_t slice_ns; /* the first switch of the newest slice */
	uint64_t period_ns; /* of CPU time, for which one on-CPU sample stands; 0: not told */
	uint64_t stacks_on; /* on-CPU samples that have a stack */
	uint64_t frames_on; /* of these, for the mean depth */
	uint64_t whole_on;  /* on-CPU samples whose stacks are whole */
	uint64_t polls;     /* with at least one sample */
	uint64_t symbols;   /* rows in the trace */
	struct d9__table stacks; /* struct d9__stack by hash */
	struct d9__stack *others; /* stands for all beyond the budget; NULL: there are none */
	struct d9__table names;  /* char * by address */
	struct d9__texts texts;
	struct d9__table workers_by_tid;
	struct d9__table threads; /* struct d9__hot_thread by tid */
	struct d9__beside_sample
		*beside; /* the newest, D9__BESIDE_SAMPLES at most; owned; NULL: none */
	size_t n_beside; /* ever added */
};

void d9__samples_release(struct d9__samples *samples);

/* A row of the trace's symbol table.  0 or -ENOMEM. */
int d9__samples_symbol(struct d9__samples *samples, uint64_t address, const char *name, size_t len);

/* |worker| runs on thread |tid|, as its park or unpark says.  0 or -ENOMEM. */
int d9__samples_thread(struct d9__samples *samples, struct d9__worker *worker, uint32_t tid);

/* The worker of a sample of |tid|, or NULL. */
struct d9__worker *d9__samples_worker(const struct d9__samples *samples, uint32_t tid);

/*
 * The callback that |worker| runs at |ns|, the time of the newest event: the program's, where the loop library's has
 * called it; NULL: none.
 */
struct d9__callback *d9__samples_callback(struct d9__worker *worker, uint64_t ns);

/*
 * The stratum of an on-CPU sample of |worker| at |ns|, the time of the newest event: its
 * callback's, or its loop's.  NULL: it has not begun its loop.
 */
struct d9__weight *d9__samples_weight(struct d9__worker *worker, uint64_t ns);

/* |worker| had left its loop from |from_ns| to |to_ns|: its samples of that time belong there. */
void d9__samples_between(struct d9__samples *samples, struct d9__worker *worker, uint64_t from_ns,
			 uint64_t to_ns);

/* Whether |worker| sleeps at |ns| in a call that blocks, whose stack and length are told. */
bool d9__samples_is_told(const struct d9__worker *worker, uint64_t ns);

/* One sample, which counts in |samples->threads|, too.  0 or -ENOMEM. */
int d9__samples_add(struct d9__samples *samples, const struct d9__sampled *sampled, uint64_t ns,
		    const uint64_t *addresses, size_t n);

/*
 * How often a thread left the CPU, of which |off| samples tell: |switches| of them are of |share| of the time and
 * stand for the rest of it.
 */
static inline uint64_t d9__samples_estimate(uint64_t off, uint64_t switches, double share)
{
	return off - switches + (uint64_t)((double)switches / share + 0.5);
}

/* The thread of |worker| gave a sign at |ns|. */
static inline void d9__samples_sign(struct d9__worker *worker, uint64_t ns)
{
	if (worker->off.absence)
		d9__absence_end(worker->off.absence, ns);
}

/* The absence of thread |tid|; NULL: none was ever told. */
struct d9__absence *d9__samples_absence(const struct d9__samples *samples, uint32_t tid);

/*
 * The latest off-CPU sample of |worker|, in a call of |callback|'s task, has the stack of a call that blocked until
 * |until_ns|: those that follow up to then are of the same sleep.
 */
void d9__samples_blocked(struct d9__samples *samples, struct d9__worker *worker, struct d9__callback *callback,
			 uint64_t until_ns);

/* The stack of |n| addresses, met at |ns|, for who counts other things than samples; NULL: out of memory. */
struct d9__stack *d9__samples_stack(struct d9__samples *samples, uint64_t ns, const uint64_t *addresses, size_t n);

/* The stack with the most off-CPU samples, or NULL. */
const struct d9__stack *d9__samples_top_off(const struct d9__samples *samples);
