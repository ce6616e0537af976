/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GSourceFuncs tables, patched in place: GLib and its bindings compare their addresses, so a table
 * is never replaced.  One stub stands for each dispatch and finalize function.
 */

#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "glib/real.h"

/* The reason why a source of a table is ready, as far as its dispatch function tells. */
enum d9__glib_ready {
	D9__READY_UNKNOWN, /* its prepare or check function, or its own deadline */
	D9__READY_TIMER,
	D9__READY_FD,
	D9__READY_SIGNAL,
	D9__READY_IDLE, /* always */
};

struct d9__stub;

/* Of the sources that |stub| dispatches. */
enum d9__glib_ready d9__glib_table_ready_of(struct d9__stub *stub);
uint16_t d9__glib_table_kind_of(struct d9__stub *stub);

/* Its sources have descriptors that no public member shows. */
void d9__glib_table_note_descriptors(const GSourceFuncs *funcs);

/* Put stubs in |funcs| unless they are there.  |locked|: a lock of GLib is held. */
void d9__glib_table_patch(const GSourceFuncs *funcs, bool locked);

/* The program's own function behind the table's member. */
void *d9__glib_table_dispatch_of(const GSourceFuncs *funcs);

/* The stub in |funcs|, or NULL. */
struct d9__stub *d9__glib_table_stub_of(const GSourceFuncs *funcs);

/* The tables that libglib exports: what they are, before any hook is in place. */
void d9__glib_table_find_exported(void);
/* False: one of them could not be patched. */
bool d9__glib_table_patch_exported(void);
/* Put the program's functions back in all tables that were patched: the self-test failed. */
void d9__glib_table_unpatch(void);

/* The `get` of GLib's own table of callbacks, which |source| uses: sees tables that no call named. */
void d9__glib_table_patch_get(GSource *source);

extern _Atomic(uint32_t) d9__glib_tables, d9__glib_stubs_full, d9__glib_unpatchable;
