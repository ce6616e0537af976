/* SPDX-License-Identifier: Apache-2.0 */
/* Segment scan: the batches of one of our own sealed segments, one after the other.  Flush thread. */

#pragma once

#include <stddef.h>
#include <stdint.h>

#include <dial9/options.h>

/*
 * Look at the first of the batches in [bytes, bytes + len), as d9__walk_whole() does, and return its length;
 * 0 ends the scan.  A batch may be shown a second time, and then to its end.
 */
typedef uint32_t (*d9__batch_fn)(void *arg, const uint8_t *bytes, size_t len);

struct d9__segment_scan {
	d9__batch_fn fn;
	void *arg;
	void (*keep_up)(void); /* called often */
};

/* Show all batches of the segment |fd|, which is left open.  0, -ENOMEM; -EBADMSG where it is damaged. */
int d9__segment_scan(const struct d9__segment_scan *scan, int fd, enum d9_compress kind);
