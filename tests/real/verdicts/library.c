/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work that a program leaves to its loop library, while clients wait: of libev twenty thousand
 * files at which it looks again and again, of GLib sixty thousand sources that are destroyed and
 * were never given back.  The innocent twin has a thousandth of that.
 *
 *	library DIRECTORY [innocent]
 */
#include <stdio.h>

#include "loop.h"

ON_TIMER(on_client, arg)
{
	(void)arg;
}

#if defined(VERDICT_EV)
#define LOADS 20000

static void on_change(loop_t *loop, ev_stat *w, int r)
{
	(void)loop, (void)w, (void)r;
}

/* Without inotify, which does not tell of files of another machine. */
static loop_t *loop_with(const char *directory, unsigned n)
{
	loop_t *loop = ev_loop_new(EVFLAG_NOINOTIFY);
	static ev_stat stats[LOADS];
	static char names[20][4096];

	for (unsigned i = 0; i < n; i++) {
		char *name = names[i % 20];

		snprintf(name, sizeof(names[0]), "%s/file-%u", directory, i % 20);
		ev_stat_init(&stats[i], on_change, name, 0.2);
		ev_stat_start(loop, &stats[i]);
	}
	return loop;
}
#else
#define LOADS 60000

static loop_t *loop_with(const char *directory, unsigned n)
{
	loop_t *loop = loop_new();

	(void)directory;
	for (unsigned i = 0; i < n; i++) {
		GSource *source = g_timeout_source_new(1000000);

		g_source_attach(source, loop);
		g_source_destroy(source);
	}
	return loop;
}
#endif

int main(int argc, char **argv)
{
	loop_t *loop = loop_with(argc > 1 ? argv[1] : "/tmp", argc > 2 ? LOADS / 1000 : LOADS);

	loop_every(loop, 0.01, on_client, NULL);
	loop_run(loop, 2);
	return 0;
}
