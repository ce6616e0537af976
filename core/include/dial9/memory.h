/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * Memory: which code allocates, what is still allocated, what leaks.
 *
 * dial9 samples allocations by their bytes: on average one in 512 KiB, with the call stack that asked for it, and when it
 * is freed.  `dial9 report` scales that up to estimates by place.  You need:
 *
 *  - libdial9-memory, which stands between the program and its allocator (libc, jemalloc, tcmalloc, mimalloc):
 *    `dial9 record --memory -- CMD` loads it into any program; one that links it (pkg-config dial9-memory) names it
 *    before its allocator.
 *  - to ask for it: DIAL9_MEMORY_PROFILE_ENABLED=true, or d9_options_set_memory() of <dial9/options.h>; for frees
 *    DIAL9_MEMORY_TRACK_LIVESET=true, or d9_options_set_memory_live_set().
 *
 * Both functions here may be called without either; then they do nothing that shows.
 *
 *	d9_memory_pause();
 *	cache = load_cache();	// big, wanted for ever, and no news
 *	d9_memory_resume();
 */

#ifndef DIAL9_MEMORY_H
#define DIAL9_MEMORY_H

#include <dial9/export.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Sample no allocation of this thread until d9_memory_resume().  Nests.  What it frees is recorded all the same, where
 * frees are.
 *
 * Threads: any, each for itself.  Async-signal-safe.  Since: 0.1
 */
D9_API void d9_memory_pause(void);

/** Undo one d9_memory_pause() of this thread; one too many does nothing. */
D9_API void d9_memory_resume(void);

#ifdef __cplusplus
}
#endif

#endif /* DIAL9_MEMORY_H */
