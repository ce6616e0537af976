/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * Triggers: what makes the recorder keep the seconds around a moment, see dial9-trigger(7).
 *
 * Which ones there are is said before the recorder starts, by DIAL9_TRIGGERS, d9_options_set_triggers() of
 * <dial9/options.h>, or `dial9 record --trigger`; and changed while it runs, by the functions here or `dial9 trigger PID`.
 */

#ifndef DIAL9_TRIGGER_H
#define DIAL9_TRIGGER_H

#include <stddef.h>

#include <dial9/export.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Fire the triggers that are called |name|, whatever else they wait for: a dump is made of the time around now, as their
 * text says, or this moment joins the one that is being made.  Nothing waits for it.
 *
 * Costs about a microsecond where it begins a dump, less until the trigger's `every` has passed.  Any thread,
 * async-signal-safe; keeps errno.
 *
 * @return 0, -ENOENT if no trigger is called so, -EINVAL if |name| is NULL
 *
 * Since: 0.1
 */
D9_API int d9_trigger_fire(const char *name);

/**
 * Arm the one trigger that |text| describes, such as "slow: poll > 50ms last 30s then 10s", instead of the one of its name
 * if there is one.  Callbacks are matched by module+0xOFFSET here; names of functions are what `dial9 record --trigger` and
 * `dial9 trigger` look up.  d9_trigger_fire() finds it at once; other conditions are looked at from the recorder's next tick
 * on, which this asks for.
 *
 * |why|, of |size| bytes, gets what is wrong with |text| and in which column, "" if nothing is, and always an end.  NULL: it
 * is not wanted.  Any thread; takes no lock and does not wait; not from signal handlers.  Keeps errno.
 *
 * @return 0, -EINVAL if |text| is NULL or wrong, -ENOSPC if 32 are armed, -ESHUTDOWN if no recorder runs
 *
 * Since: 0.1
 */
D9_API int d9_trigger_add(const char *text, char *why, size_t size);

/**
 * Disarm the triggers that are called |name|.  A dump that one of them began goes on.  Any thread; takes no lock and does
 * not wait.  Keeps errno.
 *
 * @return 0, -ENOENT if no trigger is called so, -EINVAL if |name| is NULL
 *
 * Since: 0.1
 */
D9_API int d9_trigger_remove(const char *name);

#ifdef __cplusplus
}
#endif

#endif /* DIAL9_TRIGGER_H */
