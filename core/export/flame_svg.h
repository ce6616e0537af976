/* SPDX-License-Identifier: Apache-2.0 */
/* Flame graph: stacks as boxes, callees above their callers, as wide as they have samples, in one SVG with its script. */

#ifndef D9_CLI_FLAME_SVG_H
#define D9_CLI_FLAME_SVG_H

#include "export/profile_export.h"

d9__profile_writer d9__flame_svg;

/* What a browser does with it (flame_script.c): colours in light and dark, search and zoom. */
extern const char d9__flame_style[], d9__flame_script[];

#endif /* D9_CLI_FLAME_SVG_H */
