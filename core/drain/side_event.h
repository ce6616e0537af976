/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Side events: how records of side rings become events.
 *
 * Most hold the fields of one event in wire form.  A sample of a stack does not: the handler that takes it cannot
 * intern stacks or names, so it leaves it raw, as
 * does who must not wait.  There it is in the ring file at once, and survives the process; the
 * flush thread, or recovery, makes CpuSampleEvents of it.
 */

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "ring/side_ring.h"
#include "ring/slot.h"
#include "segment/builder.h"

#define D9__SAMPLE_FRAMES_MAX 128u
#define D9__SAMPLE_NO_WORKER  255u /* of a thread that runs no loop */
#define D9__SAMPLE_COPIES_MAX 10000u /* of one event: a thread that blocked the signal for long */

enum d9__sample_source {
	D9__SAMPLE_ON_CPU,  /* periodic */
	D9__SAMPLE_OFF_CPU, /* the thread was off the CPU */
};

/* The payload of a side record of type D9__EVENT_CPU_SAMPLE: |n| addresses follow, the innermost first. */
struct d9__sample_raw {
	uint32_t worker, tid;
	uint32_t copies;  /* events to write with the stack: periods of CPU time that it stands for */
	uint32_t nowhere; /* and without one: periods that passed before the signal could come */
	uint8_t source;	  /* enum d9__sample_source */
	uint8_t truncated;
	uint16_t n;
	char thread_name[16]; /* ends; "": not known */
	uint32_t cpu_plus_1; /* on which it was; 0: not told */
	uint64_t pcs[];
};

/* The payload of a side record of type D9__EVENT_TASK_DUMP: |n| addresses follow, the innermost first. */
struct d9__dump_raw {
	uint64_t task;
	uint16_t n;
	uint8_t truncated;
	uint8_t kept; /* the stack armed an earlier wait of the task, which has stayed armed since */
	uint8_t reserved[4];
};

/* Leave |raw|, whose |n| addresses are |pcs|, in the side ring of |slot|.  As d9__side_put(). */
bool d9__dump_leave(struct d9__slot *slot, const struct d9__dump_raw *raw, const uint64_t *pcs, uint64_t ns);

/* Write it at once, on the flush thread, whose slot is |own|. */
void d9__dump_write(struct d9__slot *own, const struct d9__dump_raw *raw, const uint64_t *pcs, uint64_t ns);

/* Leave |raw|, whose |n| addresses are |pcs|, in the side ring of |slot|.  As d9__side_put(). */
bool d9__sample_leave(struct d9__slot *slot, const struct d9__sample_raw *raw, const uint64_t *pcs, uint64_t ns);

/* Whether |record| is raw: not the fields of one event, but a stack with what it is of. */
bool d9__side_is_raw(const struct d9__side_record *record);

/* Whether raw |record| is whole and within its limits. */
bool d9__side_is_sound(const struct d9__side_record *record);

/* Add the events of |record| to |b|; of a raw one only if it is sound. */
void d9__side_build(struct d9__builder *b, const struct d9__side_record *record);

/* Whether some slot has a side ring. */
bool d9__side_exists(void);

/* Move the records of all side rings into |own|, the flush thread's slot.  NULL: it could get none; they are lost. */
void d9__side_take_all(struct d9__slot *own);

/* Write a record that the flush thread itself made, which is sound. */
void d9__side_emit(struct d9__slot *own, const struct d9__side_record *record);

/* How many records there were of both since the last call: they are what a thread without other events is known by. */
uint64_t d9__side_activity(void);
