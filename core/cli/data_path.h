/* SPDX-License-Identifier: Apache-2.0 */
/* Where the data files of this very program are: beside it in a build tree, or installed. */

#pragma once

/*
 * The folder that holds viewer/ and toolkit/: of the build tree this program lies in, of the folder
 * it is installed in, or the configured one.  0 with a path for the caller to free, -ENOENT,
 * -ENOMEM.
 */
int d9__data_path(char **out);
