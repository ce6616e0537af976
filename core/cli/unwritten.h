/* SPDX-License-Identifier: Apache-2.0 */
/* Unwritten: processes that belong to a trace, and that its files know nothing of. */

#ifndef D9_CLI_UNWRITTEN_H
#define D9_CLI_UNWRITTEN_H

#include <stddef.h>

/*
 * How many of those that were killed, or cannot write, have events in their ring and no segment in the
 * directories among |paths|, to which they belong.  Elsewhere than on their machine there are no rings.
 */
size_t d9__unwritten(char *const *paths);

#endif /* D9_CLI_UNWRITTEN_H */
