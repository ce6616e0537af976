/* SPDX-License-Identifier: Apache-2.0 */
/* `dial9 record`: run CMD as if the shell had started it. */

#pragma once

#include <stdbool.h>

/*
 * Run |argv| with the environment |envp| in the same process group and wait for it.  Ctrl-C and
 * Ctrl-\ reach it from the terminal and are ignored here; SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2
 * are passed on.
 *
 * Returns 0 with the status of waitpid(2) in |*wait_status|, or -errno if it could not be started.
 */
int d9__record_child_run(char **argv, char **envp, int *wait_status);

/* Behind d9__record_child_run(), which took them for CMD's sake: signals reach this process as before, and end it. */
void d9__record_child_give_signals_back(void);

/*
 * True if a signal told this process to end.  Call it behind d9__record_child_run(), which leaves these
 * signals blocked.
 */
bool d9__record_child_is_to_end(void);

/*
 * End as the child did: the same exit status, or by the same signal.  |own_status| is used instead
 * of 0.  Does not return.
 */
_Noreturn void d9__record_child_exit_like(int wait_status, int own_status);
