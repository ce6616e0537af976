/* SPDX-License-Identifier: Apache-2.0 */
/* Accept queues: how many connections waited at listening sockets, and who held the loop meanwhile. */

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/table.h"

struct d9__callback;
struct d9__worker;

/* One TcpAcceptQueueEvent. */
struct d9__accept_sample {
	uint64_t cookie, ns;
	uint64_t pending, limit;
	unsigned port;
	const char *address; /* not terminated */
	size_t address_len;
};

/* A listening socket. */
struct d9__accept_queue {
	uint64_t cookie, number; /* |number|: in the order of their first samples */
	char name[80];	 /* "127.0.0.1:8080" */
	uint64_t samples, waiting, full; /* samples; with connections that waited; of a full queue */
	/* The longest queue, and of those of that length the one for which a callback held the loop longest. */
	struct {
		uint64_t ns, pending, limit, worker;
		bool has_worker;
		uint64_t held_ns; /* 0: no callback held the loop */
		const struct d9__callback *callback;
	} worst;
};

/* All zero at first. */
struct d9__accepts {
	struct d9__table queues; /* struct d9__accept_queue by cookie; owned */
};

void d9__accepts_release(struct d9__accepts *accepts);

/* |worker| runs the loop that watches the socket; NULL: not known.  0 or -ENOMEM. */
int d9__accepts_add(struct d9__accepts *accepts, struct d9__worker *worker, const struct d9__accept_sample *sample);
