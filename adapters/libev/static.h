/* SPDX-License-Identifier: Apache-2.0 */
/* A libev that is linked into the program, by the linker's --wrap; as libevent/static.h. */

#pragma once

#include <stdbool.h>

#include "libev/real.h"

#if D9__LIBEV_ARCHIVE

/* True if libev is part of the image that we are part of.  Then nothing is patched. */
bool d9__libev_is_static(void);

/* libev's own |callback|, which was found on a scratch loop, is part of its code. */
void d9__libev_static_callback(const void *callback);

/* Where our code lies that calls callbacks of the program; the program's own is all around. */
bool d9__libev_calling_code(struct d9__module_range *range);

/* Functions that call callbacks lie together, so that their return addresses are known. */
#define D9__CALLS_BACK __attribute__((section("d9_ev_calls_back")))

#else

static inline bool d9__libev_is_static(void)
{
	return false;
}

static inline void d9__libev_static_callback(const void *callback)
{
	(void)callback;
}

/* Our image has nothing else. */
static inline bool d9__libev_calling_code(struct d9__module_range *range)
{
	return d9__module_range_of(&d9__libev_table, range);
}

#define D9__CALLS_BACK

#endif
