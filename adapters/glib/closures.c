/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "glib/closures.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include <glib-object.h>

#include "glib/tables.h"
#include "loop/adapter.h"

/* libgobject's table, and one that is known to be another's. */
static _Atomic(GSourceCallbackFuncs *) closures, other;

static bool is_of_gobject(const void *address)
{
	char name[64];

	d9__module_name_of(address, name, sizeof(name));
	return !strncmp(name, "libgobject-", strlen("libgobject-"));
}

void d9__glib_closure_note_callback_funcs(GSourceCallbackFuncs *funcs, const void *caller)
{
	if (!funcs || funcs == atomic_load_explicit(&closures, memory_order_relaxed) ||
	    funcs == atomic_load_explicit(&other, memory_order_relaxed))
		return;
	/* The caller alone would do, but for jumps; the table lies in libgobject, too. */
	if (is_of_gobject(caller) && is_of_gobject(funcs))
		atomic_store_explicit(&closures, funcs, memory_order_relaxed);
	else
		atomic_store_explicit(&other, funcs, memory_order_relaxed);
}

const void *d9__glib_closure_function_of(const GSource *source, GSourceFunc callback, gpointer data)
{
	const GClosure *closure = data;

	if (!closure || !source->callback_funcs ||
	    source->callback_funcs != atomic_load_explicit(&closures, memory_order_relaxed) || !closure->marshal)
		return (const void *)callback;
	if (!is_of_gobject((const void *)closure->marshal))
		return (const void *)closure->marshal; /* a language's lies with its bindings */
	/* libgobject's own marshallers take closures of C, but for those that call nothing. */
	if (!((const GCClosure *)closure)->callback) {
		const void *dispatch = d9__glib_table_dispatch_of(source->source_funcs);

		d9__callback_role_set(dispatch, "child source");
		return dispatch;
	}
	return ((const GCClosure *)closure)->callback;
}
