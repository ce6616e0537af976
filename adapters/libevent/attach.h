/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of the libevent adapter for the preload library. */

#pragma once

#include <stdbool.h>

#include <dial9/libevent.h>

struct event_config;

/*
 * Loading libdial9-libevent patches every module that uses libevent, once, in its constructor.
 * The preload library then says that every base is to be recorded, and exports the three
 * constructors of a base to learn of a libevent that comes later.
 */

/*
 * From now on every base is attached when the program makes it, and those are at once that constructors of
 * its libraries made before.
 */
D9_API void d9__libevent_record_all(void);

/*
 * Patch what was mapped since the last look; cheap if nothing was.  Whether a libevent image is
 * mapped.  Not under a lock of libevent.
 */
D9_API bool d9__libevent_refresh(void);

/* The program is about to forbid itself system calls: nothing of a library that is mapped will be recorded. */
D9_API void d9__libevent_forbid(void);

/* Whether |address| is code of a libevent image or of this adapter. */
D9_API bool d9__libevent_owns(const void *address);

/* The hooks of the constructors, on behalf of a call that returns to |caller|. */
D9_API struct event_base *d9__libevent_base_new(void *caller);
D9_API struct event_base *d9__libevent_base_new_config(const struct event_config *config, void *caller);
D9_API struct event_base *d9__libevent_init(void *caller);
