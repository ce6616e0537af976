/* SPDX-License-Identifier: Apache-2.0 */
/* Record a libev that the program compiles into itself. */

#ifndef DIAL9_EV_EMBED_H
#define DIAL9_EV_EMBED_H

/*
 * In the one file of the program that says #include "libev/ev.c", say instead
 *
 *	#define D9_EV_SOURCE "libev/ev.c"
 *	#include <dial9/ev-embed.h>
 *
 * before ev.h is included there, and link with libdial9.  Once per loop:
 *
 *	d9_ev_embed_attach(loop);        with EV_MULTIPLICITY 0: d9_ev_embed_attach(NULL);
 *
 * <dial9/libev.h> declares it for other files.  All else stays as it is: libev 4 with the program's
 * own options, EV_MULTIPLICITY 1 or 0, EV_API_STATIC, as C or as C++11.  Where exceptions pass
 * through libev, C needs -fexceptions, as ever.
 *
 * D9_EV_SOURCE is looked for in the compiler's folders (-I).  A program with an EV_CB_INVOKE of its
 * own defines instead
 *
 *	D9_EV_CB_INVOKE(w, events)	calls the callback of the watcher |w|
 *	D9_EV_CALLBACK(w)		the callback's address, if EV_CB_DECLARE makes no member |cb|
 *
 * The trace is as with the shared library (<dial9/libev.h>), but that the wait includes the program's
 * release and acquire callbacks, and that sleeps of ev_set_io_collect_interval() and the arrival of
 * signals are not seen.
 */

#ifdef EV_H_
#error "<dial9/ev-embed.h> has to come before ev.h"
#endif
#ifdef EV_CB_INVOKE
#error "<dial9/ev-embed.h> defines EV_CB_INVOKE: call yours D9_EV_CB_INVOKE, and say D9_EV_CALLBACK"
#endif

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <dial9/loop.h>

#ifndef D9_EV_SOURCE
#define D9_EV_SOURCE "ev.c"
#endif
#ifndef D9_EV_CB_INVOKE
#define D9_EV_CB_INVOKE(watcher, events) (watcher)->cb(EV_A_(watcher), (events))
#endif
#ifndef D9_EV_CALLBACK
#define D9_EV_CALLBACK(watcher) ((watcher)->cb)
#endif

/* ---- libev: what the program calls is renamed, callbacks are called by us ---- */

/* What calls callbacks lies together, so that its return addresses are known. */
#define D9__EV_CALLS __attribute__((noinline, section("d9_ev_calls")))

#ifdef __cplusplus
extern "C" {
#endif

/* |loop| is NULL with EV_MULTIPLICITY 0. */
static void d9__ev_call(void *loop, void *watcher, int events) D9__EV_CALLS;
struct ev_loop;

#ifdef __cplusplus
}
#endif

#define D9__EV_FIRST_OF(first, ...) first
#define D9__EV_FIRST(...) D9__EV_FIRST_OF(__VA_ARGS__, 0)
#define EV_CB_INVOKE(watcher, events) d9__ev_call(D9__EV_FIRST(EV_A_ NULL), (watcher), (events))

#define ev_async_send d9__real_ev_async_send
#define ev_async_start d9__real_ev_async_start
#define ev_async_stop d9__real_ev_async_stop
#define ev_check_start d9__real_ev_check_start
#define ev_check_stop d9__real_ev_check_stop
#define ev_child_start d9__real_ev_child_start
#define ev_child_stop d9__real_ev_child_stop
#define ev_cleanup_start d9__real_ev_cleanup_start
#define ev_cleanup_stop d9__real_ev_cleanup_stop
#define ev_clear_pending d9__real_ev_clear_pending
#define ev_embed_start d9__real_ev_embed_start
#define ev_embed_stop d9__real_ev_embed_stop
#define ev_feed_event d9__real_ev_feed_event
#define ev_feed_fd_event d9__real_ev_feed_fd_event
#define ev_feed_signal_event d9__real_ev_feed_signal_event
#define ev_fork_start d9__real_ev_fork_start
#define ev_fork_stop d9__real_ev_fork_stop
#define ev_idle_start d9__real_ev_idle_start
#define ev_idle_stop d9__real_ev_idle_stop
#define ev_invoke d9__real_ev_invoke
#define ev_invoke_pending d9__real_ev_invoke_pending
#define ev_io_start d9__real_ev_io_start
#define ev_io_stop d9__real_ev_io_stop
#define ev_loop_destroy d9__real_ev_loop_destroy
#define ev_once d9__real_ev_once
#define ev_periodic_again d9__real_ev_periodic_again
#define ev_periodic_start d9__real_ev_periodic_start
#define ev_periodic_stop d9__real_ev_periodic_stop
#define ev_prepare_start d9__real_ev_prepare_start
#define ev_prepare_stop d9__real_ev_prepare_stop
#define ev_run d9__real_ev_run
#define ev_signal_start d9__real_ev_signal_start
#define ev_signal_stop d9__real_ev_signal_stop
#define ev_stat_start d9__real_ev_stat_start
#define ev_stat_stop d9__real_ev_stat_stop
#define ev_timer_again d9__real_ev_timer_again
#define ev_timer_start d9__real_ev_timer_start
#define ev_timer_stop d9__real_ev_timer_stop

#include D9_EV_SOURCE

#undef ev_async_send
#undef ev_async_start
#undef ev_async_stop
#undef ev_check_start
#undef ev_check_stop
#undef ev_child_start
#undef ev_child_stop
#undef ev_cleanup_start
#undef ev_cleanup_stop
#undef ev_clear_pending
#undef ev_embed_start
#undef ev_embed_stop
#undef ev_feed_event
#undef ev_feed_fd_event
#undef ev_feed_signal_event
#undef ev_fork_start
#undef ev_fork_stop
#undef ev_idle_start
#undef ev_idle_stop
#undef ev_invoke
#undef ev_invoke_pending
#undef ev_io_start
#undef ev_io_stop
#undef ev_loop_destroy
#undef ev_once
#undef ev_periodic_again
#undef ev_periodic_start
#undef ev_periodic_stop
#undef ev_prepare_start
#undef ev_prepare_stop
#undef ev_run
#undef ev_signal_start
#undef ev_signal_stop
#undef ev_stat_start
#undef ev_stat_stop
#undef ev_timer_again
#undef ev_timer_start
#undef ev_timer_stop

#if EV_VERSION_MAJOR != 4
#error "<dial9/ev-embed.h> knows libev 4"
#endif

/* Older ones say EV_THROW, or nothing. */
#ifdef EV_NOEXCEPT
#define D9__EV_NOEXCEPT EV_NOEXCEPT
#elif defined EV_THROW
#define D9__EV_NOEXCEPT EV_THROW
#else
#define D9__EV_NOEXCEPT
#endif

#if EV_MULTIPLICITY
#define D9__EV_LOOP ((void *)loop)
#define D9__EV_MEMBER(name) (loop->name)
#define D9__EV_TAKE(address) struct ev_loop *loop = (struct ev_loop *)(address)
#else
#define D9__EV_LOOP ((void *)&d9__ev_records)
#define D9__EV_MEMBER(name) (name)
#define D9__EV_TAKE(address) (void)(address)
#endif

#ifdef __cplusplus
extern "C" {
#endif

#include <dial9/ev-embed-kinds.h>
#include <dial9/ev-embed-records.h>
#include <dial9/ev-embed-polls.h>
#include <dial9/ev-embed-watchers.h>
#include <dial9/ev-embed-loops.h>

#ifdef __cplusplus
}
#endif

#endif /* DIAL9_EV_EMBED_H */
