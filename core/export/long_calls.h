/* SPDX-License-Identifier: Apache-2.0 */
/* Long calls: the times of a trace's callbacks that took at least as long as was asked for. */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct d9__processes;

struct d9__long_call {
	uint64_t worker, start_ns, end_ns;
};

/* All zero has no calls. */
struct d9__long_calls {
	struct d9__long_call *items; /* by worker, then by start */
	size_t n;
	int err; /* -ENOMEM */
};

/*
 * Find the calls of at least |min_ns| in the traces |paths|, of one process among |processes|: that a call was long is known
 * when it ends, so this reads them for itself.  0, or an exit status after one line on stderr.
 */
int d9__long_calls_find(struct d9__long_calls *calls, uint64_t min_ns, const char *command, char **paths,
			const struct d9__processes *processes);

/* True if |worker| was in one of them at |ns|. */
bool d9__long_calls_have(const struct d9__long_calls *calls, uint64_t worker, uint64_t ns);

void d9__long_calls_release(struct d9__long_calls *calls);
