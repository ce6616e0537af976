/* SPDX-License-Identifier: Apache-2.0 */
/* Facts: what the trace's metadata says of the process and of how it is recorded. */

#pragma once

#include "base/options.h"

/* Set the metadata of a recorder that is about to start, with resolved |options|; its ring and gate bits are known. */
void d9__facts_set(const struct d9_options *options, const char *boot_id);

/*
 * Set again what changes while it runs: how many texts had no room in the table of names, and stand as "(other)" in the
 * trace, and how many raw clones the process made.  Flush thread, at a tick.
 */
void d9__facts_refresh(void);

/*
 * Set why the ring does not have the name of this recorder, or that it has.  Its starter, and the
 * flush thread.
 */
void d9__facts_tell_ring_name(void);
