/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one lock of all patching.  It is also held around our walks of the loader's list, so that
 * a fork() in another thread never catches one of ours inside the loader's lock.
 *
 * Order: this lock, then the loader's list lock inside dl_iterate_phdr(); then the lock of the
 * stub pools.  Never dlopen() or dlsym() under it.
 */

#pragma once

#include <stdbool.h>

void d9__patch_lock(void);
bool d9__patch_trylock(void);
void d9__patch_unlock(void);

/*
 * Around fork().  The wait for the lock has an end, because its holder may be waiting for the
 * loader's lock, which a thread of the program may keep until the child ends.  Without the lock the
 * child gets a new one.
 */
void d9__patch_fork_prepare(void);
void d9__patch_fork_parent(void);
void d9__patch_fork_child(void);
