/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Live: the events of a running recorder as they come, without its help: in flight mode from its
 * ring, else from the segments it writes, which are at most a second behind.
 */

#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include <dial9/reader.h>

#include "format/decoder.h"
#include "format/poll_wakes.h"
#include "format/values.h"
#include "read/inner_calls.h"
#include "ring/ring_view.h"

typedef void (*d9__live_fn)(void *arg, const struct d9_event *event);

/* How far one slot of the ring was read. */
struct d9__live_slot {
	uint32_t serial, events;
};

struct d9__live {
	const struct d9__ring_view *view;
	d9__live_fn fn;
	void *arg;
	uint64_t since_ns; /* events before it are not told */
	struct d9__definitions schemas;
	struct d9__decoder decoder;
	struct d9__values values;
	struct d9__inner_calls calls;
	uint64_t n_calls;
	struct d9__poll_wakes seen; /* in the batch */
	uint64_t description; /* of the ring, that was read */

	/* The segment that is being followed. */
	char dir[PATH_MAX];
	int fd;
	uint64_t index;
	void *unpack; /* ZSTD_DCtx or z_stream, by what the file begins with */
	int packing;  /* enum d9_compress; -1: not known yet */
	uint8_t *raw; /* unpacked, not decoded yet */
	size_t len, capacity;
	uint64_t unpack_left; /* bytes that what was read of it may still unpack to */

	struct d9__live_slot slots[D9__SLOT_COUNT];
};

/* Begin with events from |since_ns| on; |view| is borrowed. */
void d9__live_begin(struct d9__live *live, const struct d9__ring_view *view, uint64_t since_ns,
		    d9__live_fn fn, void *arg);

/* Tell |fn| of what came since the last call: modules, polls and samples among it.  0 or -errno. */
int d9__live_read(struct d9__live *live, bool flight);

/* Read the modules only, which the ring lists at its beginning.  0 or -errno. */
int d9__live_read_description(struct d9__live *live);

void d9__live_end(struct d9__live *live);
