/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

/* Our constructor is through.  Before that those of other preloaded libraries may not have run either. */
extern _Atomic(bool) d9__preload_started;
