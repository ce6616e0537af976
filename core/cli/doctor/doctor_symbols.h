/* SPDX-License-Identifier: Apache-2.0 */

#pragma once

#include "cli/doctor/doctor.h"

/*
 * Check whether functions and lines of the |n| |files|, a program and its libraries, can be named,
 * and what to install.
 */
void d9__doctor_symbols(struct d9__doctor *doctor, const char *const *files, size_t n);
