/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Peers: when to look at what other processes left in the trace directory.  Where thousands of short
 * processes record into one, each would look at all before it; together they spend a hundredth of the
 * time on it instead.
 */

#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Whether the time of the next look in the trace directory |dir_fd| has come. */
bool d9__peers_due(int dir_fd, uint64_t real_ns);

/* A look took |took_ns| of a processor. */
void d9__peers_looked(int dir_fd, uint64_t took_ns, uint64_t real_ns);
