/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "hook/first_call.h"
#include "libevent/attach.h"
#include "preload/libevent.h"

static struct d9__first_call on_base_new =
	D9__TRIGGER("event_base_new", d9__libevent_refresh, d9__libevent_owns);
static struct d9__first_call on_base_new_with_config =
	D9__TRIGGER("event_base_new_with_config", d9__libevent_refresh, d9__libevent_owns);
static struct d9__first_call on_init =
	D9__TRIGGER("event_init", d9__libevent_refresh, d9__libevent_owns);

struct event_base *event_base_new(void)
{
	void *caller = __builtin_return_address(0);
	bool nobody;
	struct event_base *(*target)(void) = d9__first_call_target(&on_base_new, caller, &nobody);

	if (nobody)
		return NULL;
	return target ? target() : d9__libevent_base_new(caller);
}

struct event_base *event_base_new_with_config(const struct event_config *config)
{
	void *caller = __builtin_return_address(0);
	bool nobody;
	struct event_base *(*target)(const struct event_config *) =
		d9__first_call_target(&on_base_new_with_config, caller, &nobody);

	if (nobody)
		return NULL;
	return target ? target(config) : d9__libevent_base_new_config(config, caller);
}

struct event_base *event_init(void)
{
	void *caller = __builtin_return_address(0);
	bool nobody;
	struct event_base *(*target)(void) = d9__first_call_target(&on_init, caller, &nobody);

	if (nobody)
		return NULL;
	return target ? target() : d9__libevent_init(caller);
}
