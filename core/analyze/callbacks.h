/* SPDX-License-Identifier: Apache-2.0 */
/* The functions that loops call, one entry per place in the trace, and what they cost. */

#ifndef D9_ANALYZE_CALLBACKS_H
#define D9_ANALYZE_CALLBACKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyze/curve.h"
#include "analyze/histogram.h"
#include "analyze/table.h"

#define D9__MS(n) ((uint64_t)(n) * 1000000)
#define D9__US(n) ((uint64_t)(n) * 1000)

/* Long calls of one callback that are kept in full. */
#define D9__CALLBACK_STALLS 5

struct d9__stall;
struct d9__stale_timers;
struct d9__helper;
struct d9__lost_wakes;

/* Stretches in which one callback was all that kept a loop going (see rounds.h). */
enum d9__spell_kind {
	D9__SPELL_SPIN,  /* without ever waiting */
	D9__SPELL_STORM, /* woken by other threads */
	D9__SPELL_IDLE,  /* woken by a timer, else asleep */
	D9__SPELLS
};

struct d9__spell {
	uint64_t windows, ns, first_ns;
	uint64_t calls, busy_ns, unparks;

	/* Of the window with most calls. */
	uint64_t most_calls, worker, task, waker, waker_worker;
	int64_t fd; /* below 0: none, or not told */
	uint8_t reason;
	bool listener; /* the task takes connections */
};

struct d9__callback {
	const char *location; /* on the wire: "CALLBACK @ SITE", or a foreign trace's position */
	uint64_t address, site_address; /* in the recorded process; 0: not told */
	uint32_t kinds;       /* bit i: kind i of struct d9__callbacks */
	bool internal;        /* the loop library's own */
	bool listener;        /* so are they that take connections */
	bool span;            /* called by the loop library inside a callback of its own */

	/* Calls: nested loops cut one into pieces, which are added up. */
	uint64_t calls, open_ended;
	uint64_t over_1ms, over_10ms, over_50ms;
	struct d9__histogram durations;
	struct d9__histogram delays;   /* wake to poll */
	struct d9__histogram lateness; /* timers: due to poll */
	uint64_t on_samples, off_samples;

	struct d9__spell spells[D9__SPELLS];

	/* Timers that were due again before their call had ended, and the period of the last. */
	uint64_t overruns, period_ns;

	/* Timers that it armed by a clock which stood still; owned; NULL: none. */
	struct d9__stale_timers *stale;

	/* Of its wakes by other threads that found the loop asleep; owned; NULL: none. */
	struct d9__lost_wakes *lost;

	/* Of its runs on helper threads, which are no calls of a loop; owned; NULL: none. */
	struct d9__helper *helper;

	uint64_t taken_ns; /* of its calls, ready without a CPU */

	/* Long calls that slept for most of their time. */
	uint64_t blocked_calls, blocked_ns;

	/* A bit by number of the worker, for the balance: d9__callback_ran_on(). */
	uint64_t *ran_on;
	size_t ran_on_words;

	/* Its tasks. */
	uint64_t spawned, ended, uninstrumented;
	uint64_t ran; /* of those that were spawned in the trace */
	int64_t alive, peak_alive;
	struct d9__curve *alive_curve; /* from its 100th task on */

	/* Before the ends since the newest call of anything: whoever shuts down ends everything. */
	uint64_t end_epoch, ended_before;
	int64_t alive_before;
	uint64_t end_ns; /* of the newest end, which is not in the curve yet */

	/* Long calls, by their own time, longest first; holds a reference to each. */
	struct d9__callback_stall {
		uint64_t ns;
		struct d9__stall *stall;
	} stalls[D9__CALLBACK_STALLS];
	size_t n_stalls;

	/* Names for people, set by d9__callback_set_names(). */
	char *function; /* NULL: unknown */
	char *source;   /* "file.c:12" of the function, or NULL */
	char *site;     /* where it was registered, or NULL */
};

/* All zero is empty. */
struct d9__callbacks {
	struct d9__callback **items;
	size_t n, capacity;
	struct d9__texts locations; /* item i has text i */
	struct d9__texts kinds;
};

void d9__callbacks_release(struct d9__callbacks *callbacks);

/* The entry of |location|, made at its first sight; NULL: out of memory. */
struct d9__callback *d9__callbacks_at(struct d9__callbacks *callbacks, const char *location,
				      size_t len);

/* Note that |callback| is of |kind| ("io", "timer", ...).  0 or -ENOMEM. */
int d9__callback_add_kind(struct d9__callbacks *callbacks, struct d9__callback *callback,
			  const char *kind, size_t len);

/* Its kinds, joined by "+", into |buf|; returns |buf|. */
const char *d9__callback_kinds(const struct d9__callbacks *callbacks,
			       const struct d9__callback *callback, char *buf, size_t size);

/* A call begins on the worker of number |worker|.  0 or -ENOMEM. */
int d9__callback_begin(struct d9__callback *callback, unsigned worker);

/* Whether a call began on the worker of number |worker|. */
bool d9__callback_ran_on(const struct d9__callback *callback, size_t worker);

/* A call took |ns|.  0 or -ENOMEM. */
int d9__callback_end(struct d9__callback *callback, uint64_t ns);

/* Keep |stall| if it is among the longest of |callback|. */
void d9__callback_keep_stall(struct d9__callback *callback, struct d9__stall *stall);

/*
 * The function's name alone if it is known, else the callback's half of the location.  |*len|
 * is its length: the text may go on.
 */
const char *d9__callback_name(const struct d9__callback *callback, size_t *len);

/* Where its tasks are made, terminated; NULL if the trace does not tell. */
const char *d9__callback_site(const struct d9__callback *callback);

/* Whether it is one of GLib's or GIO's own. */
bool d9__callback_is_glib(const struct d9__callback *callback);

/* Whether |module| ("libevent-2.1.so.7+0x1234") names a loop library. */
bool d9__module_is_loop(const char *module, size_t len);

#endif /* D9_ANALYZE_CALLBACKS_H */
