/* SPDX-License-Identifier: Apache-2.0 */
/* Kinds of profiles: what their stacks are of, and what they are counted in. */

#ifndef D9_CLI_PROFILE_KINDS_H
#define D9_CLI_PROFILE_KINDS_H

#include <stdbool.h>

enum d9__profile_kind {
	D9__PROFILE_KIND_CPU,	  /* where threads computed */
	D9__PROFILE_KIND_OFF_CPU, /* where they were when the kernel took them off the CPU */
	D9__PROFILE_KIND_IDLE,	  /* where idle tasks were armed */
	D9__PROFILE_KINDS
};

struct d9__profile_kind_facts {
	const char *word;	  /* of --kind */
	const char *samples;	  /* "on-CPU samples": what the trace has or lacks */
	const char *one, *many;	  /* what stands behind the sum of all */
	bool times;		  /* counted are microseconds, not samples */
	const char *pprof_type, *pprof_unit, *speedscope_unit;
};

/* By enum d9__profile_kind; ends with one without a word. */
extern const struct d9__profile_kind_facts d9__profile_kinds[];

#endif /* D9_CLI_PROFILE_KINDS_H */
