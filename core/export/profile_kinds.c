/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stddef.h>

#include "export/profile_kinds.h"

const struct d9__profile_kind_facts d9__profile_kinds[] = {
	[D9__PROFILE_KIND_CPU] = { "cpu", "on-CPU samples", "on-CPU samples", "on-CPU",
				   D9__PROFILE_SAMPLES, "samples" },
	[D9__PROFILE_KIND_OFF_CPU] = { "off-cpu", "off-CPU samples", "off-CPU samples", "off-CPU",
				       D9__PROFILE_SAMPLES, "contentions" },
	[D9__PROFILE_KIND_HEAP] = { "heap", "allocation samples", "allocated bytes", "allocated",
				    D9__PROFILE_BYTES, "alloc_space" },
	[D9__PROFILE_KIND_LIVE] = { "live", "allocation samples", "live bytes", "not freed",
				    D9__PROFILE_BYTES, "inuse_space" },
	[D9__PROFILE_KIND_IDLE] = { "idle", "dumps of idle tasks", "idle time", "of idle tasks",
				    D9__PROFILE_MICROSECONDS, "idle" },
	[D9__PROFILE_KINDS] = { 0 },
};

const struct d9__profile_kind_facts d9__profile_blocking = {
	"off-cpu",	     "off-CPU samples",	      "blocking calls",
	"in blocking calls", D9__PROFILE_NANOSECONDS, "delay"
};

const struct d9__profile_kind_facts d9__profile_away = {
	"off-cpu",     "off-CPU samples",	"off-CPU time",
	"off the CPU", D9__PROFILE_NANOSECONDS, "delay"
};

const struct d9__profile_kind_facts d9__profile_timed = {
	"cpu", "on-CPU samples", "on-CPU time", "on the CPU", D9__PROFILE_NANOSECONDS, "cpu"
};
