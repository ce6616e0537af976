/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#define ZSTD_STATIC_LINKING_ONLY /* where memory comes from is not among what zstd promises to keep; it is as it was since 1.0 */
#include "base/zstd_heap.h"

#include "base/heap.h"

static void *allocate(void *opaque, size_t size)
{
	(void)opaque;
	return d9__malloc(size);
}

static void release(void *opaque, void *block)
{
	(void)opaque;
	d9__free(block);
}

ZSTD_CCtx *d9__zstd_new_packer(void)
{
	return ZSTD_createCCtx_advanced((ZSTD_customMem){ allocate, release, NULL });
}

ZSTD_DCtx *d9__zstd_new_unpacker(void)
{
	return ZSTD_createDCtx_advanced((ZSTD_customMem){ allocate, release, NULL });
}
