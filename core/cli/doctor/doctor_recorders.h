/* SPDX-License-Identifier: Apache-2.0 */

#pragma once

#include "cli/doctor/doctor.h"

/* The recorders of this user, as root of all: those at work, and rings that were left. */
void d9__doctor_recorders(struct d9__doctor *doctor);
