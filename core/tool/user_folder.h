/* SPDX-License-Identifier: Apache-2.0 */
/* The user's folders: dial9's own, where the XDG Base Directory specification puts them. */

#pragma once

#include <limits.h>
#include <stdbool.h>

/*
 * Return the path of dial9's own folder: below the one that |variable| names, else below |usual| of
 * the home directory.  False: there is none.  A home directory that does not exist is not made,
 * because users without one have /nonexistent.
 */
bool d9__user_folder(const char *variable, const char *usual, char path[PATH_MAX]);
