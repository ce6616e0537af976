/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clock: processor ticks, converted to ns of CLOCK_MONOTONIC at the moment of recording.
 *
 * A conversion is { base_ticks, base_ns, mult }: ns = base_ns + (dt * mult >> D9__CLOCK_SHIFT) for
 * dt = ticks - base_ticks < valid.  Each slot holds a copy; the flush thread publishes a new one
 * at every tick under a sequence lock.  A dt outside [0, valid) - expired, jumped ahead, run
 * backwards - leads to the slow half, which copies the newest conversion or anchors by itself.
 */

#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#if defined(__x86_64__) || defined(__i386__)
#include <x86intrin.h>
#endif

/* How a slot gets its stamps.  Anything but TICKS goes through the slow half. */
enum d9__clock_kind {
	D9__CLOCK_MONOTONIC = 0, /* clock_gettime(): fallback, and the first 100 ms */
	D9__CLOCK_TICKS = 1,
	D9__CLOCK_FAKE = 2, /* tests only: ticks come from d9__clock_fake() */
	D9__CLOCK_UPDATING = 3, /* a slot's conversion is being replaced: for its signal handlers */
};

/* DIAL9_CLOCK. */
enum d9__clock_want {
	D9__CLOCK_AUTO,
	D9__CLOCK_WANT_TICKS,     /* "tsc": skip the checks, except that the machine has ticks */
	D9__CLOCK_WANT_MONOTONIC, /* "monotonic" */
};

/* Ticks and both clocks of one instant; |width_ns| is how far it may be off. */
struct d9__anchor {
	uint64_t ticks;
	uint64_t mono_ns;
	uint64_t real_ns;
	uint64_t width_ns;
};

struct d9__clock_status {
	enum d9__clock_kind kind;
	const char *reason;   /* why not ticks; "" while they are used; static text */
	double ns_per_tick;   /* 0 before calibration */
	uint64_t bracket_ns;  /* width of the last anchor */
	uint64_t steps;       /* ticks or clock jumped, seen at an anchor or by a slot */
	uint64_t base_ns;     /* time of the newest published conversion */
};

/*
 * Of multipliers, which have 32 bits: the slowest ticks that fit last 4 ns, elsewhere 64 ns.  Those of
 * 0.25 ns are right to 2 ns in a second.
 */
#if defined(__x86_64__) || defined(__i386__)
#define D9__CLOCK_SHIFT 30
#else
#define D9__CLOCK_SHIFT 26
#endif

/* Every stamp reads this besides its slot; one line, written a few times per process. */
struct d9__clock_hot {
	_Alignas(64) _Atomic(uint64_t) valid; /* ticks; 0 sends every slot to the slow half */
};
extern struct d9__clock_hot d9__clock_hot;

/* Unfenced on purpose: it may slip by some 10 ns, which a fence would cost on every event. */
static inline uint64_t d9__clock_ticks(void)
{
#if defined(__x86_64__) || defined(__i386__)
	return __rdtsc();
#elif defined(__aarch64__)
	uint64_t ticks;

	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
	return ticks;
#else
	return 0;
#endif
}

/* CLOCK_MONOTONIC and CLOCK_REALTIME in ns.  Keep errno.  Async-signal-safe. */
uint64_t d9__clock_mono_ns(void);
uint64_t d9__clock_real_ns(void);

/* CLOCK_BOOTTIME: it goes on while the machine is suspended.  Keeps errno. */
uint64_t d9__clock_boot_ns(void);

/*
 * Whether this thread may read ticks (PR_SET_TSC): if not, no function here does from now on.  To be asked
 * before the first of them on a thread.
 */
bool d9__clock_ask_thread(void);

/*
 * The calling thread will not be allowed to read ticks: no function here does from now on, and none reads any clock for a
 * thread that is marked D9__SLOT_BARRED or D9__SLOT_JAILED: the time is 0 there.
 */
void d9__clock_forbid(void);

/*
 * Decide whether ticks are usable and take the first anchor.  Stamps come from clock_gettime()
 * until d9__clock_tick() has seen two anchors 100 ms apart: attaching does not wait.  Called by
 * the recorder before any slot exists, and again in a forked child.
 */
void d9__clock_start(enum d9__clock_want want);

/*
 * Take an anchor, compare it with the prediction, publish the next conversion.  Flush thread,
 * once per tick.  |out|, if not NULL, receives the anchor (for ClockSync and the ring header).
 */
void d9__clock_tick(struct d9__anchor *out);

/* The narrowest of |brackets| brackets.  Any thread.  Ticks are 0 where they are unusable. */
void d9__clock_anchor(struct d9__anchor *out, unsigned brackets);

/* Whether valgrind runs this process. */
bool d9__clock_under_valgrind(void);

/* Any thread. */
void d9__clock_status(struct d9__clock_status *out);

struct d9__slot;

/*
 * The slow half of d9__slot_now(): take over the newest conversion, fall back, or clamp a step
 * back.  Never below the slot's previous stamp.  Keeps errno.
 */
uint64_t d9__clock_slot_now_slow(struct d9__slot *slot);

/* A slot has a new owner: choose its clock, ask the kernel whether this thread may read ticks. */
void d9__clock_slot_init(struct d9__slot *slot);

/*
 * Tests only: |ticks| and |mono| replace the machine's until both are NULL.  |ns_per_tick| times
 * of the fake are arbitrary; calibration treats it like the real one.  Call before
 * d9__clock_start().
 */
void d9__clock_fake(uint64_t (*ticks)(void), uint64_t (*mono)(void));
