/* SPDX-License-Identifier: Apache-2.0 */
/* Usage: what the process has used of processors, memory and disks, at intervals. */

#pragma once

#include <stdbool.h>
#include <stdint.h>

struct d9__slot;

/* Sample every |interval_ns|; 0: never. */
void d9__usage_set_interval(uint64_t interval_ns);

/* Whether that is wanted; and recording is on. */
bool d9__usage_is_wanted(void);
bool d9__usage_is_on(void);

/* Flush thread, into its own slot: one sample now, if any are wanted. */
void d9__usage_sample(struct d9__slot *slot, uint64_t now_ns);
