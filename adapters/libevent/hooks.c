/* SPDX-License-Identifier: Apache-2.0 */
/* The hooked entry points as one table. */

#include "config.h"

#include "libevent/real.h"
#include "loop/spin.h"

struct d9__libevent_real d9__real;

static const char *const image_names[] = { "libevent", NULL };

struct d9__images d9__libevent_images = { .names = image_names, .scope_first = true };

#define ENTRY(type, function, params)                                                              \
	D9__GOT_HOOK(function, d9__hook_##function, &d9__real.function, D9__GOT_EVERYWHERE),

static const struct d9__got_hook hooks[] = { D9__LIBEVENT_HOOKED(ENTRY) };

struct d9__got_table d9__libevent_table = {
	.library = "libevent",
	.images = &d9__libevent_images,
	.hooks = hooks,
	.n_hooks = sizeof(hooks) / sizeof(hooks[0]),
	.reach = D9__GOT_NEEDED_OR_BOUND,
};

/* Of who stores what was found. */
static struct d9__spin storing;

/* Several threads may attach at once: who comes second finds the same, and must not write. */
static void resolve(void **real, const char *name)
{
	void *found;
	bool alone;

	/* acquire: pairs with the release below, for those that go on to read plainly */
	if (__atomic_load_n(real, __ATOMIC_ACQUIRE))
		return;
	found = d9__images_resolve(&d9__libevent_images, name);
	/* Bounded: in a forked child who had it may be missing. */
	alone = d9__spin_try(&storing);
	if (!__atomic_load_n(real, __ATOMIC_ACQUIRE))
		__atomic_store_n(real, found, __ATOMIC_RELEASE);
	if (alone)
		d9__spin_unlock(&storing);
}

#define RESOLVE(type, function, params) resolve((void **)&d9__real.function, #function);

void d9__libevent_resolve(void)
{
	D9__LIBEVENT_CALLED(RESOLVE)
}
