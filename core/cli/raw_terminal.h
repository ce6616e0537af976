/* SPDX-License-Identifier: Apache-2.0 */
/* The terminal while a command shows a screen: keys come one by one and unseen, until it ends. */

#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * Take keys from standard input, if that is a terminal.  Interrupts, hangups and the like end the waits
 * below from here on; a process that is stopped and goes on finds the terminal as it was here.  What was
 * changed is put back when the process exits, in d9__raw_terminal_end() or before.
 */
void d9__raw_terminal_begin(void);
void d9__raw_terminal_end(void);

/* Whether a signal or the key 'q' ended it.  Waits for |ns| otherwise, or until another key comes. */
bool d9__raw_terminal_quits(uint64_t ns);
