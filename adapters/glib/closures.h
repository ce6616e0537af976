/* SPDX-License-Identifier: Apache-2.0 */
/* Closures of GObject as callbacks of sources: GLib is given a function of libgobject's, which calls the closure. */

#pragma once

#include "glib/real.h"

/* |funcs| was set for a source by |caller|: libgobject's own table is learnt. */
void d9__glib_closure_note_callback_funcs(GSourceCallbackFuncs *funcs, const void *caller);

/*
 * The function that |callback|, called with |data| for |source|, comes down to: that of a C closure, the marshaller of
 * another one, the dispatch function where nothing is called, else |callback| itself.  |data| is alive.
 */
const void *d9__glib_closure_function_of(const GSource *source, GSourceFunc callback, gpointer data);
