/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pressure: whether the CPU time of the flush thread is taken from the program.  Where a CPU is
 * idle it hardly waits for one.  Where all are busy it waits each time that it wakes up, and so
 * does a thread of the program that it pushes aside, so compressing, which is most of its work, can
 * be done later.
 *
 * The kernel tells how long the thread ran and how long it was ready without a CPU.  Two windows of
 * a second in a row with much of that begin the pressure, and three with little end it.
 */

#pragma once

#include <stdbool.h>
#include <stdint.h>

enum d9__pressure_mode { D9__PRESSURE_AUTO, D9__PRESSURE_NO, D9__PRESSURE_YES };

struct d9__pressure {
	enum d9__pressure_mode mode;
	uint64_t at_ns, ran_ns, waited_ns; /* where the window begins; |at_ns| 0: none has begun */
	unsigned n;			   /* windows in a row that contradict |on| */
	bool on;
};

/*
 * At |now_ns| the thread had run for |ran_ns| and waited for a CPU for |waited_ns|, ever.  Whether
 * there is pressure from now on.
 */
bool d9__pressure_judge(struct d9__pressure *pressure, uint64_t now_ns, uint64_t ran_ns,
			uint64_t waited_ns);

/* The kernel does not tell. */
bool d9__pressure_unknown(struct d9__pressure *pressure);
