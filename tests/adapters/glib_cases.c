/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One awkward use of GLib per run; counts for itself.
 *
 *	glib_cases NAME [--adapter=LIBRARY] [--out=FILE]
 */
#include "config.h"

#include <dlfcn.h>
#include <errno.h>
#include <gio/gio.h>
#include <glib-unix.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "counters.h"
#include "glib_cases.h"

static const char *adapter; /* NULL: every context is recorded anyway */
GMainLoop *loop;

void attach(GMainContext *context)
{
	if (adapter)
		attach_with("d9_g_main_context_attach", context, adapter);
}

gboolean on_quit(gpointer arg)
{
	COUNT(on_quit, KIND_POLL);
	g_main_loop_quit(arg);
	return G_SOURCE_REMOVE;
}

static gboolean on_idle(gpointer arg)
{
	unsigned *left = arg;

	COUNT(on_idle, KIND_POLL);
	return --*left > 0;
}

static void run_for(unsigned ms)
{
	g_timeout_add(ms, on_quit, loop);
	g_main_loop_run(loop);
}

void iterate_until_idle(GMainContext *context)
{
	while (g_main_context_iteration(context, FALSE))
		continue;
}

/* ---- a source that the program defines ---- */

gboolean own_prepare(GSource *source, gint *timeout)
{
	*timeout = -1;
	return ((struct own *)source)->left > 0;
}

gboolean own_dispatch(GSource *source, GSourceFunc callback, gpointer arg)
{
	(void)callback;
	(void)arg;
	COUNT(own_dispatch, KIND_POLL);
	return --((struct own *)source)->left > 0;
}

static GSourceFuncs own_funcs = { own_prepare, NULL, own_dispatch, NULL, NULL, NULL };

GSource *make_own(GSourceFuncs *funcs, unsigned left, GMainContext *context)
{
	GSource *source = g_source_new(funcs, sizeof(struct own));

	((struct own *)source)->left = left;
	g_source_attach(source, context);
	return source;
}

/* ---- older than the adapter ---- */

static gboolean on_never(gpointer arg)
{
	(void)arg;
	return G_SOURCE_REMOVE;
}

static void run_older(void)
{
	unsigned idles = 4;
	guint before, after;

	g_idle_add(on_idle, &idles);
	make_own(&own_funcs, 7, NULL);
	before = g_idle_add(on_never, NULL);
	g_source_remove(before);
	attach(NULL);
	after = g_idle_add(on_never, NULL);
	g_source_remove(after);
	if (after - before != 2)
		complain("ids that attach takes", 1, (long)(after - before) - 1);
	iterate_until_idle(NULL);
}

/* ---- recursion ---- */

static unsigned depth;

static gboolean recursing_dispatch(GSource *source, GSourceFunc callback, gpointer arg)
{
	struct own *own = (struct own *)source;

	(void)callback;
	(void)arg;
	COUNT(recursing_dispatch, KIND_POLL);
	if (depth < 5) {
		depth++;
		g_main_context_iteration(NULL, FALSE);
		depth--;
	}
	return own->left > 0 && --own->left > 0;
}

static GSourceFuncs recursing_funcs = { own_prepare, NULL, recursing_dispatch, NULL, NULL, NULL };

static void recurse(gint priority)
{
	GSource *source = g_source_new(&recursing_funcs, sizeof(struct own));

	((struct own *)source)->left = 40;
	g_source_set_can_recurse(source, TRUE);
	g_source_set_priority(source, priority);
	g_source_attach(source, NULL);
	iterate_until_idle(NULL);
	g_source_destroy(source);
	g_source_unref(source);
}

static void run_recursion(void)
{
	recurse(0);
	recurse(-10);
}

/* ---- another thread ---- */

#define INVOKES 1000

static struct counter *crossing, *readied;
static GMainLoop *other_loop;
static unsigned crossed;
static GSource *late_source;

static gboolean on_cross(gpointer arg)
{
	(void)arg;
	crossing->count++;
	if (++crossed == INVOKES)
		g_main_loop_quit(other_loop);
	return G_SOURCE_REMOVE;
}

static gboolean ready_dispatch(GSource *source, GSourceFunc callback, gpointer arg)
{
	(void)callback;
	(void)arg;
	readied->count++;
	g_source_set_ready_time(source, -1);
	return G_SOURCE_CONTINUE;
}

static GSourceFuncs ready_funcs = { NULL, NULL, ready_dispatch, NULL, NULL, NULL };

static gpointer run_loop(gpointer arg)
{
	g_main_loop_run(arg);
	return NULL;
}

static void run_invokes(void)
{
	GMainContext *context = g_main_context_new();
	GThread *thread;

	crossing = counter_of("on_cross", (void *)on_cross, KIND_POLL);
	readied = counter_of("ready_dispatch", (void *)ready_dispatch, KIND_POLL);
	other_loop = g_main_loop_new(context, FALSE);
	late_source = g_source_new(&ready_funcs, sizeof(GSource));
	g_source_attach(late_source, context);
	thread = g_thread_new("other", run_loop, other_loop);
	while (!g_main_loop_is_running(other_loop))
		g_usleep(100);
	for (int i = 0; i < INVOKES / 2; i++) {
		GSource *idle = g_idle_source_new();

		g_main_context_invoke(context, on_cross, NULL);
		g_source_set_ready_time(late_source, 0);
		g_source_set_callback(idle, on_cross, NULL, NULL);
		g_source_attach(idle, context);
		g_source_unref(idle);
	}
	g_thread_join(thread);
	g_source_destroy(late_source);
	g_source_unref(late_source);
	g_main_loop_unref(other_loop);
	g_main_context_unref(context);
}

/* ---- late ---- */

static gint64 due_us, due_at_last_us;
static bool was_due;

static gboolean on_due(gpointer arg)
{
	struct counter *late = counter_of("on_due", (void *)on_due, KIND_LATE);
	unsigned *left = arg;

	COUNT(on_due, KIND_POLL);
	late->count = (unsigned long)(g_get_monotonic_time() - due_us);
	was_due = true;
	return --*left > 0;
}

static gboolean on_block(gpointer arg)
{
	(void)arg;
	COUNT(on_block, KIND_POLL);
	g_usleep(60000);
	/* A busy machine may have let the timer be first. */
	if (!was_due)
		counter_of("on_due", (void *)on_due, KIND_LEAST)->count = (unsigned long)(g_get_monotonic_time() - due_at_last_us);
	return G_SOURCE_REMOVE;
}

static void run_late(void)
{
	unsigned left = 1;

	due_us = g_get_monotonic_time() + 20000;
	g_timeout_add(20, on_due, &left);
	due_at_last_us = g_get_monotonic_time() + 20000;
	g_idle_add(on_block, NULL);
	run_for(100);
}

/* ---- driven from outside ---- */

static void run_external(void)
{
	GMainContext *context = g_main_context_default();
	GPollFD few[1], fds[16];
	unsigned idles = 5, rounds = 0, timers = 3;
	gint priority, timeout, n;

	g_main_context_acquire(context);
	g_idle_add(on_idle, &idles);
	g_timeout_add(3, on_idle, &timers);
	g_unix_signal_add(SIGUSR2, on_never, NULL);
	while (timers > 0) {
		g_main_context_prepare(context, &priority);
		g_main_context_query(context, G_PRIORITY_LOW, &timeout, few, 0);
		n = g_main_context_query(context, G_PRIORITY_LOW, &timeout, fds, 16);
		if (rounds++ % 2)
			g_poll(fds, (guint)n, timeout);
		else
			poll((struct pollfd *)(void *)fds, (nfds_t)n, timeout);
		g_main_context_check(context, priority, fds, n);
		g_main_context_dispatch(context);
	}
	g_main_context_release(context);
}

/* ---- contexts that live for one call, and too many at once ---- */

#define SHORT_LIVED 10000
#define ALIVE	    1100

static void run_contexts(void)
{
	for (int i = 0; i < SHORT_LIVED; i++) {
		GMainContext *context = g_main_context_new();
		GSource *source = g_idle_source_new();
		unsigned left = 1;

		if (i % (SHORT_LIVED / 2) == SHORT_LIVED / 2 - 1)
			expect_flat();
		attach(context);
		g_source_set_callback(source, on_idle, &left, NULL);
		g_source_attach(source, context);
		g_source_unref(source);
		g_main_context_iteration(context, FALSE);
		g_main_context_unref(context);
	}
}

static void run_too_many(void)
{
	static GMainContext *contexts[ALIVE];

	for (int i = 0; i < ALIVE; i++)
		contexts[i] = g_main_context_new();
	for (int i = 0; i < ALIVE; i++)
		g_main_context_unref(contexts[i]);
	run_contexts();
}

/* ---- a poll function that the program sets ---- */

static unsigned own_polls;

static gint own_poll(GPollFD *fds, guint n, gint timeout)
{
	gint result;

	own_polls++;
	result = g_poll(fds, n, timeout);
	if (result < 0 && errno != EINTR)
		complain("errno in the poll function", EINTR, errno);
	return result;
}

static void run_poll_function(void)
{
	GMainContext *context = g_main_context_default();
	unsigned left = 30;

	if (g_main_context_get_poll_func(context) != g_poll)
		complain("poll function before", 1, 0);
	if (adapter) { /* set before and after attach */
		g_main_context_set_poll_func(context, own_poll);
		attach(NULL);
	} else {
		g_main_context_set_poll_func(context, own_poll);
	}
	if (g_main_context_get_poll_func(context) != own_poll)
		complain("poll function", 1, 0);
	g_timeout_add(1, on_idle, &left);
	while (left > 0)
		g_main_context_iteration(context, TRUE);
	if (own_polls < 30)
		complain("calls of the poll function", 30, own_polls);
	g_main_context_set_poll_func(context, NULL);
	if (g_main_context_get_poll_func(context) != g_poll)
		complain("poll function behind", 1, 0);
}

/* ---- found by handle only ---- */

static gboolean handle_dispatch(GSource *source, GSourceFunc callback, gpointer arg)
{
	/* Its first dispatch is not seen: what announces the table runs inside it. */
	if (((struct own *)source)->left < 10)
		COUNT(handle_dispatch, KIND_POLL);
	callback(arg);
	return --((struct own *)source)->left > 0;
}

/* So slow that it is told of before the first dispatch that is seen. */
static gboolean handle_prepare(GSource *source, gint *timeout)
{
	gint64 begin = g_get_monotonic_time();

	while (((struct own *)source)->left == 9 && g_get_monotonic_time() - begin < 2000)
		;
	return own_prepare(source, timeout);
}

static gboolean on_handle(gpointer arg)
{
	(void)arg;
	return G_SOURCE_CONTINUE;
}

static void run_handle(void)
{
	static GSourceFuncs funcs = { handle_prepare, NULL, handle_dispatch, NULL, NULL, NULL };
	void *glib = dlopen("libglib-2.0.so.0", RTLD_NOW | RTLD_NOLOAD);
	GSource *(*new_source)(GSourceFuncs *, guint) = NULL;
	guint (*attach_source)(GSource *, GMainContext *) = NULL;
	void (*set_callback)(GSource *, GSourceFunc, gpointer, GDestroyNotify) = NULL;
	GSource *source;

	*(void **)&new_source = dlsym(glib, "g_source_new");
	*(void **)&attach_source = dlsym(glib, "g_source_attach");
	*(void **)&set_callback = dlsym(glib, "g_source_set_callback");
	source = new_source(&funcs, sizeof(struct own));
	((struct own *)source)->left = 10;
	set_callback(source, on_handle, NULL, NULL);
	counter_of("handle_dispatch", (void *)on_handle, KIND_POLL);
	attach_source(source, NULL);
	iterate_until_idle(NULL);
	counter_of("on_handle", (void *)on_handle, KIND_POLL)->count = 9;
	counter_of("handle_dispatch", (void *)handle_dispatch, KIND_POLL)->count = 0;
}

/* ---- forks ---- */

static const char *out_path;

static void run_fork(void)
{
	static char child_out[1024];
	unsigned left = 50;
	int status;
	pid_t pid;

	g_idle_add(on_idle, &left);
	iterate_until_idle(NULL);
	left = 50;
	pid = fork();
	if (pid == 0) {
		counters_reset();
		snprintf(child_out, sizeof(child_out), "%s.child", out_path);
		g_idle_add(on_idle, &left);
		iterate_until_idle(NULL);
		exit(counters_write(child_out));
	}
	g_idle_add(on_idle, &left);
	iterate_until_idle(NULL);
	waitpid(pid, &status, 0);
	if (status)
		complain("status of the child", 0, status);
}

static gpointer make_contexts(gpointer arg)
{
	while (!g_atomic_int_get((gint *)arg))
		g_main_context_unref(g_main_context_new());
	return NULL;
}

static unsigned children;

static void on_exit_of(GPid pid, gint status, gpointer arg)
{
	(void)pid;
	(void)status;
	COUNT(on_exit_of, KIND_POLL);
	if (--children == 0)
		g_main_loop_quit(arg);
}

static void run_spawn(void)
{
	char name[] = "true", *argv[] = { name, NULL };
	gint stop = 0;
	GThread *thread = g_thread_new("contexts", make_contexts, &stop);

	for (int i = 0; i < 100; i++) {
		GPid pid;

		if (g_spawn_async(NULL, argv, NULL,
				  G_SPAWN_SEARCH_PATH | G_SPAWN_DO_NOT_REAP_CHILD, NULL, NULL,
				  &pid, NULL)) {
			children++;
			g_child_watch_add(pid, on_exit_of, loop);
		}
	}
	g_main_loop_run(loop);
	g_atomic_int_set(&stop, 1);
	g_thread_join(thread);
}

/* ---- signals while contexts come and go ---- */

static gint storm_over;
static unsigned caught;

static gboolean on_storm(gpointer arg)
{
	(void)arg;
	COUNT(on_storm, KIND_POLL);
	caught++;
	return G_SOURCE_CONTINUE;
}

static gpointer raise_storm(gpointer arg)
{
	while (!g_atomic_int_get(&storm_over)) {
		pthread_kill(*(pthread_t *)arg, SIGUSR1);
		g_usleep(20);
	}
	return NULL;
}

static void run_storm(void)
{
	GMainContext *(*new_context)(void) = NULL;
	pthread_t self = pthread_self();
	unsigned before;
	GThread *thread;

	*(void **)&new_context = dlsym(dlopen("libglib-2.0.so.0", RTLD_NOW | RTLD_NOLOAD),
				       "g_main_context_new");
	g_unix_signal_add(SIGUSR1, on_storm, NULL);
	thread = g_thread_new("storm", raise_storm, &self);
	for (int i = 0; i < 5000; i++) {
		GMainContext *context = i % 2 ? new_context() : g_main_context_new();
		GSource *source = g_idle_source_new();
		unsigned left = 1;

		g_source_set_callback(source, on_idle, &left, NULL);
		g_source_attach(source, context);
		g_source_unref(source);
		g_main_context_iteration(context, FALSE);
		g_main_context_unref(context);
		if (i % 100 == 0)
			iterate_until_idle(NULL);
	}
	g_atomic_int_set(&storm_over, 1);
	g_thread_join(thread);
	iterate_until_idle(NULL);
	/* The last signal is not lost: no wake-up was swallowed. */
	before = caught;
	raise(SIGUSR1);
	for (int i = 0; i < 300000 && caught == before; i++) {
		g_main_context_iteration(NULL, FALSE);
		g_usleep(100);
	}
	if (caught == before)
		complain("the last signal", 1, 0);
}

/* ---- callbacks that do not return ---- */

static jmp_buf jump;

static gboolean on_jump(gpointer arg)
{
	(void)arg;
	COUNT(on_jump, KIND_POLL);
	longjmp(jump, 1);
}

static void run_longjmp(void)
{
	GMainContext *context = g_main_context_new();
	GSource *source = g_idle_source_new();
	unsigned left = 3;

	g_source_set_callback(source, on_jump, NULL, NULL);
	g_source_attach(source, context);
	if (!setjmp(jump))
		g_main_context_iteration(context, FALSE);
	g_idle_add(on_idle, &left);
	iterate_until_idle(NULL);
}

static gboolean on_cancel(gpointer arg)
{
	(void)arg;
	COUNT(on_cancel, KIND_POLL);
	pthread_cancel(pthread_self());
	pthread_testcancel();
	return G_SOURCE_REMOVE;
}

static void *be_cancelled(void *arg)
{
	GMainContext *context = g_main_context_new();
	GSource *source = g_idle_source_new();

	(void)arg;
	g_source_set_callback(source, on_cancel, NULL, NULL);
	g_source_attach(source, context);
	g_main_context_iteration(context, FALSE);
	return NULL;
}

static void run_cancel(void)
{
	unsigned left = 3;
	pthread_t thread;

	pthread_create(&thread, NULL, be_cancelled, NULL);
	pthread_join(thread, NULL);
	g_idle_add(on_idle, &left);
	iterate_until_idle(NULL);
}

/* ---- errno ---- */

static gboolean on_errno(gpointer arg)
{
	unsigned *left = arg;

	COUNT(on_errno, KIND_POLL);
	if (errno != 4242)
		complain("errno in a callback", 4242, errno);
	return --*left > 0;
}

static void run_errno(void)
{
	unsigned left = 5;

	g_idle_add(on_errno, &left);
	while (left) {
		errno = 4242;
		g_main_context_iteration(NULL, FALSE);
		if (errno != 4242)
			complain("errno behind an iteration", 4242, errno);
	}
}

/* ---- a daemon that closes everything ---- */

static void run_daemon(void)
{
	GMainContext *context;
	unsigned left = 5, more = 4;

	g_idle_add(on_idle, &left);
	iterate_until_idle(NULL);
	for (int fd = 3; fd < 200; fd++)
		close(fd);
	context = g_main_context_new();
	for (unsigned i = 0; i < 2; i++) {
		GSource *source = g_idle_source_new();

		g_source_set_callback(source, on_idle, &more, NULL);
		g_source_attach(source, context);
		g_source_unref(source);
	}
	while (more && g_main_context_iteration(context, FALSE))
		continue;
	g_main_context_unref(context);
}

/* ---- ends ---- */

static gboolean on_end(gpointer arg)
{
	COUNT(on_end, KIND_POLL);
	COUNT(on_end, KIND_TASKS);
	return arg != NULL;
}

static gboolean on_destroy_self(gpointer arg)
{
	unsigned left = 1;

	COUNT(on_end, KIND_ENDED);
	on_end(arg);
	g_source_destroy(g_main_current_source());
	/* The iteration inside the callback cuts its poll in two. */
	g_idle_add(on_idle, &left);
	g_main_context_iteration(NULL, FALSE);
	return G_SOURCE_CONTINUE;
}

static void ended(void)
{
	COUNT(on_end, KIND_ENDED);
}

static void run_ends(void)
{
	GMainContext *context = g_main_context_new();
	GSource *source = g_idle_source_new();
	char keep;
	guint id;

	counter_of("on_destroy_self", (void *)on_destroy_self, KIND_POLL);
	g_idle_add(on_end, NULL); /* by its own word */
	g_main_context_iteration(NULL, FALSE);
	ended();
	id = g_idle_add(on_end, &keep); /* by id */
	g_main_context_iteration(NULL, FALSE);
	g_source_remove(id);
	ended();
	g_idle_add(on_end, &keep); /* by data */
	g_main_context_iteration(NULL, FALSE);
	g_idle_remove_by_data(&keep);
	ended();
	g_source_set_callback(source, on_end, &keep, NULL); /* with its context */
	g_source_attach(source, context);
	g_main_context_iteration(context, FALSE);
	g_source_unref(source);
	g_main_context_unref(context);
	ended();
	/* The context's end is noted when the next one comes. */
	g_main_context_unref(g_main_context_new());
}

static void run_destroy_self(void)
{
	g_idle_add(on_destroy_self, NULL);
	g_main_context_iteration(NULL, FALSE);
	counter_of("on_destroy_self", (void *)on_destroy_self, KIND_POLL)->count = 1;
	counter_of("on_destroy_self", (void *)on_destroy_self, KIND_ENDED)->count = 1;
	counter_of("on_end", (void *)on_end, KIND_POLL)->count = 0;
	counter_of("on_end", (void *)on_end, KIND_TASKS)->count = 0;
	counter_of("on_end", (void *)on_end, KIND_ENDED)->count = 0;
}

/* ---- called, not dispatched ---- */

static gboolean on_inline(gpointer arg)
{
	++*(unsigned *)arg;
	if (!g_main_context_is_owner(NULL))
		complain("the context is owned", 1, 0);
	return G_SOURCE_REMOVE;
}

static unsigned behind_inline, owned_behind;

static void on_inline_over(gpointer arg)
{
	(void)arg;
	behind_inline++;
	owned_behind += g_main_context_is_owner(NULL) != 0;
}

static void run_inline(void)
{
	unsigned calls = 0, left = 2;

	g_main_context_invoke(NULL, on_inline, &calls);
	g_main_context_invoke_full(NULL, G_PRIORITY_LOW, on_inline, &calls, on_inline_over);
	if (behind_inline != 1 || owned_behind != 0)
		complain("told with the context let go", 1, behind_inline - owned_behind);
	g_main_context_acquire(NULL);
	g_main_context_invoke(NULL, on_inline, &calls);
	g_main_context_invoke_full(NULL, G_PRIORITY_LOW, on_inline, &calls, on_inline_over);
	g_main_context_release(NULL);
	if (behind_inline != 2 || owned_behind != 1)
		complain("told with the context owned", 1, owned_behind);
	if (calls != 4)
		complain("inline calls", 4, calls);
	g_idle_add(on_idle, &left);
	iterate_until_idle(NULL);
	counter_of("on_inline", (void *)on_inline, KIND_POLL);
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
	{ "older", run_older },	      { "recursion", run_recursion },
	{ "invokes", run_invokes },   { "late", run_late },
	{ "external", run_external }, { "contexts", run_contexts },
	{ "too_many", run_too_many }, { "poll_function", run_poll_function },
	{ "handle", run_handle },     { "fork", run_fork },
	{ "spawn", run_spawn },	      { "storm", run_storm },
	{ "longjmp", run_longjmp },   { "cancel", run_cancel },
	{ "errno", run_errno },	      { "daemon", run_daemon },
	{ "threads", run_threads },   { "ends", run_ends },
	{ "destroy_self", run_destroy_self }, { "pool", run_pool },
	{ "inline", run_inline },     { "elsewhere", run_elsewhere },
	{ "many", run_many },	      { "unannounced", run_unannounced },
	{ "query_null", run_query_null }, { "handed", run_handed },
	{ "looked_at", run_looked_at }, { "finalizers", run_finalizers },
	{ "long_lived", run_long_lived }, { "older_handler", run_older_handler },
	{ "nanoseconds", run_nanoseconds }, { "renamed", run_renamed },
	{ "never_attached", run_never_attached },
};

int main(int argc, char **argv)
{
	for (int i = 2; i < argc; i++) {
		if (g_str_has_prefix(argv[i], "--adapter="))
			adapter = argv[i] + strlen("--adapter=");
		if (g_str_has_prefix(argv[i], "--out="))
			out_path = argv[i] + strlen("--out=");
	}
	for (size_t i = 0; argc > 1 && i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (strcmp(cases[i].name, argv[1]) != 0)
			continue;
		loop = g_main_loop_new(NULL, FALSE);
		cases[i].run();
		return counters_write(out_path);
	}
	fprintf(stderr, "no such case\n");
	return 2;
}
