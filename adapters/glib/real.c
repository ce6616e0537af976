/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "glib/real.h"

#undef d9__glib /* here it is made */
struct d9__glib_real d9__glib;

static const char *const image_names[] = { "libglib-2.0", NULL };

/* Libraries below GLib: hooks there would see our own calls. */
const char *const d9__glib_skipped[] = { "libc.so", "ld-linux-x86-64", "ld-linux-aarch64", NULL };

struct d9__images d9__glib_images = { .names = image_names };

#define RESOLVE(type, function, params)                                                            \
	*(void **)&d9__glib.function = d9__images_resolve(&d9__glib_images, #function);
#define IS_THERE(type, function, params) &&d9__glib.function

/* Functions that older versions lack are hooked where they exist; all that are called exist. */
bool d9__glib_resolve(void)
{
	D9__GLIB_CALLED(RESOLVE)
	D9__GLIB_NEWER(RESOLVE)
	D9__GLIB_OUTER(RESOLVE)
	return d9__glib.g_source_new && d9__glib.g_source_attach && d9__glib.g_main_context_new &&
	       d9__glib.g_main_context_iteration && d9__glib.g_source_destroy &&
	       d9__glib.g_main_context_query && d9__glib.g_main_context_check &&
	       d9__glib.g_main_context_default &&
	       d9__glib.g_main_context_get_poll_func D9__GLIB_CALLED(IS_THERE);
}
