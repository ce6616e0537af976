/* SPDX-License-Identifier: Apache-2.0 */
/* Calls: the functions of the C library, locks apart, that are timed in callbacks. */

#pragma once

#include "hook/got.h"

#define D9__CALL_HOOKS_RARE                                                                        \
	59 /* the first of them: what loop libraries call only where they may well wait */
#define D9__CALL_HOOKS 104
extern const struct d9__got_hook d9__call_hooks[D9__CALL_HOOKS];
