/* SPDX-License-Identifier: Apache-2.0 */
/* A life as text. */

#pragma once

#include "cli/diagram/task_life.h"

/* One line for each mark, and the sums. */
void d9__task_life_text(const struct d9__task_life *life, struct d9__text_out *out);
