/* SPDX-License-Identifier: Apache-2.0 */
/* A command that the command line named, run beside the traced program: nothing of it concerns that program. */

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
 * Start |argv|, which has until |limit_ns| from now, in a process group of its own, with every signal as a program finds
 * it, standard input empty, standard output as standard error, no other descriptor, and of the environment what is not
 * a secret: see the list.  0 or -errno.
 */
int d9__hook_start(struct d9__hook *hook, char **argv, uint64_t limit_ns);

/* How it is with one that runs.  Once it has ended, its status is in |*wait_status|; then its group is gone, if it took too long. */
enum d9__hook_state d9__hook_look(struct d9__hook *hook, int *wait_status);

/* Kill it with all of its group.  d9__hook_look() tells when it has ended. */
void d9__hook_kill(struct d9__hook *hook);
