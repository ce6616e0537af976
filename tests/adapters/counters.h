/* SPDX-License-Identifier: Apache-2.0 */
/* The test programs count for themselves; compare_counts holds their traces against it. */

#ifndef D9_LIBEVENT_COUNTERS_H
#define D9_LIBEVENT_COUNTERS_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

struct event_base;

/* How a callback is recorded: as a poll of its own, or as a span inside a poll of libevent. */
enum kind {
	KIND_POLL,
	KIND_SPAN,
	KIND_TASKS,	/* distinct tasks that had the callback */
	KIND_ENDED,	/* ends of such tasks */
	KIND_LATE,	/* at most so late are its polls on average, in microseconds */
	KIND_LEAST,	/* at least so late */
	KIND_ELSEWHERE, /* polls of callbacks in other modules */
	KIND_CLOSURES,	/* callbacks made at run time from the address on; recorded or told of */
	KIND_REASON,	/* wakes of its tasks, all for the reason whose name the counter has */
	KIND_WAKER,	/* wakes whose waker is one of its tasks */
	KIND_DEPTH,	/* sum of the local queue at its polls */
	KIND_SITE,	/* the count is the function that set all its tasks up */
	KIND_SPAN_TASKS,    /* distinct tasks in whose polls its spans lie */
	KIND_INTERNAL_SITE, /* the same of the library's own tasks; the address is any */
};

struct counter {
	const char *name;
	void *address; /* of the callback */
	enum kind kind;
	unsigned long count;
	bool timing; /* the count depends on how the kernel cuts data; not compared between runs */
};

/* The counter of the callback |address|, made on first use. */
struct counter *counter_of(const char *name, void *address, enum kind kind);

/* The counts of all counters of |kind|. */
unsigned long counters_sum(enum kind kind);

/* Forget what was counted and logged: for a forked child. */
void counters_reset(void);

/* Write counters and log to |path|, if any; the program's exit status. */
int counters_write(const char *path);

/*
 * Attach |loop| by |function| of the adapter that is already in the process, or of the shared
 * library at |library|, loaded RTLD_LOCAL, with "global:" before its path RTLD_GLOBAL.  "none": run
 * without any.
 */
void attach_with(const char *function, void *loop, const char *library);

/* Attach |base| as attach_with() does, by libevent's adapter, which may be static. */
void attach_base(struct event_base *base, const char *library);

#define COUNT(callback, kind) (counter_of(#callback, (void *)(callback), kind)->count++)
#define COUNT_TIMING(callback, kind)                                                               \
	do {                                                                                       \
		struct counter *its = counter_of(#callback, (void *)(callback), kind);             \
		its->count++;                                                                      \
		its->timing = true;                                                                \
	} while (0)

/*
 * Objects that come and go without end: complains if this call finds more descriptors, or much more memory of the
 * program's own, than the one before.  Descriptors only under a sanitizer.
 */
void expect_flat(void);

/* One line of the log: what ran in which order, with which arguments.  Equal in every run. */
void log_line(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A wrong argument or errno: one line on stderr and in the log, and exit status 1. */
void complain(const char *what, long want, long is);

#ifdef __cplusplus
}
#endif

#endif /* D9_LIBEVENT_COUNTERS_H */
