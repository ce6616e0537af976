/* SPDX-License-Identifier: Apache-2.0 */
/* Dump writer: writes into the directory that a dump is asked for, beside what is there.  Flush thread. */

#pragma once

#include <stdbool.h>

#include "drain/dump.h"
#include "segment/writer.h"

struct d9__dump_writer {
	struct d9__writer writer;
	struct d9__writer_counters counters;
};

/* Whether |dump| is for the recorder's own directory. */
bool d9__dump_is_own(const struct d9__dump *dump, const struct d9__dump_maker *maker);

/* Take over |to|, which is visited, and begin behind its highest number.  0 or -errno; then close it, too. */
int d9__dump_writer_open(struct d9__dump_writer *w, const struct d9__dump_maker *maker,
			 struct d9__namespace *to);

/*
 * The same in the recorder's own directory, while its writer has a segment open there: the dump gets a number that none of
 * the writer's will have, and counts for its budget when that looks again.
 */
int d9__dump_writer_open_beside(struct d9__dump_writer *w, const struct d9__dump_maker *maker);

/* Seal, close, count for the recorder. */
void d9__dump_writer_close(struct d9__dump_writer *w, const struct d9__dump_maker *maker);
