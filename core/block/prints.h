/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints: printf() and fprintf(), which wait for a slow file or pipe as fwrite() does.
 *
 * Their arguments cannot be passed on, so the wrappers give them to vfprintf(), as the C library's
 * own functions do.  A program that brings one of these functions itself would miss a call: there
 * they are not redirected.
 */

#pragma once

#include <stdbool.h>

#include "hook/got.h"

#define D9__PRINT_HOOKS 4
extern const struct d9__got_hook d9__print_hooks[D9__PRINT_HOOKS];

/* Find what the wrappers call.  False: they must not be used.  Asks the dynamic loader. */
bool d9__prints_find(void);
