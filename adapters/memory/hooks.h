/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libdial9-memory exports the functions of an allocator, and the operators new and delete of C++, since some
 * allocators have operators of their own, which never call malloc().
 */

#pragma once

#include <stddef.h>

#include <dial9/export.h>

D9_API void *malloc(size_t size);
D9_API void *calloc(size_t n, size_t size);
D9_API void *realloc(void *block, size_t size);
D9_API void *reallocarray(void *block, size_t n, size_t size);
D9_API void free(void *block);
D9_API int posix_memalign(void **out, size_t alignment, size_t size);
D9_API void *aligned_alloc(size_t alignment, size_t size);
D9_API void *memalign(size_t alignment, size_t size);
D9_API void *valloc(size_t size);
D9_API void *pvalloc(size_t size);

D9_API void *d9__new(size_t size) __asm__("_Znwm");
D9_API void *d9__new_array(size_t size) __asm__("_Znam");
D9_API void *d9__new_nothrow(size_t size, const void *nothrow) __asm__("_ZnwmRKSt9nothrow_t");
D9_API void *d9__new_array_nothrow(size_t size, const void *nothrow) __asm__("_ZnamRKSt9nothrow_t");
D9_API void *d9__new_aligned(size_t size, size_t alignment) __asm__("_ZnwmSt11align_val_t");
D9_API void *d9__new_array_aligned(size_t size, size_t alignment) __asm__("_ZnamSt11align_val_t");
D9_API void *d9__new_aligned_nothrow(size_t size, size_t alignment, const void *nothrow) __asm__("_ZnwmSt11align_val_tRKSt9nothrow_t");
D9_API void *d9__new_array_aligned_nothrow(size_t size, size_t alignment, const void *nothrow) __asm__("_ZnamSt11align_val_tRKSt9nothrow_t");

D9_API void d9__delete(void *block) __asm__("_ZdlPv");
D9_API void d9__delete_array(void *block) __asm__("_ZdaPv");
D9_API void d9__delete_sized(void *block, size_t size) __asm__("_ZdlPvm");
D9_API void d9__delete_array_sized(void *block, size_t size) __asm__("_ZdaPvm");
D9_API void d9__delete_nothrow(void *block, const void *nothrow) __asm__("_ZdlPvRKSt9nothrow_t");
D9_API void d9__delete_array_nothrow(void *block, const void *nothrow) __asm__("_ZdaPvRKSt9nothrow_t");
D9_API void d9__delete_aligned(void *block, size_t alignment) __asm__("_ZdlPvSt11align_val_t");
D9_API void d9__delete_array_aligned(void *block, size_t alignment) __asm__("_ZdaPvSt11align_val_t");
D9_API void d9__delete_sized_aligned(void *block, size_t size, size_t alignment) __asm__("_ZdlPvmSt11align_val_t");
D9_API void d9__delete_array_sized_aligned(void *block, size_t size, size_t alignment) __asm__("_ZdaPvmSt11align_val_t");
D9_API void d9__delete_aligned_nothrow(void *block, size_t alignment, const void *nothrow) __asm__("_ZdlPvSt11align_val_tRKSt9nothrow_t");
D9_API void d9__delete_array_aligned_nothrow(void *block, size_t alignment, const void *nothrow) __asm__("_ZdaPvSt11align_val_tRKSt9nothrow_t");
