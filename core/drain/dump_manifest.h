/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dump manifest: dump.ID.json beside the segments of a dump that a trigger made: what fired, when, and which segments are
 * its own.  Written when the trigger fires, and again when the window is closed and whenever another trigger joins.
 * Flush thread.
 */

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/trigger_text.h"
#include "drain/dump.h"
#include "segment/manifest.h"
#include "segment/writer.h"

#define D9__MANIFEST_FIRED 100 /* more are counted */

struct d9__manifest {
	char pairs[D9__TRIGGER_PAIRS];
	uint64_t fired_ns;   /* CLOCK_MONOTONIC */
	int64_t real_offset; /* of CLOCK_REALTIME to it */
	uint64_t then_ns;
	uint64_t suppressed; /* firings between the dump before and this one that made none */
	struct {
		char name[D9__TRIGGER_NAME];
		enum d9__trigger_kind kind;
		uint64_t threshold, value, ns;
	} fired[D9__MANIFEST_FIRED];
	uint64_t n_fired;
	uint64_t segments[D9__MANIFEST_SEGMENTS]; /* of a recorder that writes continuously */
	uint64_t n_segments;
	bool flight;  /* they are no part of the trace */
	bool written; /* in flight mode: something of it was */
};

/* |trigger| began a dump at |fired_ns|. */
void d9__dump_manifest_begin(struct d9__manifest *manifest, const struct d9__trigger *trigger, uint64_t fired_ns,
			uint64_t suppressed);

/* It, or another that joins, fired. */
void d9__dump_manifest_add(struct d9__manifest *manifest, const struct d9__trigger *trigger, uint64_t ns, uint64_t value);

/* The segments of |own| that overlap the window of |dump|, which is over; their number and size go to |dump|. */
void d9__dump_manifest_choose(struct d9__manifest *manifest, struct d9__dump *dump, const struct d9__writer *own);

/* The segments of |own| that dumps alone are there for and that are in none yet: of this one, in flight mode. */
void d9__dump_manifest_take(struct d9__manifest *manifest, struct d9__dump *dump, const struct d9__writer *own);

/*
 * The window is over: find the segments, and write it.  0, or -errno: not all of that was possible so far, for want of room for
 * instance, and it is to be tried again.
 */
int d9__dump_manifest_settle(struct d9__manifest *manifest, struct d9__dump *dump, const struct d9__dump_maker *maker);

/* Write it.  |closed|: nothing will come to the dump any more.  0 or -errno. */
int d9__dump_manifest_write(const struct d9__manifest *manifest, const struct d9__dump *dump, const struct d9__writer *own,
		       bool closed);
