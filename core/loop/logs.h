/* SPDX-License-Identifier: Apache-2.0 */
/* Log lines of loop libraries, as events beside what the loops do. */

#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <dial9/export.h>
#include <dial9/loop.h>

/* In the libraries' own words, the worst first. */
enum d9__log_level {
	D9__LOG_ERROR,
	D9__LOG_CRITICAL,
	D9__LOG_WARNING,
	D9__LOG_MESSAGE,
	D9__LOG_INFO,
	D9__LOG_DEBUG,
	D9__LOG_LEVELS
};

/*
 * Is any line wanted?  An adapter that is told no leaves the logging of its library alone.  Before
 * the first start DIAL9_LOG_BRIDGE is what is known.
 */
D9_API bool d9__logs_bridged(void);

/* Are lines of |level| recorded now?  Two relaxed loads. */
D9_API bool d9__log_wanted(enum d9__log_level level);

/*
 * Record the line |text|, cut at 1 KiB.  |target|: what part of a program or library it comes from,
 * or NULL.  Beyond 1000 lines a second they are dropped, and counted in the metadata as
 * `log.dropped`.  Any thread; keeps errno; allocates and locks at the first line only.
 */
D9_API void d9__log_line(enum d9_library library, enum d9__log_level level, const char *target,
			 const char *text, size_t len);
