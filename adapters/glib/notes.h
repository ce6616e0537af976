/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Notes on sources that another thread hands to a loop.
 *
 * The loop may run such a source before the call that made it returns its id.  So the creator leaves
 * a note first: its first poll finds it by callback and data.
 */

#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <dial9/loop.h>

#include "glib/real.h"

struct d9__glib_context;
struct d9__glib_note;

/* The notes for one context. */
struct d9__glib_notes {
	_Atomic(struct d9__glib_note *) first; /* oldest */
	struct d9__glib_note *last;
};

/* NULL: none is left; the source will go without. */
struct d9__glib_note *d9__glib_note_leave(struct d9__glib_context *record, GSourceFunc callback,
					  gpointer data, const void *site);

/*
 * The call made |task|, NULL for none: it is armed, and woken if there is a |reason|, unless a poll
 * took the note.  Its first poll finds the one or the other.
 */
void d9__glib_note_settle(struct d9__glib_context *record, struct d9__glib_note *note,
			  const struct d9_task *task, enum d9_wake_reason reason);

/* First poll of source |id|: the note on it, if there is one. */
bool d9__glib_note_take(struct d9__glib_context *record, uint32_t id, GSourceFunc callback,
			gpointer data, const void **site, struct d9_waker *waker);

/* The context is gone: so are its notes. */
void d9__glib_notes_clear(struct d9__glib_context *record);

void d9__glib_notes_fork_prepare(void);
void d9__glib_notes_fork_parent(void);
