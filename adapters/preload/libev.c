/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "hook/first_call.h"
#include "libev/attach.h"
#include "preload/libev.h"

static struct d9__first_call on_default_loop =
	D9__TRIGGER("ev_default_loop", d9__libev_refresh, d9__libev_owns);
static struct d9__first_call on_loop_new =
	D9__TRIGGER("ev_loop_new", d9__libev_refresh, d9__libev_owns);

struct ev_loop *ev_default_loop(unsigned flags)
{
	void *caller = __builtin_return_address(0);
	bool nobody;
	struct ev_loop *(*target)(unsigned) =
		d9__first_call_target(&on_default_loop, caller, &nobody);

	if (nobody)
		return NULL;
	return target ? target(flags) : d9__libev_default_loop(flags);
}

struct ev_loop *ev_loop_new(unsigned flags)
{
	void *caller = __builtin_return_address(0);
	bool nobody;
	struct ev_loop *(*target)(unsigned) = d9__first_call_target(&on_loop_new, caller, &nobody);

	if (nobody)
		return NULL;
	return target ? target(flags) : d9__libev_loop_new(flags);
}
