/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Callbacks that are not the function which does the work: lambdas, a std::function that one
 * function calls for all events, a table of handlers behind one, a method behind a template, a
 * function of a plug-in.  Their work takes 15 ms each time, and in the innocent twin a hundredth.
 *
 *	trampolines PLUG-IN [innocent]
 */
#include <cstdio>
#include <functional>

#include <dlfcn.h>

#include "burn.h"
#include "loop.h"

#define NOINLINE __attribute__((noinline))

/* All of them together are called so often at least, however busy the machine is. */
#define CALLS 30

static double ms = 15;
static unsigned calls;

/* Of each library's callbacks the argument is what the program has put there. */
#if defined(VERDICT_EV)
#define PARAMETERS struct ev_loop *, ev_timer *watcher, int
#define ARGUMENT   (watcher->data)
#define RETURN
typedef void result;
#elif defined(VERDICT_GLIB)
#define PARAMETERS gpointer argument
#define ARGUMENT   argument
#define RETURN	   return TRUE
typedef gboolean result;
#else
#define PARAMETERS evutil_socket_t, short, void *argument
#define ARGUMENT   argument
#define RETURN
typedef void result;
#endif

/* ---- a lambda that calls a function ---- */

static NOINLINE void render_page()
{
	BURN(ms);
}

/* ---- one function that calls what a std::function holds ---- */

static NOINLINE result call_function(PARAMETERS)
{
	calls++;
	(*static_cast<std::function<void()> *>(ARGUMENT))();
	STAY;
	RETURN;
}

/* ---- one function for a table of handlers ---- */

static NOINLINE void handle_status(double)
{
	STAY;
}

static NOINLINE void handle_search(double)
{
	BURN(ms);
}

struct handler {
	void (*handle)(double ms);
};

static NOINLINE result on_any_event(PARAMETERS)
{
	calls += static_cast<handler *>(ARGUMENT)->handle != handle_status;
	static_cast<handler *>(ARGUMENT)->handle(ms);
	STAY;
	RETURN;
}

/* ---- a method, as in ev++.h ---- */

struct queue {
	NOINLINE void drain()
	{
		BURN(ms);
	}
};

template <class K, void (K::*method)()> static NOINLINE result method_thunk(PARAMETERS)
{
	calls++;
	(static_cast<K *>(ARGUMENT)->*method)();
	STAY;
	RETURN;
}

/* ---- a plug-in ---- */

static void (*plugin_tick)(double ms);

static NOINLINE result call_plugin(PARAMETERS)
{
	(void)ARGUMENT;
	calls++;
	plugin_tick(ms);
	STAY;
	RETURN;
}

static void *find(void *plugin, const char *name)
{
	void *symbol = plugin ? dlsym(plugin, name) : nullptr;

	if (!symbol) {
		fprintf(stderr, "%s: %s\n", name, dlerror());
		exit(1);
	}
	return symbol;
}

typedef void (*work)(double ms);

int main(int argc, char **argv)
{
	void *plugin = dlopen(argc > 1 ? argv[1] : "plugin.so", RTLD_NOW);
	loop_t *loop = loop_new();
	std::function<void()> index = [] { BURN(ms); };
	handler status { handle_status }, search { handle_search };
	handler scale { reinterpret_cast<work>(find(plugin, "plugin_scale")) };
	queue requests;

	plugin_tick = reinterpret_cast<work>(find(plugin, "plugin_tick"));
	if (argc > 2)
		ms = 0.15;
	loop_every(
		loop, 0.3,
		[](PARAMETERS) -> result {
			(void)ARGUMENT;
			calls++;
			render_page();
			STAY;
			RETURN;
		},
		nullptr);
	loop_every(loop, 0.3, call_function, &index);
	loop_every(loop, 0.05, on_any_event, &status);
	loop_every(loop, 0.3, on_any_event, &search);
	loop_every(loop, 0.3, method_thunk<queue, &queue::drain>, &requests);
	loop_every(loop, 0.3, call_plugin, nullptr);
	loop_every(loop, 0.3, on_any_event, &scale);
	do
		loop_run(loop, 2);
	while (calls < CALLS);
	return 0;
}
