/* SPDX-License-Identifier: Apache-2.0 */
/* Checks: all of them, in one table. */

#pragma once

#include "findings/findings.h"

/* Apply all checks to |analysis|, which is finished and named.  0 or -ENOMEM. */
int d9__findings_make(struct d9__findings *findings, const struct d9__analysis *analysis);
