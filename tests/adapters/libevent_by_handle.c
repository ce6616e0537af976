/* SPDX-License-Identifier: Apache-2.0 */
/*
 *	libevent_by_handle LIBEVENT FOREIGN [--out=FILE]
 *
 * A program that is not linked with libevent: it loads it RTLD_LOCAL and calls by dlsym() only,
 * as bindings of languages do.  What can be recorded then are libevent's inner calls.
 * FOREIGN is a plugin with event_* functions of its own, which nobody else's may stand in for.
 */

#include "config.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "counters.h"

struct event;

static void *libevent;

static void *function(const char *name)
{
	void *found = dlsym(libevent, name);

	if (!found)
		fprintf(stderr, "%s\n", dlerror());
	return found;
}

static void on_handle(int fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
	COUNT(on_handle, KIND_POLL);
}

static void run_foreign(const char *path)
{
	void *module = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
	long (*run)(long, long) = NULL;

	if (module)
		*(void **)&run = dlsym(module, "foreign_event");
	if (!run || run(4, 5) != 46)
		complain("the foreign functions", 46, run ? run(4, 5) : 0);
}

int main(int argc, char **argv)
{
	const char *out = argc > 3 && !strncmp(argv[3], "--out=", 6) ? argv[3] + 6 : NULL;
	struct event *(*new_event)(struct event_base *, int, short, void (*)(int, short, void *),
				   void *);
	void (*activate)(struct event *, int, short), (*free_event)(struct event *);
	struct event_base *(*new_base)(void), *base;
	void (*free_base)(struct event_base *);
	int (*run)(struct event_base *, int);
	struct event *event;

	libevent = argc > 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
	if (!libevent)
		return 77;
	*(void **)&new_base = function("event_base_new");
	*(void **)&new_event = function("event_new");
	*(void **)&activate = function("event_active");
	*(void **)&run = function("event_base_loop");
	*(void **)&free_event = function("event_free");
	*(void **)&free_base = function("event_base_free");
	base = new_base();
	attach_base(base, out ? NULL : "none");
	event = new_event(base, -1, 0, on_handle, NULL);
	for (int i = 0; i < 5; i++) {
		activate(event, 2, 1);
		run(base, 2);
	}
	free_event(event);
	free_base(base);
	run_foreign(argv[2]);
	return counters_write(out);
}
