/* SPDX-License-Identifier: Apache-2.0 */
/* System facts: on what machine and within which limits the process runs, as metadata "system.*". */

#pragma once

#include <stddef.h>

/* Set them.  What cannot be found out is not told.  Reads files of /proc and /sys, which takes some 100 us. */
void d9__system_facts_tell(void);

/* The name of the processor in |text|, the beginning of a /proc/cpuinfo, in |out|; "" if it has none. */
void d9__system_facts_model(const char *text, char *out, size_t size);
