/* SPDX-License-Identifier: Apache-2.0 */
/* Samples: facts about loops taken at intervals, and what a long poll was made of. */

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "loop/cpu_time.h"

struct d9__slot;

/* Have the flush thread sample queues and tasks.  Idempotent. */
void d9__samples_start(void);

/* How often; 0: not at all.  DIAL9_QUEUE_SAMPLE_INTERVAL_MS. */
void d9__samples_set_period_ns(uint64_t period_ns);

/* Write OffCpuEvent. */
void d9__samples_off_cpu(struct d9__slot *slot, uint64_t ns, uint32_t worker, uint64_t task,
			 const struct d9__cpu_off *off);

/* Wakes from outside that no loop has taken up yet; never below 0. */
uint32_t d9__samples_global_queue(void);

/*
 * Return d9__samples_global_queue() of the loops whose name is |wanted|: a loop without one is
 * called as its worker.
 */
uint64_t d9__samples_queue_of(bool (*wanted)(const void *arg, const char *name), const void *arg);
