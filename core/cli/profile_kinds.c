/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stddef.h>

#include "cli/profile_kinds.h"

const struct d9__profile_kind_facts d9__profile_kinds[] = {
	[D9__PROFILE_KIND_CPU] = { "cpu", "on-CPU samples", "on-CPU sample", "on-CPU samples", false,
				   "samples", "count", "none" },
	[D9__PROFILE_KIND_OFF_CPU] = { "off-cpu", "off-CPU samples", "off-CPU sample", "off-CPU samples", false,
				       "contentions", "count", "none" },
	[D9__PROFILE_KIND_IDLE] = { "idle", "dumps of idle tasks", "of idle tasks", "of idle tasks", true,
				    "idle", "microseconds", "microseconds" },
	[D9__PROFILE_KINDS] = { 0 },
};
