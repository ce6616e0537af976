/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "glib/notes.h"

#include <pthread.h>

#include "glib/contexts.h"

#define NOTES_MAX 1024

enum note_state {
	NOTE_FREE,
	NOTE_WAITING, /* the call that makes the source is on its way */
	NOTE_TAKEN,   /* a poll took it; the call is still on its way */
};

struct d9__glib_note {
	struct d9__glib_note *next;
	enum note_state state;
	uint32_t taken_by; /* source id */
	GSourceFunc callback;
	gpointer data;
	const void *site;
	struct d9_waker waker;
	struct d9_wake_cell cell; /* counts as work handed over until it is taken */
};

/* Protects all notes.  Under it nothing is called but the core's functions of tasks and wakes. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct d9__glib_note pool[NOTES_MAX], *first_free;
static unsigned n_used;

void d9__glib_notes_fork_prepare(void)
{
	pthread_mutex_lock(&lock);
}

void d9__glib_notes_fork_parent(void)
{
	pthread_mutex_unlock(&lock);
}

static struct d9__glib_note *first_of(struct d9__glib_context *record)
{
	/* acquire: where a note is gone, what it was settled with is there */
	return atomic_load_explicit(&record->notes.first, memory_order_acquire);
}

static struct d9__glib_note *allocate_locked(void)
{
	struct d9__glib_note *note = first_free;

	if (note) {
		first_free = note->next;
		return note;
	}
	return n_used < NOTES_MAX ? &pool[n_used++] : NULL;
}

static void append_locked(struct d9__glib_context *record, struct d9__glib_note *note)
{
	note->next = NULL;
	if (first_of(record))
		record->notes.last->next = note;
	else
		atomic_store_explicit(&record->notes.first, note, memory_order_release);
	record->notes.last = note;
}

static void release_locked(struct d9__glib_context *record, struct d9__glib_note *note)
{
	struct d9__glib_note *before = NULL, *here = first_of(record);
	struct d9_waker waker;

	while (here && here != note) {
		before = here;
		here = here->next;
	}
	if (!here)
		return;
	if (before)
		before->next = note->next;
	else
		atomic_store_explicit(&record->notes.first, note->next, memory_order_release);
	if (record->notes.last == note)
		record->notes.last = before;
	d9_wake_cell_take(&note->cell, record->loop, &waker);
	note->state = NOTE_FREE;
	note->next = first_free;
	first_free = note;
}

struct d9__glib_note *d9__glib_note_leave(struct d9__glib_context *record, GSourceFunc callback,
					  gpointer data, const void *site)
{
	struct d9__glib_note *note;

	pthread_mutex_lock(&lock);
	note = allocate_locked();
	if (note) {
		*note = (struct d9__glib_note) { .state = NOTE_WAITING,
						 .callback = callback,
						 .data = data,
						 .site = site };
		d9_waker_self(&note->waker);
		d9_wake_cell_fill(&note->cell, record->loop);
		append_locked(record, note);
	}
	pthread_mutex_unlock(&lock);
	return note;
}

static struct d9__glib_note *taken_by_locked(struct d9__glib_context *record, uint32_t id)
{
	for (struct d9__glib_note *note = first_of(record); note; note = note->next) {
		if (note->state == NOTE_TAKEN && note->taken_by == id)
			return note;
	}
	return NULL;
}

static struct d9__glib_note *waiting_like_locked(struct d9__glib_context *record,
						 const struct d9__glib_note *like)
{
	for (struct d9__glib_note *note = first_of(record); note; note = note->next) {
		if (note != like && note->state == NOTE_WAITING &&
		    note->callback == like->callback && note->data == like->data)
			return note;
	}
	return NULL;
}

/*
 * Of several equal notes a poll takes the oldest, which may be another call's: the call that
 * returns with the id that was polled gives up its own, and the other finds its source unpolled.
 */
static bool is_polled_locked(struct d9__glib_context *record, struct d9__glib_note *note,
			     uint32_t id)
{
	struct d9__glib_note *taken = taken_by_locked(record, id), *other;

	if (taken == note)
		return true;
	if (taken) {
		taken->state = note->state;
		taken->taken_by = note->taken_by;
		return true;
	}
	if (note->state == NOTE_TAKEN && (other = waiting_like_locked(record, note))) {
		other->state = NOTE_TAKEN;
		other->taken_by = note->taken_by;
	}
	return false;
}

void d9__glib_note_settle(struct d9__glib_context *record, struct d9__glib_note *note,
			  const struct d9_task *task, enum d9_wake_reason reason)
{
	pthread_mutex_lock(&lock);
	if (task && !is_polled_locked(record, note, (uint32_t)task->key)) {
		/* Before the note goes: from here on the loop may run the source, and end it. */
		d9_task_arm(record->loop, task);
		if (reason)
			d9_wake(record->loop, task->key, reason, &note->waker);
	}
	release_locked(record, note);
	pthread_mutex_unlock(&lock);
}

static struct d9__glib_note *find_locked(struct d9__glib_context *record, GSourceFunc callback,
					 gpointer data)
{
	for (struct d9__glib_note *note = first_of(record); note; note = note->next) {
		if (note->state == NOTE_WAITING && note->callback == callback && note->data == data)
			return note;
	}
	return NULL;
}

bool d9__glib_note_take(struct d9__glib_context *record, uint32_t id, GSourceFunc callback,
			gpointer data, const void **site, struct d9_waker *waker)
{
	struct d9_waker counted;
	struct d9__glib_note *note;

	if (!first_of(record))
		return false;
	pthread_mutex_lock(&lock);
	note = find_locked(record, callback, data);
	if (note) {
		*site = note->site;
		*waker = note->waker;
		d9_wake_cell_take(&note->cell, record->loop, &counted);
		note->taken_by = id;
		note->state = NOTE_TAKEN;
	}
	pthread_mutex_unlock(&lock);
	return note != NULL;
}

void d9__glib_notes_clear(struct d9__glib_context *record)
{
	struct d9__glib_note *note;

	pthread_mutex_lock(&lock);
	while ((note = first_of(record)))
		release_locked(record, note);
	pthread_mutex_unlock(&lock);
}
