/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unloading: the end of a module is noticed in dlclose(3) itself.  A plugin may be unloaded, and
 * another one loaded at its place and registered, before the flush thread looks at the loader's
 * list again: the second one's callbacks would have the first one's names.
 */
#include "config.h"

#include <dlfcn.h>
#include <errno.h>

#include "base/sandbox.h"
#include "hook/libc_calls.h"
#include "record/recorder.h"
#include "segment/modules.h"

static int (*real_dlclose)(void *handle);

static int hook_dlclose(void *handle)
{
	int err = __atomic_load_n(&real_dlclose, __ATOMIC_RELAXED)(handle), saved = errno;

	/* Both look at the loader's counters first: most calls unload nothing. */
	if (!d9__sandbox_is_shut()) {
		d9__modules_scan();
		d9__got_rescan();
	}
	errno = saved;
	return err;
}

static const struct d9__got_hook hooks[] = { D9__LIBC_HOOK(dlclose) };

static struct d9__got_table table = D9__LIBC_TABLE(hooks);

static void watch(void)
{
	d9__libc_watch(&table);
}

static __attribute__((constructor)) void offer(void)
{
	d9__recorder_on_start(watch);
}
