/* SPDX-License-Identifier: Apache-2.0 */
/* The handlers that the program sets for lines of the log. */

#pragma once

#include <stdbool.h>

/*
 * Stand before the default handler.  Once it was not GLib's own when we came, its data is known to
 * GLib alone: false, and nothing is touched.
 */
bool d9__glib_log_take_default(void);
