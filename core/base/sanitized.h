/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether this is built with a sanitizer that wants what a program would not, and what it has to be told.
 */

#pragma once

/* 0: none; 1: AddressSanitizer; 2: ThreadSanitizer. */
#if defined(__SANITIZE_THREAD__)
#define D9__SANITIZED 2
#elif defined(__SANITIZE_ADDRESS__)
#define D9__SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define D9__SANITIZED 2
#elif __has_feature(address_sanitizer)
#define D9__SANITIZED 1
#endif
#endif
#ifndef D9__SANITIZED
#define D9__SANITIZED 0
#endif

/*
 * Order that ThreadSanitizer cannot see: what is reached by a jump through a word, or is on a page whose
 * address is in one, is read behind all that was written before the word was stored (release).
 */
#if D9__SANITIZED == 2
#include <sanitizer/tsan_interface.h>
#define D9__TSAN_RELEASE(object) __tsan_release((void *)(object))
#define D9__TSAN_ACQUIRE(object) __tsan_acquire((void *)(object))
#else
#define D9__TSAN_RELEASE(object) ((void)0)
#define D9__TSAN_ACQUIRE(object) ((void)0)
#endif
