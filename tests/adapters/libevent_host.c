/* SPDX-License-Identifier: Apache-2.0 */
/*
 *	libevent_host PLUGIN FOREIGN [--out=FILE]
 *
 * A program with a base that loads plugins while it runs: PLUGIN uses the base, is closed and
 * loaded again; FOREIGN has event_* functions of its own, whose results must be its own.
 */

#include "config.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <event2/event.h>
#include <event2/thread.h>

#include "counters.h"

static unsigned long plugin_runs;

static void count_plugin(void)
{
	plugin_runs++;
}

static void on_host(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
	COUNT(on_host, KIND_POLL);
}

static void *symbol(const char *path, const char *name, int flags, void **module)
{
	void *found;

	*module = dlopen(path, RTLD_NOW | RTLD_LOCAL | flags);
	found = *module ? dlsym(*module, name) : NULL;
	if (!found)
		fprintf(stderr, "%s\n", dlerror());
	return found;
}

static void run_host(struct event_base *base, struct event *event)
{
	event_active(event, EV_READ, 1);
	event_base_loop(base, EVLOOP_NONBLOCK);
}

/*
 * The adapter hooks a plugin's calls when the program begins a loop after dlopen().  It does not wait for the recorder's thread
 * where that one holds the lock, and a busy machine may stop that thread meanwhile: then the next loop hooks them.
 */
static void let_loops_begin(struct event_base *base)
{
	for (int i = 0; i < 5; i++) {
		event_base_loop(base, EVLOOP_NONBLOCK);
		usleep(10000);
	}
}

static void run_plugin(struct event_base *base, const char *path)
{
	void (*run)(struct event_base *, void (*)(void)) = NULL;
	void *module;

	*(void **)&run = symbol(path, "plugin_run", 0, &module);
	let_loops_begin(base);
	if (run)
		run(base, count_plugin);
	if (module)
		dlclose(module);
}

static void run_foreign(const char *path)
{
	long (*run)(long, long) = NULL;
	void *module;

	/* Its own functions first, or it would not work beside libevent without us either. */
	*(void **)&run = symbol(path, "foreign_event", RTLD_DEEPBIND, &module);
	if (!run || run(4, 5) != 5 * 7 + 11)
		complain("the foreign functions", 46, run ? run(4, 5) : 0);
}

/* ---- modules come and go whose constructors call libevent, beside a loop that runs ---- */

static void on_load(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
	COUNT(on_load, KIND_POLL);
}

static _Atomic(bool) left;

static void *run_beside(void *arg)
{
	event_base_dispatch(arg);
	atomic_store(&left, true);
	return NULL;
}

static void run_loads(const char *path, const char *adapter)
{
	struct event_base *base;
	struct event *event;
	pthread_t thread;
	char text[32];

	evthread_use_pthreads();
	base = event_base_new();
	attach_base(base, adapter);
	counter_of("on_load", (void *)on_load, KIND_POLL);
	event = event_new(base, -1, EV_PERSIST, on_load, NULL);
	event_add(event, &(struct timeval) { 0, 500 });
	pthread_create(&thread, NULL, run_beside, base);
	snprintf(text, sizeof(text), "%lx", (unsigned long)(uintptr_t)event);
	setenv("D9_PLUGIN_EVENT", text, 1);
	for (int i = 0; i < 100; i++) {
		void *module = dlopen(path, RTLD_NOW | RTLD_LOCAL);

		if (!module)
			complain("dlopen", 1, 0);
		else
			dlclose(module);
	}
	unsetenv("D9_PLUGIN_EVENT");
	/* A loop that has not begun forgets that it was told to end. */
	while (!atomic_load(&left)) {
		event_base_loopbreak(base);
		sched_yield();
	}
	pthread_join(thread, NULL);
	event_free(event);
	event_base_free(base);
}

int main(int argc, char **argv)
{
	const char *out = argc > 3 && !strncmp(argv[3], "--out=", 6) ? argv[3] + 6 : NULL;
	struct event_base *base = event_base_new();
	struct event *event;

	if (argc < 3)
		return 2;
	attach_base(base, out ? NULL : "none");
	event = event_new(base, -1, 0, on_host, NULL);
	for (int i = 0; i < 3; i++) {
		run_host(base, event);
		run_plugin(base, argv[1]);
		run_host(base, event);
		run_foreign(argv[2]);
	}
	if (plugin_runs != 12)
		complain("runs of the plugin's callback", 12, (long)plugin_runs);
	counter_of("plugins", (void *)count_plugin, KIND_ELSEWHERE)->count = plugin_runs;
	event_free(event);
	event_base_free(base);
	run_loads(argv[1], out ? NULL : "none");
	return counters_write(out);
}
