/* SPDX-License-Identifier: Apache-2.0 */
/* Capabilities: the trace has to say how much of GLib is seen. */

#pragma once

#include <stdbool.h>

#include "hook/capabilities.h"

extern struct d9__capabilities d9__glib_capabilities;

/* Say that |key| works no better than |text|, because of |reason|.  All are borrowed for ever. */
void d9__glib_capability_degrade(const char *key, const char *text, const char *reason);

/*
 * Say that calls out of modules whose slots could not be swapped are not seen, if there are such
 * modules.
 */
void d9__glib_capability_tell_refusals(void);

/* Say which version this is. */
void d9__glib_capability_set_version(void);

/*
 * Say what the self-test found.  |is_pipe|: a context is woken by a pipe.  |exported|: all of
 * GLib's own tables of sources are patched.
 */
void d9__glib_capability_describe(bool is_pipe, bool exported);
