/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dead peers: a recorder that starts makes segments of what killed ones left in its trace directory.
 *
 * A recorder that runs as root leaves them: a process that has given up root's rights still writes
 * the ring that it began as root, and an error in reading it would be exploited with root's rights.
 * Such rings stay, up to 64 MiB of each service, for the program dial9, which reads them in a child
 * without rights; the log says so.  (The recorder cannot start that program: Linux makes the exit
 * signal of every process that calls execve(2) SIGCHLD again, so the traced program would see it.)
 */

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "drain/recover.h"
#include "segment/writer.h"

/* Flush thread only. */
struct d9__dead_peers {
	bool curious; /* they are to be looked at, as soon as that is due */
	bool looking; /* and have not all been */
	unsigned left; /* processes whose events we left where they are */
	uint64_t asked_ns,
		looked_ns; /* when we asked last whether it is; processor time of looking */
	struct d9__recover recover;
	struct d9__recover_hands none; /* what a recorder that runs as root does with rings: nothing */
};

void d9__dead_peers_begin(struct d9__dead_peers *peers, bool curious);

/* Look at the next one, if |writer| has the trace directory |trace_dir| by now. */
void d9__dead_peers_next(struct d9__dead_peers *peers, struct d9__writer *writer,
			 const char *trace_dir, uint64_t now_ns);

/* Remove all rings but a few, as d9__recover_prune() does, when the recorder could write its own to none of its places. */
void d9__dead_peers_prune(void);

/* The recorder stops: what was not looked at waits for another. */
void d9__dead_peers_end(struct d9__dead_peers *peers, struct d9__writer *writer,
			const char *trace_dir, uint64_t now_ns);
