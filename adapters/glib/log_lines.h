/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of GLib's log, however they came. */

#pragma once

#include <glib.h>

/* Record a line.  |len| < 0: |text| is terminated. */
void d9__glib_log_tell(GLogLevelFlags flags, const gchar *domain, const gchar *text, gssize len);
