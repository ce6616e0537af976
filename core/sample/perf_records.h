/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Perf records: what the kernel writes into the ring of a perf event, as samples.
 *
 * Bytes in, samples out: nothing here knows a descriptor or a mapping.  Events must have been opened for
 * D9__PERF_SAMPLE_TYPE and D9__PERF_REGISTERS, with user frames left out of the call chain.
 *
 *	struct d9__perf_ring ring = { data, size, tail, head };
 *	struct d9__perf_record record;
 *
 *	while (d9__perf_next(&ring, scratch, &record))
 *		... record ...
 *	... tell the kernel ring.tail ...
 */

#pragma once

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sample/unwind.h"

#define D9__PERF_SAMPLE_TYPE                                                                                           \
	((uint64_t)PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_CALLCHAIN |     \
	 PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER)

/* The registers that a walk needs, as the kernel numbers them; 0: no walk is known for this machine. */
#if defined(__x86_64__)
#define D9__PERF_REGISTERS UINT64_C(0xff01ff) /* ax bx cx dx si di bp sp ip, r8 to r15 */
#elif defined(__aarch64__)
#define D9__PERF_REGISTERS UINT64_C(0x1a0000000) /* x29 sp pc */
#else
#define D9__PERF_REGISTERS UINT64_C(0)
#endif

#define D9__PERF_KERNEL_MAX 127u   /* frames of the kernel */
#define D9__PERF_RECORD_MAX 65536u /* bytes of a record, at most: its size has 16 bits */

enum d9__perf_kind {
	D9__PERF_OTHER, /* not asked for, or without sense */
	D9__PERF_SAMPLE,
	D9__PERF_LOST,
};

struct d9__perf_record {
	enum d9__perf_kind kind;
	uint64_t lost; /* D9__PERF_LOST: records that had no room */

	/* D9__PERF_SAMPLE. */
	uint32_t pid, tid, cpu;
	uint64_t ns; /* by the clock of the event */
	uint32_t n_kernel;
	uint64_t kernel[D9__PERF_KERNEL_MAX]; /* the innermost first */
	bool has_registers;
	struct d9__registers registers; /* of the program */
	const uint8_t *stack;		/* from registers.sp on; borrowed; |stack_len| may be 0 */
	size_t stack_len;
};

/* The part of a ring that was written and not read: |tail| and |head| count bytes since its beginning. */
struct d9__perf_ring {
	const uint8_t *data;
	size_t size; /* a power of 2 */
	uint64_t tail, head;
};

/*
 * The next record, in |out|; false if there is none.  |scratch| has D9__PERF_RECORD_MAX bytes, for a record that
 * crosses the ring's end.  A record without sense empties the ring, because the begin of the next one is not known then.
 */
bool d9__perf_next(struct d9__perf_ring *ring, uint8_t *scratch, struct d9__perf_record *out);
