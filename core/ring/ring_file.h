/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ring file: the shared mapping that holds all that a recorder has not written yet.
 *
 *     0       header: who we are, sizes          written at start
 *     4 KiB   control words                      written by `dial9 enable|disable|rotate|dump`
 *     8 KiB   health                             written by the flush thread
 *    16 KiB   queue |free|                       chunk numbers
 *    28 KiB   a request about triggers           written by `dial9 trigger`
 *    36 KiB   queue |full|
 *    48 KiB   the recorder's own log, see note.h
 *    60 KiB   losses of no slot in particular
 *    64 KiB   1024 slots of 128 bytes
 *   192 KiB   losses of each slot, by cause
 *   448 KiB   description: metadata and modules, twice 32 KiB
 *   512 KiB   chunks of 64 KiB
 *
 * It outlives the process: a kill leaves every published event in it.  All integers are of the
 * host's byte order; pointers in slots mean something to their process only.  A reader of another
 * process's ring checks every number.
 */

#pragma once

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/store_name.h"
#include "base/time.h"
#include "base/trigger_text.h"
#include "ring/clock.h"
#include "ring/note.h"
#include "ring/queue.h"

#define D9__RING_MAGIC       "D9RING\0\1"
#define D9__RING_LAYOUT      5
#define D9__RING_LAYOUT_OLD  4 /* can be read as well: its header ends before |s3_bucket|, with zeros behind */
#define D9__RING_CONTROL_AT  0x1000
#define D9__RING_HEALTH_AT   0x2000
#define D9__RING_FREE_AT     0x4000
#define D9__RING_TRIGGER_AT  0x7000 /* zeros likewise */
#define D9__RING_FULL_AT     0x9000
#define D9__RING_NOTES_AT    0xc000 /* zeros in rings of before there was a log */
#define D9__RING_LOSS_AT     0xf000 /* of the process */
#define D9__RING_INNER_AT	    0xf800 /* zeros in rings of before one event told a call */
#define D9__RING_SLOTS_AT    0x10000
#define D9__RING_LOSSES_AT   0x30000 /* of the slots */
#define D9__RING_DESCRIPTION_AT     0x70000
#define D9__RING_DESCRIPTION_BYTES  0x8000 /* each of the two */
#define D9__RING_CHUNKS_AT   0x80000
#define D9__RING_EXTENT      0x100000 /* the ring grows by this */

#define D9__SLOT_COUNT       1024
#define D9__CHUNK_SIZE       0x10000
#define D9__CHUNKS_FIRST     8    /* allocated at start */
#define D9__CHUNKS_MIN       4    /* fewer than this and there is no ring */
#define D9__CHUNKS_AHEAD     16	  /* d9__ring_grow() keeps this many free */
#define D9__RING_FACTS       4096
#define D9__RING_DIR         1024 /* longest name of a directory, with its end */
#define D9__RING_TEXT        (D9__TRIGGER_TEXT + D9__TRIGGER_RESOLVED + 1) /* of a trigger, with its end */
#define D9__RING_ANSWER      1280 /* a trigger as its author wrote it, or what is wrong with it */

/* Why events were lost.  The order is the ring's layout; names go to the trace. */
enum d9__loss_cause {
	D9__LOSS_OVERRUN,     /* a thread took the oldest full chunk because none was free */
	D9__LOSS_NO_CHUNK,    /* not even that */
	D9__LOSS_NO_SLOT,     /* over 1024 threads at once; of the process */
	D9__LOSS_DISK,        /* could not be written; counted by the flush thread */
	D9__LOSS_REENTRANT,   /* from a signal handler, and not of a kind the side ring takes */
	D9__LOSS_SIDE_RING,   /* the side ring was full */
	D9__LOSS_THREAD_EXIT, /* after the slot was given back; of the process */
	D9__LOSS_TOO_BIG,     /* longer than an event may be */
	D9__LOSS_CAUSES,
};

/* "overrun", "no_chunk", ...; for RecorderLossEvent and `dial9 status`. */
extern const char *const d9__loss_names[D9__LOSS_CAUSES];

/* Any thread adds; the flush thread takes.  Relaxed: the counts order nothing. */
struct d9__loss {
	_Atomic(uint64_t) events; /* since start; d9__drain_paused() moves some to another cause */
	_Atomic(uint64_t) from_ns, to_ns; /* hull of those that are not noted; 0 = none */
	_Atomic(uint64_t) noted; /* of |events|, told in the file; flush thread */
};

struct d9__losses {
	struct d9__loss cause[D9__LOSS_CAUSES];
};

enum d9__ring_kind {
	D9__RING_AUTO, /* shm, then memfd, then anonymous */
	D9__RING_SHM,
	D9__RING_MEMFD,
	D9__RING_ANON,
	D9__RING_DISK, /* in the trace directory: survives the machine as far as written back */
};

/*
 * At 0.  Up to |trace_dir| it is the same in every layout, so that everyone can tell whose ring it is.
 * Written at start, before the magic; afterwards only |chunk_count| and |description| change,
 * |boot_id| once, if that name was taken, and |flight| when another recorder is started in it.
 */
struct d9__ring_header {
	char magic[8]; /* written last */
	uint32_t layout;
	uint32_t kind; /* enum d9__ring_kind */
	uint32_t slot_count;
	uint32_t chunk_size;
	uint32_t chunks_at;
	uint32_t chunks_max;
	_Atomic(uint32_t) chunk_count; /* there and mapped; release by the thread that adds one */
	uint32_t pid;
	uint64_t start_time; /* of the process, in clock ticks after boot: field 22 of /proc/PID/stat */
	char kernel_boot_id[40];
	char boot_id[32];
	struct d9__anchor anchor;
	char service[256];
	char trace_dir[1024]; /* "" if nothing is to be written to a directory */
	/*
	 * A batch with the metadata and modules of the process, for a segment that others have to
	 * make of this ring: which half in the high half, length in the low; 0 = none yet.  Flush
	 * thread (release).
	 */
	_Atomic(uint64_t) description;
	uint64_t recovery; /* number + 1 of the segment that recovery makes of this ring */
	_Atomic(uint32_t) flight; /* chunks are recycled: what is not there any more was not lost */
	/*
	 * Where a shipper that takes its targets from rings is to send the segments; "": nowhere.
	 */
	char s3_bucket[D9__BUCKET_NAME + 1];
	char s3_prefix[D9__KEY_PREFIX + 1];
};

/* The result of a dump that was asked for from outside. */
struct d9__ring_dump {
	int32_t err; /* negative errno */
	uint32_t complete, segments;
	char id[32];
	char path[D9__RING_DIR + 128]; /* with |err|: the trace directory, if that is what is at fault */
	uint64_t events, bytes, from_ns, to_ns;
};

/* At 4 KiB.  Outside tools write the first group and wake |futex|; the flush thread acknowledges. */
struct d9__ring_control {
	_Atomic(uint32_t) futex;  /* incremented with every request; FUTEX_WAKE follows */
	_Atomic(uint32_t) wanted; /* 0 as started; low byte 1 enable, 2 disable; above: a number */
	_Atomic(uint32_t) rotate_requested, dump_requested;
	_Atomic(uint32_t) dump_owner; /* pid of who may fill in the rest; 0: the first that takes it */
	uint64_t dump_last_ns;        /* 0: all that the ring holds */
	char dump_dir[D9__RING_DIR];  /* absolute; "": the recorder's own */

	/* Flush thread. */
	_Alignas(64) _Atomic(uint32_t) wanted_done;
	_Atomic(uint32_t) rotate_done, dump_done;
	_Atomic(int32_t) rotate_err; /* negative errno: nothing is sealed; of the last one, valid with |rotate_done| */
	struct d9__ring_dump dump; /* valid with |dump_done| (release) */

	/* Flight mode, recording threads: events that made room for newer ones. */
	_Alignas(64) _Atomic(uint64_t) recycled;

	/* Copies of the process that ran loops or had events, and have no recorder: see d9__recorder_child_check(). */
	_Atomic(uint32_t) cloned;
};

enum d9__trigger_request {
	D9__TRIGGER_SET = 1, /* arm |text|, instead of the one of its name if there is one */
	D9__TRIGGER_REMOVE,  /* that of the name |text| */
	D9__TRIGGER_FIRE,    /* likewise */
	D9__TRIGGER_SHOW,    /* the first from |number| on: the answer is its text */
};

/* At 28 KiB.  Outside tools write the first group, as with the control words, whose futex they wake. */
struct d9__ring_trigger {
	_Atomic(uint32_t) requested;
	_Atomic(uint32_t) owner; /* pid of who may fill in the rest; 0: the first that takes it */
	uint32_t what;           /* enum d9__trigger_request */
	uint32_t number;
	char text[D9__RING_TEXT];

	/* Flush thread: valid with |done| (release). */
	_Alignas(64) _Atomic(uint32_t) done;
	int32_t err;    /* negative errno */
	uint32_t shown; /* the number of what was shown */
	uint64_t fired; /* how often that has */
	char answer[D9__RING_ANSWER];
};

enum d9__ring_state {
	D9__STATE_STARTING,
	D9__STATE_RECORDING,
	D9__STATE_FLIGHT,
	D9__STATE_DISABLED,
	D9__STATE_PAUSED, /* cannot write; see |error| */
	D9__STATE_STOPPING,
	D9__STATE_STOPPED,
};

#define D9__RING_OPEN_MAX     12
#define D9__OPEN_CALL_NS      (10 * D9__MS_NS) /* younger ones are none */
#define D9__OPEN_CALL_HUNG_NS D9__SECOND_NS    /* older ones are told each second */

/* A callback that had not returned at the last tick: see open_calls.h.  Texts end. */
struct d9__ring_open {
	uint64_t since_ns, task;
	uint64_t sign_ns; /* of its latest LastSignEvent; 0: none */
	uint32_t worker, tid;
	uint8_t around;   /* a loop runs inside it */
	uint8_t outside;  /* no callback: a loop that stands still outside of them */
	uint8_t known;    /* the three below are of a look at the thread */
	uint8_t running;
	char syscall[48]; /* "pause()" */
	char wchan[32];
	char loc[72];     /* the callback's name in the trace, without its site */
	char span[72];    /* of the innermost callback that it has called, or "" */
};

/*
 * At 8 KiB.  Written by the flush thread: |seq| is odd meanwhile.  Events and losses are not
 * here: the reader sums them from the slots.
 */
struct d9__ring_health {
	_Atomic(uint32_t) seq;
	uint32_t state; /* enum d9__ring_state */
	uint64_t state_since_ns;
	uint64_t tick_ns; /* heartbeat: the last tick */
	uint64_t ticks;
	uint64_t events_written, bytes_recorded, bytes_written, chunks_written;
	uint64_t segments, segment_number, retained_bytes, budget_bytes;
	uint64_t last_success_ns;
	uint64_t error_ns, error_count;
	int32_t error;      /* errno of the last failed write, 0 = none yet */
	uint32_t full_high; /* most chunks that ever waited in |full| */
	uint32_t gate;      /* bits wanted */
	uint32_t clock_kind;
	uint64_t clock_steps, clock_bracket_ns;
	double ns_per_tick;
	char error_op[32]; /* "open", "write", "rename" ... */
	char clock_reason[64];
	char segment[256];
	/* Metadata about the process, its loops and their hooks: KEY=VALUE lines, whole ones only. */
	char facts[D9__RING_FACTS];
	/* Longest first.  Of what |tick_ns| found; rings of before there was this have none. */
	uint32_t n_open;
	struct d9__ring_open open[D9__RING_OPEN_MAX];
};

/*
 * A function that a library has called in an open call, and that the trace does not tell of yet: at
 * 62 KiB, as many as there may be open calls.  Written by the flush thread, read when the process
 * is dead.
 */
struct d9__ring_inner {
	_Atomic(uint64_t) id; /* 0: none, or the trace has it; stored last */
	uint64_t since_ns, task;
	uint32_t worker;
	char library[16];
	char name[120]; /* as in the trace */
};

static_assert(D9__RING_INNER_AT + D9__RING_OPEN_MAX * sizeof(struct d9__ring_inner) <=
		      D9__RING_SLOTS_AT,
	      "functions fit behind the losses of the process");
static_assert(sizeof(struct d9__ring_header) <= 0x1000, "header fits its page");
static_assert(sizeof(struct d9__ring_control) <= 0x1000, "control words fit their page");
static_assert(sizeof(struct d9__ring_health) <= 0x2000, "health fits its pages");
static_assert(D9__RING_FREE_AT + sizeof(struct d9__queue) <= D9__RING_TRIGGER_AT, "queue free fits");
static_assert(D9__RING_TRIGGER_AT + sizeof(struct d9__ring_trigger) <= D9__RING_FULL_AT, "requests about triggers fit");
static_assert(D9__RING_FULL_AT + sizeof(struct d9__queue) <= D9__RING_NOTES_AT, "queue full fits");
static_assert(D9__RING_NOTES_AT + sizeof(struct d9__notes) <= D9__RING_LOSS_AT, "the log fits");
static_assert(sizeof(struct d9__losses) == 256, "recovery and status know this size");
static_assert(D9__RING_LOSSES_AT + D9__SLOT_COUNT * sizeof(struct d9__losses) ==
		      D9__RING_DESCRIPTION_AT, "losses fill their range");
static_assert(D9__RING_DESCRIPTION_AT + 2 * D9__RING_DESCRIPTION_BYTES == D9__RING_CHUNKS_AT, "the description fits");

struct d9__ring_options {
	enum d9__ring_kind kind;
	size_t max_bytes;      /* of chunks; DIAL9_RING_MB, 0 = 32 MiB; at most 128 MiB are used */
	const char *boot_id;   /* BOOT_ID of the namespace: names the directory in /dev/shm */
	const char *trace_dir; /* absolute; where recovery belongs, and the place of kind DISK */
	const char *service;
	const char *s3_bucket, *s3_prefix; /* NULL: none */
};

/* This process's ring.  |base| is NULL until d9__ring_start() and never unmapped afterwards. */
struct d9__ring {
	uint8_t *base;
	size_t reserved;  /* bytes of address space */
	int fd;           /* for growing and flock(2); -1 if anonymous.  Owned by the recorder */
	uint32_t chunks_max;
	bool whole; /* mapped up to its cap: to grow takes no descriptor, see d9__ring_add_chunk() */
	struct d9__ring_header *header;
	struct d9__ring_control *control;
	struct d9__ring_trigger *trigger;
	struct d9__ring_health *health;
	struct d9__queue *free, *full;
	struct d9__slot *slots;
	struct d9__losses *losses;      /* of slot i: losses[i] */
	struct d9__losses *proc_losses; /* of no slot */
	char path[128 + 1024];          /* "" if it has no name */
	const char *limited_by;         /* what made it smaller than it was asked to be; NULL: nothing */
	char why[96];                   /* why not the first choice, "" if it is; told as metadata */
	int not_renamed;                /* -errno: why not, if it has no name of this recorder; told, too */
};
extern struct d9__ring d9__ring;

/* Whether a ring of |layout| can be read here. */
static inline bool d9__ring_layout_is_known(uint32_t layout)
{
	return layout == D9__RING_LAYOUT || layout == D9__RING_LAYOUT_OLD;
}

/*
 * Create and map the ring with its first chunks.  Tries the places of |options->kind| in turn.
 * A recorder that starts again goes on in the old one, under a name and with texts of its own.
 * 0, -ENOMEM, -EINVAL, or the errno of the last place tried.  Not async-signal-safe.
 */
int d9__ring_start(const struct d9__ring_options *options);

/*
 * Map the next extent if fewer than D9__CHUNKS_AHEAD chunks are free and the cap allows it.
 * 1 grown, 0 not needed or at the cap, -errno.  Flush thread only; may take 0.6 ms.
 */
int d9__ring_grow(void);

/*
 * Grow if fewer than |wanted_free| are free.  Where there is no room for an extent, less is taken.
 */
int d9__ring_grow_to(uint32_t wanted_free);

/*
 * One chunk more, which is the caller's and in no queue, for a thread that finds none free because the
 * flush thread had no turn yet.  False: at the cap, no memory, or not possible here or now.  Takes
 * what 16 page faults take, once.  Lock-free.  Keeps errno.
 */
bool d9__ring_add_chunk(uint32_t *chunk);

/* Whether d9__ring_add_chunk() may: not while there is no memory for it.  Flush thread. */
void d9__ring_let_threads_grow(bool let);

/*
 * Give the ring's descriptor another number: the flush thread calls it after it has moved to a
 * descriptor table of its own and duplicated |d9__ring.fd| there.
 */
void d9__ring_adopt_fd(int fd);

/* The flush thread's was closed: open it again by its name.  A ring that has none does not grow any more. */
void d9__ring_open_again(void);

/*
 * Put |len| bytes of a batch into the place for metadata and modules.  -E2BIG if they do not fit.
 * Flush thread.
 */
int d9__ring_set_description(const uint8_t *batch, size_t len);

/* The trace directory is open: the name that it gave this process, which the ring's file gets too.  Flush thread. */
void d9__ring_set_boot_id(const char *boot_id);

/*
 * Remove the ring's name (and its directory, if empty): nothing is left to recover.  When the process
 * ends; a recorder that is only stopped leaves it, empty, to the next one.
 */
void d9__ring_unlink(void);

/*
 * In a forked child: stop knowing the parent's ring.  Its address range is replaced by private
 * zero pages, so that a pointer a hook still holds can neither change the parent's trace nor
 * crash.  The names table survives.  d9__slot_forget_in_child() follows.  Async-signal-safe.
 */
void d9__ring_forget_in_child(void);

/* Count |events| lost.  |slot| is the index of the slot, or -1 for the process.  Any thread. */
void d9__loss_add(int slot, enum d9__loss_cause cause, uint64_t events, uint64_t from_ns,
		  uint64_t to_ns);

/*
 * Return how many events |loss| counted beyond |seen|; if any, also the hull of the times of all
 * that is not noted.  Flush thread only.
 */
uint64_t d9__loss_take(struct d9__loss *loss, uint64_t seen, uint64_t *from_ns, uint64_t *to_ns);

/*
 * |events| of |loss|, until |until_ns|, are told in the file: the hull of those that were lost
 * meanwhile starts there.  Flush thread only.
 */
void d9__loss_noted(struct d9__loss *loss, uint64_t events, uint64_t until_ns);
