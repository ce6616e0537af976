/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program whose own slots can be written to, in a process where no page may be made writable: not
 * those of libglib and of other libraries, which are read-only once they are relocated.  Attaches
 * itself, and runs as it does alone; counts for itself.
 *
 *	glib_sealed [--out=FILE]
 */
#include "config.h"

#include <errno.h>
#include <glib.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <dial9/glib.h>

#include "counters.h"

static int refusals;

__attribute__((visibility("default"))) int mprotect(void *address, size_t len, int protection)
{
	if (protection & PROT_WRITE) {
		refusals++;
		errno = EACCES;
		return -1;
	}
	return (int)syscall(SYS_mprotect, address, len, protection);
}

static gboolean on_idle(gpointer left)
{
	COUNT(on_idle, KIND_POLL);
	return --*(unsigned *)left > 0;
}

static gboolean on_timer(gpointer left)
{
	COUNT(on_timer, KIND_POLL);
	return --*(unsigned *)left > 0;
}

static gboolean on_never(gpointer arg)
{
	(void)arg;
	return G_SOURCE_REMOVE;
}

static gboolean on_end(gpointer loop)
{
	COUNT(on_end, KIND_POLL);
	g_main_loop_quit(loop);
	return G_SOURCE_REMOVE;
}

/* The round that both are in has fewer dispatches than it began with. */
static gboolean on_removal(gpointer id)
{
	COUNT(on_removal, KIND_POLL);
	g_source_remove(*(guint *)id);
	return G_SOURCE_REMOVE;
}

/* Waits of libglib's own. */
static void run(void)
{
	GMainLoop *loop = g_main_loop_new(NULL, FALSE);
	unsigned idles = 4, timers = 3;
	guint removed;

	g_idle_add(on_idle, &idles);
	g_timeout_add(1, on_timer, &timers);
	g_idle_add(on_removal, &removed);
	removed = g_idle_add(on_never, NULL);
	g_timeout_add(20, on_end, loop);
	g_main_loop_run(loop);
	g_main_loop_unref(loop);
}

/* Waits that the program itself makes. */
static unsigned drive(void)
{
	GMainContext *context = g_main_context_default();
	unsigned timers = 3, waits = 0;
	gint priority, timeout, n;
	GPollFD fds[16];

	g_main_context_acquire(context);
	g_timeout_add(2, on_timer, &timers);
	while (timers > 0) {
		g_main_context_prepare(context, &priority);
		n = g_main_context_query(context, priority, &timeout, fds, 16);
		waits += timeout != 0;
		poll((struct pollfd *)(void *)fds, (nfds_t)n, timeout);
		g_main_context_check(context, priority, fds, n);
		g_main_context_dispatch(context);
	}
	g_main_context_release(context);
	return waits;
}

/* ---- a table of functions in a page that is read-only ---- */

static unsigned dispatched;

static gboolean fixed_prepare(GSource *source, gint *timeout)
{
	(void)source;
	*timeout = -1;
	return TRUE;
}

static gboolean fixed_dispatch(GSource *source, GSourceFunc callback, gpointer arg)
{
	(void)source, (void)callback, (void)arg;
	return ++dispatched < 2;
}

static void run_fixed(void)
{
	static const GSourceFuncs funcs = { fixed_prepare, NULL, fixed_dispatch, NULL, NULL, NULL };
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	GSourceFuncs *fixed = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
				   -1, 0);

	memcpy(fixed, &funcs, sizeof(funcs));
	mprotect(fixed, page, PROT_READ);
	g_source_attach(g_source_new(fixed, sizeof(GSource)), NULL);
	while (dispatched < 2)
		g_main_context_iteration(NULL, FALSE);
}

/* ---- a poll function of its own ---- */

static bool own_poll_ran;

static gint own_poll(GPollFD *fds, guint n, gint timeout)
{
	own_poll_ran = true;
	return g_poll(fds, n, timeout);
}

/* Nothing tells its contexts apart: it stays the program's business. */
static void poll_by_own_function(void)
{
	g_main_context_set_poll_func(NULL, own_poll);
	if (g_main_context_get_poll_func(NULL) != own_poll)
		complain("the poll function", 1, 0);
	g_main_context_iteration(NULL, FALSE);
	if (!own_poll_ran)
		complain("calls of the poll function", 1, 0);
	g_main_context_set_poll_func(NULL, NULL);
}

int main(int argc, char **argv)
{
	const char *out = argc > 1 && g_str_has_prefix(argv[1], "--out=") ? argv[1] + 6 : NULL;
	int err = d9_g_main_context_attach(NULL);

	if (err)
		complain("attach", 0, err);
	if (!refusals)
		complain("refused pages", 1, 0);
	run();
	log_line("waits %u", drive());
	run_fixed();
	poll_by_own_function();
	return counters_write(out);
}
