/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Symbol cache: the answers for one build-id, kept in a file from run to run.  The file is read as it is and searched
 * by bisection:
 *
 *	 0  "D9SYMBOL"
 *	 8  u32 version, u32 number of answers, u64 stamp, u32 number of frames, u32 bytes of texts
 *	32  answers, by address and role: u64 address, u32 first frame, u16 number of frames, u16 role
 *	..  frames: u32 function, u32 path (offset of a text + 1; 0: unknown), u32 line
 *	..  texts, each with a zero byte behind it
 */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbol/answers.h"
#include "symbol/dwarf_frames.h"

#define D9__CACHE_FILE_MAX  ((size_t)16 << 20)
#define D9__CACHE_BYTES_MAX ((uint64_t)256 << 20) /* all files of a directory */

/* All zero is empty. */
struct d9__symbol_cache {
	uint8_t *bytes;
	size_t len;
	uint32_t n_answers, n_frames, n_text; /* n_text: bytes */
	uint64_t stamp;
};

/*
 * Read the file of |build_id| in |dir|, which no other user may write to.  |stamp| stands for what the binary's files
 * are now; of others the answers are not read.  0: there are no such files, and any answers will do.  What cannot be
 * read, or is no such file, is as if it were not there.
 */
void d9__symbol_cache_load(struct d9__symbol_cache *cache, int dir, const char *build_id, uint64_t stamp);

/* Read the cache from |len| bytes of malloc(3), which are the cache's; false, and empty, if they are no such file. */
bool d9__symbol_cache_take(struct d9__symbol_cache *cache, uint8_t *bytes, size_t len);

/*
 * The frames that |address| had in the role |role|, the innermost first, with texts inside the cache; |*n| may be 0.
 * false: the cache has no answer.
 */
bool d9__symbol_cache_find(const struct d9__symbol_cache *cache, uint64_t address, enum d9__address_role role,
			   struct d9__dwarf_frame frames[D9__SYMBOL_DEPTH_MAX], size_t *n);

/*
 * Write the answers of |space|, and those of |cache| before them, for |build_id| into |dir|; the file is replaced at
 * once.  0, -ENOMEM, -EFBIG if there are too many, or an error of writing.
 */
int d9__symbol_cache_save(const struct d9__symbol_cache *cache, int dir, const char *build_id, uint64_t stamp,
			  const struct d9__answers *answers, uint32_t space);

/* Remove files that were written long ago, until all take |max_bytes| at the most. */
void d9__symbol_cache_trim(int dir, uint64_t max_bytes);

void d9__symbol_cache_release(struct d9__symbol_cache *cache);
