/* SPDX-License-Identifier: Apache-2.0 */
/* A life as a picture. */

#pragma once

#include "cli/diagram/task_life.h"

/* A time diagram to scale, as one SVG.  0 or -ENOMEM; errors of writing stay in |out|. */
int d9__task_life_svg(const struct d9__task_life *life, FILE *out);
