/* SPDX-License-Identifier: Apache-2.0 */
/* Findings, the faults that a trace shows: all of them, in order. */

#pragma once

#include "findings/finding.h"

void d9__findings_release(struct d9__findings *findings);

/* All checks have run: put the findings in order, consequences under causes, with what is known of each.  0 or -ENOMEM. */
int d9__findings_finish(struct d9__findings *findings);

/* Order of findings: negative if |a| is the worse one. */
int d9__findings_compare(const struct d9__finding *a, const struct d9__finding *b);
