/* SPDX-License-Identifier: Apache-2.0 */
/* `dial9 record`: once CMD has ended, compress what its recorders wrote raw because it wanted the
 * CPUs. */

#pragma once

#include "cli/run/record_result.h"

/*
 * Do so in the segments of all processes in |dir| that are not in |before|.  One that is in use, or
 * cannot be written anew, stays as it is, and so do the rest after a signal that asks this process
 * to end.
 */
void d9__record_repack(const char *dir, const struct d9__namespaces *before);
