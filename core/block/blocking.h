/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocking: calls of the C library that block inside callbacks are told, with their stack: the thread runs nothing else
 * meanwhile.
 *
 * The GOT engine redirects the calls of all modules but the C library and ours when the first loop is attached, and in loop
 * libraries those that are neither their wait nor their work on descriptors.
 */

#pragma once

#include <dial9/export.h>

/*
 * Redirect the calls, if the recorder was asked to and they are not; else when it is.  What came of it is in the trace
 * as source.blocking.  Keeps errno.  Not under a loop library's lock.
 */
D9_API void d9__blocking_start(void);

/* Redirect them before there is a loop, as places where the recorder may begin.  In a constructor. */
D9_API void d9__blocking_watch(void);
