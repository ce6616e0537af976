/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hour: what the segments of one process that began in one hour of UTC say together.  The shipper keeps it beside the
 * process's segments, in BOOT_ID/.hour-2026-11-29T03, and adds each one before it is removed; when the hour is over it is
 * stored, and the file is called .hour-2026-11-29T03.told, as the hour's marker:
 *
 *	PREFIX/hours/DATE/HH/SERVICE/INSTANCE/BOOT_ID.SEGMENTS.BYTES.WORST_MS.MISSING
 *
 * whose figures draw the map of many hosts, and whose body is a sum of summaries (summary_sum.h) with, in addition,
 *
 *	"hour": "2026-11-29T03", "instance", "segments", "summarised" (of how many a summary could be made), "bytes" (stored),
 *	"indexes": "0-59", "missing": "41-57" (told in this hour, and in no store), "longest_ns"
 *
 * A segment that comes later makes a bigger marker: of several of one hour and process the one with most segments counts.
 */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json_object;

#define D9__HOUR_NAME  ".hour-"
#define D9__HOUR_TOLD  ".told" /* at the end of its name once a marker tells all that is in it */
#define D9__HOUR_BYTES (16 << 20) /* the most of such a file, and of a summary */

struct d9__hour_segment {
	const char *key, *service, *instance, *boot_id;
	uint64_t index, bytes, worst_ns;
	uint64_t epoch_s;	     /* of its first clock anchor: it decides the hour */
	struct json_object *summary; /* borrowed; NULL: none could be made */
};

/*
 * Add the segment to its hour in the directory |dir|, unless the hour has it.  0, -ENOMEM, or an
 * error of a file.
 */
int d9__hour_add(int dir, const struct d9__hour_segment *segment);

/*
 * Note, before it is removed, that the segment |index| in |dir|, sealed at |sealed_s|, will never
 * be stored: in the list (shipped.h), and so that its hour's marker is stored again.  0, or as
 * d9__shipped_gap().
 */
int d9__hour_lose(int dir, uint64_t index, uint64_t sealed_s);

/* True if a marker tells all of the hour of |epoch_s|. */
bool d9__hour_is_told(int dir, uint64_t epoch_s);

/* One that is due. */
struct d9__hour_marker {
	char file[32]; /* its name */
	char *key, *body; /* owned */
	uint64_t segments;
};

struct d9__hour_markers {
	struct d9__hour_marker *items; /* owned */
	size_t n;
};

/*
 * List the markers to store for the hours in |dir|, under |prefix|: of hours that ended two minutes
 * before |now_s| and have segments that no stored marker tells.  |ended|: the process has ended, so
 * all its hours have.  Returns 0 or -ENOMEM; a file that is not an hour's is left alone.  Release
 * in any case.
 */
int d9__hour_due(int dir, const char *prefix, uint64_t now_s, bool ended, struct d9__hour_markers *out);
void d9__hour_markers_release(struct d9__hour_markers *markers);

/* Note that the marker is stored.  0, -ENOMEM, or an error of a file. */
int d9__hour_told(int dir, const struct d9__hour_marker *marker);

/* Remove those in |dir| that were told, and have not changed in the two days before |now_s|: nothing more is waited for. */
void d9__hour_forget(int dir, uint64_t now_s);
