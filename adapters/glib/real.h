/* SPDX-License-Identifier: Apache-2.0 */
/* GLib's functions: those that are hooked, and those that are only called. */

#pragma once

#include <glib.h>
#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "base/sanitized.h"
#include "hook/got.h"
#include "hook/images.h"

/*
 * Types come from GLib's headers, functions never: a call by name would make the linker want the
 * library, and a second one could be loaded.
 */

/* F(returned type, name, parameters): what libglib itself calls of libc. */
#define D9__GLIB_INNER(F)                                                                          \
	F(int, poll, (struct pollfd * fds, nfds_t n, int timeout))                                 \
	F(int, ppoll,                                                                              \
	  (struct pollfd * fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask))   \
	F(ssize_t, write, (int fd, const void *bytes, size_t n))                                   \
	F(int, close, (int fd))                                                                    \
	F(int, eventfd, (unsigned value, int flags))

/* GLib's functions that other modules call. */
#define D9__GLIB_OUTER(F)                                                                          \
	F(GSource *, g_source_new, (GSourceFuncs * funcs, guint size))                             \
	F(void, g_source_set_funcs, (GSource * source, GSourceFuncs * funcs))                      \
	F(void, g_source_set_callback,                                                             \
	  (GSource * source, GSourceFunc callback, gpointer data, GDestroyNotify notify))          \
	F(void, g_source_set_callback_indirect,                                                    \
	  (GSource * source, gpointer data, GSourceCallbackFuncs * funcs))                         \
	F(guint, g_source_attach, (GSource * source, GMainContext * context))                      \
	F(gpointer, g_source_add_unix_fd, (GSource * source, gint fd, GIOCondition events))        \
	F(void, g_source_set_ready_time, (GSource * source, gint64 time))                          \
	F(void, g_source_set_ready_time_ns, (GSource * source, uint64_t time))                     \
	F(void, g_source_clear_ready_time, (GSource * source))                                     \
	F(void, g_source_destroy, (GSource * source))                                              \
	F(gboolean, g_source_remove, (guint id))                                                   \
	F(gboolean, g_source_remove_by_user_data, (gpointer data))                                 \
	F(gboolean, g_source_remove_by_funcs_user_data, (GSourceFuncs * funcs, gpointer data))     \
	F(gboolean, g_idle_remove_by_data, (gpointer data))                                        \
	F(guint, g_timeout_add, (guint interval, GSourceFunc callback, gpointer data))             \
	F(guint, g_timeout_add_full,                                                               \
	  (gint priority, guint interval, GSourceFunc callback, gpointer data,                     \
	   GDestroyNotify notify))                                                                 \
	F(guint, g_timeout_add_once, (guint interval, GSourceFunc callback, gpointer data))        \
	F(guint, g_timeout_add_seconds, (guint interval, GSourceFunc callback, gpointer data))     \
	F(guint, g_timeout_add_seconds_full,                                                       \
	  (gint priority, guint interval, GSourceFunc callback, gpointer data,                     \
	   GDestroyNotify notify))                                                                 \
	F(guint, g_timeout_add_seconds_once, (guint interval, GSourceFunc callback, gpointer data)) \
	F(guint, g_idle_add, (GSourceFunc callback, gpointer data))                                \
	F(guint, g_idle_add_full,                                                                  \
	  (gint priority, GSourceFunc callback, gpointer data, GDestroyNotify notify))             \
	F(guint, g_idle_add_once, (GSourceFunc callback, gpointer data))                           \
	F(guint, g_child_watch_add, (GPid pid, GSourceFunc callback, gpointer data))               \
	F(guint, g_child_watch_add_full,                                                           \
	  (gint priority, GPid pid, GSourceFunc callback, gpointer data, GDestroyNotify notify))   \
	F(guint, g_unix_fd_add,                                                                    \
	  (gint fd, GIOCondition condition, GSourceFunc callback, gpointer data))                  \
	F(guint, g_unix_fd_add_full,                                                               \
	  (gint priority, gint fd, GIOCondition condition, GSourceFunc callback, gpointer data,    \
	   GDestroyNotify notify))                                                                 \
	F(guint, g_unix_signal_add, (gint number, GSourceFunc callback, gpointer data))            \
	F(guint, g_unix_signal_add_full,                                                           \
	  (gint priority, gint number, GSourceFunc callback, gpointer data, GDestroyNotify notify)) \
	F(guint, g_io_add_watch,                                                                   \
	  (GIOChannel * channel, GIOCondition condition, GSourceFunc callback, gpointer data))     \
	F(guint, g_io_add_watch_full,                                                              \
	  (GIOChannel * channel, gint priority, GIOCondition condition, GSourceFunc callback,      \
	   gpointer data, GDestroyNotify notify))                                                  \
	F(void, g_main_context_invoke,                                                             \
	  (GMainContext * context, GSourceFunc callback, gpointer data))                           \
	F(void, g_main_context_invoke_full,                                                        \
	  (GMainContext * context, gint priority, GSourceFunc callback, gpointer data,             \
	   GDestroyNotify notify))                                                                 \
	F(GMainContext *, g_main_context_new, (void))                                              \
	F(GMainContext *, g_main_context_new_with_flags, (guint flags))                            \
	F(GMainContext *, g_main_context_default, (void))                                          \
	F(GMainLoop *, g_main_loop_new, (GMainContext * context, gboolean running))                \
	F(void, g_main_context_set_poll_func, (GMainContext * context, GPollFunc function))        \
	F(GPollFunc, g_main_context_get_poll_func, (GMainContext * context))                       \
	F(gboolean, g_main_context_pending, (GMainContext * context))                              \
	F(gboolean, g_main_context_prepare, (GMainContext * context, gint * priority))             \
	F(gint, g_main_context_query,                                                              \
	  (GMainContext * context, gint priority, gint * timeout, GPollFD * fds, gint n))          \
	F(gboolean, g_main_context_check,                                                          \
	  (GMainContext * context, gint priority, GPollFD * fds, gint n))                          \
	F(void, g_main_loop_run, (GMainLoop * loop))                                               \
	F(gboolean, g_main_context_iteration, (GMainContext * context, gboolean may_block))        \
	F(void, g_main_context_dispatch, (GMainContext * context))                                 \
	F(gboolean, g_thread_pool_push, (GThreadPool * pool, gpointer data, GError * *error))

#define D9__GLIB_CALLED(F)                                                                         \
	F(GSource *, g_idle_source_new, (void))                                                    \
	F(void, g_source_set_priority, (GSource * source, gint priority))                          \
	F(void, g_source_unref, (GSource * source))                                                \
	F(const char *, g_source_get_name, (GSource * source))                                     \
	F(gint64, g_source_get_ready_time, (GSource * source))                                     \
	F(void, g_main_context_unref, (GMainContext * context))                                    \
	F(gboolean, g_main_context_acquire, (GMainContext * context))                              \
	F(void, g_main_context_release, (GMainContext * context))                                  \
	F(gboolean, g_main_context_is_owner, (GMainContext * context))                             \
	F(void, g_main_context_wakeup, (GMainContext * context))                                   \
	F(GMainContext *, g_main_context_get_thread_default, (void))                               \
	F(GSource *, g_main_context_find_source_by_id, (GMainContext * context, guint id))         \
	F(GSource *, g_main_context_find_source_by_user_data,                                      \
	  (GMainContext * context, gpointer data))                                                 \
	F(GSource *, g_main_context_find_source_by_funcs_user_data,                                \
	  (GMainContext * context, GSourceFuncs * funcs, gpointer data))                           \
	F(GMainContext *, g_main_loop_get_context, (GMainLoop * loop))                             \
	F(gint, g_poll, (GPollFD * fds, guint n, gint timeout))

/* Also only called, and in newer versions alone: NULL in others. */
#define D9__GLIB_NEWER(F)                                                                          \
	F(gboolean, g_source_get_ready_time_ns, (GSource * source, uint64_t * time))

#define D9__GLIB_MEMBER(type, name, params) type(*name) params;

struct d9__glib_real {
	D9__GLIB_INNER(D9__GLIB_MEMBER)
	D9__GLIB_OUTER(D9__GLIB_MEMBER)
	D9__GLIB_CALLED(D9__GLIB_MEMBER)
	D9__GLIB_NEWER(D9__GLIB_MEMBER)
};

/* Filled before the first slot is swapped, then constant, those of libc excepted. */
extern struct d9__glib_real d9__glib;

extern struct d9__images d9__glib_images;
extern struct d9__got_table d9__glib_table;

#if D9__SANITIZED == 2
static inline struct d9__glib_real *d9__glib_behind_slots(void)
{
	D9__TSAN_ACQUIRE(&d9__glib_table);
	return &d9__glib;
}
#define d9__glib (*d9__glib_behind_slots())
#endif

/* Modules whose calls are never redirected. */
extern const char *const d9__glib_skipped[];

/* Find what is called before anything is patched.  False: something that is needed is missing. */
bool d9__glib_resolve(void);

/* The replacement of each hooked function: d9__hook_g_idle_add() and so on. */
#define D9__GLIB_HOOK(type, name, params) type d9__hook_##name params;
D9__GLIB_INNER(D9__GLIB_HOOK)
D9__GLIB_OUTER(D9__GLIB_HOOK)
