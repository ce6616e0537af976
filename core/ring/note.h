/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Note: the recorder's own log, a ring of lines of text in the ring file.
 *
 * A line begins with a sum over its words and its place.  A reader goes by the sum alone: a line
 * that is half written, or partly overwritten by a newer one, has another sum and is not there.  So
 * writers need no order among themselves, wait for no thread, and a reader may copy the ring at any
 * time, also of a killed process.
 *
 * A text that comes again within a minute is counted beside its line, and not written.
 */

#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <dial9/options.h>

#define D9__NOTE_WORDS	 1024u /* 8 KiB */
#define D9__NOTE_TEXT	 255u  /* bytes of a line, what is longer is cut */
#define D9__NOTE_REPEATS 8u    /* texts whose repetitions are counted */

/* A text that came lately. */
struct d9__note_repeat {
	_Atomic(uint64_t) word;	    /* hash in the high half, number of its line, how often it came
				       again; 0: none */
	_Atomic(uint64_t) since_ns; /* of that line */
};

/* Any thread writes; relaxed, because the sums order what has to be in order.  Zeros: empty. */
struct d9__notes {
	_Atomic(uint64_t) head; /* number of the next line in the high half, words claimed since
				   start in the low one */
	_Atomic(uint64_t) told; /* lines below this number are in the trace; flush thread */
	struct d9__note_repeat repeats[D9__NOTE_REPEATS];
	_Atomic(uint64_t) words[D9__NOTE_WORDS];
};

/* A line as a reader gets it. */
struct d9__note_line {
	uint64_t ns;	 /* CLOCK_MONOTONIC */
	uint32_t number; /* the first line is 0 */
	uint32_t times;	 /* how often it came until then, since it was written before */
	uint32_t again;	 /* how often since then, if no line tells that yet */
	enum d9_log_level level;
	char text[D9__NOTE_TEXT + 1]; /* UTF-8 */
};

/*
 * Write a line.  Any thread, and signal handlers: takes no lock, allocates nothing, keeps errno.
 * |fmt| like printf, of %s, %c and integers only, because others may allocate.  Before there is a
 * ring, lines wait in a place of the process's.
 */
void d9__note(enum d9_log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Lines go to |notes| from now on, those written so far too.  NULL: to the process's place, which
 * is empty then. */
void d9__notes_use(struct d9__notes *notes);

/* Write again, with their count, the lines that came again since they were written; |all|: also
 * within the minute. */
void d9__notes_settle(bool all);

/* Copy the ring that is in use now to |copy|. */
void d9__notes_copy(struct d9__notes *copy);

/* The number of the next line in the ring that is in use now. */
uint32_t d9__notes_end(void);

/* The trace has all lines below |number|; which number that was last. */
void d9__notes_tell(uint32_t number);
uint32_t d9__notes_told(void);

/*
 * Return the next line of |copy|, a ring that is not written any more and whose content is not to
 * be trusted.  |*at| is 0 at the first call.  1, or 0 at the end.
 */
int d9__notes_next(const struct d9__notes *copy, uint32_t *at, struct d9__note_line *line);

/* "error", "warning", "info". */
const char *d9__note_level(enum d9_log_level level);
