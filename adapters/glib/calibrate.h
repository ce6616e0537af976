/* SPDX-License-Identifier: Apache-2.0 */
/* A scratch context: is this GLib what we believe it is, and do the hooks see what it does? */

#pragma once

/*
 * Before anything is patched: compare the public layout, find where a context holds its pending
 * sources.  0, -ENOTSUP.
 */
int d9__glib_calibrate_check_layout(void);

/*
 * Behind the patches: run the scratch context once and see whether everything was seen.  What was
 * not is off and named in the trace.  -ENOTSUP: dispatches are not seen.
 */
int d9__glib_calibrate_self_test(void);
