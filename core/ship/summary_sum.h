/* SPDX-License-Identifier: Apache-2.0 */
/* Summary sum: summaries of segments (cli/segment_summary.h) added up to one of the same shape. */

#pragma once

struct json_object;

#define D9__SUMMARY_BIN_NS UINT64_C(10000000000) /* of a sum */

/*
 * Add the summary |part| of the segment that is stored under |key| to |sum|, an object that has none yet or is the sum of such.
 * Callbacks, spans and findings tell in "segment" the key of the segment that has the longest call, or the finding.  What is
 * of a wrong type counts as not there.  0 or -ENOMEM, and then |sum| is of no use.
 */
int d9__summary_add(struct json_object *sum, struct json_object *part, const char *key);
