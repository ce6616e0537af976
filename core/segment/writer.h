/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writer: where batches go.  Opens a segment when the first batch comes, leads it in with clock,
 * metadata and modules, seals it by size and age, keeps the directory within its budget, and
 * survives every error of the file system.
 */

#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <dial9/options.h>

#include "segment/builder.h"
#include "segment/living_tasks.h"
#include "segment/namespace.h"
#include "segment/retention.h"
#include "segment/room.h"
#include "segment/segment.h"
#include "segment/user_callbacks.h"

/* Read by any thread (relaxed), written by the flush thread. */
struct d9__writer_counters {
	_Atomic(uint64_t) events, bytes_recorded, bytes_written, sealed, evicted, bytes_evicted,
		retained, errors, raw;
	_Atomic(int) error; /* -errno of the last failure, 0 = none yet */
};

#define D9__WRITER_MORE 9
#define D9__EVICTED_MAX 16

enum d9__sealed {
	D9__SEALED_NONE, /* there was no segment */
	D9__SEALED_CLEAN,
	D9__SEALED_CUT, /* it could not be written to its end */
};

/* Flush thread only, but |counters|. */
struct d9__writer {
	enum d9_writer kind;
	enum d9_compress compress;
	bool collect; /* remove what dead peers left behind */
	bool has_dir; /* |ns| is open */
	bool pressed; /* frames are written raw, as far as a share of the budget allows */
	bool told_share;      /* that it does not allow more */
	uint64_t told_raw;    /* bytes, in the metadata */
	uint64_t raw_seen_ns; /* when it was looked last whether raw segments were compressed since
			       */
	bool told_spared; /* that a shipper has what dead processes left */
	struct d9__namespace ns;
	const char *giver; /* who makes |ns| where we may not; NULL */
	uid_t uid;         /* whose |ns| is, or who could not open it last */
	struct d9__retention ret;
	struct d9__segment seg;
	struct d9__builder note; /* clock, metadata, modules */
	uint32_t metadata_written; /* generation in the segment */
	bool metadata_kept;        /* a segment was begun for it alone */
	uint32_t modules_written;  /* likewise */
	int64_t clock_offset;      /* realtime minus monotonic, likewise */
	bool lossy;                /* events were lost while no segment was open */
	enum d9__sealed prior;     /* how the segment before the one that is open ended */
	const struct d9__lead_in *lead_in; /* each segment but the first begins by telling what lives; NULL: it does not */
	struct d9__living_tasks living;

	/* Paused: |retry_ns| is when to try again, after |backoff_ns|.  0: not paused. */
	uint64_t retry_ns, backoff_ns;
	struct d9__room room;
	uint64_t cut_index; /* of the segment that was cut last; UINT64_MAX: none */
	struct { uint64_t first, last; } evicted[D9__EVICTED_MAX]; /* for want of room, as the metadata has them */
	unsigned n_evicted;
	char evicted_dumps[D9__EVICTED_MAX][D9__RETENTION_ID]; /* the latest, for the budget, likewise */
	unsigned n_evicted_dumps;
	uint64_t error_ns;       /* of the last error */
	const char *error_op;
	uint64_t success_ns;     /* of the last write */
	uint64_t warned_ns;
	bool ending; /* nothing is tried again */

	/* In memory: sealed segments, oldest first. */
	struct d9_sealed_segment *kept, **kept_last;

	/*
	 * Of a dump: keys and values for its metadata, NULL behind the last; and it is one segment,
	 * whatever its size, or if it cannot be written to its end, none.
	 */
	const char *more[D9__WRITER_MORE];
	bool all_or_nothing;

	/*
	 * Recovery: writes what leads a segment in (|complete| NULL) or ends it, with
	 * d9__writer_lead(), instead of what is true of this process.
	 */
	int (*lead)(struct d9__writer *w, const char *complete, uint64_t now_ns);
	void *lead_arg;

	struct d9__writer_counters *counters;
};

/* Prepare from |options|; opens nothing.  |boot_id| is a wish. */
void d9__writer_init(struct d9__writer *w, const struct d9_options *options, const char *boot_id,
		     struct d9__writer_counters *counters);

/* Make and lock the directory, look at what is there.  0, also if there is nothing to open; -errno. */
int d9__writer_open(struct d9__writer *w, const char *trace_dir, uint64_t clock);

/* The process may have become another user since: then what is open is to be that user's. */
void d9__writer_follow_user(struct d9__writer *w);

/* Account what dead peers left, and remove what is over the budget. */
void d9__writer_collect(struct d9__writer *w);

/* Add |batch| to the segment that is open, as no reason to keep it. */
int d9__writer_lead(struct d9__writer *w, const struct d9__builder *batch, uint64_t now_ns);

/* Make |out| one batch with the metadata and all modules of this process. */
void d9__writer_describe(struct d9__builder *out);

/* |n| segments of |w| are the dump |id|, which has a budget with others. */
void d9__writer_keep_dump(struct d9__writer *w, const char *id, const uint64_t *segments, size_t n);

/* Whether batches can be added now; tries again by itself when the time has come. */
bool d9__writer_ready(struct d9__writer *w, uint64_t now_ns);

/*
 * Add a batch of |events| events.  0, or -errno: then d9__writer_abandon() has to follow, and
 * nothing of this commit is in the file.
 */
int d9__writer_add(struct d9__writer *w, const void *batch, size_t len, uint64_t first_ns,
		   uint64_t last_ns, uint32_t events, uint64_t now_ns);

/*
 * Add what the recorder itself has to say; its events count nowhere.  |real|: it opens a segment
 * if none is open, and keeps it; else it is dropped then.
 */
int d9__writer_note(struct d9__writer *w, const struct d9__builder *note, bool real,
		    uint64_t now_ns);

/*
 * Write what was added; what was is final.  0 or -errno: then nothing since the last commit is in the file, the
 * segment ends there, and the writer is paused.
 */
int d9__writer_commit(struct d9__writer *w, uint64_t now_ns);

/* Seal the segment if it is full.  0 or -errno, as d9__writer_commit(). */
int d9__writer_rotate_full(struct d9__writer *w, uint64_t now_ns);

/* Finish the segment of a dump that an error left behind, if that is possible now.  0 or -errno. */
int d9__writer_finish_dump(struct d9__writer *w);

/* End the segment where the last commit did, after an error of d9__writer_add(), and pause. */
void d9__writer_abandon(struct d9__writer *w, int err, uint64_t now_ns);

/*
 * Write metadata, modules and the wall clock if they changed; nothing if no segment is open, unless the
 * metadata is to be kept (d9__metadata_keep()).  0 or -errno, as d9__writer_commit().
 */
int d9__writer_refresh(struct d9__writer *w, uint64_t now_ns);

/* Whether the segment is due for sealing by age. */
bool d9__writer_aged(const struct d9__writer *w, uint64_t now_ns);

/* Seal the segment, if one is open.  0 or -errno, as d9__writer_commit(). */
int d9__writer_rotate(struct d9__writer *w, uint64_t now_ns);

/*
 * While |pressed|, the flush thread waits for CPUs that the program wants too: zstd frames are
 * written raw from now on, until raw ones take a quarter of the budget.  To be called now and then.
 * False if this writer has none.
 */
bool d9__writer_press(struct d9__writer *w, bool pressed, uint64_t now_ns);

/* Events were lost: the segment is not complete. */
void d9__writer_lossy(struct d9__writer *w);

/* Seal, close, free. */
void d9__writer_close(struct d9__writer *w, uint64_t now_ns);

/* Bring |counters| up to date. */
void d9__writer_publish(struct d9__writer *w);
