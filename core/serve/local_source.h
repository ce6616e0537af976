/* SPDX-License-Identifier: Apache-2.0 */

#pragma once

#include "serve/source.h"

/*
 * Open the directory or file |path|: its segments, up to four folders deep, none behind a symbolic
 * link; or those of a dump's manifest.  |*name| is the place's name, owned by the source.  Returns
 * 0, -ENOMEM, or an error of realpath(3).
 */
int d9__local_source(const char *path, struct d9__segment_source *out, const char **name);
