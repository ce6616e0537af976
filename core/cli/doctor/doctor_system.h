/* SPDX-License-Identifier: Apache-2.0 */

#pragma once

#include "cli/doctor/doctor.h"

/* Check memory, directories, limits, the clock, and the kernel's permissions. */
void d9__doctor_system(struct d9__doctor *doctor);
