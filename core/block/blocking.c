/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "block/blocking.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <dial9/error.h>

#include "base/time.h"
#include "block/calls.h"
#include "block/holders.h"
#include "block/locks.h"
#include "block/prints.h"
#include "block/signal_waits.h"
#include "block/stack.h"
#include "block/waits.h"
#include "hook/got.h"
#include "hook/libc_calls.h"
#include "record/sampling.h"
#include "record/source.h"
#include "ring/clock.h"
#include "ring/gate.h"
#include "sample/unwind_table.h"
#include "segment/metadata.h"

#define SAY_NS D9__SECOND_NS
#define ROWS_NS D9__SECOND_NS /* to make unwind rows takes as long as all else at the start */

/*
 * The loader; loop libraries, for which there is another table; what the C library loads for look-ups of names, as it
 * would be told twice; checkers, which call it in ways of their own.
 */
static const char *const skipped[] = { "ld-linux-x86-64", "ld-linux-aarch64", "libevent", "libev", "libglib-2.0", "libnss",
				       "libresolv", "libasan", "libtsan", "libubsan", "libclang_rt", NULL };

static const char *const loop_names[] = { "libevent", "libev", "libglib-2.0", NULL };

static struct d9__images loops = { .names = loop_names };

#define WAITS (D9__WAIT_HOOKS + D9__LOCK_HOOKS)

#define CALLS (D9__CALL_HOOKS + D9__PRINT_HOOKS)

static struct d9__got_hook calls[CALLS], waits[WAITS], loop_calls[D9__CALL_HOOKS_RARE],
	loop_waits[WAITS];

#define TABLE(all_hooks)                                                                           \
	{                                                                                          \
		.library = "libc", .images = &d9__libc_images, .hooks = (all_hooks),               \
		.n_hooks = sizeof(all_hooks) / sizeof((all_hooks)[0]), .reach = D9__GOT_ANY,       \
		.skip = skipped                                                                    \
	}

/* Calls of loop libraries, but for their wait and for their work on descriptors. */
#define LOOP_TABLE(all_hooks)                                                                      \
	{                                                                                          \
		.library = "libc", .images = &loops, .hooks = (all_hooks),                         \
		.n_hooks = sizeof(all_hooks) / sizeof((all_hooks)[0]), .reach = D9__GOT_NEEDED     \
	}

static struct d9__got_table tables[] = { TABLE(calls), TABLE(waits), LOOP_TABLE(loop_calls),
					 LOOP_TABLE(loop_waits) };

#define N_TABLES (sizeof(tables) / sizeof(tables[0]))

/* No lock: the engine has one that fork() takes, and must not wait for another that waits for it. */
enum stage { NOT_TRIED, TRYING, TRIED };
static _Atomic(enum stage) stage;
static char state[96]; /* source.blocking, once it was tried */
static uint64_t said_ns, began_ns; /* flush thread; 0: not yet */

static void fork_child(void)
{
	enum stage trying = TRYING;

	d9__locks_fork_child();
	d9__block_stacks_fork_child();
	/* Another thread was at it, and is not here. */
	atomic_compare_exchange_strong(&stage, &trying, NOT_TRIED);
}

/* A function of ThreadSanitizer's; NULL unless the program is built with it. */
extern const char tsan_init[] __asm__("__tsan_init") __attribute__((weak));

static void fill_tables(void)
{
	/* ThreadSanitizer pairs each lock with its unlock, and does not see through |try| of locks
	 * for readers and writers. */
	size_t n_waits = tsan_init ? WAITS - D9__LOCK_HOOKS_RWLOCKS : WAITS;

	memcpy(calls, d9__call_hooks, sizeof(d9__call_hooks));
	memcpy(calls + D9__CALL_HOOKS, d9__print_hooks, sizeof(d9__print_hooks));
	tables[0].n_hooks = d9__prints_find() ? CALLS : D9__CALL_HOOKS;
	memcpy(waits, d9__wait_hooks, sizeof(d9__wait_hooks));
	memcpy(waits + D9__WAIT_HOOKS, d9__lock_hooks, sizeof(d9__lock_hooks));
	memcpy(loop_waits, waits, sizeof(waits));
	memcpy(loop_calls, d9__call_hooks, sizeof(loop_calls));
	for (size_t i = 0; i < D9__CALL_HOOKS_RARE; i++)
		loop_calls[i].place = D9__GOT_IN_LIBRARY | D9__GOT_SCOPE;
	for (size_t i = 0; i < WAITS; i++)
		loop_waits[i].place = D9__GOT_IN_LIBRARY | D9__GOT_SCOPE;
	for (size_t i = 0; i < N_TABLES; i++)
		if (tables[i].hooks == waits || tables[i].hooks == loop_waits)
			tables[i].n_hooks = n_waits;
}

static void redirect(void)
{
	int err;

	if (d9__libc_is_out_of_reach(tables)) {
		snprintf(state, sizeof(state), "off: libdial9 is linked statically");
		return;
	}
	fill_tables();
	d9__signal_waits_watch();
	err = d9__got_install(&tables[0]);
	for (size_t i = 1; !err && i < N_TABLES; i++)
		d9__got_install(&tables[i]);
	if (err)
		snprintf(state, sizeof(state), "off: calls cannot be redirected: %s", d9_strerror(err));
	else
		snprintf(state, sizeof(state), "on");
}

/* Calls are counted by the same wrappers. */
static void say_io(void)
{
	if (!atomic_load_explicit(&d9__sampling.blocking, memory_order_relaxed))
		d9__metadata_set("source.io", "off: calls that can block are not redirected");
	else if (!atomic_load_explicit(&d9__sampling.io, memory_order_relaxed))
		d9__metadata_set("source.io", "off: not asked for");
	else if (atomic_load_explicit(&stage, memory_order_acquire) == TRIED)
		d9__metadata_set("source.io", state);
}

static void say(void)
{
	if (!atomic_load_explicit(&d9__sampling.blocking, memory_order_relaxed))
		d9__metadata_set("source.blocking", "off: not asked for");
	else if (atomic_load_explicit(&stage, memory_order_acquire) == TRIED)
		d9__metadata_set("source.blocking", state);
	say_io();
}

void d9__blocking_watch(void)
{
	enum stage none = NOT_TRIED;

	if (!atomic_compare_exchange_strong(&stage, &none, TRYING))
		return;
	redirect();
	atomic_store_explicit(&stage, TRIED, memory_order_release);
}

static void install(void)
{
	if (atomic_load_explicit(&d9__sampling.blocking, memory_order_relaxed))
		d9__blocking_watch();
}

/* A recorder that was started again has a trace of its own, and may have been asked for something else. */
static void tick(void)
{
	uint64_t now_ns = d9__clock_mono_ns();

	if (!d9__gate_open(D9__GATE_LOOP))
		return;
	if (!began_ns)
		began_ns = now_ns;
	/* First: without tables no address is known as one of code, and the stack of a call is empty. */
	if (atomic_load_explicit(&d9__sampling.blocking, memory_order_relaxed)) {
		if (now_ns - began_ns >= ROWS_NS)
			d9__unwind_tables_want_rows();
		d9__unwind_tables_refresh(now_ns);
	}
	install();
	if (now_ns - said_ns >= SAY_NS) {
		said_ns = now_ns;
		say();
	}
}

/* It may be asleep in a call, whose end then finds rows for its stack. */
static void on_open_call(void)
{
	if (d9__unwind_tables_have_rows() ||
	    !atomic_load_explicit(&d9__sampling.blocking, memory_order_relaxed))
		return;
	d9__unwind_tables_want_rows();
	d9__unwind_tables_refresh(d9__clock_mono_ns());
}

static void start_ticks(void)
{
	pthread_atfork(NULL, NULL, fork_child);
	d9__tick_add(tick);
	d9__open_call_add(on_open_call);
}

void d9__blocking_start(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	int saved = errno;

	if (atomic_load_explicit(&stage, memory_order_relaxed) == TRIED)
		return;
	pthread_once(&once, start_ticks);
	install();
	say();
	errno = saved;
}
