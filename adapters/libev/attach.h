/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of the libev adapter for the preload library; libevent/attach.h has the same for libevent. */

#pragma once

#include <stdbool.h>

#include <dial9/libev.h>

/*
 * From now on every loop is attached when the program makes it, and those are at once that constructors of
 * its libraries made before.
 */
D9_API void d9__libev_record_all(void);

/*
 * Patch what was mapped since the last look; cheap if nothing was.  Whether libev is mapped.  Not
 * under a lock of the program.
 */
D9_API bool d9__libev_refresh(void);

/* The program is about to forbid itself system calls: nothing of a library that is mapped will be recorded. */
D9_API void d9__libev_forbid(void);

/* Whether |address| is code of libev or of this adapter. */
D9_API bool d9__libev_owns(const void *address);

/* The hooks of the constructors. */
D9_API struct ev_loop *d9__libev_default_loop(unsigned flags);
D9_API struct ev_loop *d9__libev_loop_new(unsigned flags);
