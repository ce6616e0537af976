/* SPDX-License-Identifier: Apache-2.0 */

#pragma once

#include "cli/doctor/doctor.h"

/*
 * Check whether |command| can be recorded, and list the loop libraries that it uses.  It is not
 * run.
 */
void d9__doctor_command(struct d9__doctor *doctor, const char *command, struct d9__loop_uses *uses);
