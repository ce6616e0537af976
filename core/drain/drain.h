/* SPDX-License-Identifier: Apache-2.0 */
/* Drain: takes batches out of the ring, in order, and gives them to the writer; accounts losses. */

#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "drain/gap.h"
#include "ring/chunk.h"
#include "segment/walk.h"
#include "segment/writer.h"

/* How far the file is with one slot.  Lives as long as the ring: recorders come and go. */
struct d9__drain_slot {
	uint32_t serial;  /* of the chunk that was taken last, 0 = none */
	bool partly;      /* of that one, only a prefix was taken */
	bool gap;         /* the part taken last is lost, because it could not be written */
	uint64_t prefix_ns; /* when the last prefix was taken */
	uint64_t activity;  /* published word and serial at the last look */
	struct d9__entry_state end; /* in which the taken part leaves the worker */
	uint32_t worker;            /* last seen in the slot, for losses */
	uint64_t lost[D9__LOSS_CAUSES]; /* told to the writer; what the file tells is in the ring */
	uint64_t lost_ns[D9__LOSS_CAUSES]; /* the latest of those; 0: not known */
};

/* Flush thread only. */
struct d9__drain {
	struct d9__writer *writer;
	struct d9__ring *ring; /* whose slots and losses: ours, or that of a dead process */
	struct d9__walker *walker;
	struct d9__builder note, rest;
	struct d9__gap gaps;
	struct d9__gap written; /* |gaps| as of the last commit */
	bool told;   /* losses, since then */
	bool last;   /* the process ends: what cannot be written stays in the ring for others */
	/* Slots, then one for the process. */
	struct d9__drain_slot slot[D9__SLOT_COUNT + 1];
};

/* Memory for d9__drain_init(), which then cannot fail.  0 or -ENOMEM. */
int d9__drain_reserve(struct d9__drain *drain);
/* 0 or -ENOMEM.  Keeps what is known about the slots; the ring is ours. */
int d9__drain_init(struct d9__drain *drain, struct d9__writer *writer);
void d9__drain_release(struct d9__drain *drain);

/*
 * Add |batch|, a prefix or all of its chunk, and what has to stand before it: losses and gaps
 * where its serial does not follow.  The caller commits.  -errno: nothing since the last commit can
 * be kept.
 */
int d9__drain_take(struct d9__drain *drain, struct d9__batch *batch, bool whole, uint64_t now_ns);

/* The frames of |batch| are in the file already: learn in which state they leave its workers. */
void d9__drain_follow(struct d9__drain *drain, const uint8_t *batch, uint32_t len);

/* Write all full chunks.  True if there were any.  Stops when the writer fails. */
bool d9__drain_full(struct d9__drain *drain, uint64_t now_ns);

/*
 * Write the published prefixes of open chunks that hold something older than |age_ns|; 0: all.  False
 * if one is left: chunks were handed over meanwhile, which are to be drained first, or the writer failed.
 */
bool d9__drain_prefixes(struct d9__drain *drain, uint64_t now_ns, uint64_t age_ns);

/* Losses of one slot, or of the process, by one cause since it was asked last. */
struct d9__drain_loss {
	uint64_t events, from_ns, to_ns; /* times 0 if not known */
	uint32_t tid;                    /* of the slot's newest owner; 0 of the process */
};

/* |index| D9__SLOT_COUNT: the process.  False: nothing new.  The writer is going to be told of it, */
bool d9__drain_take_loss(struct d9__drain *drain, uint32_t index, int cause,
			 struct d9__drain_loss *out);
/* or is not to be told any more, */
void d9__drain_told(struct d9__drain *drain, uint32_t index, int cause);
/* or could not be told: it will be taken again. */
void d9__drain_put_back_loss(struct d9__drain *drain, uint32_t index, int cause,
			     const struct d9__drain_loss *lost);

/*
 * Give up everything that is in the ring now: events of full chunks are gone, those published in
 * open ones are never written.  Not counted as lost.
 */
void d9__drain_forget(struct d9__drain *drain);
/*
 * The writer's commit succeeded: what it was given is in the file, which is sealed if it is full.  0, or -errno if it
 * could not be.
 */
int d9__drain_wrote(struct d9__drain *drain, uint64_t now_ns);

/* Write down losses that no gap has told yet. */
void d9__drain_losses(struct d9__drain *drain, uint64_t now_ns);

/* The writer is paused: what was overrun since the last call is counted as lost to the disk instead. */
void d9__drain_paused(struct d9__drain *drain);

/*
 * How many events all slots but |own| published since the last call: 0 if none, and more than there
 * are where a chunk was begun.
 */
uint64_t d9__drain_activity(struct d9__drain *drain, uint32_t own);

/* Count as lost everything that is still full: nothing can be written any more. */
void d9__drain_give_up(struct d9__drain *drain);

/* It failed: what the writer was told since the last one is to be told again. */
void d9__drain_failed(struct d9__drain *drain);
