/* SPDX-License-Identifier: Apache-2.0 */
/* Retention: when to seal a segment, which to delete, which number comes next.  No side effects. */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A family is what exists of one segment under one number.  Those of dead processes come first,
 * oldest first, then our own in the order of their numbers: that is the order of deletion.
 */
struct d9__family {
	uint64_t index;
	uint64_t bytes;
	uint64_t raw;	    /* of |bytes|, those that were not compressed for want of a CPU */
	uint64_t sealed_ns; /* wall time of the seal; orders inherited families */
	uint32_t peer;      /* 0: ours; else the number of the dead process's directory */
	uint32_t dumps;     /* how many list it */
	bool dumped;        /* it is there for them alone: no part of the trace, or not any more */
};

#define D9__RETENTION_ID 28 /* a dump's, with its end */

/* A dump, and the families that it lists. */
struct d9__retained_dump {
	char id[D9__RETENTION_ID]; /* sorts by time */
	uint32_t peer;
	uint64_t *segments;
	size_t n;
};

struct d9__retention {
	struct d9__family *families; /* in the order of deletion */
	size_t n;
	uint64_t bytes;  /* sum over |families| but those that are dumped */
	uint64_t raw;	 /* sum over all families */
	uint64_t budget; /* limit of |bytes| plus the active file */
	uint64_t file_limit;
	uint64_t rotation_ns;
	uint64_t next_index; /* above every number seen */
	uint64_t evicted, evicted_bytes;
	bool spares_peers; /* segments of dead processes are the shipper's: neither counted nor a victim */
	struct d9__retained_dump *dumps; /* oldest first */
	size_t n_dumps;
	uint64_t dump_bytes;  /* sum over families that are dumped */
	uint64_t dump_budget; /* limit of it */
};

void d9__retention_init(struct d9__retention *ret, uint64_t budget, uint64_t file_limit,
			uint64_t rotation_ns);
void d9__retention_release(struct d9__retention *ret);

/*
 * Account |bytes| to the family (peer, index), which is made if it is new.  0 or -ENOMEM; then
 * nothing changed but |next_index|.
 */
int d9__retention_add(struct d9__retention *ret, uint32_t peer, uint64_t index, uint64_t bytes,
		      uint64_t sealed_ns);

/*
 * The family that has to go so that the rest and a full active file fit the budget.  False if all
 * fits.  The active file itself is never a victim: it is no family yet.
 */
bool d9__retention_victim(const struct d9__retention *ret, struct d9__family *victim);

/* The family (peer, index) is there for dumps alone from now on. */
void d9__retention_leave(struct d9__retention *ret, uint32_t peer, uint64_t index);

/* Of |n| segments of |peer|, a dump |id| is made.  0 or -ENOMEM. */
int d9__retention_add_dump(struct d9__retention *ret, uint32_t peer, const char *id, const uint64_t *segments, size_t n);

/*
 * Take the oldest dump away if dumps are over their budget and there is a younger one.  True: what is left without one,
 * d9__retention_is_left() tells of each of its segments, which the caller frees.
 */
bool d9__retention_take_dump(struct d9__retention *ret, struct d9__retained_dump *out);
bool d9__retention_is_left(const struct d9__retention *ret, uint32_t peer, uint64_t index, struct d9__family *family);

/* Of our own family |index|, |raw| bytes are raw. */
void d9__retention_set_raw(struct d9__retention *ret, uint64_t index, uint64_t raw);

/* It was compressed meanwhile, to |bytes|. */
void d9__retention_repacked(struct d9__retention *ret, uint64_t index, uint64_t bytes);

/* |victim| is gone; |evicted| says whether by our hand. */
void d9__retention_remove(struct d9__retention *ret, const struct d9__family *victim,
			  bool evicted);

/* Whether a segment of |bytes| is to be sealed for its size. */
bool d9__retention_full(const struct d9__retention *ret, uint64_t bytes);

/* Whether a segment opened at |opened_ns| is to be sealed for its age; never without real events. */
bool d9__retention_aged(const struct d9__retention *ret, uint64_t opened_ns, uint64_t now_ns,
			bool has_events);
