/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owners: to whom the time of a loop belongs, the one with most first.  Shares are of the time that
 * the machine, stops of the process and gaps in the recording left to the loop; what they
 * took is in no owner's time.
 */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyze/sums.h"

enum d9__owner_kind {
	D9__OWNER_CALLBACK,
	D9__OWNER_PREPARE, /* of a GLib source */
	D9__OWNER_CHECK,
	D9__OWNER_LIBRARY, /* the loop library's bookkeeping */
	D9__OWNER_WAIT,	   /* CPU time inside of its waits */
	D9__OWNER_BETWEEN, /* from leaving the loop to entering it again */
};

struct d9__owner {
	enum d9__owner_kind kind;
	const struct d9__callback *callback; /* NULL where none has it */
	uint64_t ns, blocked_ns;	     /* own time, and of that asleep */
	uint64_t calls;
	struct d9__told_time told; /* where it slept */
	struct d9__io io; /* what came of its reads and writes; all zero: nothing, or it is not
			     recorded */
};

#define D9__OWNERS_MAX 8

struct d9__owners {
	uint64_t left_ns;  /* that all shares are of */
	uint64_t awake_ns; /* of all owners */
	uint64_t asleep_ns;
	uint64_t taken_ns; /* by the machine: ready without a CPU */
	uint64_t cpu_ns;   /* of its thread; 0: not recorded, too */
	uint64_t library_ns; /* of that, inside its library without a callback; 0: it was no matter
			      */
	struct d9__owner items[D9__OWNERS_MAX];
	size_t n;
	uint64_t others_ns; /* of awake_ns, all owners that have no item */
	struct d9__io io;   /* of all callbacks */

	uint64_t sleeps; /* how often threads of the process went to sleep; 0: not known, or not
			    how long this one was ready without a CPU */
	/* While they are made. */
	double machine_part, asleep_part; /* the machine's, of unexplained time and of waits */
	uint64_t round_ns, round_taken_ns, calls_unknown_ns;
};

/*
 * The owners of each loop, by number of the worker, in new memory (free() it): of all that was
 * analysed, or of the time that |sums| are of; NULL: out of memory.
 */
struct d9__owners *d9__owners_make(const struct d9__sums *sums);

/* Whether the loop had enough time to tell by shares what it does with it. */
bool d9__owners_tell(const struct d9__owners *owners);

/*
 * Whether the loop of |worker| is at its limit: it was busy for 3 s without a break, or for a fifth
 * of the trace, or never slept for a tenth of what the machine left it.
 */
bool d9__owners_saturated(const struct d9__worker *worker, const struct d9__owners *owners);

/* Whether it is, or the machine left it so little that some of its sleep may be want of a CPU. */
bool d9__owners_may_be_saturated(const struct d9__worker *worker, const struct d9__owners *owners);

/*
 * "80 % in find_session (svc.c:6)", in new memory: where the largest owner of a loop that is at its
 * limit was found on the CPU.  NULL: no callback has most of it, or that sleeps, or samples are too
 * few.
 */
char *d9__owners_place(const struct d9__worker *worker, const struct d9__owners *owners);

/* Whether half of the time in callbacks is of those that read, write or accept, and not asleep. */
bool d9__owners_move_data(const struct d9__owners *owners);

/*
 * Whether the loops of |a| had so much room, and the callbacks waited so little, that nothing can
 * be wrong with their time, whatever no check looks for.
 */
bool d9__owners_have_room(const struct d9__analysis *a, const struct d9__owners *owners);

/*
 * How long the calls |on| a loop slept: as they tell, and in those that are too short to tell it,
 * what was neither on the CPU nor ready.
 */
uint64_t d9__owners_slept_ns(const struct d9__owners *owners, const struct d9__callback_on *on);

/* The owner of |kind|, which no callback is; NULL: it has no time. */
const struct d9__owner *d9__owners_find(const struct d9__owners *owners, enum d9__owner_kind kind);

/* |ns| as a share of what was left to the loop, 0 to 1. */
double d9__owners_share(const struct d9__owners *owners, uint64_t ns);

/*
 * The share of |callback| on the loop of which it has most, and of which enough time is left to
 * judge one; 0: on none.
 */
double d9__owners_share_of(const struct d9__analysis *a, const struct d9__owners *owners,
			   const struct d9__callback *callback);

/* Of all the time of the loops that called |callback|, how much it was open with loops inside. */
double d9__owners_open_share(const struct d9__analysis *a, const struct d9__owners *owners,
			     const struct d9__callback *callback);

/* Into |buf| the owner's name: a function's, "library", "between rounds"; returns |buf|. */
const char *d9__owner_name(const struct d9__owner *owner, char *buf, size_t size);

/* "inside libevent" into |buf|: where a loop of |a| burns CPU time that no callback of it has. */
void d9__owners_inside(const struct d9__analysis *a, char *buf, size_t size);

/*
 * "authorise_request 78 % (76 % asleep in read(3)), library 2 %" into |buf|: owners of a hundredth
 * and more, at most |max|; "" if there is none.
 */
void d9__owners_text(const struct d9__analysis *a, const struct d9__owners *owners, size_t max,
		     char *buf, size_t size);
