/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Own frames: the parts of a stack that are the recorder's.  It stands between a loop and its
 * callbacks, around calls that it times, and it reads clocks and counters of its own: no part of
 * that is the program's.
 */

#pragma once

#include <stdbool.h>
#include <stddef.h>

enum d9__frame_class {
	D9__FRAME_OTHER,
	D9__FRAME_SYSTEM, /* libc, the kernel and what it maps */
	D9__FRAME_OURS,
	D9__FRAME_HOOK, /* ours, in the place of a function that it calls itself */
};

/* The class of |function| of |module|; either may be NULL: not known. */
enum d9__frame_class d9__frame_class_of(const char *module, const char *function);

static inline bool d9__frame_class_is_ours(enum d9__frame_class frame)
{
	return frame == D9__FRAME_OURS || frame == D9__FRAME_HOOK;
}

/*
 * How many of the innermost frames are the recorder's own work: it is among them, and so is what
 * it had called of the system, but no function that it calls for the program.
 */
size_t d9__own_frames(const enum d9__frame_class *frames, size_t n);

/*
 * Which of |n| frames are the recorder's, of which |own| innermost ones are its own work: |hidden|;
 * none where all are.
 */
void d9__own_frames_hide(const enum d9__frame_class *frames, size_t n, size_t own, bool *hidden);
