/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "libevent/real.h"

struct d9__libevent_real d9__real;

static const char *const image_names[] = { "libevent", NULL };

struct d9__images d9__libevent_images = { .names = image_names, .scope_first = true };

/*
 * Several threads may attach at once: who comes second finds the same, and must not write, because
 * others read plainly behind the acquire that found it.
 */
static void resolve(void **real, const char *name)
{
	void *none = NULL, *found;

	if (__atomic_load_n(real, __ATOMIC_ACQUIRE))
		return;
	found = d9__images_resolve(&d9__libevent_images, name);
	__atomic_compare_exchange_n(real, &none, found, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

#define RESOLVE(type, function, params) resolve((void **)&d9__real.function, #function);

void d9__libevent_resolve(void)
{
	D9__LIBEVENT_CALLED(RESOLVE)
}
