/* SPDX-License-Identifier: Apache-2.0 */
/* Config file: lines `key = value`; `#` begins a comment at the start of a line, or after a blank. */

#pragma once

#include <stdbool.h>

/* Takes a line; false, and a line that begins with |where| ("FILE:3"), if it cannot be. */
typedef bool d9__config_take(void *arg, const char *where, const char *key, const char *value);

/*
 * Read the file |path| and pass each of its lines to |take|.  Refuse a file that other users may
 * write to, and one with a secret that they may read.  True with |*text|, which holds the keys and
 * values, for free(3); false after a line that begins with |command|.
 */
bool d9__config_file_read(const char *command, const char *path, d9__config_take *take, void *arg, char **text);
