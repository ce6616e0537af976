/* SPDX-License-Identifier: Apache-2.0 */
/* The hooked functions as one table. */

#include "config.h"

#include "libev/real.h"

#define ENTRY(type, function, params, where)                                                       \
	D9__GOT_HOOK(function, d9__hook_##function, &d9__libev.function, where),

static const struct d9__got_hook hooks[] = { D9__LIBEV_HOOKED(ENTRY) };

struct d9__got_table d9__libev_table = {
	.library = "libev",
	.images = &d9__libev_images,
	.hooks = hooks,
	.n_hooks = sizeof(hooks) / sizeof(hooks[0]),
	.reach = D9__GOT_NEEDED,
};
