/* SPDX-License-Identifier: Apache-2.0 */
/* Where sources are made, woken and ended. */
#include "config.h"

#include "glib/sources.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>

#include <dial9/loop.h>

#include "glib/attach.h"
#include "glib/closures.h"
#include "glib/contexts.h"
#include "glib/tables.h"
#include "glib/thread.h"
#include "hook/stubs.h"
#include "loop/adapter.h"

#define CALLER() __builtin_return_address(0)
#define NEVER	 UINT64_MAX

/* ---- one source is made ---- */

struct making {
	struct d9__glib_context *record; /* NULL: nothing is to be told */
	struct d9__glib_note *note;	 /* NULL: none is needed */
	struct d9_task task;
	const void *callback, *site;
	bool idle;
};

/* True if this thread ran the loop last. */
static bool is_own(const struct d9__glib_context *record)
{
	return atomic_load_explicit(&record->owner, memory_order_relaxed) ==
	       (uintptr_t)d9__glib_thread();
}

/*
 * Does this thread run the loop until the call returns?  Then no source of it runs before that.  Where it
 * does not own the context, between two rounds, another one may take the loop over at any time.
 */
static bool is_held(const struct d9__glib_context *record, GMainContext *context)
{
	return is_own(record) && d9__glib.g_main_context_is_owner(context);
}

static void make(struct making *making, GMainContext *context, GSourceFunc callback, gpointer data,
		 enum d9_task_kind kind, const void *site)
{
	making->record = NULL;
	making->note = NULL;
	if (!d9__gate_open(D9__GATE_LOOP) || !context || d9__glib_thread()->calibrating)
		return;
	making->record = d9__glib_context(d9__glib_thread(), context);
	if (!making->record)
		return;
	making->callback = (void *)callback;
	making->site = d9__glib_is_ours(site) ? NULL : site;
	making->task = (struct d9_task) { .fd = -1, .kind = (uint16_t)kind };
	making->idle = kind == D9_TASK_IDLE;
	if (is_held(making->record, context))
		return;
	making->note = d9__glib_note_leave(making->record, callback, data, making->site);
	if (!making->note)
		making->record = NULL;
}

/* |function| is what was called, and returns to |caller|. */
static void made(struct making *making, guint id, const void *function, const void *caller)
{
	enum d9_wake_reason reason = D9_WAKE_UNKNOWN;
	struct d9_task *task = &making->task;
	struct d9_loop *loop;

	if (!making->record)
		return;
	loop = making->record->loop;
	if (id) {
		task->key = making->record->key | id;
		task->callsite = d9__callsite_of_kind(making->callback, making->site,
						      (enum d9_task_kind)task->kind);
	}
	/* An idle source is ready at once; others when their time or descriptor says so. */
	if (making->idle)
		reason = is_own(making->record) ? D9_WAKE_ACTIVE : D9_WAKE_CROSS_THREAD;
	if (making->note) {
		d9__glib_note_settle(making->record, making->note, id ? task : NULL, reason);
	} else if (id) {
		d9_task_arm(loop, task);
		if (reason)
			d9_wake(loop, task->key, reason, NULL);
	}
	/* Where another thread runs the loop, it may have run and gone. */
	if (id && d9__gate_arms() && d9_task_id(D9_LIBRARY_GLIB, task->key))
		d9__task_waits(loop, task->key, -1, function, caller, true);
}

static GMainContext *default_context(void)
{
	return atomic_load_explicit(&d9__glib_default, memory_order_relaxed);
}

/*
 * The real call of |function|, which adds a source to the default context; from the first on that context
 * exists.
 */
#define ADD(kind_, fd_, callback_, data_, function, arguments)                                     \
	do {                                                                                       \
		struct making making;                                                              \
		guint id;                                                                          \
                                                                                                   \
		make(&making, default_context(), callback_, data_, kind_, CALLER());               \
		making.task.fd = (fd_);                                                            \
		id = d9__glib.function arguments;                                                  \
		if (__builtin_expect(!default_context(), 0))                                       \
			d9__glib_context_note_default(d9__glib.g_main_context_default());                  \
		made(&making, id, (const void *)d9__glib.function, CALLER());                      \
		return id;                                                                         \
	} while (0)

guint d9__hook_g_timeout_add(guint interval, GSourceFunc callback, gpointer data)
{
	ADD(D9_TASK_TIMER, -1, callback, data, g_timeout_add, (interval, callback, data));
}

guint d9__hook_g_timeout_add_full(gint priority, guint interval, GSourceFunc callback,
				  gpointer data, GDestroyNotify notify)
{
	ADD(D9_TASK_TIMER, -1, callback, data,
	    g_timeout_add_full, (priority, interval, callback, data, notify));
}

guint d9__hook_g_timeout_add_once(guint interval, GSourceFunc callback, gpointer data)
{
	ADD(D9_TASK_TIMER, -1, callback, data,
	    g_timeout_add_once, (interval, callback, data));
}

guint d9__hook_g_timeout_add_seconds(guint interval, GSourceFunc callback, gpointer data)
{
	ADD(D9_TASK_TIMER, -1, callback, data,
	    g_timeout_add_seconds, (interval, callback, data));
}

guint d9__hook_g_timeout_add_seconds_full(gint priority, guint interval, GSourceFunc callback,
					  gpointer data, GDestroyNotify notify)
{
	ADD(D9_TASK_TIMER, -1, callback, data,
	    g_timeout_add_seconds_full, (priority, interval, callback, data, notify));
}

guint d9__hook_g_timeout_add_seconds_once(guint interval, GSourceFunc callback, gpointer data)
{
	ADD(D9_TASK_TIMER, -1, callback, data,
	    g_timeout_add_seconds_once, (interval, callback, data));
}

guint d9__hook_g_idle_add(GSourceFunc callback, gpointer data)
{
	ADD(D9_TASK_IDLE, -1, callback, data, g_idle_add, (callback, data));
}

guint d9__hook_g_idle_add_full(gint priority, GSourceFunc callback, gpointer data,
			       GDestroyNotify notify)
{
	ADD(D9_TASK_IDLE, -1, callback, data,
	    g_idle_add_full, (priority, callback, data, notify));
}

guint d9__hook_g_idle_add_once(GSourceFunc callback, gpointer data)
{
	ADD(D9_TASK_IDLE, -1, callback, data, g_idle_add_once, (callback, data));
}

guint d9__hook_g_child_watch_add(GPid pid, GSourceFunc callback, gpointer data)
{
	ADD(D9_TASK_CHILD, -1, callback, data, g_child_watch_add, (pid, callback, data));
}

guint d9__hook_g_child_watch_add_full(gint priority, GPid pid, GSourceFunc callback, gpointer data,
				      GDestroyNotify notify)
{
	ADD(D9_TASK_CHILD, -1, callback, data,
	    g_child_watch_add_full, (priority, pid, callback, data, notify));
}

guint d9__hook_g_unix_fd_add(gint fd, GIOCondition condition, GSourceFunc callback, gpointer data)
{
	ADD(D9_TASK_IO, fd, callback, data, g_unix_fd_add, (fd, condition, callback, data));
}

guint d9__hook_g_unix_fd_add_full(gint priority, gint fd, GIOCondition condition,
				  GSourceFunc callback, gpointer data, GDestroyNotify notify)
{
	ADD(D9_TASK_IO, fd, callback, data,
	    g_unix_fd_add_full, (priority, fd, condition, callback, data, notify));
}

guint d9__hook_g_unix_signal_add(gint number, GSourceFunc callback, gpointer data)
{
	ADD(D9_TASK_SIGNAL, -1, callback, data,
	    g_unix_signal_add, (number, callback, data));
}

guint d9__hook_g_unix_signal_add_full(gint priority, gint number, GSourceFunc callback,
				      gpointer data, GDestroyNotify notify)
{
	ADD(D9_TASK_SIGNAL, -1, callback, data,
	    g_unix_signal_add_full, (priority, number, callback, data, notify));
}

guint d9__hook_g_io_add_watch(GIOChannel *channel, GIOCondition condition, GSourceFunc callback,
			      gpointer data)
{
	ADD(D9_TASK_IO, -1, callback, data,
	    g_io_add_watch, (channel, condition, callback, data));
}

guint d9__hook_g_io_add_watch_full(GIOChannel *channel, gint priority, GIOCondition condition,
				   GSourceFunc callback, gpointer data, GDestroyNotify notify)
{
	ADD(D9_TASK_IO, -1, callback, data,
	    g_io_add_watch_full, (channel, priority, condition, callback, data, notify));
}

/* ---- sources made by hand ---- */

/* Descriptors of sources that are not attached yet, by address: half a hash of it, and the descriptor. */
static _Atomic(uint64_t) descriptors[64];

static uint64_t hash_of(const GSource *source)
{
	return (uintptr_t)source * UINT64_C(0x9e3779b97f4a7c15);
}

static _Atomic(uint64_t) *place_of(const GSource *source)
{
	return &descriptors[hash_of(source) >> 58];
}

static uint64_t entry_of(const GSource *source, int fd)
{
	return (hash_of(source) << 6 & UINT64_C(0xffffffff00000000)) | (uint32_t)fd;
}

static bool is_of(uint64_t entry, const GSource *source)
{
	return !((entry ^ entry_of(source, 0)) >> 32);
}

/* One that was at this address before was never attached. */
static void forget_descriptor(const GSource *source)
{
	if (is_of(atomic_load_explicit(place_of(source), memory_order_relaxed), source))
		atomic_store_explicit(place_of(source), 0, memory_order_relaxed);
}

GSource *d9__hook_g_source_new(GSourceFuncs *funcs, guint size)
{
	GSource *source;

	if (funcs)
		d9__glib_table_patch(funcs, false);
	source = d9__glib.g_source_new(funcs, size);
	forget_descriptor(source);
	return source;
}

void d9__hook_g_source_set_funcs(GSource *source, GSourceFuncs *funcs)
{
	if (funcs)
		d9__glib_table_patch(funcs, false);
	d9__glib.g_source_set_funcs(source, funcs);
}

static void patch_table_of(GSource *source)
{
	if (source && source->source_funcs)
		d9__glib_table_patch(source->source_funcs, false);
}

/* Its one descriptor, or -1. */
static int take_descriptor(const GSource *source)
{
	const GSList *first = source->poll_fds;
	uint64_t entry;

	if (first)
		return first->next ? -1 : ((const GPollFD *)first->data)->fd;
	entry = atomic_load_explicit(place_of(source), memory_order_relaxed);
	if (!is_of(entry, source))
		return -1;
	atomic_store_explicit(place_of(source), 0, memory_order_relaxed);
	return (int)(uint32_t)entry;
}

gpointer d9__hook_g_source_add_unix_fd(GSource *source, gint fd, GIOCondition events)
{
	patch_table_of(source);
	if (source && source->source_funcs)
		d9__glib_table_note_descriptors(source->source_funcs);
	if (source && d9__gate_open(D9__GATE_LOOP))
		atomic_store_explicit(place_of(source), entry_of(source, fd), memory_order_relaxed);
	return d9__glib.g_source_add_unix_fd(source, fd, events);
}

/* The callback that its dispatch function will be given, if it is set already.  No lock is held. */
static GSourceFunc callback_of(GSource *source, gpointer *data)
{
	void (*get)(gpointer, GSource *, GSourceFunc *, gpointer *) = NULL;
	GSourceFunc callback = NULL;

	*data = NULL;
	/* Ours may come into GLib's table at any time. */
	if (source->callback_funcs)
		__atomic_load(&source->callback_funcs->get, &get, __ATOMIC_RELAXED);
	if (get && source->callback_data)
		get(source->callback_data, source, &callback, data);
	return callback;
}

static uint64_t key_of(struct d9__glib_thread *thread, GSource *source)
{
	struct d9__glib_context *record =
		source->context && source->source_id ? d9__glib_context(thread, source->context)
						     : NULL;

	return record ? record->key | source->source_id : 0;
}

/*
 * An attached source that runs another function from now on is another task.  Not where another thread runs
 * the loop: what that knows of its sources is its own.
 */
static void callback_changed(GSource *source, const void *site)
{
	struct d9__glib_thread *thread = d9__glib_thread();
	struct d9_task task = { .fd = -1 };
	struct d9__glib_context *record;
	struct d9__glib_known *known;
	GSourceFunc callback;
	const void *function;
	gpointer data;

	if (!source || thread->calibrating || !d9__gate_open(D9__GATE_LOOP) ||
	    !(task.key = key_of(thread, source)))
		return;
	record = d9__glib_context(thread, source->context);
	if (!is_own(record) && atomic_load_explicit(&record->owner, memory_order_relaxed))
		return;
	callback = callback_of(source, &data);
	if (!callback)
		return;
	function = d9__glib_closure_function_of(source, callback, data);
	if (!d9__task_armed(D9_LIBRARY_GLIB, task.key, &task) || !task.callsite ||
	    task.callsite->callback == function)
		return;
	known = &record->known[task.key % D9__GLIB_KNOWN_MAX];
	if (known->key == task.key)
		known->key = 0; /* is met again */
	task.callsite = d9__callsite_of_kind(function, d9__glib_is_ours(site) ? NULL : site,
					     (enum d9_task_kind)task.kind);
	d9_task_renew(D9_LIBRARY_GLIB, task.key, 0);
	d9_task_arm(record->loop, &task);
}

void d9__hook_g_source_set_callback(GSource *source, GSourceFunc callback, gpointer data,
				    GDestroyNotify notify)
{
	patch_table_of(source);
	d9__glib.g_source_set_callback(source, callback, data, notify);
	callback_changed(source, CALLER());
}

/* libgobject's g_source_set_closure() comes here: every closure does. */
void d9__hook_g_source_set_callback_indirect(GSource *source, gpointer data,
					     GSourceCallbackFuncs *funcs)
{
	patch_table_of(source);
	d9__glib_closure_note_callback_funcs(funcs, CALLER());
	d9__glib.g_source_set_callback_indirect(source, data, funcs);
	callback_changed(source, CALLER());
}

/*
 * Whether |fd| is a listener's.  GIO's function for sockets that listen is called for no others: one look
 * at each of its functions.
 */
static bool is_listener(const void *callback, int fd)
{
	static _Atomic(const void *) others[16], listener;
	_Atomic(const void *) *place = &others[(uintptr_t)callback / 16 % 16];
	socklen_t len = sizeof(int);
	int listens = 0, saved = errno;
	char name[64];

	if (!callback || callback == atomic_load_explicit(place, memory_order_relaxed))
		return false;
	if (callback == atomic_load_explicit(&listener, memory_order_relaxed))
		return true;
	d9__module_name_of(callback, name, sizeof(name));
	if (!strncmp(name, "libgio-", strlen("libgio-")) &&
	    getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &len) < 0)
		errno = saved;
	if (listens)
		d9__callback_role_set(callback, "socket listener accept");
	atomic_store_explicit(listens ? &listener : place, callback, memory_order_relaxed);
	return listens;
}

/* Of a source of GIO's own, or the program's, that has one descriptor. */
static void note_descriptor(struct making *making, const GSource *source, GSourceFunc callback)
{
	if (!making->record || making->task.kind != D9_TASK_CUSTOM)
		return;
	making->task.fd = take_descriptor(source);
	if (making->task.fd >= 0 && is_listener((const void *)callback, making->task.fd))
		making->task.kind = D9_TASK_LISTENER;
}

guint d9__hook_g_source_attach(GSource *source, GMainContext *context)
{
	struct d9__glib_thread *thread = d9__glib_thread();
	struct d9__stub *stub;
	struct making making;
	GSourceFunc callback;
	gpointer data;
	guint id;

	patch_table_of(source);
	stub = source && source->source_funcs ? d9__glib_table_stub_of(source->source_funcs) : NULL;
	making.record = NULL;
	if (stub && d9__gate_open(D9__GATE_LOOP)) {
		callback = callback_of(source, &data);
		make(&making, context ? context : default_context(), callback, data,
		     (enum d9_task_kind)d9__glib_table_kind_of(stub), CALLER());
		making.callback = callback ? d9__glib_closure_function_of(source, callback, data)
					   : stub->callback;
		note_descriptor(&making, source, callback);
	}
	id = d9__glib.g_source_attach(source, context);
	if (!context && !default_context())
		d9__glib_context_note_default(d9__glib.g_main_context_default());
	made(&making, id, (const void *)d9__glib.g_source_attach, CALLER());
	thread->about = 0;
	return id;
}

/* ---- invocations ---- */

/* As GLib, which asks once: what it found may have changed when we ask a second time. */
static bool is_thread_default(const GMainContext *context)
{
	GMainContext *own = d9__glib.g_main_context_get_thread_default();

	return context == (own ? own : default_context());
}

/* The source that the call stands for, so that its id is known. */
static void invoke_later(GMainContext *context, gint priority, GSourceFunc callback, gpointer data,
			 GDestroyNotify notify, const void *site)
{
	GSource *source = d9__glib.g_idle_source_new();
	struct making making;

	d9__glib.g_source_set_priority(source, priority);
	d9__glib.g_source_set_callback(source, callback, data, notify);
	make(&making, context, callback, data, D9_TASK_IDLE, site);
	made(&making, d9__glib.g_source_attach(source, context),
	     (const void *)d9__glib.g_main_context_invoke_full, site);
	d9__glib.g_source_unref(source);
}

/*
 * GLib's call runs the callback itself if this thread owns the context, or it is the thread's default
 * and no thread owns it; else it makes a source.  Which of the two cannot be learnt behind it, and a check
 * before it holds only for a context that is ours.  So where no thread owns it we take it first, and where
 * another thread has it the source is made here.
 */
static void invoke(GMainContext *context, gint priority, GSourceFunc callback, gpointer data,
		   GDestroyNotify notify, const void *site)
{
	GMainContext *which = context ? context : default_context();

	if (!callback || !which || !d9__gate_open(D9__GATE_LOOP) ||
	    !d9__glib_context(d9__glib_thread(), which) ||
	    d9__glib.g_main_context_is_owner(which)) {
		d9__glib.g_main_context_invoke_full(context, priority, callback, data, notify);
	} else if (is_thread_default(which) && d9__glib.g_main_context_acquire(which)) {
		d9__glib.g_main_context_invoke_full(context, priority, callback, data, NULL);
		d9__glib.g_main_context_release(which);
		if (notify)
			notify(data);
	} else {
		invoke_later(which, priority, callback, data, notify, site);
	}
}

void d9__hook_g_main_context_invoke(GMainContext *context, GSourceFunc callback, gpointer data)
{
	invoke(context, G_PRIORITY_DEFAULT, callback, data, NULL, CALLER());
}

void d9__hook_g_main_context_invoke_full(GMainContext *context, gint priority,
					 GSourceFunc callback, gpointer data, GDestroyNotify notify)
{
	invoke(context, priority, callback, data, notify, CALLER());
}

/* ---- the program makes a source ready ---- */

/* The source |about| waits for another time from now on. */
static __attribute__((noinline)) void note_waits(const struct d9__glib_thread *thread, const GSource *source,
						 uint64_t time_ns, const void *function, const void *caller)
{
	/* A source whose ready time is never waits for something else. */
	if (time_ns != NEVER && d9_task_id(D9_LIBRARY_GLIB, thread->about))
		d9__task_waits(d9__glib_context(d9__glib_thread(), source->context)->loop, thread->about,
			       -1, function, caller, true);
}

/*
 * Before the call of |function|: the loop may run the source before it returns.  |time_ns| is 0 for at once.
 */
static void ready_at(struct d9__glib_thread *thread, GSource *source, uint64_t time_ns, const void *function,
		     const void *caller)
{
	struct d9__glib_context *record;

	if (!d9__gate_open(D9__GATE_LOOP) || !source || !(thread->about = key_of(thread, source)))
		return;
	if (d9__gate_arms())
		note_waits(thread, source, time_ns, function, caller);
	if (time_ns == NEVER || (time_ns && time_ns > d9_loop_now()))
		return;
	record = d9__glib_context(thread, source->context);
	d9_wake(record->loop, thread->about,
		is_own(record) ? D9_WAKE_ACTIVE : D9_WAKE_CROSS_THREAD, NULL);
}

void d9__hook_g_source_set_ready_time(GSource *source, gint64 time)
{
	struct d9__glib_thread *thread = d9__glib_thread();

	ready_at(thread, source, time < 0 ? NEVER : (uint64_t)time * 1000, (const void *)d9__glib.g_source_set_ready_time,
		 CALLER());
	d9__glib.g_source_set_ready_time(source, time);
	thread->about = 0;
}

void d9__hook_g_source_set_ready_time_ns(GSource *source, uint64_t time)
{
	struct d9__glib_thread *thread = d9__glib_thread();

	ready_at(thread, source, time, (const void *)d9__glib.g_source_set_ready_time_ns,
		 CALLER());
	d9__glib.g_source_set_ready_time_ns(source, time);
	thread->about = 0;
}

void d9__hook_g_source_clear_ready_time(GSource *source)
{
	struct d9__glib_thread *thread = d9__glib_thread();

	ready_at(thread, source, NEVER, (const void *)d9__glib.g_source_clear_ready_time,
		 CALLER());
	d9__glib.g_source_clear_ready_time(source);
	thread->about = 0;
}

/* ---- ends ---- */

static void end(uint64_t key)
{
	if (key)
		d9_task_end(D9_LIBRARY_GLIB, key);
}

void d9__hook_g_source_destroy(GSource *source)
{
	uint64_t key = 0;

	if (d9__gate_open(D9__GATE_LOOP) && source)
		key = key_of(d9__glib_thread(), source);
	d9__glib.g_source_destroy(source);
	end(key);
}

static uint64_t default_key(guint id)
{
	GMainContext *context = default_context();
	struct d9__glib_context *record =
		context && d9__gate_open(D9__GATE_LOOP)
			? d9__glib_context(d9__glib_thread(), context)
			: NULL;

	return record && id ? record->key | id : 0;
}

gboolean d9__hook_g_source_remove(guint id)
{
	uint64_t key = default_key(id);
	gboolean removed = d9__glib.g_source_remove(id);

	if (removed)
		end(key);
	return removed;
}

/* The source that a removal will find; its id is read before another thread can end it. */
static uint64_t key_of_found(GSource *source)
{
	return source ? default_key(source->source_id) : 0;
}

gboolean d9__hook_g_source_remove_by_user_data(gpointer data)
{
	uint64_t key = default_key(1) ? key_of_found(d9__glib.g_main_context_find_source_by_user_data(
						NULL, data))
				      : 0;
	gboolean removed = d9__glib.g_source_remove_by_user_data(data);

	if (removed)
		end(key);
	return removed;
}

static uint64_t key_by_funcs(GSourceFuncs *funcs, gpointer data)
{
	if (!funcs || !default_key(1))
		return 0;
	return key_of_found(
		d9__glib.g_main_context_find_source_by_funcs_user_data(NULL, funcs, data));
}

gboolean d9__hook_g_source_remove_by_funcs_user_data(GSourceFuncs *funcs, gpointer data)
{
	uint64_t key = key_by_funcs(funcs, data);
	gboolean removed = d9__glib.g_source_remove_by_funcs_user_data(funcs, data);

	if (removed)
		end(key);
	return removed;
}

gboolean d9__hook_g_idle_remove_by_data(gpointer data)
{
	uint64_t key = key_by_funcs(d9__glib_idle_funcs, data);
	gboolean removed = d9__glib.g_idle_remove_by_data(data);

	if (removed)
		end(key);
	return removed;
}
