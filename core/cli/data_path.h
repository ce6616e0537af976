/* SPDX-License-Identifier: Apache-2.0 */
/* Data path: the folder with this program's data files, in its build tree or installed. */

#pragma once

/*
 * Return the folder with viewer/ and toolkit/: of the build tree or the installation that this
 * program lies in, or the configured one.  0 with a path for the caller to free, -ENOENT, -ENOMEM.
 */
int d9__data_path(char **out);
