/* SPDX-License-Identifier: Apache-2.0 */
/* The recorders of this machine, seen from outside: where they are and how they do. */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <sys/types.h>

#include "ring/ring_view.h"

/* The faults of a recorder, worst first. */
enum d9__problem {
	D9__PROBLEM_DEAD = 1,      /* the process ended without emptying its ring */
	D9__PROBLEM_HUNG = 2,      /* the process lives; its recorder has not run for 5 s */
	D9__PROBLEM_SUSPENDED = 4, /* stopped by a signal or a debugger */
	D9__PROBLEM_PAUSED = 8,    /* cannot write */
	D9__PROBLEM_BLIND = 16,    /* a loop's thread works, and nothing of it is recorded */
	D9__PROBLEM_LOSSY = 32,    /* has lost events since it started */
};

struct d9__recorder_seen {
	struct d9__ring_view view;
	dev_t dev; /* of its file */
	ino_t ino;
	char *ring; /* its path, or what it is instead */
	enum d9__ring_owner owner;
	struct d9__ring_look look; /* the later of two */
	uint64_t first_ns, first_recorded; /* of the earlier one */
	/* Of look.workers[], between the two; 0 unknown. */
	uint64_t cpu_ns[D9__VIEW_WORKERS_MAX], ready_ns[D9__VIEW_WORKERS_MAX];
	uint32_t awake[D9__VIEW_WORKERS_MAX]; /* found so in so many of |states| looks at it */
	uint32_t states;
	double per_second;
	uint64_t lost; /* all causes */
	unsigned problems; /* enum d9__problem */
	unsigned blind;    /* with that: index in look.workers */
};

/*
 * A dead process's ring that a recorder of another version wrote.  The header is valid up to
 * |trace_dir|.
 */
struct d9__other_ring {
	char *path;
	uint64_t bytes;
	struct d9__ring_header header;
};

/* Rings that could be opened. */
struct d9__recorders {
	struct d9__recorder_seen *list;
	size_t n;
	struct d9__other_ring *others;
	size_t n_others;
	size_t rings_left_out, processes_left_out; /* there are more than anybody can use, or look through */
	bool failed; /* one line on stderr was printed for each that could not */
};

/*
 * Every ring this user may see (root: every one), or only that of |pid| if that is not 0, or only
 * those that write below |dir| if that is not NULL, those left on its disk included.  |command| is
 * for messages; NULL: none.  0 or -ENOMEM.
 */
int d9__recorders_find(struct d9__recorders *recorders, const char *command, pid_t pid,
		       const char *dir);

/*
 * Look at each twice, 200 ms apart, and judge.  Then the living stand in front, by process id, and
 * the dead behind, the latest first.
 */
void d9__recorders_look(struct d9__recorders *recorders, const char *command);

void d9__recorders_release(struct d9__recorders *recorders);

/* Return the command line that saves the events of all dead processes. */
const char *d9__recorders_recover_all(void);

/* Shares of the time between two looks, 0 to 1, as the report has them, without what the machine
 * took. */
struct d9__loop_now {
	bool known;
	double awake;		    /* by looks at its state */
	double cpu, inside_library; /* by its thread's clock: all, and where no callback ran */
};

/* Of look.workers[i]. */
struct d9__loop_now d9__recorder_loop(const struct d9__recorder_seen *recorder, uint32_t i);

/* "libevent", "libev", "GLib": the one whose loops |recorder| has; else "its library". */
const char *d9__recorder_library(const struct d9__recorder_seen *recorder);

/* The name of the lowest of |problems|, "ok" if there is none. */
const char *d9__problem_name(unsigned problems);

/* In a word what the recorder does: "recording", or its worst trouble. */
const char *d9__recorder_state_word(const struct d9__recorder_seen *recorder);

/* The value of |key| of the health page's facts, not terminated; NULL if there is none. */
const char *d9__recorder_fact(const struct d9__recorder_seen *recorder, const char *key,
			      size_t *len);

/* Name of the program, without its folders; for the caller to use before the next call. */
const char *d9__recorder_program(const struct d9__recorder_seen *recorder);

/* Time since |then_ns|; 0 if that lies ahead. */
static inline uint64_t d9__recorder_age_ns(const struct d9__recorder_seen *recorder,
					   uint64_t then_ns)
{
	return recorder->look.mono_ns > then_ns ? recorder->look.mono_ns - then_ns : 0;
}
