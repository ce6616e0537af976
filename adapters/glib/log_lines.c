/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Structured lines go to a writer function, which can be set once only and is not ours to set.  They
 * are recorded on their way in.  What takes a format is called with the finished text instead.
 */
#include "config.h"

#include "glib/log_lines.h"

#include <alloca.h>
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "glib/logs.h"
#include "loop/adapter.h"

/* Formats are those of the program and of the library, passed on. */
#pragma GCC diagnostic ignored "-Wformat-nonliteral"

#define SHORT_BYTES 1024
#define WORDS	    64 /* keys, values, and what belongs to the message */

/* ---- a line ---- */

/* The worst of |flags|; what a program defined for itself lies below debug. */
static enum d9__log_level level_of(GLogLevelFlags flags)
{
	static const struct {
		GLogLevelFlags flag;
		enum d9__log_level level;
	} levels[] = {
		{ G_LOG_LEVEL_ERROR, D9__LOG_ERROR },
		{ G_LOG_LEVEL_CRITICAL, D9__LOG_CRITICAL },
		{ G_LOG_LEVEL_WARNING, D9__LOG_WARNING },
		{ G_LOG_LEVEL_MESSAGE, D9__LOG_MESSAGE },
		{ G_LOG_LEVEL_INFO, D9__LOG_INFO },
	};

	for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++)
		if (flags & levels[i].flag)
			return levels[i].level;
	return D9__LOG_DEBUG;
}

void d9__glib_log_tell(GLogLevelFlags flags, const gchar *domain, const gchar *text, gssize len)
{
	enum d9__log_level level = level_of(flags);

	if (!text || !d9__log_wanted(level))
		return;
	d9__log_line(D9_LIBRARY_GLIB, level, domain, text, len < 0 ? strlen(text) : (size_t)len);
}

/* ---- the finished text ---- */

struct text {
	const char *text;
	size_t mapped; /* 0: |buffer| was enough */
	char buffer[SHORT_BYTES];
};

/*
 * Neither the program's allocator nor GLib's, and never cut, unless there is no memory: it is what
 * the program's writer gets.
 */
static void finish(struct text *text, const char *format, va_list args)
{
	int saved = errno, n;
	char *more = MAP_FAILED;
	va_list again;

	va_copy(again, args);
	text->mapped = 0;
	text->text = text->buffer;
	n = vsnprintf(text->buffer, sizeof(text->buffer), format, args);
	if (n < 0)
		text->buffer[0] = '\0';
	if (n >= (int)sizeof(text->buffer) && !d9__sandbox_is_shut())
		more = mmap(NULL, (size_t)n + 1, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (more != MAP_FAILED) {
		errno = saved; /* the format may ask for it */
		vsnprintf(more, (size_t)n + 1, format, again);
		text->text = more;
		text->mapped = (size_t)n + 1;
	}
	va_end(again);
	errno = saved;
}

static void release(struct text *text)
{
	if (text->mapped)
		munmap((void *)(uintptr_t)text->text, text->mapped);
}

#define TEXT() __attribute__((cleanup(release))) struct text text

/* ---- lines ---- */

void d9__hook_g_log_structured_standard(const gchar *domain, GLogLevelFlags flags,
					const gchar *file, const gchar *line,
					const gchar *function, const gchar *format, ...)
{
	TEXT();
	va_list args;

	va_start(args, format);
	finish(&text, format, args);
	va_end(args);
	d9__glib_log_tell(flags, domain, text.text, -1);
	d9__glib_logging.g_log_structured_standard(domain, flags, file, line, function, "%s",
						   text.text);
}

static bool is_message(const char *key)
{
	return strcmp(key, "MESSAGE") == 0;
}

/* Pairs in front of the message; its format comes next in |args|. */
static size_t count_pairs(va_list *args)
{
	size_t n = 0;

	for (; !is_message(va_arg(*args, const char *)); n++)
		(void)va_arg(*args, const void *);
	return n;
}

/* As g_log_structured() documents it. */
static const char *priority_of(GLogLevelFlags flags)
{
	return flags & G_LOG_LEVEL_ERROR ? "3" :
	       flags & (G_LOG_LEVEL_CRITICAL | G_LOG_LEVEL_WARNING) ? "4" :
	       flags & G_LOG_LEVEL_MESSAGE ? "5" :
	       flags & G_LOG_LEVEL_INFO ? "6" :
	       flags & G_LOG_LEVEL_DEBUG ? "7" : "5";
}

/* More pairs than a call can be written down for. */
static void log_many(const gchar *domain, GLogLevelFlags flags, size_t pairs, va_list args,
		     const char *text)
{
	GLogField *fields = alloca((pairs + 3) * sizeof(*fields));
	size_t n = 0;

	fields[n++] = (GLogField){ "MESSAGE", text, -1 };
	fields[n++] = (GLogField){ "PRIORITY", priority_of(flags), -1 };
	if (domain)
		fields[n++] = (GLogField){ "GLIB_DOMAIN", domain, -1 };
	for (; pairs; pairs--, n++) {
		fields[n].key = va_arg(args, const char *);
		fields[n].value = va_arg(args, const void *);
		fields[n].length = -1;
	}
	d9__glib_logging.g_log_structured_array(flags, fields, n);
}

#define W4(i)  words[i], words[(i) + 1], words[(i) + 2], words[(i) + 3]
#define W16(i) W4(i), W4((i) + 4), W4((i) + 8), W4((i) + 12)
#define W64    W16(0), W16(16), W16(32), W16(48)

/* Arguments behind the message belong to its format, which is text by now and asks for none. */
static void log_few(const gchar *domain, GLogLevelFlags flags, size_t pairs, va_list args,
		    const char *text)
{
	const void *words[WORDS] = { NULL };
	size_t n = 0;

	while (n < 2 * pairs)
		words[n++] = va_arg(args, const void *);
	words[n++] = "MESSAGE";
	words[n++] = "%s";
	words[n++] = text;
	d9__glib_logging.g_log_structured(domain, flags, W64);
}

void d9__hook_g_log_structured(const gchar *domain, GLogLevelFlags flags, ...)
{
	TEXT();
	va_list args, again;
	const char *format;
	size_t pairs;

	va_start(args, flags);
	va_copy(again, args);
	pairs = count_pairs(&args);
	format = va_arg(args, const char *);
	finish(&text, format, args);
	d9__glib_log_tell(flags, domain, text.text, -1);
	(2 * pairs + 3 <= WORDS ? log_few : log_many)(domain, flags, pairs, again, text.text);
	va_end(again);
	va_end(args);
}

static const GLogField *field_of(const GLogField *fields, gsize n, const char *key)
{
	for (gsize i = 0; i < n; i++)
		if (strcmp(fields[i].key, key) == 0)
			return &fields[i];
	return NULL;
}

void d9__hook_g_log_structured_array(GLogLevelFlags flags, const GLogField *fields, gsize n)
{
	const GLogField *message = field_of(fields, n, "MESSAGE");
	const GLogField *domain = field_of(fields, n, "GLIB_DOMAIN");

	if (message)
		d9__glib_log_tell(flags, domain && domain->length < 0 ? domain->value : NULL,
				  message->value, message->length);
	d9__glib_logging.g_log_structured_array(flags, fields, n);
}
