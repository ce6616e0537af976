/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines of g_log() and of GLib itself go to a handler: that of their domain, or the default one.
 * The program's handler stands behind ours, with its own data.
 */
#include "config.h"

#include "glib/log_handlers.h"

#include <stdatomic.h>
#include <stdint.h>

#include "glib/log_lines.h"
#include "glib/logs.h"
#include "glib/real.h"
#include "hook/probe.h"

#define HANDLERS_MAX 256
#define PAGE_BYTES   4096

struct handler {
	_Atomic(bool) ready; /* what follows is constant from then on */
	GLogFunc function;
	gpointer data;
	GDestroyNotify destroy;
};

/* Never taken back: a line may be on its way to one whose registration is gone. */
static struct handler handlers[HANDLERS_MAX];
static _Atomic(unsigned) n_handlers;

/* The default handler as the program knows it; NULL: it has not set one that we saw. */
static _Atomic(GLogFunc) shown_default;

static void on_line(const gchar *domain, GLogLevelFlags flags, const gchar *text, gpointer data)
{
	const struct handler *handler = data;

	d9__glib_log_tell(flags, domain, text, -1);
	handler->function(domain, flags, text, handler->data);
}

static void on_destroy(gpointer data)
{
	const struct handler *handler = data;

	handler->destroy(handler->data);
}

static struct handler *find(GLogFunc function, gpointer data, GDestroyNotify destroy)
{
	for (unsigned i = 0; i < HANDLERS_MAX; i++) {
		struct handler *handler = &handlers[i];

		/* acquire: pairs with the release in stand_before() */
		if (atomic_load_explicit(&handler->ready, memory_order_acquire) &&
		    handler->function == function && handler->data == data &&
		    handler->destroy == destroy)
			return handler;
	}
	return NULL;
}

/* The argument for on_line(); NULL: there is no place for more, or nothing to stand before. */
static struct handler *stand_before(GLogFunc function, gpointer data, GDestroyNotify destroy)
{
	struct handler *handler = find(function, data, destroy);
	unsigned at;

	if (handler || !function || function == on_line)
		return handler;
	at = atomic_load_explicit(&n_handlers, memory_order_relaxed);
	do {
		if (at == HANDLERS_MAX)
			return NULL;
	} while (!atomic_compare_exchange_weak_explicit(&n_handlers, &at, at + 1,
							memory_order_relaxed,
							memory_order_relaxed));
	handler = &handlers[at];
	handler->function = function;
	handler->data = data;
	handler->destroy = destroy;
	atomic_store_explicit(&handler->ready, true, memory_order_release);
	return handler;
}

guint d9__hook_g_log_set_handler(const gchar *domain, GLogLevelFlags flags, GLogFunc function,
				 gpointer data)
{
	struct handler *handler = stand_before(function, data, NULL);

	if (!handler)
		return d9__glib_logging.g_log_set_handler(domain, flags, function, data);
	return d9__glib_logging.g_log_set_handler(domain, flags, on_line, handler);
}

guint d9__hook_g_log_set_handler_full(const gchar *domain, GLogLevelFlags flags, GLogFunc function,
				      gpointer data, GDestroyNotify destroy)
{
	struct handler *handler = stand_before(function, data, destroy);

	if (!handler)
		return d9__glib_logging.g_log_set_handler_full(domain, flags, function, data,
							       destroy);
	return d9__glib_logging.g_log_set_handler_full(domain, flags, on_line, handler,
						       destroy ? on_destroy : NULL);
}

/* ---- the default handler ---- */

static GLogFunc set_default(GLogFunc function, gpointer data)
{
	struct handler *handler = stand_before(function, data, NULL);

	return handler ? d9__glib_logging.g_log_set_default_handler(on_line, handler)
		       : d9__glib_logging.g_log_set_default_handler(function, data);
}

GLogFunc d9__hook_g_log_set_default_handler(GLogFunc function, gpointer data)
{
	GLogFunc shown = atomic_exchange_explicit(&shown_default, function, memory_order_relaxed);
	GLogFunc before = set_default(function, data);

	if (before != on_line)
		return before;
	return shown ? shown : d9__glib_logging.g_log_default_handler;
}

static bool holds(uintptr_t from, uintptr_t to, uintptr_t word)
{
	uintptr_t page[PAGE_BYTES / sizeof(uintptr_t)];

	for (; from < to; from += PAGE_BYTES) {
		size_t n = to - from < PAGE_BYTES ? to - from : PAGE_BYTES;

		if (d9__probe_copy(page, (const void *)from, n))
			continue;
		for (size_t i = 0; i < n / sizeof(page[0]); i++)
			if (page[i] == word)
				return true;
	}
	return false;
}

/*
 * There is no getter.  libglib has one word that points to its own default handler, the variable
 * itself: as long as that can be found no other handler is set.
 */
static bool default_is_glibs(void)
{
	unsigned n = atomic_load_explicit(&d9__glib_images.n, memory_order_acquire);
	uintptr_t word = (uintptr_t)d9__glib_logging.g_log_default_handler;

	for (unsigned i = 0; i < n; i++) {
		struct d9__image *image = &d9__glib_images.image[i];

		if (holds(atomic_load_explicit(&image->low, memory_order_relaxed),
			  atomic_load_explicit(&image->high, memory_order_acquire), word))
			return true;
	}
	return false;
}

bool d9__glib_log_take_default(void)
{
	/* The slots are ours since a moment: the program may have come by. */
	if (atomic_load_explicit(&shown_default, memory_order_relaxed))
		return true;
	if (!default_is_glibs())
		return false;
	set_default(d9__glib_logging.g_log_default_handler, NULL);
	return true;
}
