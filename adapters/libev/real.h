/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libev's own functions, found at run time; <ev.h> is used for types only.  A pointer is NULL where
 * this libev lacks the name.
 */

#pragma once

#include <ev.h>

#include "hook/got.h"

typedef void (*d9__libev_watcher_fn)(struct ev_loop *loop, struct ev_watcher *w, int events);
typedef void (*d9__libev_once_fn)(int events, void *arg);
typedef void (*d9__libev_loop_fn)(struct ev_loop *loop) EV_NOEXCEPT;

#define D9__LIBEV_PRIORITIES 5 /* EV_MINPRI to EV_MAXPRI of a libev that was built as usual */

/* F(type, ...): the kinds of watchers that are started and stopped by functions of their own. */
#define D9__LIBEV_KINDS(F, ...)                                                                    \
	F(io, __VA_ARGS__)                                                                         \
	F(timer, __VA_ARGS__)                                                                      \
	F(periodic, __VA_ARGS__)                                                                   \
	F(signal, __VA_ARGS__)                                                                     \
	F(child, __VA_ARGS__)                                                                      \
	F(stat, __VA_ARGS__)                                                                       \
	F(idle, __VA_ARGS__)                                                                       \
	F(prepare, __VA_ARGS__)                                                                    \
	F(check, __VA_ARGS__)                                                                      \
	F(embed, __VA_ARGS__)                                                                      \
	F(fork, __VA_ARGS__)                                                                       \
	F(cleanup, __VA_ARGS__)                                                                    \
	F(async, __VA_ARGS__)

#define D9__LIBEV_START_STOP(type, F)                                                              \
	F(void, ev_##type##_start, (struct ev_loop *, ev_##type *), D9__GOT_EVERYWHERE)            \
	F(void, ev_##type##_stop, (struct ev_loop *, ev_##type *), D9__GOT_EVERYWHERE)

/* F(returned type, name, parameters, where): what is hooked ... */
#define D9__LIBEV_HOOKED(F)                                                                        \
	F(struct ev_loop *, ev_default_loop, (unsigned), D9__GOT_EVERYWHERE)                       \
	F(struct ev_loop *, ev_loop_new, (unsigned), D9__GOT_EVERYWHERE)                           \
	F(void, ev_loop_destroy, (struct ev_loop *), D9__GOT_EVERYWHERE)                           \
	F(int, ev_run, (struct ev_loop *, int), D9__GOT_EVERYWHERE)                                \
	F(void, ev_invoke_pending, (struct ev_loop *), D9__GOT_EVERYWHERE)                         \
	F(void, ev_invoke, (struct ev_loop *, void *, int), D9__GOT_EVERYWHERE)                    \
	F(void, ev_set_loop_release_cb,                                                            \
	  (struct ev_loop *, d9__libev_loop_fn, d9__libev_loop_fn), D9__GOT_EVERYWHERE)            \
	F(void, ev_set_allocator, (void *(*)(void *, long)), D9__GOT_EVERYWHERE)                   \
	F(void, ev_sleep, (ev_tstamp), D9__GOT_IN_LIBRARY)                                         \
	F(void, ev_feed_event, (struct ev_loop *, void *, int), D9__GOT_EVERYWHERE)                \
	F(void, ev_feed_fd_event, (struct ev_loop *, int, int), D9__GOT_EVERYWHERE)                \
	F(void, ev_feed_signal_event, (struct ev_loop *, int), D9__GOT_EVERYWHERE)                 \
	F(void, ev_feed_signal, (int), D9__GOT_EVERYWHERE)                                         \
	F(void, ev_async_send, (struct ev_loop *, ev_async *), D9__GOT_EVERYWHERE)                 \
	F(int, ev_clear_pending, (struct ev_loop *, void *), D9__GOT_IN_OTHERS)                    \
	F(void, ev_timer_again, (struct ev_loop *, ev_timer *), D9__GOT_EVERYWHERE)                \
	F(void, ev_periodic_again, (struct ev_loop *, ev_periodic *), D9__GOT_EVERYWHERE)          \
	F(void, ev_once,                                                                           \
	  (struct ev_loop *, int, int, ev_tstamp, d9__libev_once_fn, void *), D9__GOT_EVERYWHERE)  \
	D9__LIBEV_KINDS(D9__LIBEV_START_STOP, F)

/* ... and what is only called. */
#define D9__LIBEV_CALLED(F)                                                                        \
	F(int, ev_version_major, (void))                                                           \
	F(int, ev_version_minor, (void))                                                           \
	F(unsigned, ev_pending_count, (struct ev_loop *))                                          \
	F(unsigned, ev_backend, (struct ev_loop *))                                                \
	F(ev_tstamp, ev_now, (struct ev_loop *))                                                   \
	F(ev_tstamp, ev_time, (void))                                                              \
	F(void, ev_set_invoke_pending_cb, (struct ev_loop *, d9__libev_loop_fn))

#define D9__LIBEV_MEMBER(type, name, params, ...) type(*name) params;

struct d9__libev_real {
	D9__LIBEV_HOOKED(D9__LIBEV_MEMBER)
	D9__LIBEV_CALLED(D9__LIBEV_MEMBER)
};

/* Filled by the GOT engine before the first slot is swapped, then constant. */
extern struct d9__libev_real d9__libev;

extern struct d9__got_table d9__libev_table;
extern struct d9__images d9__libev_images;

/*
 * Find what is only called, and the ranges below.  0, or -ENOTSUP if a function is missing that
 * nothing works without.  After the table was installed.
 */
int d9__libev_resolve(void);

/* libev's image, ours, and libev's emulation of libevent; empty before d9__libev_resolve(). */
extern struct d9__module_range d9__libev_image, d9__libev_own, d9__libev_emulation;

static inline bool d9__in_libev(const void *address)
{
	return (uintptr_t)address - d9__libev_image.low < d9__libev_image.high - d9__libev_image.low;
}

/*
 * Are we objects of a static library?  libtool compiles those without -DPIC.  Then the linker's
 * --wrap may bring the program's calls, see static.c; a hook's symbol is what that looks for.
 */
#ifdef PIC
#define D9__LIBEV_ARCHIVE 0
#define D9__LIBEV_HOOK_SYMBOL(function)
#else
#define D9__LIBEV_ARCHIVE		 1
#define D9__LIBEV_HOOK_SYMBOL(function) __asm__("__wrap_" #function)
#endif

/* The replacement of each hooked function: d9__hook_ev_run() and so on. */
#define D9__LIBEV_HOOK(type, name, params, ...)                                                    \
	type d9__hook_##name params D9__LIBEV_HOOK_SYMBOL(name);
D9__LIBEV_HOOKED(D9__LIBEV_HOOK)
