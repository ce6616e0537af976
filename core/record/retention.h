/* SPDX-License-Identifier: Apache-2.0 */
/* Retention: when to seal a segment, which to delete, which number comes next.  No side effects. */

#ifndef D9_RECORD_RETENTION_H
#define D9_RECORD_RETENTION_H

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
	uint64_t sealed_ns; /* wall time of the seal; orders inherited families */
	uint32_t peer;      /* 0: ours; else the number of the dead process's directory */
};

struct d9__retention {
	struct d9__family *families; /* in the order of deletion */
	size_t n, capacity;
	uint64_t bytes;  /* sum over |families| */
	uint64_t budget; /* limit of |bytes| plus the active file */
	uint64_t file_limit;
	uint64_t rotation_ns;
	uint64_t next_index; /* above every number seen */
	uint64_t evicted, evicted_bytes;
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

/* The oldest of our own families, whatever the budget says: for a device that is full. */
bool d9__retention_oldest_own(const struct d9__retention *ret, struct d9__family *victim);

/* |victim| is gone; |evicted| says whether by our hand. */
void d9__retention_remove(struct d9__retention *ret, const struct d9__family *victim,
			  bool evicted);

/* Whether a segment of |bytes| is to be sealed for its size. */
bool d9__retention_full(const struct d9__retention *ret, uint64_t bytes);

/* Whether a segment opened at |opened_ns| is to be sealed for its age; never without real events. */
bool d9__retention_aged(const struct d9__retention *ret, uint64_t opened_ns, uint64_t now_ns,
			bool has_events);

enum d9__artefact {
	D9__ARTEFACT_UNKNOWN,
	D9__ARTEFACT_LOCK,
	D9__ARTEFACT_SEGMENT, /* sealed */
	D9__ARTEFACT_ACTIVE,
	D9__ARTEFACT_RING,
	D9__ARTEFACT_JIT_MAP, /* jit_copy.h; nothing without segments */
};

/* What a file called |name| is in a directory of segments; |index| is set for segments. */
enum d9__artefact d9__artefact_of(const char *name, uint64_t *index);

#endif /* D9_RECORD_RETENTION_H */
