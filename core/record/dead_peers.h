/* SPDX-License-Identifier: Apache-2.0 */
/* Dead peers: a recorder that starts makes segments of what killed ones left in its trace
 * directory. */

#ifndef D9_RECORD_DEAD_PEERS_H
#define D9_RECORD_DEAD_PEERS_H

#include <stdbool.h>
#include <stdint.h>

#include "record/recover.h"
#include "record/writer.h"

/* Flush thread only. */
struct d9__dead_peers {
	bool curious; /* they are to be looked at, as soon as that is due */
	bool looking; /* and have not all been */
	uint64_t asked_ns,
		looked_ns; /* when we asked last whether it is; processor time of looking */
	struct d9__recover recover;
};

void d9__dead_peers_begin(struct d9__dead_peers *peers, bool curious);

/* Look at the next one, if |writer| has the trace directory |trace_dir| by now. */
void d9__dead_peers_next(struct d9__dead_peers *peers, struct d9__writer *writer,
			 const char *trace_dir, uint64_t now_ns);

/* The recorder stops: what was not looked at waits for another. */
void d9__dead_peers_end(struct d9__dead_peers *peers, struct d9__writer *writer,
			const char *trace_dir, uint64_t now_ns);

#endif /* D9_RECORD_DEAD_PEERS_H */
