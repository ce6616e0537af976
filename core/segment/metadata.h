/* SPDX-License-Identifier: Apache-2.0 */
/* Metadata: facts about the process and the segment, as key and value. */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <dial9/export.h>

#include "segment/builder.h"

/*
 * Set |key| to |value|, both copied; NULL removes it.  Written when it changed, and at the beginning
 * and end of every segment.  0, -EINVAL (empty key, key over 255 or value over 65535 bytes), -ENOSPC
 * (1024 keys), -ENOMEM.  Any thread; takes a mutex, so not from hooks under a loop's lock.
 */
D9_API int d9__metadata_set(const char *key, const char *value);

/* Call |fn| before the last metadata of each segment of ours, which has all its events by then.  At load; one, for ever. */
void d9__metadata_on_seal(void (*fn)(void));

/* Flush thread: do that. */
void d9__metadata_settle(void);

/* Remove all whose keys begin with |prefix|.  Any thread, as before. */
void d9__metadata_forget(const char *prefix);

/*
 * From now on the metadata is worth a segment, even if nothing else is recorded.  Any thread; for
 * good, forked children included.
 */
D9_API void d9__metadata_keep(void);
bool d9__metadata_is_kept(void);

/* Changes with every d9__metadata_set() that changed anything. */
uint32_t d9__metadata_generation(void);

/*
 * Make |out| a batch with one SegmentMetadataEvent at |ns|.  |more|: keys and values of this one
 * only, NULL behind the last; or NULL.
 */
void d9__metadata_write(struct d9__builder *out, uint64_t ns, const char *const *more);

/*
 * Write the pairs that `dial9 status` shows, as lines KEY=VALUE with a NUL at the end; line ends in a value
 * become blanks.  Lines that do not fit are left out, whole ones only.
 */
void d9__metadata_facts(char *buf, size_t size);

/* The atfork handler's three. */
void d9__metadata_fork_prepare(void);
void d9__metadata_fork_done(void);
