/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Segment facts: the parts of a segment's key, read from its beginning.  Facts of all its events
 * are in its summary.
 */

#pragma once

#include <stdint.h>

#include "read/container.h"

#define D9__FACT_TEXT	 256
#define D9__FACT_EVICTED 768 /* of the 16 ranges that a recorder tells at most */

struct d9__segment_facts {
	enum d9__container_kind kind;
	uint64_t start_ns; /* of its first clock anchor, since 1970; 0: it has none */
	char service[D9__FACT_TEXT], host[D9__FACT_TEXT], boot_id[D9__FACT_TEXT];
	char evicted[D9__FACT_EVICTED]; /* by the recorder, before it: "41-57,60" */
};

/*
 * Read the segment |fd|, which the caller keeps, up to its first clock anchor and the recorder's
 * facts about the process.  0; -EBADMSG: it is no trace; -ENODATA: it is empty; or an error of
 * reading.
 */
int d9__segment_facts_read(struct d9__segment_facts *facts, int fd);
