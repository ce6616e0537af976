/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "glib/calibrate.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include <dial9/loop.h>

#include "glib/attach.h"
#include "glib/capabilities.h"
#include "glib/contexts.h"
#include "glib/dispatch.h"
#include "glib/real.h"
#include "glib/tables.h"
#include "glib/waits.h"
#include "hook/probe.h"

#define SOURCES	      3u
#define CONTEXT_BYTES 256 /* of a context that are searched */
#define POLLED_MAX    8

GSourceFuncs *d9__glib_idle_funcs;

struct scratch {
	GMainContext *context;
	GSource *sources[SOURCES];
};

static gboolean do_nothing(gpointer data)
{
	(void)data;
	return G_SOURCE_CONTINUE;
}

static bool make(struct scratch *scratch)
{
	scratch->context = d9__glib.g_main_context_new();
	if (!scratch->context)
		return false;
	for (unsigned i = 0; i < SOURCES; i++) {
		GSource *source = d9__glib.g_idle_source_new();

		d9__glib.g_source_set_callback(source, do_nothing, NULL, NULL);
		scratch->sources[i] = source;
	}
	return true;
}

static void unmake(struct scratch *scratch)
{
	for (unsigned i = 0; i < SOURCES; i++) {
		d9__glib.g_source_destroy(scratch->sources[i]);
		d9__glib.g_source_unref(scratch->sources[i]);
	}
	d9__glib.g_main_context_unref(scratch->context);
}

/* ---- layout ---- */

/* Attach |source|: are the public members where the headers say? */
static bool is_as_declared(GSource *source, GMainContext *context)
{
	guint id = d9__glib.g_source_attach(source, context);

	return source->context == context && source->source_id == id &&
	       (source->source_funcs == dlsym(RTLD_DEFAULT, "g_idle_funcs") ||
		source->source_funcs == d9__images_resolve(&d9__glib_images, "g_idle_funcs")) &&
	       source->callback_funcs && source->callback_data;
}

/* Three sources are pending, in their order, between a check and its dispatch. */
static int find_pending(struct scratch *scratch)
{
	/* A mapping of its own: on the heap our notes would lie near and be found. */
	struct d9__probe *probe = mmap(NULL, sizeof(*probe), PROT_READ | PROT_WRITE,
				       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void *elements[SOURCES];
	GPollFD fds[POLLED_MAX];
	gint priority, timeout, n;
	int offset;

	if (probe == MAP_FAILED)
		return -ENOMEM;
	for (unsigned i = 0; i < SOURCES; i++)
		elements[i] = scratch->sources[i];
	d9__probe_init(probe, scratch->context,
		       d9__probe_readable(scratch->context, CONTEXT_BYTES), sizeof(void *));
	d9__glib.g_main_context_acquire(scratch->context);
	d9__glib.g_main_context_prepare(scratch->context, &priority);
	n = d9__glib.g_main_context_query(scratch->context, priority, &timeout, fds, POLLED_MAX);
	if (n <= POLLED_MAX) {
		d9__glib.g_main_context_check(scratch->context, priority, fds, n);
		d9__probe_keep_pointer_array(probe, elements, SOURCES);
	}
	d9__glib.g_main_context_release(scratch->context);
	offset = n <= POLLED_MAX ? d9__probe_result(probe) : -ENOENT;
	munmap(probe, sizeof(*probe));
	return offset;
}

int d9__glib_calibrate_check_layout(void)
{
	struct scratch scratch;
	bool fits = true;
	int offset;

	if (!make(&scratch))
		return -ENOMEM;
	for (unsigned i = 0; i < SOURCES; i++)
		fits = is_as_declared(scratch.sources[i], scratch.context) && fits;
	if (fits) {
		d9__glib_idle_funcs = (GSourceFuncs *)scratch.sources[0]->source_funcs;
		offset = find_pending(&scratch);
		if (offset > 0)
			d9__glib_pending_at = (uint32_t)offset;
	}
	unmake(&scratch);
	return fits ? 0 : -ENOTSUP;
}

/* ---- the hooks at work ---- */

static bool saw_all_dispatches(const struct scratch *scratch)
{
	if (d9__glib_seen.n != SOURCES)
		return false;
	for (unsigned i = 0; i < SOURCES; i++) {
		if (d9__glib_seen.sources[i] != scratch->sources[i])
			return false;
	}
	return true;
}

int d9__glib_calibrate_self_test(void)
{
	struct d9__glib_waits_seen *waits = &d9__glib_waits_seen;
	bool exported = d9__glib_table_patch_exported(), is_pipe = false, seen;
	struct scratch scratch;

	if (!make(&scratch))
		return -ENOMEM;
	for (unsigned i = 0; i < SOURCES; i++)
		d9__glib.g_source_attach(scratch.sources[i], scratch.context);
	waits->fd = d9__glib_context_capture(scratch.context, &is_pipe);
	d9__glib.g_main_context_iteration(scratch.context, FALSE);
	seen = saw_all_dispatches(&scratch);
	/* The pending sources are not known, or the end of a round: each dispatch is by itself. */
	if (d9__glib_seen.depth != SOURCES || (!is_pipe && !waits->polled))
		d9__glib_pending_at = 0;
	if (seen)
		d9__glib_table_patch_get(scratch.sources[0]);
	else
		d9__glib_table_unpatch();
	unmake(&scratch);
	if (!waits->closed)
		waits->fd = -1;
	if (seen)
		d9__glib_capability_describe(is_pipe, exported);
	return seen ? 0 : -ENOTSUP;
}
