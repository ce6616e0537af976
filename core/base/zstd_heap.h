/* SPDX-License-Identifier: Apache-2.0 */
/* zstd with memory of ours: see base/heap.h.  NULL: there is none. */

#pragma once

#include <zstd.h>

/* ZSTD_freeCCtx() it. */
ZSTD_CCtx *d9__zstd_new_packer(void);

/* ZSTD_freeDCtx() it. */
ZSTD_DCtx *d9__zstd_new_unpacker(void);
