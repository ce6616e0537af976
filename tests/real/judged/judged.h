/* SPDX-License-Identifier: Apache-2.0 */
/* Judged: programs with one problem each, whose innocent twins do the same without it. */

#ifndef D9_TEST_JUDGED_H
#define D9_TEST_JUDGED_H

#include <stdbool.h>

struct judged {
	const char *name;
	void (*run)(bool innocent, double seconds);
};

/* Run the program that |argv| names: NAME SECONDS [innocent].  Returns main()'s result. */
int judged_main(int argc, char **argv, const struct judged *programs);

/* Seconds of CLOCK_MONOTONIC, and of this thread's CPU time. */
double judged_now(void);
double judged_cpu(void);

/* Compute for |ms| of CPU time, so that another program's load does not make it longer. */
void judged_compute(double ms);

void judged_sleep(double ms);

/* A descriptor, blocking, behind which a thread answers each byte after |ms|. */
int judged_sidecar(double ms);

#endif /* D9_TEST_JUDGED_H */
