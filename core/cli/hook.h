/* SPDX-License-Identifier: Apache-2.0 */
/* A command from the command line, run beside the traced program and without any effect on it. */

#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct d9__hook {
	pid_t pid; /* 0: none runs */
	uint64_t until_ns;
	bool killed; /* it took too long */
};

enum d9__hook_state { D9__HOOK_RUNS, D9__HOOK_ENDED, D9__HOOK_TOO_LONG };

/*
 * Start |argv| in a process group of its own, with |limit_ns| to run.  Signals have their default
 * actions, standard input is empty, standard output goes to standard error, other descriptors are
 * closed, and only variables without secrets are inherited: see the list.  0 or -errno.
 */
int d9__hook_start(struct d9__hook *hook, char **argv, uint64_t limit_ns);

/*
 * Return the state of a running hook.  Once it has ended, |*wait_status| is set; if it took too
 * long, its group was killed.
 */
enum d9__hook_state d9__hook_look(struct d9__hook *hook, int *wait_status);

/* Kill it with all of its group.  d9__hook_look() tells when it has ended. */
void d9__hook_kill(struct d9__hook *hook);
