/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines that are logged through GLib, as events; only if the recorder is to have them.  Where lines
 * go, what they look like and who handles them stays as it is: g_log_set_writer_func() is left to
 * the program.
 */

#pragma once

#include <glib.h>

/* Patch the logging calls if that is wanted and was not done yet.  Not under a lock of GLib. */
void d9__glib_logs_look(void);

/* ---- among the parts of it ---- */

/* F(returned type, name, parameters): what others call ... */
#define D9__GLIB_LOGGING(F)                                                                        \
	F(void, g_log_structured, (const gchar *domain, GLogLevelFlags flags, ...))                \
	F(void, g_log_structured_standard,                                                         \
	  (const gchar *domain, GLogLevelFlags flags, const gchar *file, const gchar *line,        \
	   const gchar *function, const gchar *format, ...))                                       \
	F(void, g_log_structured_array,                                                            \
	  (GLogLevelFlags flags, const GLogField *fields, gsize n))                                \
	F(guint, g_log_set_handler,                                                                \
	  (const gchar *domain, GLogLevelFlags flags, GLogFunc function, gpointer data))           \
	F(guint, g_log_set_handler_full,                                                           \
	  (const gchar *domain, GLogLevelFlags flags, GLogFunc function, gpointer data,            \
	   GDestroyNotify destroy))                                                                \
	F(GLogFunc, g_log_set_default_handler, (GLogFunc function, gpointer data))

#define D9__GLIB_LOGGING_MEMBER(type, name, params) type(*name) params;
#define D9__GLIB_LOGGING_HOOK(type, name, params)   type d9__hook_##name params;

struct d9__glib_logging {
	D9__GLIB_LOGGING(D9__GLIB_LOGGING_MEMBER)
	GLogFunc g_log_default_handler; /* ... and what is only called */
};

extern struct d9__glib_logging d9__glib_logging;

D9__GLIB_LOGGING(D9__GLIB_LOGGING_HOOK)
