/* SPDX-License-Identifier: Apache-2.0 */
/* Work that loops hand to helper threads: how long it waits there, and how long it takes. */

#ifndef D9_ANALYZE_HELPERS_H
#define D9_ANALYZE_HELPERS_H

#include <stdint.h>

#include "analyze/callbacks.h"

struct d9__helper_run {
	uint64_t at_ns; /* its end */
	uint64_t task;  /* whose callback handed it over; 0: none */
	const struct d9__callback *by; /* that callback; NULL: not known */
	uint64_t wait_ns, run_ns;
};

/* All runs of one function. */
struct d9__helper {
	uint64_t runs, wait_ns, run_ns;
	struct d9__helper_run longest; /* that waited longest */
	struct d9__helper_run slowest; /* that ran longest */
};

/* |callback| ran on a helper thread.  0 or -ENOMEM. */
int d9__helper_ran(struct d9__callback *callback, const struct d9__helper_run *run);

#endif /* D9_ANALYZE_HELPERS_H */
