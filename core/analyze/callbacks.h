/* SPDX-License-Identifier: Apache-2.0 */
/* The functions that loops call, one entry per place in the trace, and what they cost. */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyze/growth_curve.h"
#include "analyze/histogram.h"
#include "analyze/off_time.h"
#include "analyze/texts.h"
#include "analyze/time_parts.h"
#include "analyze/weights.h"
#include "base/table.h"

/* Long calls of one callback that are kept in full. */
#define D9__CALLBACK_STALLS 5

/* A spell of so many windows is told. */
#define D9__SPELL_WINDOWS 3

struct d9__stall;
struct d9__stale_timers;
struct d9__frame_name;
struct d9__helper;
struct d9__lost_wakes;
struct d9__shape;

/* Stretches in which one callback was all that kept a loop going (see rounds.h). */
enum d9__spell_kind {
	D9__SPELL_SPIN,  /* without ever waiting */
	D9__SPELL_STORM, /* woken by other threads */
	D9__SPELL_IDLE,  /* woken by a timer, else asleep */
	D9__SPELLS
};

/* On one worker: workers go side by side, so that their times are not added up. */
struct d9__spell {
	uint64_t windows, ns, first_ns;
	uint64_t calls, busy_ns, unparks;
	uint64_t tasks; /* of a window, that were called about as often as the one with most calls; 0: one */

	/* Of the window with most calls. */
	uint64_t most_calls, worker, task, waker, waker_worker;
	int64_t fd; /* below 0: none, or not told */
	uint8_t reason;
	bool listener; /* the task takes connections */
};

/* Where calls were found asleep: a system call, or a place in the kernel. */
#define D9__ASLEEP_MAX 4
struct d9__asleep {
	const char *place; /* "fdatasync(7)"; borrowed */
	uint64_t calls;
};

/* Page faults of one call that are many. */
#define D9__MANY_FAULTS 1000

/* The functions of a GLib source that its loop calls beside its callback. */
enum d9__outside_phase {
	D9__IN_PREPARE,
	D9__IN_CHECK,
	D9__OUTSIDE_PHASES
};

struct d9__outside {
	uint64_t calls, ns, max_ns, max_at_ns;
	uint64_t slow; /* events that tell of a call over 5 ms */
	uint64_t worker, task;
	const char *place; /* "module+0x..." of the function itself; borrowed; NULL: not told */
	uint64_t address;  /* of it in the recorded process, or 0 */
	char *function;	   /* its name, if it is known */
	char *source;	   /* "file.c:12" of it, or NULL */
};

/* The results of reads, writes and accepts in a callback's calls, as the recorder counts them. */
struct d9__io {
	uint64_t reads, writes, accepts; /* calls */
	uint64_t again, eof, errors;	 /* of these, that brought nothing */
	uint64_t read_bytes, write_bytes;
	uint64_t last_errno;
	int64_t fd; /* of the latest; below 0: not told */
};

static inline uint64_t d9__io_calls(const struct d9__io *io)
{
	return io->reads + io->writes + io->accepts;
}

/* Calls that brought something: a look with MSG_PEEK is a read without bytes, and takes nothing. */
static inline uint64_t d9__io_useful(const struct d9__io *io)
{
	uint64_t useless = io->again + io->eof + io->errors, calls = d9__io_calls(io);
	uint64_t most = io->read_bytes + io->writes + io->accepts;

	calls = calls > useless ? calls - useless : 0;
	return calls < most ? calls : most;
}

static inline void d9__io_add(struct d9__io *sum, const struct d9__io *io)
{
	sum->reads += io->reads;
	sum->writes += io->writes;
	sum->accepts += io->accepts;
	sum->again += io->again;
	sum->eof += io->eof;
	sum->errors += io->errors;
	sum->read_bytes += io->read_bytes;
	sum->write_bytes += io->write_bytes;
	if (io->last_errno)
		sum->last_errno = io->last_errno;
	if (d9__io_calls(io))
		sum->fd = io->fd;
}

/* Runs of a function of the program that its library called in one call of its own. */
struct d9__inner {
	struct d9__callback *callback; /* NULL: there were none */
	uint64_t runs;
	uint64_t ns, told_ns; /* in all of them, and of that in waits that were told; a run inside
				 of another counts once */
	uint64_t longest_ns, longest; /* of them, and which of its callback's calls that was */
};

/* The sources that make callbacks ready. */
enum d9__cause {
	D9__CAUSE_TIMER,
	D9__CAUSE_SIGNAL,
	D9__CAUSE_DESCRIPTOR,
	D9__CAUSE_THREAD, /* another one */
	D9__CAUSE_OTHER,
	D9__CAUSES
};

/* The calls of one callback on one worker. */
struct d9__callback_on {
	struct d9__account time;
	struct d9__inner
		inner; /* of its runs in |inner_piece|, which is a struct d9__piece's number */
	uint64_t inner_piece;
	uint64_t calls;
	uint64_t latest_task; /* that the latest of them was for; 0: none */
	uint64_t alone; /* of them, in wakes in which nothing else was called, and how many wakes */
	uint64_t wakes;
	uint64_t by_timer; /* and by a timer */
	uint64_t by_self;  /* and by its own task */
	/* In the current window (see rounds.h): how many, and of timers that are made anew. */
	uint64_t window, window_calls[D9__CAUSES];
	uint64_t anew_calls, anew_ns;
	uint64_t ns;	   /* without functions inside that are callbacks of their own */
	struct d9__io io;
};

/* Which one of many has most of something: right where one has more than half. */
struct d9__vote {
	uint64_t id, ahead;
	uint64_t ns, n; /* of it, since it was the one */
};

struct d9__callback {
	size_t number; /* its place among all, from 0 */
	const char *location; /* on the wire: "CALLBACK @ SITE", or a foreign trace's position */
	uint64_t address, site_address; /* in the recorded process; 0: not told */
	uint32_t kinds;       /* bit i: kind i of struct d9__callbacks */
	bool internal;        /* the loop library's own */
	bool listener;        /* so are they that take connections */
	bool each_round;      /* called in each round of its loop, as libev's prepare and check watchers are */
	bool replayed;        /* some worker's waits are tried without it */
	bool span;            /* called by the loop library inside a callback of its own */
	const struct d9__callback *caller; /* then: that callback, the first that was seen; else NULL */

	/* Calls: nested loops cut one into pieces, which are added up. */
	uint64_t calls, open_ended;
	uint64_t over_1ms, over_10ms, over_50ms;
	struct d9__histogram durations;
	struct d9__histogram delays;   /* wake to poll */
	struct d9__histogram own_delays; /* of these, behind a call for the same task on its loop */
	struct d9__histogram lateness; /* timers: due to poll */
	struct d9__account time; /* of its calls; the sum of all workers, complete at the end */
	struct d9__weight weight; /* of samples in its calls */
	uint64_t on_samples, off_samples;
	uint64_t off_told; /* of |off_samples|, in calls that are told with their length */
	struct d9__off_time off_time; /* of |off_samples| */
	uint64_t switches; /* of |off_samples|, that slices tell of */
	struct d9__hot *hot; /* where; owned; NULL: it has none */

	/* Calls that ran a loop themselves. */
	struct {
		uint64_t calls;
		uint64_t ns, parked_ns; /* of these loops, and of that in their waits */
		uint64_t longest_ns;    /* call, from its start to its end, without what the kernel took */
		uint64_t longest_own_ns; /* of that, outside of the loop */
		unsigned depth;         /* most, of loops in loops */
	} nested;

	struct {
		struct d9__table of;	       /* by number of the worker; owns its struct d9__spell */
		const struct d9__spell *worst; /* of the worker with most windows; NULL: there is none */
		uint64_t workers;	       /* with D9__SPELL_WINDOWS and more */
	} spells[D9__SPELLS];

	/* Timers that were due again before their call had ended, and the period of the last. */
	uint64_t overruns, period_ns;

	/* Timers that it armed by a clock which stood still; owned; NULL: none. */
	struct d9__stale_timers *stale;

	/* Of its wakes by other threads that found the loop asleep; owned; NULL: none. */
	struct d9__lost_wakes *lost;

	/* Of its runs on helper threads, which are no calls of a loop; owned; NULL: none. */
	struct d9__helper *helper;

	/* How the lengths of its calls go on; owned; NULL: it has none. */
	struct d9__shape *shape;

	uint64_t taken_ns; /* of its calls, ready without a CPU */
	uint64_t behind_ns; /* that callbacks waited behind its long calls: behind_ns of all */
	struct d9__histogram own; /* what calls of D9__STALL_NS and more took without that */
	uint64_t bursts; /* of |own|, how many are several of its calls in one of a library */

	/* Of these calls, by what they took themselves: which task has most of it, and which
	 * worker. */
	struct {
		uint64_t ns, n;
		struct d9__vote task, worker;  /* their ids */
		int64_t fd;		       /* the task's; below 0: none, or not told */
		const struct d9__callback *of; /* whose task it is: a library's, maybe */
	} slow;

	/* Of its calls over 1 ms, what their thread's own figures say. */
	struct {
		uint64_t calls, faults, faulty_calls;
		uint64_t user_ns, system_ns;
		uint64_t own_ns; /* elapsed, without what the kernel took */
	} inside;

	/* Of its calls over 10 ms, the most frequent first. */
	struct d9__asleep asleep[D9__ASLEEP_MAX];
	size_t n_asleep;

	struct d9__outside outside[D9__OUTSIDE_PHASES];

	/* In whose calls its tasks are made, for the most part; NULL: in none. */
	const struct d9__callback *maker;
	uint64_t maker_votes;

	struct d9__histogram blocked; /* of long calls that slept for most of their time, how long they did */

	/* By number of the worker; NULL: it did not run there, or its memory is left out. */
	struct d9__callback_on **on;
	size_t n_on;

	/* Its tasks. */
	uint64_t spawned, ended, uninstrumented;
	uint64_t lives_ns; /* how long they were registered, together; complete at the end */
	uint64_t ran; /* of those that were spawned in the trace */
	int64_t alive, peak_alive;
	struct d9__growth_curve *alive_curve; /* from its 100th task on */

	/*
	 * Before the ends since the newest call of anything, because a program that shuts down ends
	 * everything.
	 */
	uint64_t end_epoch, ended_before;
	int64_t alive_before;
	uint64_t end_ns; /* of the newest end, which is not in the curve yet */

	/* Long calls, by their own time, longest first; holds a reference to each. */
	struct d9__callback_stall {
		uint64_t ns;
		struct d9__stall *stall;
	} stalls[D9__CALLBACK_STALLS];
	size_t n_stalls;

	/* The name that the program or its loop library gives to its tasks, or NULL; |names|: others of them otherwise. */
	char *task_name;
	bool names;

	/* Names for people. */
	char *function; /* NULL: unknown */
	char *source;   /* "file.c:12" of the function, or NULL */
	char *site;     /* where it was registered, or NULL */

	/*
	 * The program's function that this callback of a library calls, if most of its time was
	 * found there.
	 */
	const struct d9__frame_name *inner; /* NULL: there is none */
	char *inner_source;		    /* "file.c:12", or NULL */
};

/* A call that is over. */
struct d9__call_end {
	const struct d9__callback *callback;
	uint64_t worker, task; /* their ids */
	uint64_t run, caller;  /* which of all runs: |runs| of struct d9__callbacks; |caller|: that
				  of the library's callback that called it; 0: the loop did */
	uint64_t piece;	       /* that it began in: |number| of struct d9__piece; 0: in none */
	uint64_t start_ns, ns; /* |ns|: as it counts for the callback */
	uint64_t told_ns;      /* in waits that were told; of functions that a library called */
	uint64_t end_ns;       /* behind loops that it ran */
	uint64_t delay_ns;     /* from ready to running; UINT64_MAX: no wake was seen */
	unsigned on_samples, off_samples;
	bool open_ended;
	bool read; /* how long it slept and was ready without a CPU is known */
	uint64_t blocked_ns, ready_ns;
	const struct d9__stall *stall; /* what else is known of a long one; NULL: nothing */
};

/* Called, if |take| is set, for each call that a callback's figures count, beside what is done here. */
struct d9__call_hook {
	void (*take)(void *context, const struct d9__call_end *call);
	void *context;
	void (*take_unended)(void *context,
			     const struct d9__call_end *call); /* the trace ends first: its length
								  is not known; NULL: not wanted */
};

/* All zero is empty. */
struct d9__callbacks {
	struct d9__callback **items;
	size_t n;
	struct d9__texts locations; /* item i has text i */
	struct d9__texts kinds;
	uint64_t runs; /* of all of them that have begun, numbered from 1 */
};

void d9__callbacks_release(struct d9__callbacks *callbacks);

/* The results of reads and writes of |callback|, on all loops. */
struct d9__io d9__callback_io(const struct d9__callback *callback);

/* How long calls of |callback| slept, those left out that slept for over |limit_ns|. */
uint64_t d9__callback_slept_below_ns(const struct d9__callback *callback, uint64_t limit_ns);

/* |id| has |ns| more.  True if it is now the one that has most, and was not before. */
bool d9__vote_add(struct d9__vote *vote, uint64_t id, uint64_t ns);

/* The entry of |location|, made at its first sight; NULL: out of memory. */
struct d9__callback *d9__callbacks_at(struct d9__callbacks *callbacks, const char *location,
				      size_t len);

/* Note that |callback| is of |kind| ("io", "timer", ...).  0 or -ENOMEM. */
int d9__callback_add_kind(struct d9__callbacks *callbacks, struct d9__callback *callback,
			  const char *kind, size_t len);

/* Whether a task at |location| is better known by |name|: the program chose it, and its function has no symbol. */
bool d9__name_is_better(const char *name, size_t len, const char *location, size_t location_len);

/* One of its tasks is called |name|, as GLib's sources are.  0 or -ENOMEM. */
int d9__callback_add_name(struct d9__callback *callback, const char *name, size_t len);

/* Its kinds, joined by "+", into |buf|; returns |buf|. */
const char *d9__callback_kinds(const struct d9__callbacks *callbacks,
			       const struct d9__callback *callback, char *buf, size_t size);

/* A call for |task| begins on the worker of number |worker|.  0 or -ENOMEM. */
int d9__callback_begin(struct d9__callback *callback, unsigned worker, uint64_t task);

/* Whether no call of |callback| on |worker| was for another task than |task| since one that was. */
bool d9__callback_follows_itself(const struct d9__callback *callback, size_t worker, uint64_t task);

/*
 * The calls on the worker of number |worker|; NULL: none began there, or they are counted for the
 * callback alone.
 */
struct d9__callback_on *d9__callback_on(const struct d9__callback *callback, size_t worker);

/* |callback| had the worker of number |worker| for |ns|. */
void d9__callback_stayed(struct d9__callback *callback, size_t worker, uint64_t ns);

/* The account of |callback|'s calls on the worker of number |worker|. */
struct d9__account *d9__callback_time(struct d9__callback *callback, size_t worker);

/* Nothing follows: sum up what is known by worker. */
void d9__callbacks_finish(struct d9__callbacks *callbacks);

/* Whether a call began on the worker of number |worker|. */
bool d9__callback_ran_on(const struct d9__callback *callback, size_t worker);

/* A call took |ns|.  0 or -ENOMEM. */
int d9__callback_end(struct d9__callback *callback, uint64_t ns);

/*
 * A call was open for |open_ns|, |nested_ns| of it in loops that it ran, which waited for |parked_ns|, all without
 * what the kernel took; |depth| of them lay in each other.
 */
void d9__callback_ran_loop(struct d9__callback *callback, uint64_t open_ns, uint64_t nested_ns,
			   uint64_t parked_ns, unsigned depth);

/* The spell of |kind| on the worker of number |worker|; NULL: none. */
const struct d9__spell *d9__callback_spell(const struct d9__callback *callback, enum d9__spell_kind kind,
					   uint64_t worker);

/* The spell of |kind| on |worker|, made at its first window; NULL: out of memory. */
struct d9__spell *d9__callback_new_spell(struct d9__callback *callback, enum d9__spell_kind kind,
					 uint64_t worker);

/* A window was added to |spell|, which |callback| has of |kind|. */
void d9__callback_spell_grew(struct d9__callback *callback, enum d9__spell_kind kind,
			     const struct d9__spell *spell);

/*
 * The function's name alone if it is known, else its tasks' if they have one, else the callback's half of the
 * location.  |*len|
 * is its length: the text may go on.
 */
const char *d9__callback_name(const struct d9__callback *callback, size_t *len);

/* "bufferevent read > render" into |buf|, or its name alone if the program's loop calls it itself; |buf|. */
const char *d9__callback_way(const struct d9__callback *callback, char *buf, size_t size);

/* Where its tasks are made, terminated; NULL if the trace does not tell. */
const char *d9__callback_site(const struct d9__callback *callback);

/* Whether it is one of GLib's or GIO's own. */
bool d9__callback_is_glib(const struct d9__callback *callback);
