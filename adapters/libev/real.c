/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "libev/real.h"

#include <errno.h>

#include "libev/static.h"

struct d9__libev_real d9__libev;
struct d9__module_range d9__libev_image, d9__libev_own, d9__libev_emulation;

/* libevent's names begin alike and are told apart by what follows. */
static const char *const image_names[] = { "libev", NULL };

struct d9__images d9__libev_images = { .names = image_names };

#define RESOLVE(type, function, params)                                                            \
	if (!d9__libev.function)                                                                   \
		*(void **)&d9__libev.function = d9__images_resolve(&d9__libev_images, #function);
#define IS_MISSING(type, function, params, ...) || !d9__libev.function

/* Its callbacks are private, and lie between functions that have these names. */
static void find_emulation(void)
{
	d9__libev_emulation.low =
		(uintptr_t)d9__images_resolve(&d9__libev_images, "event_get_version");
	d9__libev_emulation.high =
		(uintptr_t)d9__images_resolve(&d9__libev_images, "event_base_priority_init");
	if (!d9__libev_emulation.low || d9__libev_emulation.high < d9__libev_emulation.low)
		d9__libev_emulation = (struct d9__module_range) { 0 };
}

int d9__libev_resolve(void)
{
	struct d9__module_range range;

	if (d9__libev_image.high)
		return 0;
	D9__LIBEV_CALLED(RESOLVE)
	if (false D9__LIBEV_HOOKED(IS_MISSING) D9__LIBEV_CALLED(IS_MISSING))
		return -ENOTSUP;
	if (!d9__module_range_of((void *)d9__libev.ev_set_invoke_pending_cb, &range) ||
	    !d9__libev_calling_code(&d9__libev_own))
		return -ENOTSUP;
	find_emulation();
	d9__libev_image = range;
	return 0;
}
