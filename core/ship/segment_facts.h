/* SPDX-License-Identifier: Apache-2.0 */
/* Segment facts: what of a segment stands in its key and beside it in the store, from one pass over its events. */

#ifndef D9_SHIP_SEGMENT_FACTS_H
#define D9_SHIP_SEGMENT_FACTS_H

#include <stdbool.h>
#include <stdint.h>

#include "read/container.h"

#define D9__FACT_TEXT	 256
#define D9__FACT_EVICTED 768 /* of the 16 ranges that a recorder tells at most */

struct d9__segment_facts {
	enum d9__container_kind kind;
	bool damaged;	       /* the pass ended early: figures are of what came before */
	uint64_t start_ns;     /* since 1970: its first clock anchor, else 0 */
	uint64_t first_ns, last_ns; /* since 1970, of its events; 0 and 0: there is none, or no anchor */
	uint64_t events;       /* the recorder's own about itself left out */
	uint64_t lost;
	uint64_t worst_ns;     /* the longest callback */
	char service[D9__FACT_TEXT], host[D9__FACT_TEXT], boot_id[D9__FACT_TEXT];
	char evicted[D9__FACT_EVICTED]; /* by the recorder, before it: "41-57,60" */
};

/* Read the segment |fd|, which stays the caller's.  0; -EBADMSG: it is no trace; -ENODATA: it is empty; or an error of reading. */
int d9__segment_facts_read(struct d9__segment_facts *facts, int fd);

#endif /* D9_SHIP_SEGMENT_FACTS_H */
