/* SPDX-License-Identifier: Apache-2.0 */

#pragma once

#include "cli/doctor/doctor.h"

/*
 * The preload library, the loop libraries, and a recording of each that is read back; those of
 * |uses| alone, and with its files, unless that is NULL.
 */
void d9__doctor_libraries(struct d9__doctor *doctor, const struct d9__loop_uses *uses);
