/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libev logs nothing but a system call that failed for good, and ends the program then unless it has
 * a callback for that.  The program's callback stands behind ours; without one nothing changes.
 */

#include "config.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "libev/logs.h"
#include "libev/real.h"
#include "loop/adapter.h"

#define LINE_MAX_BYTES 256

typedef void (*syserr_fn)(const char *text);

static void (*real_ev_set_syserr_cb)(syserr_fn callback);
static void hook_ev_set_syserr_cb(syserr_fn callback);

static const struct d9__got_hook hooks[] = {
	D9__GOT_HOOK(ev_set_syserr_cb, hook_ev_set_syserr_cb, &real_ev_set_syserr_cb,
		     D9__GOT_IN_OTHERS),
};

static struct d9__got_table table = {
	.library = "libev",
	.images = &d9__libev_images,
	.hooks = hooks,
	.n_hooks = 1,
	.reach = D9__GOT_NEEDED,
};

static _Atomic(syserr_fn) program_callback;

/* libev's text names the call, errno says why: as the default callback prints them. */
static void on_error(const char *text)
{
	syserr_fn callback = atomic_load_explicit(&program_callback, memory_order_relaxed);
	int saved = errno;
	char line[LINE_MAX_BYTES], reason[128];

	snprintf(line, sizeof(line), "%s: %s", text ? text : "(libev) system error",
		 strerror_r(saved, reason, sizeof(reason)));
	d9__log_line(D9_LIBRARY_LIBEV, D9__LOG_ERROR, NULL, line, strlen(line));
	errno = saved;
	if (callback)
		callback(text);
}

static void hook_ev_set_syserr_cb(syserr_fn callback)
{
	atomic_store_explicit(&program_callback, callback, memory_order_relaxed);
	real_ev_set_syserr_cb(callback ? on_error : NULL);
}

void d9__libev_logs_look(void)
{
	if (d9__logs_bridged() && !atomic_load_explicit(&table.installed, memory_order_acquire))
		d9__got_install(&table);
}
