/* SPDX-License-Identifier: Apache-2.0 */
/* Idle tasks in reports: the stacks that armed them. */

#pragma once

#include "analyze/idle.h"
#include "text/json.h"
#include "text/page.h"

/* The section: a table of at most |rows| stacks.  Nothing where no task was dumped. */
void d9__report_idle(const struct d9__idle *idle, size_t rows, struct d9__page *page);

/* "idle": the same for programs.  0 or -ENOMEM. */
int d9__report_json_idle(struct d9__json *json, const struct d9__idle *idle);
