/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Find a private field's offset in an object of another library, by content.
 *
 * The caller makes a scratch object with public API and drives it through states in which the
 * field must hold known values.  A probe starts with every offset of the object and keeps, round
 * by round, those that held what the round demanded.  The offset counts only if it is the last:
 *
 *	d9__probe_init(&probe, base, window, sizeof(void *));
 *	in the first callback:   d9__probe_keep_word(&probe, (uintptr_t)first);
 *	in the second callback:  d9__probe_keep_word(&probe, (uintptr_t)second);
 *	after the loop:          d9__probe_keep_word(&probe, 0);
 *	offset = d9__probe_result(&probe);
 *
 * All reads of the object go through the kernel and cannot fault.  No errno is changed.
 */

#pragma once

#include <dial9/export.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define D9__PROBE_WINDOW_MIN 256
#define D9__PROBE_WINDOW_MAX 8192
#define D9__PROBE_UNIT_MIN   4

/*
 * Copy |len| bytes from |from|, which may be unmapped.  0; -EFAULT; -EPERM or -ENOSYS if the
 * system call is refused (seccomp), and then no probe works.
 */
D9_API int d9__probe_copy(void *to, const void *from, size_t len);

/*
 * Bytes of heap object |object| that may be scanned, by malloc_usable_size(); 0 if that size is
 * not plausible for a loop (outside D9__PROBE_WINDOW_MIN..MAX).  Meaningless for an object of a
 * custom allocator: use d9__probe_readable().
 */
D9_API size_t d9__probe_window(const void *object);

/* Bytes from |object| on, at most |max|, that can be read now.  For custom allocators. */
D9_API size_t d9__probe_readable(const void *object, size_t max);

/* About 10 KiB: static or on the heap, not on a callback's stack. */
struct d9__probe {
	const uint8_t *object;
	size_t window; /* bytes; at most D9__PROBE_WINDOW_MAX */
	size_t unit;   /* candidates are multiples of this */
	int err;       /* 0, or why no round can be trusted */
	uint64_t candidates[D9__PROBE_WINDOW_MAX / D9__PROBE_UNIT_MIN / 64];
	uint8_t copy[D9__PROBE_WINDOW_MAX]; /* of the current round */
};

/* |window| is cut to D9__PROBE_WINDOW_MAX; |unit| is 4 or 8 (field sizes of ints and words). */
D9_API void d9__probe_init(struct d9__probe *probe, const void *object, size_t window, size_t unit);

/* Keep offsets whose word (uintptr_t) equals |value| now. */
D9_API void d9__probe_keep_word(struct d9__probe *probe, uintptr_t value);

/* Keep offsets whose word differs from |value| now. */
D9_API void d9__probe_drop_word(struct d9__probe *probe, uintptr_t value);

/* Keep offsets where |n| consecutive words equal |values| now (a struct timeval is two). */
D9_API void d9__probe_keep_words(struct d9__probe *probe, const uintptr_t *values, size_t n);

/* Keep offsets where |n| consecutive ints equal |values| now. */
D9_API void d9__probe_keep_ints(struct d9__probe *probe, const int *values, size_t n);

/*
 * Keep offsets whose word points at { void **elements; unsigned count } with exactly the |n|
 * |elements| (GLib's pointer array).
 */
D9_API void d9__probe_keep_pointer_array(struct d9__probe *probe, void *const *elements, unsigned n);

/*
 * Keep offsets for which |keep| says so.  It gets the copy of the object from the offset on,
 * |len| bytes to the end of the window, and |arg|.
 */
D9_API void d9__probe_keep_if(struct d9__probe *probe,
			      bool (*keep)(const uint8_t *at, size_t len, void *arg), void *arg);

/*
 * The one offset that is left.  -ENOENT none; -ENOTUNIQ several; or the error that made a round
 * impossible (-EFAULT, -EPERM, -ENOSYS, -EINVAL bad window).
 */
D9_API int d9__probe_result(const struct d9__probe *probe);
