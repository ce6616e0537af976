/* SPDX-License-Identifier: Apache-2.0 */
/* The output of `dial9 export`: a file that appears when it is complete, or standard output. */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct d9__sink;

/*
 * Open |path|, "-" for standard output; with |gzip| everything becomes exactly one gzip member.
 * 0, -ENOTTY if it is a terminal, -ENOMEM, or an error of open(2).  |path| is borrowed.
 */
int d9__export_sink_open(const char *path, bool gzip, struct d9__sink **out);

/* Write |len| bytes.  0 or the first error of this sink. */
int d9__export_sink_write(struct d9__sink *sink, const void *bytes, size_t len);

/* Finish and give the file its name.  0 or the first error.  Frees |sink|. */
int d9__export_sink_commit(struct d9__sink *sink);

/* Leave no file behind.  NULL is allowed.  Frees |sink|. */
void d9__export_sink_abandon(struct d9__sink *sink);
