/* SPDX-License-Identifier: Apache-2.0 */
/* The hooked functions as one table. */

#include "config.h"

#include "glib/real.h"

#undef d9__glib /* its address is a constant here */

#define INNER(type, function, params)                                                              \
	D9__GOT_HOOK(function, d9__hook_##function, &d9__glib.function,                            \
		     D9__GOT_IN_LIBRARY | D9__GOT_CHAIN),
#define OUTER(type, function, params)                                                              \
	D9__GOT_HOOK(function, d9__hook_##function, &d9__glib.function, D9__GOT_IN_OTHERS),

static const struct d9__got_hook hooks[] = { D9__GLIB_INNER(INNER) D9__GLIB_OUTER(OUTER) };

struct d9__got_table d9__glib_table = {
	.library = "glib",
	.images = &d9__glib_images,
	.hooks = hooks,
	.n_hooks = sizeof(hooks) / sizeof(hooks[0]),
	.reach = D9__GOT_ANY,
	.skip = d9__glib_skipped,
};
