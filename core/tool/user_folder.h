/* SPDX-License-Identifier: Apache-2.0 */
/* The user's folders: where the XDG Base Directory specification has programs keep what is theirs. */

#pragma once

#include <limits.h>
#include <stdbool.h>

/*
 * The path of dial9's own folder: below what |variable| names, else below |usual| of the home directory.  False: there
 * is none.  A home directory that does not exist is none: nobody makes /nonexistent.
 */
bool d9__user_folder(const char *variable, const char *usual, char path[PATH_MAX]);
