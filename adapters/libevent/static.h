/* SPDX-License-Identifier: Apache-2.0 */
/* A libevent that is linked into the program, by the linker's --wrap. */

#pragma once

#include <stdbool.h>

#include "libevent/real.h"

#if D9__LIBEVENT_ARCHIVE

/* Written once, before main(). */
extern bool d9__libevent_static;

/*
 * Is libevent part of the image that we are part of?  Then no address tells its code from the
 * program's, and nothing is patched.
 */
static inline bool d9__libevent_is_static(void)
{
	return d9__libevent_static;
}

/* True if the program was linked with the flags. */
bool d9__libevent_is_wrapped(void);

/* True if |address| is in the image that we are part of. */
bool d9__libevent_in_image(const void *address);

/* True if |address| is in a function of ours that calls a callback of the program. */
bool d9__libevent_calls_back_at(const void *address);

/* Functions that call callbacks lie together, so that their return addresses are known. */
#define D9__CALLS_BACK __attribute__((section("d9_calls_back")))

#else

static inline bool d9__libevent_is_static(void)
{
	return false;
}

static inline bool d9__libevent_in_image(const void *address)
{
	(void)address;
	return false;
}

static inline bool d9__libevent_is_wrapped(void)
{
	return true;
}

static inline bool d9__libevent_calls_back_at(const void *address)
{
	(void)address;
	return false;
}

#define D9__CALLS_BACK

#endif
