/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The library that `dial9 record -- CMD` loads into CMD.  The adapters it links find and patch
 * their loop libraries in their own constructors; here is only what a program that was not built
 * for them needs besides: every loop is recorded, one that comes later is noticed, and children go
 * without us if the user wants that.
 *
 * In a process without a loop library nothing is started: no file, no thread, no allocation; unless
 * stacks are all that is wanted, of any program.
 */
#include "config.h"

#include <errno.h>
#include <link.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/environment.h"
#include "base/options.h"
#include "block/blocking.h"
#include "block/threads.h"
#include "preload/environment.h"
#include "preload/sandbox.h"
#include "preload/start.h"
#include "record/recorder.h"
#include "sample/sampler.h"
#include "segment/directory_helper.h"
#if WITH_GLIB
#include "glib/attach.h"
#endif
#if WITH_LIBEVENT
#include "libevent/attach.h"
#endif
#if WITH_LIBEV
#include "libev/attach.h"
#endif

#define LATE_START_NS 100000000 /* of CPU time */

_Atomic(bool) d9__preload_started;

static bool begins_with(const char *file, const char *name)
{
	size_t len = strlen(name);

	return strncmp(file, name, len) == 0 && strchr(".-_", file[len]);
}

static int is_loop_library(struct dl_phdr_info *info, size_t size, void *unused)
{
	const char *slash = strrchr(info->dlpi_name, '/'), *file = slash ? slash + 1 : info->dlpi_name;

	(void)size, (void)unused;
	return begins_with(file, "libevent") || begins_with(file, "libev") || begins_with(file, "libglib");
}

/*
 * A later setuid() or chroot() cannot take away what root opens now: the ring keeps its name in shared memory, and
 * survives a kill.  Only where the directory is given to whom the program becomes: see segment/giver.h.  Others can
 * do neither, and have no thread of ours before they have a loop.
 */
static void open_early(void)
{
	if (geteuid() == 0 && d9__environment_get(D9__DIRECTORY_HELPER_VARIABLE) && dl_iterate_phdr(is_loop_library, NULL))
		d9__recorder_open_early();
}

/*
 * `dial9 record --profile-only`: whatever the program is, its stacks are sampled; but not those of the many that start another
 * and end, for which a thread of ours would be one too many.
 */
static void profile(void)
{
	d9__sampler_start();
	if (d9__options_late_start()) {
		d9__blocking_watch();
		d9__block_watch_threads();
		d9__recorder_open_later(NULL, LATE_START_NS);
	} else {
		d9__recorder_open_early();
	}
	d9__recorder_follow_forks();
}

static void record_loops(void)
{
#if WITH_GLIB
	d9__glib_record_all();
#endif
#if WITH_LIBEVENT
	d9__libevent_record_all();
#endif
#if WITH_LIBEV
	d9__libev_record_all();
#endif
	open_early();
}

static __attribute__((constructor)) void start(void)
{
	int saved_errno = errno;

	/* Another user's powers: the user who set the environment must not get a trace of this. */
	if (d9__environment_counts()) {
		d9__environment_take_out();
		d9__preload_watch_filters();
		d9__options_profile_only() ? profile() : record_loops();
	}
	atomic_store_explicit(&d9__preload_started, true, memory_order_relaxed);
	errno = saved_errno;
}
