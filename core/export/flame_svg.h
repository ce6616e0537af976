/* SPDX-License-Identifier: Apache-2.0 */
/* Flame graph: stacks as boxes, callees above their callers, as wide as they have samples, in one SVG with its script. */

#pragma once

#include "export/profile_export.h"

d9__profile_writer d9__flame_svg;

/*
 * The style and the script of the page (flame_script.c): colours in light and dark, search and
 * zoom.
 */
extern const char d9__flame_style[], d9__flame_script[];
