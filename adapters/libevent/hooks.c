/* SPDX-License-Identifier: Apache-2.0 */
/* The hooked entry points as one table. */

#include "config.h"

#include "libevent/real.h"

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
