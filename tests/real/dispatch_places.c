/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where libglib calls the dispatch function of a source: the addresses in it to which that returns,
 * once each, found by being called with and without a callback, nested, and for a last time.
 */
#include "config.h"

#include <dlfcn.h>
#include <glib.h>
#include <stdint.h>
#include <stdio.h>

#define ROUNDS 3

static uintptr_t told[8];
static unsigned n_told, depth, left = ROUNDS;

static void tell(const void *address)
{
	Dl_info info;
	uintptr_t offset;

	if (!dladdr(address, &info))
		return;
	offset = (uintptr_t)address - (uintptr_t)info.dli_fbase;
	for (unsigned i = 0; i < n_told; i++) {
		if (told[i] == offset)
			return;
	}
	if (n_told < sizeof(told) / sizeof(told[0]))
		told[n_told++] = offset;
	printf("%jx\n", (uintmax_t)offset);
}

static gboolean prepare(GSource *source, gint *timeout)
{
	(void)source;
	*timeout = -1;
	return TRUE;
}

static gboolean dispatch(GSource *source, GSourceFunc callback, gpointer arg)
{
	(void)source;
	(void)arg;
	tell(__builtin_return_address(0));
	if (callback && depth < 2) {
		depth++;
		g_main_context_iteration(NULL, FALSE);
		depth--;
	}
	return left > 0;
}

static gboolean do_nothing(gpointer arg)
{
	(void)arg;
	return G_SOURCE_CONTINUE;
}

static GSource *make(GSourceFuncs *funcs, gboolean has_callback)
{
	GSource *source = g_source_new(funcs, sizeof(GSource));

	if (has_callback)
		g_source_set_callback(source, do_nothing, NULL, NULL);
	g_source_set_can_recurse(source, has_callback);
	g_source_attach(source, NULL);
	return source;
}

int main(void)
{
	static GSourceFuncs funcs = { prepare, NULL, dispatch, NULL, NULL, NULL };
	GSource *sources[] = { make(&funcs, FALSE), make(&funcs, TRUE) };

	while (left > 0) {
		g_main_context_iteration(NULL, FALSE);
		left--;
	}
	g_main_context_iteration(NULL, FALSE); /* each returns FALSE */
	for (unsigned i = 0; i < sizeof(sources) / sizeof(sources[0]); i++) {
		g_source_destroy(sources[i]);
		g_source_unref(sources[i]);
	}
	return 0;
}
