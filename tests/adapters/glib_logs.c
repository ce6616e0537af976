/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Logs in every way that GLib has.  What its handlers and its writer get goes to stdout, the rest to
 * stderr as GLib likes; a line "! LEVEL TARGET: TEXT" on stdout says what was logged.
 *
 *	glib_logs [default] [flood]
 */

#define G_LOG_USE_STRUCTURED
#define G_LOG_DOMAIN "structured"

#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <glib.h>

#define LONG 5000

static void said(const char *level, const char *target, const char *text)
{
	printf("! %s %s: %.1024s\n", level, target, text);
}

/* ---- handlers ---- */

static void on_line(const gchar *domain, GLogLevelFlags flags, const gchar *text, gpointer data)
{
	printf("%s: %s %d %s errno %d\n", (const char *)data, domain ? domain : "-", flags, text,
	       errno);
}

static void on_destroy(gpointer data)
{
	printf("%s is gone\n", (const char *)data);
}

static void log_by_handlers(void)
{
	static char plain[] = "plain", full[] = "full";
	guint one = g_log_set_handler("one", G_LOG_LEVEL_MASK, on_line, plain);
	guint two = g_log_set_handler_full("two", G_LOG_LEVEL_WARNING, on_line, full, on_destroy);

	printf("handlers %u %u\n", one, two);
	errno = ENOENT;
	g_log("one", G_LOG_LEVEL_INFO, "%d of %s", 1, "one");
	said("info", "one", "1 of one");
	errno = 0;
	g_log("two", G_LOG_LEVEL_WARNING, "two");
	said("warning", "two", "two");
	g_log("two", G_LOG_LEVEL_MESSAGE, "not for the handler of two");
	said("message", "two", "not for the handler of two");
	g_log_remove_handler("one", one);
	g_log_remove_handler("two", two);
}

static void log_by_default_handlers(void)
{
	static char first[] = "first", second[] = "second";
	GLogFunc before = g_log_set_default_handler(on_line, first);

	printf("GLib's own was the default: %d\n", before == g_log_default_handler);
	g_log(NULL, G_LOG_LEVEL_CRITICAL, "by the first");
	said("critical", "-", "by the first");
	before = g_log_set_default_handler(on_line, second);
	printf("the first was the default: %d\n", before == on_line);
	g_log("three", 1 << G_LOG_LEVEL_USER_SHIFT, "a level of the program's own");
	said("debug", "three", "a level of the program's own");
	before = g_log_set_default_handler(g_log_default_handler, NULL);
	printf("the second was the default: %d\n", before == on_line);
}

/* GLib complains itself: of no slot of ours. */
static void log_by_glib(void)
{
	GMainContext *context = g_main_context_new();

	g_source_remove(98765);
	said("critical", "GLib", "Source ID 98765 was not found when attempting to remove it");
	g_log("four", G_LOG_LEVEL_DEBUG, "which GLib prints only if asked");
	said("debug", "four", "which GLib prints only if asked");
	g_main_context_unref(context);
}

/* ---- structured lines ---- */

#define PAIR(n) "KEY_" #n, "value " #n
#define TEN(n)	PAIR(n##0), PAIR(n##1), PAIR(n##2), PAIR(n##3), PAIR(n##4), PAIR(n##5),            \
		PAIR(n##6), PAIR(n##7), PAIR(n##8), PAIR(n##9)

static void log_array(void)
{
	static const GLogField fields[] = {
		{ "PRIORITY", "4", -1 }, { "BYTES", "a\0b", 3 }, { "MESSAGE", "without an end", 7 },
		{ "GLIB_DOMAIN", "array", -1 },
	};

	g_log_structured_array(G_LOG_LEVEL_WARNING, fields, G_N_ELEMENTS(fields));
	said("warning", "array", "without");
}

static void log_structured_lines(void)
{
	char *all = malloc(LONG + 1);

	memset(all, 'x', LONG);
	all[LONG] = '\0';
	errno = EAGAIN;
	g_message("%m: %s and %5.1f%%", "text", 99.5);
	said("message", "structured", "Resource temporarily unavailable: text and  99.5%");
	errno = 0;
	g_warning("%s", all);
	said("warning", "structured", all);
	g_log_structured("few", G_LOG_LEVEL_INFO, PAIR(1), PAIR(2), "MESSAGE", "%d %s", 3, "few");
	said("info", "few", "3 few");
	g_log_structured(NULL, G_LOG_LEVEL_MESSAGE, "MESSAGE", "no domain, no pairs");
	said("message", "-", "no domain, no pairs");
	g_log_structured("30", G_LOG_LEVEL_MESSAGE, TEN(1), TEN(2), TEN(3), "MESSAGE", "%s", "30");
	said("message", "30", "30");
	g_log_structured("40", G_LOG_LEVEL_INFO, TEN(1), TEN(2), TEN(3), TEN(4), "MESSAGE", "%s",
			 all);
	said("info", "40", all);
	log_array();
	free(all);
}

static GLogWriterOutput write_line(GLogLevelFlags flags, const GLogField *fields, gsize n,
				   gpointer data)
{
	printf("%s %d", (const char *)data, flags);
	for (gsize i = 0; i < n; i++) {
		gssize len = fields[i].length;

		if (len < 0)
			len = (gssize)strlen(fields[i].value);
		/* The line itself is no business of this file's. */
		if (strcmp(fields[i].key, "CODE_LINE") != 0)
			printf(" %s=%.*s", fields[i].key, (int)len, (const char *)fields[i].value);
	}
	printf("\n");
	return G_LOG_WRITER_HANDLED;
}

static gboolean log_in_a_callback(gpointer loop)
{
	g_message("in a callback");
	said("message", "structured", "in a callback");
	g_main_loop_quit(loop);
	return G_SOURCE_REMOVE;
}

static void run_a_loop(void)
{
	GMainLoop *loop = g_main_loop_new(NULL, FALSE);

	g_idle_add(log_in_a_callback, loop);
	g_main_loop_run(loop);
	g_main_loop_unref(loop);
}

static void flood(void)
{
	for (unsigned i = 0; i < 10000; i++)
		g_log("flood", G_LOG_LEVEL_MESSAGE, "%u", i);
}

int main(int argc, char **argv)
{
	static char writer[] = "writer";

	setvbuf(stdout, NULL, _IONBF, 0);
	run_a_loop(); /* the recorder starts */
	if (argc > 1 && strcmp(argv[1], "flood") == 0) {
		static char nowhere[] = "flood";

		fclose(stdout);
		g_log_set_handler("flood", G_LOG_LEVEL_MASK, on_line, nowhere);
		flood();
		return 0;
	}
	log_by_handlers();
	log_by_default_handlers();
	log_by_glib();
	log_structured_lines();
	g_log_set_writer_func(write_line, writer, NULL);
	log_by_handlers();
	log_by_glib();
	log_structured_lines();
	return 0;
}
