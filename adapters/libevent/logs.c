/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libevent formats its lines in event_logv_() and hands them to the program's log callback, or to
 * stderr.  Where calls of that function go through slots (2.1, 2.2), the line is recorded on its way in
 * and nothing else changes.  Elsewhere the program's callback stands behind ours, and lines for
 * stderr are not seen: to print them in libevent's place would be a guess.
 */

#include "config.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "libevent/bases.h"
#include "libevent/logs.h"
#include "libevent/thread.h"
#include "loop/adapter.h"

/* Formats are those of the program and of the library, passed on. */
#pragma GCC diagnostic ignored "-Wformat-nonliteral"

#define LINE_MAX_BYTES 1024 /* libevent's own limit */

typedef void (*log_fn)(int severity, const char *text);

static void (*real_event_set_log_callback)(log_fn callback);
static void hook_event_set_log_callback(log_fn callback);

static const struct d9__got_hook hooks[] = {
	D9__GOT_HOOK(event_set_log_callback, hook_event_set_log_callback, &real_event_set_log_callback,
		     D9__GOT_EVERYWHERE),
};

static struct d9__got_table table = {
	.library = "libevent",
	.images = &d9__libevent_images,
	.hooks = hooks,
	.n_hooks = sizeof(hooks) / sizeof(hooks[0]),
	.reach = D9__GOT_NEEDED_OR_BOUND,
};

static _Atomic(log_fn) program_callback;
static _Atomic(bool) seen_on_way_in; /* event_logv_() goes through slots */

static void tell(int severity, const char *text)
{
	static const enum d9__log_level levels[] = { D9__LOG_DEBUG, D9__LOG_MESSAGE,
						     D9__LOG_WARNING, D9__LOG_ERROR };
	enum d9__log_level level = severity >= 0 && severity < 4 ? levels[severity]
								 : D9__LOG_ERROR;

	d9__log_line(D9_LIBRARY_LIBEVENT, level, NULL, text, strlen(text));
}

/* As event_logv_() will: the format first, then what errno said. */
static void tell_formatted(int severity, const char *error, const char *format, va_list args)
{
	char text[LINE_MAX_BYTES];
	size_t len;

	text[0] = '\0';
	if (format)
		vsnprintf(text, sizeof(text), format, args);
	len = strlen(text);
	if (error && len < sizeof(text) - 3)
		snprintf(text + len, sizeof(text) - len, ": %s", error);
	tell(severity, text);
}

/* Lines about the scratch base are dropped: see d9__hook_evutil_getenv_(). */
void d9__hook_event_logv_(int severity, const char *error, const char *format, va_list args)
{
	if (d9__libevent_thread()->calibrating)
		return;
	/* relaxed: a line at the moment of the first attach may be early or late */
	if (atomic_load_explicit(&table.installed, memory_order_relaxed)) {
		int saved = errno;
		va_list copy;

		atomic_store_explicit(&seen_on_way_in, true, memory_order_relaxed);
		va_copy(copy, args);
		tell_formatted(severity, error, format, copy);
		va_end(copy);
		errno = saved;
	}
	d9__real.event_logv_(severity, error, format, args);
}

static void on_line(int severity, const char *text)
{
	log_fn callback = atomic_load_explicit(&program_callback, memory_order_relaxed);

	if (!atomic_load_explicit(&seen_on_way_in, memory_order_relaxed))
		tell(severity, text);
	if (callback)
		callback(severity, text);
}

static void hook_event_set_log_callback(log_fn callback)
{
	atomic_store_explicit(&program_callback, callback, memory_order_relaxed);
	real_event_set_log_callback(callback ? on_line : NULL);
}

void d9__libevent_logs_look(void)
{
	if (!d9__libevent_is_static() && d9__logs_bridged() &&
	    !atomic_load_explicit(&table.installed, memory_order_acquire))
		d9__got_install(&table);
}
