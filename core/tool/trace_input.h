/* SPDX-License-Identifier: Apache-2.0 */
/* The TRACE operands of a command: open them, and print what is wrong with them. */

#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <dial9/reader.h>

struct d9__kept_dump;
struct d9__processes;
struct d9__progress;

/*
 * Open the traces |paths|, NULL-terminated: segments, directories, manifests of dumps.  0 with |*out|, which the caller frees; otherwise one
 * line is on stderr and the result is the exit status: bad usage without any path, or a path that
 * is no trace.
 */
int d9__traces_open(const char *command, char **paths, struct d9_reader **out);

/*
 * Read the manifest |path|, which d9__kept_dump_is(), and require that one of its segments is there.  0 with |dump|, which the
 * caller releases; otherwise the exit status, after a line on stderr.
 */
int d9__dump_open(const char *command, const char *path, struct d9__kept_dump *dump);

/* True if something among |paths| can be read only once. */
bool d9__traces_have_pipe(char **paths);

/*
 * Refuse several |processes|, for commands whose output is of one, because ids of workers and tasks
 * are each process's own.  0, or the exit status after a line on stderr.
 */
int d9__traces_refuse_several(const char *command, const struct d9__processes *processes);

/*
 * Call d9_reader_next() and draw progress; |*err| gets a result below 0.  NULL at the end and on
 * failure.
 */
const struct d9_event *d9__traces_next(struct d9_reader *reader, struct d9__progress *progress,
				       int *err);

/*
 * After the last event: one line on stderr for each segment that could not be read to its end, of many the first.
 * The exit status: 2 if one was damaged or |err| is set, 0 if segments were merely cut short.
 */
int d9__traces_close(const char *command, struct d9_reader *reader, int err);

/* So many are told one by one. */
#define D9__SHORT_TOLD 100

/* A line for the rest of |n|, if there is one. */
void d9__traces_more_short(const char *command, size_t n);
