/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `dial9 record -- CMD` loads into CMD.  The adapters it links find and patch their loop
 * libraries in their own constructors; here is only what a program that was not built for them
 * needs besides: every loop is recorded, one that comes later is noticed, and children go without
 * us if the user wants that.
 *
 * In a process without a loop library nothing is started: no file, no thread, no allocation.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "hook/trigger.h"
#include "libevent/attach.h"
#include "preload/environment.h"
#include "preload/preload.h"

static __attribute__((constructor)) void start(void)
{
	int saved_errno = errno;

	/* Another user's powers: whoever set the environment must not get a trace of this. */
	if (getauxval(AT_SECURE) == 0) {
		d9__environment_take_out();
		d9__libevent_record_all();
	}
	errno = saved_errno;
}

/* ---- triggers ---- */

static struct d9__trigger on_base_new =
	D9__TRIGGER("event_base_new", d9__libevent_refresh, d9__libevent_owns);
static struct d9__trigger on_base_new_with_config =
	D9__TRIGGER("event_base_new_with_config", d9__libevent_refresh, d9__libevent_owns);
static struct d9__trigger on_init =
	D9__TRIGGER("event_init", d9__libevent_refresh, d9__libevent_owns);

struct event_base *event_base_new(void)
{
	void *caller = __builtin_return_address(0);
	bool nobody;
	struct event_base *(*target)(void) = d9__trigger_target(&on_base_new, caller, &nobody);

	if (nobody)
		return NULL;
	return target ? target() : d9__libevent_base_new(caller);
}

struct event_base *event_base_new_with_config(const struct event_config *config)
{
	void *caller = __builtin_return_address(0);
	bool nobody;
	struct event_base *(*target)(const struct event_config *) =
		d9__trigger_target(&on_base_new_with_config, caller, &nobody);

	if (nobody)
		return NULL;
	return target ? target(config) : d9__libevent_base_new_config(config, caller);
}

struct event_base *event_init(void)
{
	void *caller = __builtin_return_address(0);
	bool nobody;
	struct event_base *(*target)(void) = d9__trigger_target(&on_init, caller, &nobody);

	if (nobody)
		return NULL;
	return target ? target() : d9__libevent_init(caller);
}
