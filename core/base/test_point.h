/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Test point: a place inside a step where a test may hold the thread or kill the process.  They exist
 * in librecord_points.la only, which nothing that is installed links.
 */

#pragma once

/* In the order in which a life passes them. */
#define D9__TEST_POINTS_EACH(X)                                                                    \
	X(RING_CREATED)    /* a file without a header */                                           \
	X(OPEN_TAKEN)      /* a chunk is ours, and in no queue */                                  \
	X(OPEN_HEADER)     /* its header says OPEN, and no slot names it */                        \
	X(OPEN_PREAMBLE)   /* length published, not named yet */                                   \
	X(OPEN_NAMED)                                                                              \
	X(SEAL_LENGTH)     /* final length written, state still OPEN */                            \
	X(SEAL_STATE)      /* SEALED, and the slot still names it */                               \
	X(SEAL_CLOSED)     /* SEALED, and in no queue */                                           \
	X(SEAL_QUEUED)                                                                             \
	X(OVERRUN)         /* a full chunk was taken back, and counted */                          \
	X(TICK)            /* the flush thread, between two ticks */                               \
	X(FLUSH_POPPED)    /* TAKEN, nothing of it packed */                                       \
	X(FLUSH_ADDED)     /* packed, not written */                                               \
	X(WRITE_BEGIN)                                                                             \
	X(WRITE_END)       /* in the file, and the ring does not know it */                        \
	X(FLUSH_REMEMBERED) /* it knows, and the chunk is not free */                              \
	X(FLUSH_RELEASED)                                                                          \
	X(SEGMENT_CREATED) /* an empty file */                                                     \
	X(SEGMENT_LED_IN)  /* clock, metadata and modules are packed */                            \
	X(SEGMENT_ENDED)   /* complete, under its active name */                                   \
	X(SEGMENT_RENAMED)                                                                         \
	X(GROW_ALLOCATED)  /* the file is longer, and not mapped */                                \
	X(GROW_MAPPED)     /* there, not counted */                                                \
	X(GROW_COUNTED)    /* counted, not in the queue */                                         \
	X(RESCUE_SEALED)   /* recovery: what was open is sealed */                                 \
	X(RESCUE_BEGUN)    /* the ring says which segment is made of it */                         \
	X(RESCUE_WRITTEN)  /* that segment is sealed, the ring still there */

enum d9__test_point {
#define D9__TEST_POINT_ENUM(name) D9__POINT_##name,
	D9__TEST_POINTS_EACH(D9__TEST_POINT_ENUM)
#undef D9__TEST_POINT_ENUM
	D9__TEST_POINT_COUNT
};

#ifdef D9__WITH_TEST_POINTS
/* Called at each one by whichever thread comes there; NULL: nothing. */
extern void (*volatile d9__test_point_hook)(enum d9__test_point point);

#define D9__TEST_POINT(name)                                                                       \
	do {                                                                                       \
		if (d9__test_point_hook)                                                           \
			d9__test_point_hook(D9__POINT_##name);                                     \
	} while (0)
#else
#define D9__TEST_POINT(name) ((void)0)
#endif
