/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations for glib_cases.c and the files that add cases to it. */

#ifndef D9_TEST_GLIB_CASES_H
#define D9_TEST_GLIB_CASES_H

#include <glib.h>

extern GMainLoop *loop;

/* Attach |context|, unless all are recorded anyway. */
void attach(GMainContext *context);
gboolean on_quit(gpointer arg);
void iterate_until_idle(GMainContext *context);

/* A source that the program defines: ready while anything is left. */
struct own {
	GSource source;
	unsigned left;
};

GSource *make_own(GSourceFuncs *funcs, unsigned left, GMainContext *context);
gboolean own_prepare(GSource *source, gint *timeout);
gboolean own_dispatch(GSource *source, GSourceFunc callback, gpointer arg);

void run_many(void);
void run_finalizers(void);
void run_long_lived(void);

void run_threads(void);
void run_pool(void);
void run_elsewhere(void);

void run_looked_at(void);
void run_renamed(void);
void run_never_attached(void);
void run_older_handler(void);
void run_unannounced(void);
void run_query_null(void);
void run_handed(void);

void run_nanoseconds(void);

#endif /* D9_TEST_GLIB_CASES_H */
