/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a loop with locks, recorded by the adapter in the file ADAPTER.
 *
 *	lock_rule ADAPTER
 */
#include <dlfcn.h>
#include <stdio.h>

#include <event2/event.h>
#include <event2/thread.h>

static int calls;

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	if (++calls == 5)
		event_del(arg);
}

int main(int argc, char **argv)
{
	const struct timeval soon = { .tv_usec = 1000 };
	int (*attach)(struct event_base *);
	struct event_base *base;
	struct event *timer;
	void *adapter = argc == 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;

	if (!adapter) {
		fprintf(stderr, "%s\n", argc == 2 ? dlerror() : "usage: lock_rule ADAPTER");
		return 2;
	}
	*(void **)&attach = dlsym(adapter, "d9_event_base_attach");
	evthread_use_pthreads();
	base = event_base_new();
	if (!attach || attach(base))
		return 3;
	timer = event_new(base, -1, EV_PERSIST, on_timer, event_self_cbarg());
	event_add(timer, &soon);
	event_base_dispatch(base);
	event_free(timer);
	event_base_free(base);
	return calls == 5 ? 0 : 4;
}
