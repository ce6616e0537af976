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

#include "loop/adapter.h" /* d9__blocking_start() */

/* Redirect the calls before there is a loop, because the recorder may begin at them.  In a constructor. */
D9_API void d9__blocking_watch(void);
