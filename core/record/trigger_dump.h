/* SPDX-License-Identifier: Apache-2.0 */
/* Trigger dump: the one dump that triggers make at a time, and its manifest.  Flush thread. */

#pragma once

#include <stdint.h>

#include "base/trigger_text.h"
#include "drain/dump.h"

#define D9__TRIGGER_WHILE_NS UINT64_C(10000000) /* between two looks while a dump grows */

/* A trigger that fired. */
struct d9__trigger_firing {
	const struct d9__trigger *trigger;
	uint64_t ns, value;
	uint64_t task;	   /* 0: of none */
	uint64_t callback; /* its address; 0: it is not known */
};

/*
 * Begin a dump, or let |firing| join the one of the last `every`.  Do nothing if the hour had as
 * many as the trigger allows.
 */
void d9__trigger_dump_fired(const struct d9__trigger_firing *firing,
			    const struct d9__dump_maker *maker);

/* Events were lost at |now_ns|: a dump of that time is not complete. */
void d9__trigger_dump_lost(uint64_t now_ns);

/* Do what is due: write more of the dump, close it, or try again what failed.  Every tick. */
void d9__trigger_dump_go_on(const struct d9__dump_maker *maker, uint64_t now_ns);

/* How long the flush thread may wait until it goes on; UINT64_MAX: there is no dump. */
uint64_t d9__trigger_dump_period_ns(void);

/* The recorder ends: so does the dump. */
void d9__trigger_dump_end(const struct d9__dump_maker *maker, uint64_t now_ns);

/* In a forked child: the dump is the parent's. */
void d9__trigger_dump_fork_child(void);
