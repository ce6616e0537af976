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

#include "preload/environment.h"
#include "preload/start.h"
#if WITH_GLIB
#include "glib/attach.h"
#endif
#if WITH_LIBEVENT
#include "libevent/attach.h"
#endif
#if WITH_LIBEV
#include "libev/attach.h"
#endif

_Atomic(bool) d9__preload_started;

static __attribute__((constructor)) void start(void)
{
	int saved_errno = errno;

	/* Another user's powers: whoever set the environment must not get a trace of this. */
	if (getauxval(AT_SECURE) == 0) {
		d9__environment_take_out();
#if WITH_GLIB
		d9__glib_record_all();
#endif
#if WITH_LIBEVENT
		d9__libevent_record_all();
#endif
#if WITH_LIBEV
		d9__libev_record_all();
#endif
	}
	atomic_store_explicit(&d9__preload_started, true, memory_order_relaxed);
	errno = saved_errno;
}
