/* SPDX-License-Identifier: Apache-2.0 */
/* Usage: what the process has used of processors, memory and disks, at intervals. */

#ifndef D9_RECORD_USAGE_H
#define D9_RECORD_USAGE_H

#include <stdint.h>

/* Sample every |interval_ns|; 0: never. */
void d9__usage_set_interval(uint64_t interval_ns);

#endif /* D9_RECORD_USAGE_H */
