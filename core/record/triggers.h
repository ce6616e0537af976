/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Triggers: what makes a recorder keep the seconds around a moment.
 *
 * A thread of the program or the flush thread finds that a condition holds and notes it; the flush thread
 * makes the dump: of the ring in flight mode, else by a list of segments.  Triggers that fire within `every` of the one
 * that began a dump join it.
 */

#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/time.h"
#include "drain/dump.h"
#include "record/open_calls.h"

/*
 * The least of what any trigger wants to know of a poll's length; UINT64_MAX: none does.  Armed or not, the end of a poll
 * compares its length with d9__long_poll_ns alone, which is the least of this and of what else there is to know of long ones.
 * Hidden: that is one instruction.
 */
extern _Atomic(uint64_t) d9__triggers_poll_ns __attribute__((visibility("hidden")));
extern _Atomic(uint64_t) d9__long_poll_ns __attribute__((visibility("hidden")));

/*
 * The least lateness of a timer that any trigger asks for; D9__NEVER_LATE: none does.  A timer that comes too
 * early has more than that, because its lateness wraps around.
 */
#define D9__NEVER_LATE ((uint64_t)INT64_MAX)
extern _Atomic(uint64_t) d9__triggers_late_ns __attribute__((visibility("hidden")));

/* Polls as long as this are looked at more closely. */
#define D9__LONG_POLL_NS D9__MS_NS

/* Where it happened. */
struct d9__trigger_place {
	uint64_t task; /* 0: none */
	uint32_t loc;  /* name handle of the callback; D9__NAME_EMPTY: none */
	uint32_t worker;
	uint32_t tid; /* 0: the calling thread */
};

/* A poll that ended at |ns| took |took_ns|, which is over d9__triggers_poll_ns.  The thread that ran it.  Keeps errno. */
void d9__triggers_poll(uint64_t ns, uint64_t took_ns, const struct d9__trigger_place *place);

/* A timer was due |late_ns| before |ns|, which is over d9__triggers_late_ns.  The thread that runs it.  Keeps errno. */
void d9__triggers_late(uint64_t ns, uint64_t late_ns, const struct d9__trigger_place *place);

/*
 * The name of a worker's loop, "" if it has none; the address of the callback that has the name handle |loc|, 0 if it is not
 * known.  Said once, before loops run.
 */
void d9__triggers_provide(void (*loop_name)(uint32_t worker, char *out, size_t size), uint64_t (*callback)(uint32_t loc));

/* ---- flush thread, unless a function says otherwise ---- */

/*
 * Arm what |texts| say (NULL: nothing), and the files that they name; mistakes are in the recorder's log.  Before the
 * recorder's threads start.
 */
void d9__triggers_arm(const char *texts);

/* The recorder that they were armed for could not be started. */
void d9__triggers_disarm(void);

/*
 * Do what `dial9 trigger` asks for, |what| of enum d9__trigger_request.  |*number|: of the trigger
 * to show or of the first behind it, then its own, and |*fired| how often it has.  0 or -errno:
 * -ENOENT there is none, -EINVAL |answer| tells why, -ENOSPC there are too many, -ENOTSUP
 * |what| is unknown, -ESHUTDOWN nothing is recorded.
 */
int d9__triggers_request(uint32_t what, const char *text, uint32_t *number, uint64_t *fired,
			 char *answer, size_t size);

/* Look at the conditions that hold for a while, make the dumps that are due.  Every tick, in the recorder's |now_ns|. */
void d9__triggers_look(const struct d9__open_calls *open, const struct d9__dump_maker *maker, uint64_t now_ns);

/*
 * How long the flush thread may wait until its next look, while a dump grows, or a callback may
 * come to block for too long: one of the |open| ones, or while the process is |active|, one that
 * has not begun.  UINT64_MAX: as long as it likes.
 */
uint64_t d9__triggers_period_ns(const struct d9__open_calls *open, bool active);

/* The recorder is about to end: what has fired is in the trace, which is not sealed yet. */
void d9__triggers_settle(const struct d9__dump_maker *maker);

/* The recorder ends: the dump that is being made ends here. */
void d9__triggers_end(const struct d9__dump_maker *maker, uint64_t now_ns);

/* In a forked child: what is being dumped is the parent's. */
void d9__triggers_fork_child(void);
