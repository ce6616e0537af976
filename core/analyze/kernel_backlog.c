/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "analyze/kernel_backlog.h"
#include "base/time.h"

/* To find hundreds of descriptors ready takes the kernel some time, too: from here on it was sleep. */
#define SLEPT_NS D9__MS_NS

void d9__kernel_backlog_round(struct d9__kernel_backlog *natural, uint64_t park_ns, uint64_t ns, uint64_t wait_ns)
{
	if (ns - park_ns >= SLEPT_NS + wait_ns)
		natural->excuse_ns = wait_ns;
	else
		natural->excuse_ns += natural->taken_ns + wait_ns;
	natural->taken_ns = 0;
}

uint64_t d9__kernel_backlog_call(struct d9__kernel_backlog *natural, uint64_t ns)
{
	uint64_t excused_ns = ns < natural->excuse_ns ? ns : natural->excuse_ns;

	natural->excuse_ns -= excused_ns;
	return excused_ns;
}

uint64_t d9__kernel_backlog_taken(struct d9__kernel_backlog *natural, uint64_t ns, uint64_t excused_ns,
			   uint64_t taken_ns)
{
	natural->excuse_ns += excused_ns;
	natural->taken_ns += taken_ns;
	return d9__kernel_backlog_call(natural, ns - taken_ns);
}
