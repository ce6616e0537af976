/* SPDX-License-Identifier: Apache-2.0 */
/* Sanitized: whether this is built with a sanitizer that wants what a program would not. */

#ifndef D9_RECORD_SANITIZED_H
#define D9_RECORD_SANITIZED_H

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

#endif /* D9_RECORD_SANITIZED_H */
