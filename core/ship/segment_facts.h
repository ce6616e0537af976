/* SPDX-License-Identifier: Apache-2.0 */
/* Segment facts: what the key of a segment is made of, from its beginning; what is known only of all its events its summary tells. */

#pragma once

#include <stdint.h>

#include "read/container.h"

#define D9__FACT_TEXT	 256
#define D9__FACT_EVICTED 768 /* of the 16 ranges that a recorder tells at most */

struct d9__segment_facts {
	enum d9__container_kind kind;
	uint64_t start_ns; /* since 1970: its first clock anchor, else 0 */
	char service[D9__FACT_TEXT], host[D9__FACT_TEXT], boot_id[D9__FACT_TEXT];
	char evicted[D9__FACT_EVICTED]; /* by the recorder, before it: "41-57,60" */
};

/*
 * Read the segment |fd|, which stays the caller's, up to its first clock anchor and what its recorder says of the process.  0;
 * -EBADMSG: it is no trace; -ENODATA: it is empty; or an error of reading.
 */
int d9__segment_facts_read(struct d9__segment_facts *facts, int fd);
