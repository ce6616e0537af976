/* SPDX-License-Identifier: Apache-2.0 */
/* The cases of glib_cases.c in which there is more of something than there is room for. */
#include "config.h"

#include "counters.h"
#include "glib_cases.h"

/* ---- more dispatch functions than stubs ---- */

static unsigned many_runs, many_last, finalized;

#define DISPATCH(n)                                                                                \
	static gboolean dispatch_##n(GSource *source, GSourceFunc callback, gpointer arg)          \
	{                                                                                          \
		(void)source;                                                                      \
		(void)callback;                                                                    \
		(void)arg;                                                                         \
		many_runs++;                                                                       \
		many_last = __COUNTER__;                                                           \
		return G_SOURCE_REMOVE;                                                            \
	}
#define FINALIZE(n)                                                                                \
	static void finalize_##n(GSource *source)                                                  \
	{                                                                                          \
		(void)source;                                                                      \
		many_last = __COUNTER__;                                                           \
		finalized++;                                                                       \
	}
#define ADDRESS(n) dispatch_##n,
#define FINALIZER(n) finalize_##n,
#define TEN(m, n)                                                                                  \
	m(n##0) m(n##1) m(n##2) m(n##3) m(n##4) m(n##5) m(n##6) m(n##7) m(n##8) m(n##9)
#define HUNDRED(m, n)                                                                              \
	TEN(m, n##0) TEN(m, n##1) TEN(m, n##2) TEN(m, n##3) TEN(m, n##4)                           \
	TEN(m, n##5) TEN(m, n##6) TEN(m, n##7) TEN(m, n##8) TEN(m, n##9)
#define ALL(m)                                                                                     \
	HUNDRED(m, a) HUNDRED(m, b) HUNDRED(m, c) HUNDRED(m, d) HUNDRED(m, e) HUNDRED(m, f)

ALL(DISPATCH)

HUNDRED(FINALIZE, a) HUNDRED(FINALIZE, b) HUNDRED(FINALIZE, c)

static gboolean (*const many[])(GSource *, GSourceFunc, gpointer) = { ALL(ADDRESS) };
#define MANY (sizeof(many) / sizeof(many[0]))

void run_many(void)
{
	static GSourceFuncs tables[MANY];

	for (size_t i = 0; i < MANY; i++) {
		tables[i] = (GSourceFuncs) { own_prepare, NULL, many[i], NULL, NULL, NULL };
		make_own(&tables[i], 1, NULL);
	}
	iterate_until_idle(NULL);
	if (many_runs != MANY)
		complain("dispatches", MANY, many_runs);
}

/* ---- more functions at their end than stubs ---- */

static void (*const finalizers[])(GSource *) = { HUNDRED(FINALIZER, a) HUNDRED(FINALIZER, b)
							 HUNDRED(FINALIZER, c) };
#define FINALIZERS (sizeof(finalizers) / sizeof(finalizers[0]))

void run_finalizers(void)
{
	static GSourceFuncs tables[FINALIZERS];

	for (size_t i = 0; i < FINALIZERS; i++) {
		tables[i] = (GSourceFuncs) { own_prepare, NULL, own_dispatch, finalizers[i], NULL, NULL };
		g_source_unref(make_own(&tables[i], 1, NULL));
	}
	iterate_until_idle(NULL);
	if (finalized != FINALIZERS)
		complain("finalized", FINALIZERS, finalized);
}

/* ---- attached late in a long life ---- */

#define IDS 2100000 /* more than are looked for */

static gboolean late_dispatch(GSource *source, GSourceFunc callback, gpointer arg)
{
	(void)callback;
	(void)arg;
	return --((struct own *)source)->left > 0;
}

static gboolean on_used(gpointer arg)
{
	(void)arg;
	return G_SOURCE_REMOVE;
}

/* The oldest source is found, the latest is not; neither announces itself. */
void run_long_lived(void)
{
	static GSourceFuncs early = { own_prepare, NULL, own_dispatch, NULL, NULL, NULL };
	static GSourceFuncs late = { own_prepare, NULL, late_dispatch, NULL, NULL, NULL };

	make_own(&early, 7, NULL);
	for (unsigned i = 0; i < IDS; i++)
		g_source_remove(g_idle_add(on_used, NULL));
	make_own(&late, 5, NULL);
	attach(NULL);
	iterate_until_idle(NULL);
}
