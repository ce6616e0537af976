/* SPDX-License-Identifier: Apache-2.0 */
/* Cases in which something is missing or changes hands: no slot, no callback, no context, no owner. */

#include "config.h"

#include <dlfcn.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <dial9/recorder.h>

#include "counters.h"
#include "glib_cases.h"

/* ---- the recorder looks while a round is on its way ---- */

#define LOOKED_AT 10

/* Its figures are those of its latest look; the second look is behind the first. */
static void be_looked_at(void)
{
	struct d9_recorder *(*running)(void) = NULL;
	int (*rotate)(struct d9_recorder *, uint32_t) = NULL;

	*(void **)&running = dlsym(RTLD_DEFAULT, "d9_recorder_running");
	*(void **)&rotate = dlsym(RTLD_DEFAULT, "d9_recorder_rotate");
	for (int i = 0; running && rotate && i < 2; i++) {
		int err = rotate(running(), 30000);

		if (err)
			complain("a look of the recorder's", 0, err);
	}
}

static gboolean on_looked_at(gpointer arg)
{
	unsigned *runs = arg;

	COUNT(on_looked_at, KIND_POLL);
	if ((*runs)++ == 0)
		be_looked_at();
	return G_SOURCE_REMOVE;
}

void run_looked_at(void)
{
	unsigned runs = 0;

	for (int i = 0; i < LOOKED_AT; i++)
		g_idle_add(on_looked_at, &runs);
	iterate_until_idle(NULL);
}

/* ---- nothing announces it: neither a slot nor a callback ---- */

#define UNANNOUNCED 300

static guint unannounced;
static void (*set_ready_time)(GSource *, gint64);

static gboolean unannounced_dispatch(GSource *source, GSourceFunc callback, gpointer arg)
{
	(void)callback, (void)arg;
	if (++unannounced == UNANNOUNCED) {
		g_main_loop_quit(loop);
		return G_SOURCE_REMOVE;
	}
	set_ready_time(source, g_get_monotonic_time() + 3000);
	return G_SOURCE_CONTINUE;
}

void run_unannounced(void)
{
	static GSourceFuncs funcs = { NULL, NULL, unannounced_dispatch, NULL, NULL, NULL };
	void *glib = dlopen("libglib-2.0.so.0", RTLD_NOW | RTLD_NOLOAD);
	GSource *(*new_source)(GSourceFuncs *, guint) = NULL;
	guint (*attach_source)(GSource *, GMainContext *) = NULL;
	GSource *source;

	*(void **)&new_source = dlsym(glib, "g_source_new");
	*(void **)&attach_source = dlsym(glib, "g_source_attach");
	*(void **)&set_ready_time = dlsym(glib, "g_source_set_ready_time");
	source = new_source(&funcs, sizeof(GSource));
	set_ready_time(source, 0);
	attach_source(source, NULL);
	g_source_unref(source);
	g_main_loop_run(loop);
	/* From some time on its dispatches are seen. */
	counter_of("unannounced_dispatch", (void *)unannounced_dispatch, KIND_TASKS)->count = 1;
}

/* ---- from hand to hand ---- */

static gboolean on_first_hand(gpointer left)
{
	COUNT(on_first_hand, KIND_POLL);
	return --*(unsigned *)left > 0;
}

static gboolean on_second_hand(gpointer left)
{
	COUNT(on_second_hand, KIND_POLL);
	return --*(unsigned *)left > 0;
}

static gpointer run_hand(gpointer context)
{
	static unsigned left = 30;
	GSource *source = g_idle_source_new();

	g_main_context_acquire(context);
	g_source_set_callback(source, on_second_hand, &left, NULL);
	g_source_attach(source, context);
	g_source_unref(source);
	while (left)
		g_main_context_iteration(context, FALSE);
	g_main_context_release(context);
	return NULL;
}

void run_handed(void)
{
	GMainContext *context = g_main_context_new();
	GSource *source = g_idle_source_new();
	unsigned left = 20;

	g_main_context_acquire(context);
	g_source_set_callback(source, on_first_hand, &left, NULL);
	g_source_attach(source, context);
	g_source_unref(source);
	while (left)
		g_main_context_iteration(context, FALSE);
	g_main_context_release(context);
	g_thread_join(g_thread_new("second", run_hand, context));
	g_main_context_unref(context);
}

/* ---- a log handler that is older than the recording ---- */

static unsigned lines;

static void on_line(const gchar *domain, GLogLevelFlags flags, const gchar *text, gpointer arg)
{
	(void)domain;
	(void)flags;
	(void)text;
	(void)arg;
	lines++;
}

static gboolean on_logging(gpointer arg)
{
	(void)arg;
	COUNT(on_logging, KIND_POLL);
	g_log(NULL, G_LOG_LEVEL_MESSAGE, "to the default handler");
	g_log("test", G_LOG_LEVEL_MESSAGE, "to that of its domain");
	return G_SOURCE_REMOVE;
}

void run_older_handler(void)
{
	g_log_set_default_handler(on_line, NULL);
	attach(NULL);
	g_log_set_handler("test", G_LOG_LEVEL_MASK, on_line, NULL);
	g_idle_add(on_logging, NULL);
	iterate_until_idle(NULL);
	if (lines != 2)
		complain("lines that the program's handlers got", 2, lines);
}

/* ---- the default context by no name ---- */

void run_query_null(void)
{
	static const struct rlimit no_core;
	int status = 0;
	gint timeout;
	pid_t child;

	run_handed(); /* something to record */
	child = fork();
	if (child == 0) {
		setrlimit(RLIMIT_CORE, &no_core);
		_exit(g_main_context_query(NULL, G_PRIORITY_LOW, &timeout, NULL, 0) > 0);
	}
	waitpid(child, &status, 0);
	log_line("query of NULL ended by signal %d with %d", WTERMSIG(status), WEXITSTATUS(status));
}

/* ---- another function for a source that is attached ---- */

static unsigned renamed;

static gboolean on_second(gpointer arg)
{
	(void)arg;
	COUNT(on_second, KIND_POLL);
	return ++renamed < 5;
}

static gboolean on_first(gpointer arg)
{
	(void)arg;
	COUNT(on_first, KIND_POLL);
	if (++renamed < 3)
		return G_SOURCE_CONTINUE;
	renamed = 0;
	g_source_set_callback(g_main_current_source(), on_second, NULL, NULL);
	return G_SOURCE_CONTINUE;
}

static gboolean on_never(gpointer arg)
{
	(void)arg;
	complain("a function that was replaced before its turn", 0, 1);
	return G_SOURCE_REMOVE;
}

/* From within it, between two rounds, before the first one, and the same function once more. */
void run_renamed(void)
{
	for (int when = 0; when < 4; when++) {
		GSource *source = g_idle_source_new();

		renamed = 0;
		g_source_set_callback(source, when == 2 ? on_never : on_first, NULL, NULL);
		g_source_attach(source, NULL);
		if (when == 1)
			g_main_context_iteration(NULL, FALSE);
		if (when == 1 || when == 2)
			g_source_set_callback(source, on_second, NULL, NULL);
		if (when == 3)
			g_source_set_callback(source, on_first, source, NULL);
		iterate_until_idle(NULL);
		g_source_unref(source);
	}
}

/* ---- a source at the address of one that was never attached ---- */

static gboolean is_ready(GSource *source, gint *timeout)
{
	(void)source;
	*timeout = 0;
	return TRUE;
}

static gboolean check_ready(GSource *source)
{
	(void)source;
	return TRUE;
}

static gboolean dispatch_ready(GSource *source, GSourceFunc callback, gpointer data)
{
	(void)source;
	return callback(data);
}

static gboolean on_ready(gpointer arg)
{
	(void)arg;
	COUNT(on_ready, KIND_POLL);
	return G_SOURCE_REMOVE;
}

/* Freed memory is used again by the next of its size, but not under a sanitizer. */
void run_never_attached(void)
{
	static GSourceFuncs funcs = { .prepare = is_ready, .check = check_ready, .dispatch = dispatch_ready };

	for (int i = 0; i < 20; i++) {
		GSource *source = g_source_new(&funcs, sizeof(*source));

		g_source_add_unix_fd(source, STDIN_FILENO, G_IO_IN);
		g_source_unref(source);
		source = g_source_new(&funcs, sizeof(*source));
		g_source_set_callback(source, on_ready, NULL, NULL);
		g_source_attach(source, NULL);
		g_source_unref(source);
		iterate_until_idle(NULL);
	}
}
