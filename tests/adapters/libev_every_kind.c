/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Uses every kind of libev watcher and every way of running one, and counts for itself.
 *
 *	libev_every_kind [--backend=select|poll|epoll] [--attach] [--adapter=LIBRARY]
 *		[--callbacks=before|after] [--out=FILE]
 *
 * --attach: by the adapter that the program is linked with; --adapter: by one loaded at run time.
 * --callbacks: with release, acquire and invoke callbacks of its own, set before or after attach.
 */

#include "config.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "counters.h"
#include "libev_kinds.h"

#if defined EMBEDDED || defined LINKED_ADAPTER
#include <dial9/libev.h>
#endif

struct options {
	unsigned backend;
	bool attach;
	const char *library, *callbacks, *out;
};

static struct options options;
static unsigned long releases, acquires, invokes;

/* ---- the program's own callbacks of the loop ---- */

static void on_release(struct ev_loop *loop) EV_NOEXCEPT
{
	(void)loop;
	releases++;
}

/* The backend still wants its own errno. */
static void on_acquire(struct ev_loop *loop) EV_NOEXCEPT
{
	(void)loop;
	acquires++;
}

static void on_invoke(struct ev_loop *loop)
{
	invokes++;
	ev_invoke_pending(loop);
}

static void set_callbacks(struct ev_loop *loop)
{
	ev_set_loop_release_cb(loop, on_release, on_acquire);
	ev_set_invoke_pending_cb(loop, on_invoke);
}

static void check_callbacks(const char *callbacks)
{
	if (releases != acquires)
		complain("releases and acquires", (long)releases, (long)acquires);
	if ((releases > 0) != (callbacks != NULL) || (invokes > 0) != (callbacks != NULL))
		complain("calls of the loop's callbacks", callbacks != NULL, (long)invokes);
}

/* ---- */

static unsigned backend_named(const char *name)
{
	if (!strcmp(name, "select"))
		return EVBACKEND_SELECT;
	return !strcmp(name, "poll") ? EVBACKEND_POLL : EVBACKEND_EPOLL;
}

static void parse(int argc, char **argv)
{
	options.backend = EVBACKEND_EPOLL;
	for (int i = 1; i < argc; i++) {
		if (!strncmp(argv[i], "--backend=", 10))
			options.backend = backend_named(argv[i] + 10);
		else if (!strncmp(argv[i], "--adapter=", 10))
			options.library = argv[i] + 10;
		else if (!strncmp(argv[i], "--callbacks=", 12))
			options.callbacks = argv[i] + 12;
		else if (!strncmp(argv[i], "--out=", 6))
			options.out = argv[i] + 6;
		else if (!strcmp(argv[i], "--attach"))
			options.attach = true;
		else
			exit(2);
	}
}

#if defined EMBEDDED || defined LINKED_ADAPTER
#ifdef EMBEDDED
#define ATTACH d9_ev_embed_attach_named
#else
#define ATTACH d9_ev_loop_attach_named
#endif

void record_loop(struct ev_loop *loop)
{
	int err = options.attach ? ATTACH(loop, "its own") : 0;

	if (err)
		complain("attach", 0, err);
}
#else
void record_loop(struct ev_loop *loop)
{
	if (options.attach || options.library)
		attach_with("d9_ev_loop_attach", loop, options.library);
}
#endif

int main(int argc, char **argv)
{
	struct ev_loop *loop;

	parse(argc, argv);
	loop = ev_default_loop(options.backend | EVFLAG_NOENV);
	if (!loop || ev_backend(loop) != options.backend)
		return 77;
	signal(SIGPIPE, SIG_IGN);
	if (options.callbacks && !strcmp(options.callbacks, "before"))
		set_callbacks(loop);
	record_loop(loop);
	if (options.callbacks && !strcmp(options.callbacks, "after"))
		set_callbacks(loop);
	run_core_kinds(loop);
	run_extra_kinds(loop);
	ev_loop_destroy(loop);
	check_callbacks(options.callbacks);
	return counters_write(options.out);
}
