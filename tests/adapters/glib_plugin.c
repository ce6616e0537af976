/* SPDX-License-Identifier: Apache-2.0 */
/* A plug-in with sources of its own: a table in data, and one that is read-only. */

#include "config.h"

#include <glib.h>

__attribute__((visibility("default"))) unsigned long *plugin_start(unsigned runs);

struct own {
	GSource source;
	unsigned left;
};

static unsigned long count;

static gboolean prepare(GSource *source, gint *timeout)
{
	*timeout = -1;
	return ((struct own *)source)->left > 0;
}

static gboolean dispatch(GSource *source, GSourceFunc callback, gpointer arg)
{
	(void)callback;
	(void)arg;
	count++;
	return --((struct own *)source)->left > 0;
}

static gboolean dispatch_too(GSource *source, GSourceFunc callback, gpointer arg)
{
	return dispatch(source, callback, arg);
}

static GSourceFuncs funcs = { prepare, NULL, dispatch, NULL, NULL, NULL };
static const GSourceFuncs constant = { prepare, NULL, dispatch_too, NULL, NULL, NULL };

static void add(GSourceFuncs *table, unsigned runs)
{
	GSource *source = g_source_new(table, sizeof(struct own));

	((struct own *)source)->left = runs;
	g_source_attach(source, NULL);
	g_source_unref(source);
}

unsigned long *plugin_start(unsigned runs)
{
	add(&funcs, runs);
	add((GSourceFuncs *)&constant, runs);
	return &count;
}
