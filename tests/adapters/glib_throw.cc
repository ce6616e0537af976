/* SPDX-License-Identifier: Apache-2.0 */
/* C++ exceptions that leave a dispatch, and with it the loop. */

#include "config.h"

#include <stdexcept>
#include <string.h>

#include <glib.h>

#include "counters.h"

static gboolean on_throw(gpointer)
{
	COUNT(on_throw, KIND_POLL);
	throw std::runtime_error("out of the loop");
}

static gboolean on_after_throw(gpointer)
{
	COUNT(on_after_throw, KIND_POLL);
	return G_SOURCE_CONTINUE;
}

static void add(GMainContext *context, GSourceFunc callback)
{
	GSource *source = g_idle_source_new();

	g_source_set_callback(source, callback, NULL, NULL);
	g_source_attach(source, context);
	g_source_unref(source);
}

/* GLib cannot use a context again that was left in the middle. */
static void throw_once()
{
	GMainContext *context = g_main_context_new();

	add(context, on_throw);
	try {
		g_main_context_iteration(context, FALSE);
		complain("the exception came through", 1, 0);
	} catch (const std::runtime_error &) {
	}
}

int main(int argc, char **argv)
{
	const char *out = argc > 1 && !strncmp(argv[1], "--out=", 6) ? argv[1] + 6 : NULL;

	for (int i = 0; i < 3; i++) {
		GMainContext *context;

		throw_once();
		context = g_main_context_new();
		add(context, on_after_throw);
		for (int j = 0; j < 5; j++)
			g_main_context_iteration(context, FALSE);
		g_main_context_unref(context);
	}
	return counters_write(out);
}
