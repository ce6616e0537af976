/* SPDX-License-Identifier: Apache-2.0 */
/* What the GLib adapter says about itself in the trace. */

#pragma once

#include "hook/capabilities.h"

extern struct d9__capabilities d9__glib_capabilities;

/* |key| works no better than |text|, because of |reason|; all borrowed for ever. */
void d9__glib_degrade(const char *key, const char *text, const char *reason);

/* Calls out of modules whose slots could not be swapped are not seen. */
void d9__glib_tell_refusals(void);
