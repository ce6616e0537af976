/* SPDX-License-Identifier: Apache-2.0 */
/* Raw terminal: keys come one by one and without echo while a command shows a screen. */

#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * Take keys from standard input, if it is a terminal.  Signals such as SIGINT and SIGHUP end the
 * waits below from here on.  A stopped process gets its settings back when it continues.  The
 * terminal is restored by d9__raw_terminal_end(), or when the process exits.
 */
void d9__raw_terminal_begin(void);
void d9__raw_terminal_end(void);

/* Wait for |ns| or until a key comes.  True if a signal or the key 'q' ended the wait. */
bool d9__raw_terminal_quits(uint64_t ns);
