/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "base/time.h"
#include "glib/scan.h"

#include <errno.h>

#include "glib/capabilities.h"
#include "glib/contexts.h"
#include "glib/tables.h"
#include "hook/probe.h"

#define SCAN_IDS_MAX UINT32_C(2000000)
#define SCAN_BEYOND  256u /* ids above the highest that was seen */
#define SCAN_NS	     (100 * D9__MS_NS)

/*
 * The look-up returns no reference, and another thread may free the source meanwhile.  Ids are not
 * used again: a source that is found before and after the read lived while it was read.
 */
static void look_at(GMainContext *context, guint id)
{
	GSource *source = d9__glib.g_main_context_find_source_by_id(context, id);
	GSourceFuncs *funcs;

	if (!source || d9__probe_copy(&funcs, &source->source_funcs, sizeof(funcs)) ||
	    d9__glib.g_main_context_find_source_by_id(context, id) != source)
		return;
	d9__glib_table_patch(funcs, false);
}

static void scan_up_to(struct d9__glib_context *record, GMainContext *context, uint32_t last)
{
	int saved = errno;

	if (last - record->scanned > SCAN_IDS_MAX) {
		d9__glib_capability_degrade("scan", "partial", "too many source ids to look for older ones");
		last = record->scanned + SCAN_IDS_MAX;
	}
	while (record->scanned < last)
		look_at(context, ++record->scanned);
	errno = saved;
}

static guint latest_id(GMainContext *context)
{
	GSource *source = d9__glib.g_idle_source_new();
	guint id = d9__glib.g_source_attach(source, context);

	d9__glib.g_source_destroy(source);
	d9__glib.g_source_unref(source);
	return id;
}

void d9__glib_scan(struct d9__glib_context *record, GMainContext *context)
{
	guint last;

	if (!d9__glib.g_main_context_acquire(context)) {
		atomic_store_explicit(&record->scan_wanted, true, memory_order_release);
		return;
	}
	last = latest_id(context);
	scan_up_to(record, context, last - 1);
	record->scanned = last;
	if (last > atomic_load_explicit(&record->highest, memory_order_relaxed))
		atomic_store_explicit(&record->highest, last, memory_order_relaxed);
	d9__glib.g_main_context_release(context);
}

void d9__glib_scan_if_wanted(struct d9__glib_context *record, uint64_t now_ns, uint64_t unseen)
{
	GMainContext *context = atomic_load_explicit(&record->address, memory_order_relaxed);
	uint64_t waits = record->parks + record->spins;
	/* The depth is read at a dispatch that is seen: a source that is alone is not missed there. */
	uint64_t silent = waits > record->rounds ? waits - record->rounds : 0;

	if (!context)
		return;
	if (atomic_exchange_explicit(&record->scan_wanted, false, memory_order_acquire))
		d9__glib_scan(record, context);
	if ((unseen <= record->scanned_unseen && silent <= record->scanned_silent) ||
	    now_ns - record->scanned_ns < SCAN_NS)
		return;
	record->scanned_ns = now_ns;
	record->scanned_unseen = unseen;
	record->scanned_silent = silent;
	scan_up_to(record, context,
		   atomic_load_explicit(&record->highest, memory_order_relaxed) + SCAN_BEYOND);
	/* Ids up to there that do not exist yet are to be looked at again. */
	record->scanned = atomic_load_explicit(&record->highest, memory_order_relaxed);
}
