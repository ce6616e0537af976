/* SPDX-License-Identifier: Apache-2.0 */
/* A story: events of a loop in a few lines, which become a trace and its analysis. */

#ifndef D9_TEST_STORY_H
#define D9_TEST_STORY_H

#include <stdint.h>

#include "analyze/sums.h"
#include "findings/checks.h"
#include "support/trace_builder.h"

#define STORY_CUTS 8

/* Times are microseconds after the start of the story, and on worker |worker|. */
struct story {
	struct trace t;
	struct d9__analysis analysis;
	struct d9__findings findings;
	struct {
		uint64_t us;
		struct d9__sums *sums;
	} cuts[STORY_CUTS];
	size_t n_cuts;
	uint64_t queue; /* that calls to come see, themselves among it; story_begin(): 1 */
};

/*
 * Before story_analyse(): fill |sums| when all events up to |us| are read, as if the trace ended
 * there; moments ascend.
 */
void story_cut(struct story *s, uint64_t us, struct d9__sums *sums);

void story_begin(struct story *s);

void story_unpark(struct story *s, unsigned worker, uint64_t us, uint64_t cpu_us);
void story_unpark_waited(struct story *s, unsigned worker, uint64_t us, uint64_t wait_us);
void story_park(struct story *s, unsigned worker, uint64_t us, uint64_t cpu_us);
void story_park_of(struct story *s, unsigned worker, uint64_t us, uint32_t tid);
void story_start(struct story *s, unsigned worker, uint64_t us, uint64_t task, const char *place);
void story_end(struct story *s, unsigned worker, uint64_t us);
void story_poll(struct story *s, unsigned worker, uint64_t from_us, uint64_t to_us, uint64_t task,
		const char *place);
void story_wake(struct story *s, uint64_t us, uint64_t waker, uint64_t task, unsigned reason);
/* A wake by worker |by|; 255: by none. */
void story_wake_by(struct story *s, uint64_t us, unsigned by, uint64_t task, unsigned reason);
void story_spawn(struct story *s, uint64_t us, uint64_t task, const char *place, const char *kind);
void story_spawn_fd(struct story *s, uint64_t us, uint64_t task, const char *place, unsigned fd);
void story_spawn_named(struct story *s, uint64_t us, uint64_t task, const char *place, const char *name);
void story_terminate(struct story *s, uint64_t us, uint64_t task);
void story_queue(struct story *s, uint64_t us, unsigned depth);
/* |task| waits since |us|, armed at |address|. */
void story_dump(struct story *s, uint64_t us, uint64_t task, uint64_t address);
/* |pending| of |limit| connections wait at 127.0.0.1:8080, a listener of |worker|'s loop. */
void story_accept_queue(struct story *s, unsigned worker, uint64_t us, unsigned pending, unsigned limit);
/* How many tasks the loop has registered. */
void story_tasks(struct story *s, uint64_t us, unsigned tasks);
void story_span(struct story *s, unsigned worker, uint64_t from_us, uint64_t to_us, uint64_t id,
		const char *name);
void story_enter(struct story *s, unsigned worker, uint64_t us, uint64_t id, const char *name);
void story_exit(struct story *s, unsigned worker, uint64_t us, uint64_t id, const char *name);
void story_usage(struct story *s, uint64_t us, uint64_t forced_switches);
/* So often threads of the process went to sleep up to then. */
void story_sleeps(struct story *s, uint64_t us, uint64_t voluntary_switches);
void story_cpu_usage(struct story *s, uint64_t us, uint64_t cpu_us);
/* The process was throttled by its cgroup's limit, for so long and so often since it began. */
void story_state(struct story *s, uint64_t us, uint64_t throttled_us, uint64_t throttled);
/* The call of |task| that ended just before was off the CPU. */
void story_off_cpu(struct story *s, unsigned worker, uint64_t us, uint64_t task,
		   uint64_t blocked_us, uint64_t run_queue_us);
/* It was off the CPU, and the thread gave up the CPU itself |switches| times. */
void story_off_cpu_switched(struct story *s, unsigned worker, uint64_t us, uint64_t task,
			    uint64_t blocked_us, uint64_t run_queue_us, uint64_t switches);
/* The figures of the thread in the call of |task| that ended just before. */
void story_figures(struct story *s, unsigned worker, uint64_t us, uint64_t task, uint64_t faults,
		   uint64_t user_us, uint64_t system_us);
/* The call of |task| that goes on is at |syscall|. */
void story_asleep(struct story *s, unsigned worker, uint64_t us, uint64_t task, const char *syscall,
		  unsigned running, const char *wchan);
/* The call of |task| that goes on was in |function| for |took_us|. */
void story_waited(struct story *s, unsigned worker, uint64_t us, uint64_t task, const char *function,
		  uint64_t took_us);
/* It waited for a lock of thread |holder_tid|, 100 more than that thread's worker. */
void story_waited_for(struct story *s, unsigned worker, uint64_t us, uint64_t task, const char *function,
		      uint64_t took_us, unsigned holder_tid);
/* It waited for a lock that another thread had for |held_us| of that, ready without a CPU for
 * |ready_us|. */
void story_held_up(struct story *s, unsigned worker, uint64_t us, uint64_t task, uint64_t took_us,
		   uint64_t held_us, uint64_t ready_us);
/* The call of |task| that ended just before slept for |blocked_us|, in |faults| page faults from disk among others. */
void story_disk(struct story *s, unsigned worker, uint64_t us, uint64_t task, uint64_t blocked_us,
		uint64_t faults);
/* Its thread was found on the CPU. */
void story_sample(struct story *s, unsigned worker, uint64_t us);
/* Its thread left the CPU: the kernel's record of it, or, not |switched|, the stack of a call that blocked. */
void story_left_cpu(struct story *s, unsigned worker, uint64_t us, int switched);
/* Its thread was found on the CPU in a function of |n| addresses, the innermost first. */
void story_sample_in(struct story *s, unsigned worker, uint64_t us, size_t n,
		     const uint64_t *addresses);
/* The thread that is to run worker 0 was, before it ran a loop. */
void story_sample_before(struct story *s, uint64_t us, size_t n, const uint64_t *addresses);
void story_held(struct story *s, uint64_t us, uint64_t resident_kib, uint64_t descriptors);
void story_source_time(struct story *s, unsigned worker, uint64_t us, uint64_t task, const char *phase,
		       uint64_t calls, uint64_t total_us, uint64_t max_us);
/* The thread had left its loop at |from_us|, and enters it again. */
void story_outside(struct story *s, unsigned worker, uint64_t from_us, uint64_t to_us);
/* |wait_us| of its waits the thread was ready without a CPU, and no unpark tells of it. */
void story_put_aside(struct story *s, unsigned worker, uint64_t us, uint64_t wait_us);
/* By readings at |from_us| and |us|; more than there was between these is of the wait behind. */
void story_put_aside_since(struct story *s, unsigned worker, uint64_t from_us, uint64_t us,
			   uint64_t wait_us);
/*
 * Thread |tid| may run on |cpus| only, and used and waited for so much since the look before;
 * a worker's |tid| is 100 more.
 */
struct story_bound {
	unsigned tid;
	const char *name, *cpus;
	uint64_t cpu_us, wait_us;
};
void story_bound(struct story *s, uint64_t us, const struct story_bound *thread);
/* Reads of |task| on worker 0, and how many of them brought nothing. */
struct story_io {
	uint64_t reads, again, eof, errors, last_errno;
	uint64_t looks; /* of the reads, that take nothing; all others bring a byte or nothing */
	uint64_t writes, accepts;
};
void story_io(struct story *s, uint64_t us, uint64_t task, const struct story_io *io);

/* The whole process stood still. */
void story_stop(struct story *s, uint64_t from_us, uint64_t to_us);

/* All threads of the process were ready without a CPU for |ready_us| so far. */
void story_run_queue(struct story *s, uint64_t us, uint64_t ready_us);
/* A call of |task| that began at |since_us| is open at |us|, in |span| or ""; and where its thread is then. */
void story_last_sign(struct story *s, unsigned worker, uint64_t us, uint64_t task, uint64_t since_us,
		     const char *span);
void story_stuck(struct story *s, unsigned worker, uint64_t us, uint64_t task, const char *where, bool running);
/* Its thread went round in its loop library for |for_us|, on the CPU for |cpu_us| of that. */
void story_library(struct story *s, unsigned worker, uint64_t us, uint64_t for_us,
		   uint64_t cpu_us);
/* The running callback sets the timer |task|. */
void story_stale_timer(struct story *s, unsigned worker, uint64_t us, uint64_t task,
		       uint64_t timeout_us, uint64_t due_us);
void story_helper(struct story *s, uint64_t us, const char *function, uint64_t task,
		  uint64_t wait_us, uint64_t run_us);
void story_loss(struct story *s, uint64_t us, const char *cause, uint64_t events);
void story_say(struct story *s, const char *key, const char *value);

/* |n| calls of 5 us, each woken 1 us before, in an awake period each, from |us| on every 100 us. */
void story_routine(struct story *s, unsigned worker, uint64_t us, unsigned n);

/*
 * Read the story back: fills |analysis| and |findings|, each of which must begin its advice with what is to be done.
 * Ends the program on failure.
 */
void story_analyse(struct story *s);

/* Finding |i|, or one without any text if there are fewer. */
const struct d9__finding *story_finding(const struct story *s, size_t i);

/* The first finding of |check|, or one without any text. */
const struct d9__finding *story_finding_of(const struct story *s, const char *check);

/* The first finding of |check| among the effects of other findings, or one without any text. */
const struct d9__finding *story_effect_of(const struct story *s, const char *check);

/* The callback at |place|, or NULL. */
const struct d9__callback *story_callback(const struct story *s, const char *place);

void story_free(struct story *s);

#endif /* D9_TEST_STORY_H */
