/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "glib/contexts.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "glib/capabilities.h"
#include "loop/adapter.h"

_Atomic(bool) d9__glib_all, d9__glib_waiting;
_Atomic(uint32_t) d9__glib_generation;
_Atomic(uint32_t) d9__glib_unseen;
_Atomic(struct d9__glib_context *) d9__glib_by_fd[D9__GLIB_FDS_MAX];
_Atomic(GMainContext *) d9__glib_default;

static struct d9__glib_context records[D9__GLIB_CONTEXTS_MAX];

/* Protects which records are in use.  No function of GLib but g_main_context_wakeup() under it. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned n_used;
/* A thread may still hold the address of a record: the longest retired is taken first. */
static struct d9__glib_context *first_retired, *last_retired;
static _Atomic(uint32_t) n_closed; /* contexts that are gone, their records not yet taken back */
static _Atomic(uint32_t) n_pipes;  /* whose polled end is not known */
static _Atomic(uint64_t) unseen_before; /* of contexts that are gone */

/* close() in a child that shares our memory must not end contexts of ours. */
static pid_t own_pid;

/* ---- the wake-up descriptor ---- */

int d9__glib_context_capture(GMainContext *context, bool *is_pipe)
{
	struct d9__glib_thread *thread = d9__glib_thread();
	sigset_t all, before;

	thread->captured_fd = -1;
	/* A handler of a signal may wake another context meanwhile. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	thread->capturing = true;
	d9__glib.g_main_context_wakeup(context);
	thread->capturing = false;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	*is_pipe = thread->captured_bytes == 1;
	return thread->captured_fd;
}

static void set_fd(int fd, struct d9__glib_context *record)
{
	/* release: whoever finds the record sees all of it */
	if (fd >= 0 && fd < D9__GLIB_FDS_MAX)
		atomic_store_explicit(&d9__glib_by_fd[fd], record, memory_order_release);
}

static void find_fd_locked(struct d9__glib_context *record, GMainContext *context, int fd)
{
	bool is_pipe = false;

	if (fd < 0)
		fd = d9__glib_context_capture(context, &is_pipe);
	atomic_store_explicit(&record->write_fd, fd, memory_order_relaxed);
	atomic_store_explicit(&record->wake_fd, is_pipe ? -1 : fd, memory_order_relaxed);
	record->pipe_unresolved = is_pipe && fd >= 0;
	if (record->pipe_unresolved)
		atomic_fetch_add_explicit(&n_pipes, 1, memory_order_relaxed);
	set_fd(fd, record);
}

static bool is_same_pipe(const struct stat *a, int fd)
{
	struct stat b;

	return fstat(fd, &b) == 0 && S_ISFIFO(b.st_mode) && a->st_dev == b.st_dev &&
	       a->st_ino == b.st_ino;
}

static struct d9__glib_context *pipe_among_locked(const struct stat *what)
{
	for (unsigned i = 0; i < n_used; i++) {
		struct d9__glib_context *record = &records[i];

		if (record->pipe_unresolved &&
		    is_same_pipe(what, atomic_load_explicit(&record->write_fd,
							    memory_order_relaxed)))
			return record;
	}
	return NULL;
}

static struct d9__glib_context *resolve_pipe_locked(const struct pollfd *fds, nfds_t n)
{
	struct d9__glib_context *record = NULL;
	struct stat polled;

	for (nfds_t i = 0; i < n && !record; i++) {
		if (fstat(fds[i].fd, &polled) || !S_ISFIFO(polled.st_mode))
			continue;
		record = pipe_among_locked(&polled);
		if (!record)
			continue;
		record->pipe_unresolved = false;
		atomic_fetch_sub_explicit(&n_pipes, 1, memory_order_relaxed);
		atomic_store_explicit(&record->wake_fd, fds[i].fd, memory_order_relaxed);
		set_fd(fds[i].fd, record);
	}
	return record;
}

struct d9__glib_context *d9__glib_context_resolve_pipe(const struct pollfd *fds, nfds_t n)
{
	struct d9__glib_context *record;
	int saved = errno;

	if (atomic_load_explicit(&n_pipes, memory_order_relaxed) == 0)
		return NULL;
	pthread_mutex_lock(&lock);
	record = resolve_pipe_locked(fds, n);
	pthread_mutex_unlock(&lock);
	errno = saved;
	return record;
}

/* ---- ends ---- */

void d9__glib_context_note_closed(int fd)
{
	struct d9__glib_context *record = d9__glib_context_of_fd(fd);

	if (!record || d9__sandbox_is_shut() || own_pid != getpid())
		return;
	set_fd(fd, NULL);
	/* release: pairs with the acquire in reap_locked() */
	if (atomic_exchange_explicit(&record->closed, true, memory_order_release))
		return; /* the other end of a pipe */
	atomic_fetch_add_explicit(&n_closed, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&d9__glib_generation, 1, memory_order_release);
}

static void retire_locked(struct d9__glib_context *record)
{
	atomic_fetch_sub_explicit(&n_closed, 1, memory_order_relaxed);
	/* Its last round is over, too. */
	atomic_fetch_add_explicit(&unseen_before,
				  d9__glib_unseen_of(record) +
					  atomic_load_explicit(&record->left, memory_order_relaxed),
				  memory_order_relaxed);
	if (record->pipe_unresolved)
		atomic_fetch_sub_explicit(&n_pipes, 1, memory_order_relaxed);
	record->pipe_unresolved = false;
	atomic_store_explicit(&record->address, NULL, memory_order_relaxed);
	d9__glib_notes_clear(record);
	d9_loop_unregister(record->loop);
	record->next_retired = NULL;
	if (first_retired)
		last_retired->next_retired = record;
	else
		first_retired = record;
	last_retired = record;
}

/* The close hook takes no lock: what it closed is taken back here. */
static void reap_locked(void)
{
	if (atomic_load_explicit(&n_closed, memory_order_relaxed) == 0)
		return;
	for (unsigned i = 0; i < n_used; i++) {
		struct d9__glib_context *record = &records[i];

		if (atomic_load_explicit(&record->address, memory_order_relaxed) &&
		    atomic_load_explicit(&record->closed, memory_order_acquire))
			retire_locked(record);
	}
}

static uint32_t unseen_locked(void)
{
	uint64_t sum = atomic_load_explicit(&unseen_before, memory_order_relaxed);

	for (unsigned i = 0; i < n_used; i++) {
		if (atomic_load_explicit(&records[i].address, memory_order_relaxed))
			sum += d9__glib_unseen_of(&records[i]);
	}
	return sum < UINT32_MAX ? (uint32_t)sum : UINT32_MAX;
}

static void look_at_tick(void)
{
	d9__glib_capability_tell_refusals(); /* of modules that came since, too */
	if (pthread_mutex_trylock(&lock))
		return;
	reap_locked();
	atomic_store_explicit(&d9__glib_unseen, unseen_locked(), memory_order_relaxed);
	pthread_mutex_unlock(&lock);
}

/*
 * ---- forks ----
 *
 * Under our lock the core's are taken, so ours has to be taken first: its handlers are installed
 * behind the core's, which come with the first loop.
 */

static void before_fork(void)
{
	pthread_mutex_lock(&lock);
	d9__glib_notes_fork_prepare();
}

static void after_fork_parent(void)
{
	d9__glib_notes_fork_parent();
	pthread_mutex_unlock(&lock);
}

static void after_fork_child(void)
{
	if (!d9__sandbox_is_shut())
		own_pid = getpid();
	for (unsigned i = 0; i < n_used; i++)
		atomic_store_explicit(&records[i].owner, 0, memory_order_relaxed);
	after_fork_parent();
}

static void hold_over_forks(void)
{
	pthread_atfork(before_fork, after_fork_parent, after_fork_child);
}

/* ---- registration ---- */

static struct d9__glib_context *find(const GMainContext *context)
{
	struct d9_loop *loop = d9_loop_find(D9_LIBRARY_GLIB, context);
	struct d9__glib_context *record = loop ? d9__loop_companion(loop) : NULL;

	return record && !atomic_load_explicit(&record->closed, memory_order_relaxed) ? record
										       : NULL;
}

static struct d9__glib_context *take_record_locked(void)
{
	struct d9__glib_context *record = first_retired;

	if (n_used < D9__GLIB_CONTEXTS_MAX)
		return &records[n_used++];
	if (record)
		first_retired = record->next_retired;
	return record;
}

/* Slots that were used before are preferred as long as nobody can still hold them: few pages. */
static struct d9__glib_context *choose_record_locked(void)
{
	struct d9__glib_context *record = first_retired;

	if (!record || n_used < 16)
		return take_record_locked();
	first_retired = record->next_retired;
	return record;
}

static const char *name_of(const GMainContext *context, const char *name)
{
	if (name)
		return name;
	return context == atomic_load_explicit(&d9__glib_default, memory_order_relaxed) ? "default"
											  : NULL;
}

static int add_locked(GMainContext *context, const char *name, int fd,
		      struct d9__glib_context **out)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct d9__glib_context *record = choose_record_locked();
	int err;

	if (!record)
		return -ENOSPC;
	memset(record, 0, sizeof(*record));
	err = d9__loop_add(D9_LIBRARY_GLIB, context, name_of(context, name), &record->loop);
	pthread_once(&once, hold_over_forks);
	if (err) {
		record->next_retired = first_retired;
		if (!first_retired)
			last_retired = record;
		first_retired = record;
		return err;
	}
	record->key = ((uint64_t)(record - records) + 1) << 32;
	atomic_store_explicit(&record->address, context, memory_order_relaxed);
	find_fd_locked(record, context, fd);
	d9__loop_set_companion(record->loop, record);
	atomic_fetch_add_explicit(&d9__glib_generation, 1, memory_order_release);
	*out = record;
	return 0;
}

int d9__glib_context_register(GMainContext *context, const char *name, int fd,
		      struct d9__glib_context **out)
{
	struct d9__glib_context *record = find(context);
	int saved = errno, err = name || !record ? d9__loop_prepare() : 0;

	atomic_store_explicit(&d9__glib_waiting, false, memory_order_relaxed);
	pthread_mutex_lock(&lock);
	reap_locked();
	record = find(context);
	if (!record && !err)
		err = add_locked(context, name, fd, &record);
	else if (name && !err)
		err = d9__loop_add(D9_LIBRARY_GLIB, context, name, &record->loop);
	pthread_mutex_unlock(&lock);
	d9__capability_loop(&d9__glib_capabilities, err);
	if (!err && out)
		*out = record;
	errno = saved;
	return err;
}

struct d9__glib_context *d9__glib_context_look_up(struct d9__glib_thread *thread,
					  const GMainContext *context)
{
	uint32_t generation = atomic_load_explicit(&d9__glib_generation, memory_order_acquire);
	struct d9__glib_context *record = find(context);

	if (!record && context && !thread->calibrating &&
	    atomic_load_explicit(&d9__glib_all, memory_order_relaxed)) {
		d9__glib_context_register((GMainContext *)(uintptr_t)context, NULL, -1, &record);
		generation = atomic_load_explicit(&d9__glib_generation, memory_order_acquire);
	}
	thread->context = context;
	thread->record = record;
	thread->generation = generation;
	return record;
}

void d9__glib_context_note_default(GMainContext *context)
{
	if (!context || atomic_load_explicit(&d9__glib_default, memory_order_relaxed))
		return;
	atomic_store_explicit(&d9__glib_default, context, memory_order_relaxed);
	if (atomic_load_explicit(&d9__glib_all, memory_order_relaxed))
		d9__glib_context_register(context, NULL, -1, NULL);
}

void d9__glib_contexts_init(void)
{
	own_pid = getpid();
	d9__tick_add(look_at_tick);
}
